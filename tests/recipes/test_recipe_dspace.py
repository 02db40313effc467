"""The recipe for DSpace 7 to 9 is typed beside a site that answers as DSpace does."""

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import files_of, free_port, running, script
from tests.support.software.dspace_oai import PUBLIC, STAFF, DSpaceFile, DSpaceItem, DSpaceSite

ITEMS = 230
THESIS = DSpaceFile(name="thesis é.pdf", body=b"%PDF a thesis")
CLOSED = DSpaceFile(name="closed.pdf", body=b"%PDF secret", policies=STAFF, is_public=False)
LATER = DSpaceFile(
    name="later.pdf",
    body=b"%PDF later",
    policies=(("Anonymous", "2999-01-01", ""), *STAFF),
    is_public=False,
)
NEW = DSpaceFile(name="new.pdf", body=b"%PDF new", policies=(*STAFF, *PUBLIC))
THUMBNAIL = DSpaceFile(name="thesis.pdf.jpg", body=b"small", bundle="THUMBNAIL")


@pytest.fixture(params=[7, 8, 9])
def site(request: pytest.FixtureRequest) -> Iterator[DSpaceSite]:
    made = DSpaceSite(version=request.param)
    for number in range(1, ITEMS + 1):
        made.put(DSpaceItem(number=number, title=f"Thesis {number}"))
    made.put(DSpaceItem(number=1, title="A thesis", files=(THESIS, THUMBNAIL, CLOSED, LATER)))
    embargoed = replace(THESIS, name="e.pdf", is_public=False)
    made.put(DSpaceItem(number=2, title="Embargo", files=(embargoed,), access="embargo"))
    with made.source:
        yield made


def page(site: DSpaceSite, folder: Path, port: int) -> TypedPage:
    """The recipe; no address in it leads out of this machine."""
    stands_for = {
        "https://rs.example": f"http://127.0.0.1:{port}",
        "https://repo.example": site.url,
        "/srv/rs": str(folder / "rs"),
        "127.0.0.1:8080": f"127.0.0.1:{port}",
    }
    made = TypedPage(RECIPES / "dspace.md", folder, stands_for)
    (settings,) = made.blocks("toml")
    (folder / "resourcesync.toml").write_text(settings)
    return made


def bodies(mirror: Path) -> set[bytes]:
    return {body for path, body in files_of(mirror).items() if "/bitstreams/" in f"/{path}"}


def test_the_recipe_does_what_it_says(site: DSpaceSite, tmp_path: Path) -> None:
    port = free_port()
    typed = page(site, tmp_path, port)
    publish, serve, pull, _ = typed.blocks("sh")

    told = typed.succeed(publish)
    words = serve.split()[1:]

    assert "1 source" in told
    assert len(list((tmp_path / "rs/resource").rglob("oai_dc.xml"))) == ITEMS
    with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
        first = typed.succeed(pull)
        assert bodies(tmp_path / "check") == {THESIS.body}
        assert not any(asked.target.startswith("/bitstreams/") for asked in site.source.asked)

        site.withdraw(3)
        site.put(DSpaceItem(number=4, title="New", files=(NEW,)))
        typed.succeed(publish)
        again = typed.succeed(pull)

    assert "In sync" in first
    assert "In sync" in again
    assert bodies(tmp_path / "check") == {THESIS.body, NEW.body}
    copies = files_of(tmp_path / "check")
    assert len([path for path in copies if path.endswith("oai_dc.xml")]) == ITEMS - 1
    assert not [path for path in copies if "/123456789/3/" in f"/{path}"]


def test_an_item_that_left_no_record_is_found_by_the_harvest_of_everything(
    tmp_path: Path,
) -> None:
    site = DSpaceSite()
    for number in range(1, ITEMS + 1):
        site.put(DSpaceItem(number=number, title=f"Thesis {number}"))
    with site.source:
        typed = page(site, tmp_path, free_port())
        publish = typed.blocks("sh")[0]
        typed.succeed(publish)
        site.expunge(7)
        typed.succeed(publish)
        here = len(list((tmp_path / "rs/resource").rglob("oai_dc.xml")))
        typed.succeed("resourcesync publish repository --rescan 0")

    assert here == ITEMS
    assert len(list((tmp_path / "rs/resource").rglob("oai_dc.xml"))) == ITEMS - 1


def test_an_index_that_is_being_built_again_deletes_nothing(tmp_path: Path) -> None:
    site = DSpaceSite()
    for number in range(1, ITEMS + 1):
        site.put(DSpaceItem(number=number, title=f"Thesis {number}"))
    with site.source:
        typed = page(site, tmp_path, free_port())
        typed.succeed(typed.blocks("sh")[0])
        lists = {path: path.read_bytes() for path in (tmp_path / "rs/resourcesync").iterdir()}
        for number in range(1, ITEMS - 9):
            site.expunge(number)

        ran = typed.type("resourcesync publish repository --rescan 0")

    assert ran.code != 0
    assert "error[" in ran.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "rs/resourcesync").iterdir()} == lists
    assert len(list((tmp_path / "rs/resource").rglob("oai_dc.xml"))) == ITEMS


@pytest.mark.parametrize("version", [8, 9])
def test_files_that_not_everybody_may_read_are_left_out_without_a_request(
    tmp_path: Path, version: int
) -> None:
    site = DSpaceSite(version=version)
    site.put(DSpaceItem(number=1, title="A thesis", files=(THESIS, CLOSED, LATER, NEW)))
    with site.source:
        typed = page(site, tmp_path, free_port())
        settings = (tmp_path / "resourcesync.toml").read_text().replace("yes", "no")
        (tmp_path / "resourcesync.toml").write_text(settings)
        typed.succeed(typed.blocks("sh")[0])

    text = (tmp_path / "rs/resourcesync/resourcelist.xml").read_text()
    assert not [asked for asked in site.source.asked if asked.method == "HEAD"]
    assert {file for file in (THESIS, CLOSED, LATER, NEW) if file.uuid in text} == {THESIS, NEW}


def test_the_files_that_keep_it_running_name_the_source(tmp_path: Path) -> None:
    with (site := DSpaceSite()).source:
        typed = page(site, tmp_path, free_port())
    cron = typed.succeed(typed.blocks("sh")[3])

    unit = (tmp_path / "resourcesync-publish@.service").read_text()

    assert tomllib.loads(typed.blocks("toml")[0])["source"].keys() == {"repository"}
    assert "publish" in unit
    assert f"ReadWritePaths={tmp_path}/rs\n" in unit
    assert "publish" in cron
    assert "pull" not in cron
