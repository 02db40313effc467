"""The files of a repository: found by rule, linked with metadata, left out when restricted."""

from pathlib import Path

import pytest

from resourcesync.model.entries import Resource
from tests.support.accounts.harvested_repository import BASE, HarvestedRepository
from tests.support.accounts.oai_provider import Bitstream, Item, Quirks, changed

THESIS = Bitstream(name="thesis.pdf", body=b"a thesis")
DATA = Bitstream(name="data.csv", body=b"1,2", media_type="text/csv")
LICENCE = Bitstream(name="license.txt", body=b"yes", bundle="LICENSE")
HOST = "https://repo.example/bitstream"


def world(
    root: Path, *items: Item, quirks: Quirks | None = None, **values: str
) -> HarvestedRepository:
    made = HarvestedRepository(root, quirks, **{"files_from": "xoai", **values})
    for item in items:
        made.provider.put(item)
    return made


def files(told: dict[str, Resource]) -> list[str]:
    return [uri.removeprefix(f"{HOST}/") for uri in sorted(told) if uri.startswith(HOST)]


def item(local: str, *bitstreams: Bitstream, rights: str = "") -> Item:
    return Item(local=local, bitstreams=bitstreams, rights=rights, mentions=False)


@pytest.mark.founding(
    "0.9 §8.4", "Files and records of a repository lead to each other", "`publish oai:URL`"
)
@pytest.mark.parametrize("listing", ["xoai", "mets", "ore"])
def test_files_and_metadata_are_linked_both_ways(tmp_path: Path, listing: str) -> None:
    made = world(
        tmp_path, item("10673/1", THESIS, DATA, LICENCE), prefixes="oai_dc,mods", files_from=listing
    )
    made.fill()
    pdf, csv = f"{HOST}/10673/1/thesis.pdf", f"{HOST}/10673/1/data.csv"
    metadata = [f"{BASE}resource/10673/1/{name}.xml" for name in ("mods", "oai_dc")]

    assert sorted(made.told) == sorted([pdf, csv, *metadata])
    for uri in metadata:
        links = made.told[uri].describes
        assert [(link.href, link.media_type) for link in links] == [
            (csv, "text/csv"),
            (pdf, "application/pdf"),
        ]
    told = made.told[pdf]
    assert [link.href for link in told.described_by] == metadata
    assert [collection.href.rpartition("=")[2] for collection in told.collections] == [
        "col_10673_2"
    ]
    assert (told.length, told.media_type) == (len(THESIS.body), "application/pdf")
    assert bool(told.digests) == (listing != "ore")
    assert told.lastmod is not None


def test_files_come_change_and_go_with_their_items(tmp_path: Path) -> None:
    made = world(tmp_path, item("1", THESIS), item("2", DATA))
    made.fill()
    before = made.told[f"{HOST}/1/thesis.pdf"]
    metadata = f"{BASE}resource/1/oai_dc.xml"

    changed(made.provider, "1", title="Another title")
    assert list(made.follow()) == [metadata], "the file is the same"

    made.provider.tick(60)
    other = Bitstream(name="thesis.pdf", body=b"a new edition")
    changed(made.provider, "1", bitstreams=(other, LICENCE))
    news = made.follow()
    assert list(news) == [f"{HOST}/1/thesis.pdf"]
    after = made.told[f"{HOST}/1/thesis.pdf"]
    assert after.length == len(other.body)
    assert after.digests != before.digests
    assert after.lastmod is not None
    assert before.lastmod is not None
    assert after.lastmod > before.lastmod

    changed(made.provider, "1", bitstreams=())
    news = made.follow()
    assert news[f"{HOST}/1/thesis.pdf"] is None
    assert made.told[metadata].describes == ()

    made.provider.remove("2")
    assert set(made.follow().values()) == {None}
    assert files(made.told) == []


