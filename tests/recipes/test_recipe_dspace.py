"""The recipe for DSpace 7 to 9 is typed beside a repository with the formats of DSpace."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.accounts.oai_provider import Bitstream, Item, Provider, Quirks, providing
from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import files_of, free_port, running, script

ITEMS = 230
THESIS = Bitstream(name="thesis é.pdf", body=b"%PDF a thesis")
CLOSED = Bitstream(name="closed.pdf", body=b"%PDF secret", status=401)
NEW = Bitstream(name="new.pdf", body=b"%PDF new")
THUMBNAIL = Bitstream(name="thesis.pdf.jpg", body=b"small", bundle="THUMBNAIL")


@pytest.fixture
def repository() -> Iterator[Provider]:
    """Offer pages of 100 records, and forget what was withdrawn after a while."""
    with providing(Provider(Quirks(page=100, deletions="transient"))) as made:
        for number in range(1, ITEMS + 1):
            made.put(Item(local=f"123456789/{number}", title=f"Thesis {number}"))
        made.put(Item(local="123456789/1", bitstreams=(THESIS, THUMBNAIL, CLOSED)))
        made.put(Item(local="123456789/2", bitstreams=(NEW,), rights="embargo"))
        yield made


def page(repository: Provider, folder: Path, port: int) -> TypedPage:
    """The recipe; no address in it leads out of this machine."""
    stands_for = {
        "https://rs.example": f"http://127.0.0.1:{port}",
        "https://repo.example/server/oai/request": repository.base,
        "https://repo.example": repository.url,
        "/srv/rs": str(folder / "rs"),
        "127.0.0.1:8080": f"127.0.0.1:{port}",
    }
    made = TypedPage(RECIPES / "dspace.md", folder, stands_for)
    (settings,) = made.blocks("toml")
    (folder / "resourcesync.toml").write_text(settings)
    return made


def bodies(mirror: Path) -> set[bytes]:
    return {body for path, body in files_of(mirror).items() if "bitstream/" in path}


def records(folder: Path) -> int:
    return len(list(folder.rglob("oai_dc.xml")))


def test_the_recipe_does_what_it_says(repository: Provider, tmp_path: Path) -> None:
    port = free_port()
    typed = page(repository, tmp_path, port)
    publish, serve, pull, _ = typed.blocks("sh")

    told = typed.succeed(publish)

    assert "1 source" in told
    assert records(tmp_path / "rs/resource") == ITEMS
    with running(script("resourcesync"), *serve.split()[1:], port=port, cwd=tmp_path):
        first = typed.succeed(pull)
        assert bodies(tmp_path / "check") == {THESIS.body}

        repository.remove("123456789/3")
        repository.put(Item(local="123456789/4", bitstreams=(NEW,)))
        typed.succeed(publish)
        again = typed.succeed(pull)

    assert "In sync" in first
    assert "In sync" in again
    assert bodies(tmp_path / "check") == {THESIS.body, NEW.body}
    assert records(tmp_path / "check") == ITEMS - 1
    assert not [path for path in files_of(tmp_path / "check") if "/123456789/3/" in f"/{path}"]


def test_what_left_no_record_is_found_by_a_harvest_of_everything_that_does_not_empty_it(
    repository: Provider, tmp_path: Path
) -> None:
    typed = page(repository, tmp_path, free_port())
    publish, everything = typed.blocks("sh")[0], "resourcesync publish repository --rescan 0"
    typed.succeed(publish)
    del repository.items["123456789/7"]
    typed.succeed(publish)
    assert records(tmp_path / "rs/resource") == ITEMS
    typed.succeed(everything)
    assert records(tmp_path / "rs/resource") == ITEMS - 1

    lists = {path: path.read_bytes() for path in (tmp_path / "rs/resourcesync").iterdir()}
    for local in list(repository.items)[: ITEMS - 9]:  # its index is built again
        del repository.items[local]
    ran = typed.type(everything)

    assert ran.code != 0
    assert "error[" in ran.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "rs/resourcesync").iterdir()} == lists
    assert records(tmp_path / "rs/resource") == ITEMS - 1


def test_the_files_that_keep_it_running_name_the_source(
    repository: Provider, tmp_path: Path
) -> None:
    typed = page(repository, tmp_path, free_port())
    cron = typed.succeed(typed.blocks("sh")[3])

    unit = (tmp_path / "resourcesync-publish@.service").read_text()

    assert tomllib.loads(typed.blocks("toml")[0])["source"].keys() == {"repository"}
    assert f"ReadWritePaths={tmp_path}/rs\n" in unit
    assert "publish" in cron
    assert "pull" not in cron