def test_a_file_of_two_items_is_told_once_with_all_its_metadata(tmp_path: Path) -> None:
    made = HarvestedRepository(tmp_path, files="*/shared.pdf")
    shared = "<dc:identifier>https://repo.example/bitstream/shared.pdf</dc:identifier>"
    for local in ("1", "2"):
        made.provider.put(Item(local=local, raw=shared, sets=(f"set{local}",)))
    made.fill()
    uri = f"{HOST}/shared.pdf"
    assert len(made.told[uri].described_by) == len(made.told[uri].collections) == 2

    made.provider.remove("1")
    made.follow()
    assert [link.href for link in made.told[uri].described_by] == [f"{BASE}resource/2/oai_dc.xml"]

    made.provider.remove("2")
    made.follow()
    assert made.told == {}


@pytest.mark.founding(
    "DSpace: Process", "What the public may not see is left out", "`publish oai:URL`"
)
@pytest.mark.parametrize("rights", ["restricted", "embargo", "metadata.only"])
def test_files_of_restricted_items_are_left_out(tmp_path: Path, rights: str) -> None:
    made = world(tmp_path, item("1", THESIS, rights=rights), item("2", DATA))
    made.fill()
    assert files(made.told) == ["2/data.csv"]
    assert made.told[f"{BASE}resource/1/oai_dc.xml"].describes == ()

    changed(made.provider, "1", rights="open.access")
    news = made.follow()
    assert files(made.told) == ["1/thesis.pdf", "2/data.csv"]
    assert len(made.told[f"{BASE}resource/1/oai_dc.xml"].describes) == 1
    assert set(news) == {f"{HOST}/1/thesis.pdf", f"{BASE}resource/1/oai_dc.xml"}

    changed(made.provider, "1", rights=rights)
    news = made.follow()
    assert news[f"{HOST}/1/thesis.pdf"] is None
    assert files(made.told) == ["2/data.csv"]


def test_rights_in_one_format_keep_back_what_another_one_lists(tmp_path: Path) -> None:
    made = world(tmp_path, item("1", THESIS), files_from="mets")
    changed(made.provider, "1", rights="info:eu-repo/semantics/closedAccess")
    made.fill()
    assert files(made.told) == []

    changed(made.provider, "1", rights="info:eu-repo/semantics/openAccess")
    made.follow()
    assert files(made.told) == ["1/thesis.pdf"]


@pytest.mark.parametrize(
    ("until", "is_there"), [("2026-05-31", True), ("2026-06-02", False), ("forever", False)]
)
def test_an_embargo_ends(tmp_path: Path, until: str, is_there: bool) -> None:
    closed = Bitstream(name="thesis.pdf", body=b"x", embargo=until)
    made = world(tmp_path, item("1", closed, DATA))
    made.fill()
    assert (f"{HOST}/1/thesis.pdf" in made.told) == is_there

    made.clock.sleep(10 * 86_400)
    made.fill()
    assert (f"{HOST}/1/thesis.pdf" in made.told) == (until != "forever")


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_files_that_not_everybody_can_have_are_left_out(tmp_path: Path, status: int) -> None:
    closed = Bitstream(name="closed.pdf", body=b"x", status=status)
    made = world(tmp_path, item("1", closed, THESIS), measure="yes")
    made.fill()
    assert files(made.told) == ["1/thesis.pdf"]

    made.provider.items["1"] = (
        made.provider.items["1"][0],
        item("1", THESIS, Bitstream(name="closed.pdf", body=b"x")),
    )
    made.fill()
    assert files(made.told) == ["1/closed.pdf", "1/thesis.pdf"], "a whole harvest asks again"
    assert len(made.told[f"{BASE}resource/1/oai_dc.xml"].describes) == 2


def test_a_server_of_files_that_fails_hides_no_file(tmp_path: Path) -> None:
    broken = Bitstream(name="broken.pdf", body=b"x", status=500)
    made = world(tmp_path, item("1", broken, THESIS), measure="yes")

    assert files(made.fill()) == ["1/broken.pdf", "1/thesis.pdf"]


def test_killed_while_files_are_asked_for_the_next_run_is_right(tmp_path: Path) -> None:
    made = world(tmp_path, *(item(str(at), THESIS) for at in range(5)), measure="yes")
    for requests in range(6, 12):
        made.killed_after = requests
        try:
            made.fill()
        except KeyboardInterrupt:
            assert not made.told
    made.killed_after = None

    assert len(files(made.fill())) == 5
    assert {resource.length for uri, resource in made.told.items() if uri.startswith(HOST)} == {8}
