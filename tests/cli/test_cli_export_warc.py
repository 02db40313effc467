"""``export`` to web archives: each copy or version is a capture, and no damage is in them."""

import gzip
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from resourcesync.adapters.in_memory import ManualClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.cli.main import run
from resourcesync.destination.exports import web_archives
from resourcesync.ports.exporters import ExportFile, ExportOptions, MirrorSnapshot
from tests.support.commands.command_line import FILES, LATER, Said, rows, spoil
from tests.support.servers.tiny_source import TinySource
from tests.support.warc_records import captures, in_wacz, members, records

ODD = {
    "/": b"<html>start</html>",
    "/data/": b'{"this is": "no page"}',
    "/docs/about": b"<!-- a page without a name --> <!DOCTYPE html><title>About</title>",
    "/paper": b"%PDF-1.7\n",
    "/%C3%A9t%C3%A9/a%20b?x=1&y=%26": "été".encode(),
    "/empty.txt": b"",
    "/noise.bin": hashlib.shake_256(b"noise").digest(2_500_000),
    "/Same.txt": b"same",
    "/same.txt": b"same",
}


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def export(form: str, out: str, *more: str, folder: str = "museum") -> int:
    return run(["export", folder, "--format", form, "--out", out, *more])


def left() -> set[str]:
    return {path.name for path in Path().iterdir()}


# --- a mirror ---


@pytest.mark.parametrize("out", ["museum.warc.gz", "museum.warc"])
def test_each_copy_is_a_record_with_its_bytes(
    source: TinySource, museum: str, said: Said, out: str
) -> None:
    assert export("warc", out) == 0

    assert said.readouterr().out.startswith(f"Exported  12 resources in {out}, ")
    found = captures(Path(out).read_bytes())
    assert {record.uri: record.block for record in found} == {
        f"{source.url}{target}": body for target, body in FILES.items()
    }
    assert {record.kind for record in found} == {"resource"}
    assert {record.fields["Content-Type"] for record in found} == {"text/plain"}
    assert len(found) == len(FILES)


def test_the_first_record_tells_what_the_file_is(source: TinySource, museum: str) -> None:
    assert export("warc", "museum.warc.gz", "--organization", "The\nMuseum") == 0

    info = records(Path("museum.warc.gz").read_bytes())[0]
    facts = dict(line.split(": ", 1) for line in info.block.decode().splitlines())
    assert info.fields["WARC-Filename"] == "museum.warc.gz"
    assert (facts["isPartOf"], facts["operator"]) == (source.url, "The Museum")
    assert facts["software"].startswith("resourcesync ")


def test_the_time_of_a_capture_is_when_it_was_retrieved(museum: str) -> None:
    before = datetime.now(UTC)
    assert export("warc", "museum.warc") == 0

    found = captures(Path("museum.warc").read_bytes())
    moments = [datetime.fromisoformat(record.date) for record in found]
    assert all((before - moment).total_seconds() < 60 for moment in moments)
    assert max(moments) < before


def test_the_same_copies_have_the_same_records(museum: str) -> None:
    for name in ("one.warc.gz", "two.warc.gz"):
        assert export("warc", name) == 0

    one, two = (list(members(Path(name).read_bytes())) for name in ("one.warc.gz", "two.warc.gz"))
    assert one[1:] == two[1:]


def test_unusual_resources_are_as_they_were_fetched(source: TinySource, said: Said) -> None:
    source.offer(ODD)
    assert run(["pull", source.url, "museum"]) == 0
    assert export("warc", "all.warc.gz") == 0
    assert export("wacz", "all.wacz") == 0

    found = {one.uri: one for one in captures(Path("all.warc.gz").read_bytes())}
    assert {uri.removeprefix(source.url): one.block for uri, one in found.items()} == ODD
    assert found[f"{source.url}/docs/about"].fields["Content-Type"] == "text/html"
    assert found[f"{source.url}/"].fields["Content-Type"] == "text/html"
    assert found[f"{source.url}/data/"].fields["Content-Type"] == "application/octet-stream"
    assert found[f"{source.url}/paper"].fields["Content-Type"] == "application/pdf"
    assert found[f"{source.url}/noise.bin"].fields["Content-Type"] == "application/octet-stream"
    assert {one.uri: one.block for one in in_wacz(Path("all.wacz"))} == {
        uri: one.block for uri, one in found.items()
    }


def test_a_folder_has_files_of_a_limited_size(source: TinySource, said: Said) -> None:
    noise = hashlib.shake_256(b"noise")
    files = {f"/{number:03}.bin": noise.digest(9_000 + number) for number in range(20)}
    source.offer({**files, "/large.bin": noise.digest(90_000)})
    assert run(["pull", source.url, "museum"]) == 0

    assert export("warc", "parts", "--max-package", "40K") == 0

    names = sorted(path.name for path in Path("parts").iterdir())
    sizes = [(Path("parts") / name).stat().st_size for name in names]
    assert [size for size in sizes if size > 42_000] == [max(sizes)]
    assert len(names) == 6
    assert names[0].startswith("parts-20")
    assert names[0].endswith("-00001.warc.gz")
    found = [one for name in names for one in captures((Path("parts") / name).read_bytes())]
    assert len(found) == 21
    assert {one.uri.removeprefix(source.url): one.block for one in found}.items() >= files.items()


def test_only_new_copies_are_exported(source: TinySource, museum: str, said: Said) -> None:
    moment = datetime.now(UTC).isoformat()
    source.offer({**FILES, "/new.txt": b"new"}, at=LATER)
    assert run(["pull", "museum"]) == 0

    assert export("warc", "new.warc", "--since", moment) == 0

    assert [one.block for one in captures(Path("new.warc").read_bytes())] == [b"new"]


@pytest.mark.parametrize(("form", "ending"), [("warc", ".warc"), ("wacz", ".wacz")])
def test_any_name_of_a_file_is_possible(museum: str, form: str, ending: str) -> None:
    for name in ("é ü", "a\r\nWARC-Type: x", os.fsdecode(b"\xff")):
        assert export(form, f"{name}{ending}") == 0
        path = Path(f"{name}{ending}")
        found = captures(path.read_bytes()) if form == "warc" else in_wacz(path)
        assert len(found) == len(FILES)


# --- one WACZ ---


def test_a_wacz_has_an_index_that_finds_each_record(source: TinySource, said: Said) -> None:
    source.offer({**ODD, **FILES})
    assert run(["pull", source.url, "museum"]) == 0
    assert export("wacz", "all.wacz", "--max-package", "100K") == 0

    assert subprocess.run(["unzip", "-tq", "all.wacz"], check=False).returncode == 0
    with zipfile.ZipFile("all.wacz") as package:
        lines = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
        found = {}
        for line in lines:
            _, stamp, fields = line.split(" ", 2)
            told = json.loads(fields)
            start, length = int(told["offset"]), int(told["length"])
            data = package.read(f"archive/{told['filename']}")[start : start + length]
            (record,) = records(data)
            assert record.uri == told["url"]
            assert record.fields["WARC-Payload-Digest"] == told["digest"]
            assert record.date.translate({45: None, 84: None, 58: None}).startswith(stamp)
            found[record.uri.removeprefix(source.url)] = record.block
        assert {info.compress_type for info in package.infolist()} == {zipfile.ZIP_STORED}
    assert found == {**ODD, **FILES}
    assert lines == sorted(lines)


def test_the_blocks_of_an_index_can_be_read_alone(source: TinySource, said: Said) -> None:
    source.offer({f"/{number:05}.txt": b"%d" % number for number in range(2_100)})
    assert run(["pull", source.url, "museum"]) == 0
    assert export("wacz", "all.wacz") == 0

    with zipfile.ZipFile("all.wacz") as package:
        meta, *blocks = package.read("indexes/index.idx").decode().splitlines()
        index = package.read("indexes/index.cdx.gz")
    assert json.loads(meta.removeprefix("!meta 0 "))["filename"] == "index.cdx.gz"
    assert len(blocks) == 3
    lines = []
    for line in blocks:
        key, place = line.split(" {", 1)
        told = json.loads("{" + place)
        block = gzip.decompress(index[told["offset"] : told["offset"] + told["length"]])
        assert block.decode().startswith(f"{key} ")
        lines += block.decode().splitlines()
    assert len(lines) == 2_100


def test_a_wacz_describes_its_files_and_lists_its_pages(source: TinySource, said: Said) -> None:
    source.offer(ODD)
    assert run(["pull", source.url, "museum"]) == 0
    assert export("wacz", "all.wacz") == 0

    with zipfile.ZipFile("all.wacz") as package:
        data = package.read("datapackage.json")
        told = json.loads(data)
        for file in told["resources"]:
            body = package.read(file["path"])
            assert file["bytes"] == len(body)
            assert file["hash"] == f"sha256:{hashlib.sha256(body).hexdigest()}"
        described = {file["path"] for file in told["resources"]}
        last = {"datapackage.json", "datapackage-digest.json"}
        assert described | last == set(package.namelist())
        digest = json.loads(package.read("datapackage-digest.json"))
        pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]
    assert digest["hash"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert told["wacz_version"] == "1.1.1"
    assert pages[0]["format"] == "json-pages-1.0"
    assert [page["url"] for page in pages[1:]] == [
        f"{source.url}/",
        f"{source.url}/docs/about",
        f"{source.url}/paper",
    ]


def test_a_wacz_is_one_file_with_its_ending(museum: str, said: Said) -> None:
    assert export("wacz", "folder") == 2
    assert "whose name ends in .wacz" in said.readouterr().err
    assert left() == {"museum"}


# --- the page ---

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "export-a-mirror.md"


def test_the_examples_of_the_page_make_the_archives_that_it_names(
    museum: str, published: Path
) -> None:
    section = PAGE.read_text("utf-8").partition("## Make a web archive")[2]
    shown = [
        line.split()[1:]
        for block in re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
        if line.startswith("resourcesync ")
    ]

    assert [run(words) for words in shown] == [0] * 6

    made = ("museum.warc.gz", "museum.wacz", "public.wacz")
    assert left() == {"museum", "public", "warcs", "warcs-today", *made}


# --- no lies ---


@pytest.mark.parametrize(
    ("form", "out"),
    [("warc", "z.warc.gz"), ("warc", "z.warc"), ("warc", "parts"), ("wacz", "z.wacz")],
)
def test_a_damaged_copy_is_not_exported_and_all_damage_is_named(
    museum: str, said: Said, form: str, out: str
) -> None:
    spoil(museum)

    assert export(form, out, "--json") == 1

    found = rows(said)
    assert {(row["kind"], row["path"]) for row in found if row["type"] == "finding"} == {
        ("+", "objects/0003.txt"),
        ("*", "objects/0005.txt"),
    }
    assert left() == {"museum"}


def test_a_copy_without_a_digest_is_not_exported(museum: str, said: Said) -> None:
    with sqlite3.connect("museum/.resourcesync/state.db") as db:
        db.execute("UPDATE copy SET digests = '' WHERE path = 'objects/0004.txt'")
    db.close()

    assert export("warc", "z.warc") == 1
    assert "* /objects/0004.txt" in said.readouterr().out
    assert left() == {"museum"}


@pytest.mark.parametrize(("form", "out"), [("warc", "z.warc.gz"), ("wacz", "z.wacz")])
def test_a_pull_meanwhile_is_said(
    source: TinySource,
    museum: str,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    out: str,
) -> None:
    original = getattr(web_archives, f"export_{form}")

    def pulling(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
        source.offer({**FILES, "/objects/0004.txt": b"new\n"}, at=LATER)
        assert run(["pull", museum]) == 0
        yield from original(holdings, options)

    monkeypatch.setattr(web_archives, f"export_{form}", pulling)
    assert export(form, out) == 1
    assert "! /objects/0004.txt   a pull changed it during the export" in said.readouterr().out
    assert left() == {"museum"}


# --- versions ---

BASE = "https://museum.example/"
HOUR = 3_600
TEXTS = (b"one", b"two", b"one", b"", b"two")


@pytest.fixture
def published(here: Path) -> Path:
    """A folder that was published each hour: a file changed, one was deleted, one is excluded."""
    root = here / "public"
    root.mkdir()
    clock = ManualClock(datetime(2025, 6, 1, 12, tzinfo=UTC))
    chosen: dict[str, object] = {"url": BASE, "versions": True, "versions_keep": 9_000_000.0}
    for number, text in enumerate(TEXTS):
        (root / "a b.txt").write_bytes(text)
        (root / "page.html").write_bytes(b"<html>same</html>")
        (root / "private.txt").write_bytes(b"secret %d" % number)
        for path in root.glob("*.*"):
            modified = clock.now().timestamp() - 60
            os.utime(path, (modified, modified))
        publish_tree(root, chosen, clock=clock)
        (root / "gone.txt").write_bytes(b"gone")
        if number > 1:
            (root / "gone.txt").unlink()
        clock.advance(hours=1)
        chosen = {}
    publish_tree(root, {"exclude": ("private.txt",)}, clock=clock)
    return root


def versions(out: str, form: str = "warc") -> int:
    return export(form, out, "--versions", folder="public")


def test_each_version_is_a_capture_at_its_time(published: Path, said: Said) -> None:
    assert versions("all.warc.gz") == 0

    out = said.readouterr().out
    assert "Exported  7 versions in all.warc.gz" in out
    assert "5 versions not included: their files are excluded" in out
    found = captures(Path("all.warc.gz").read_bytes())
    changed = [one for one in found if one.uri == f"{BASE}a%20b.txt"]
    assert [(one.kind, one.block, one.date[:16]) for one in changed] == [
        ("resource", b"one", "2025-06-01T11:59"),
        ("resource", b"two", "2025-06-01T12:59"),
        ("revisit", b"", "2025-06-01T13:59"),
        ("resource", b"", "2025-06-01T14:59"),
        ("revisit", b"", "2025-06-01T15:59"),
    ]


def test_a_revisit_refers_to_the_first_capture_of_its_bytes(published: Path) -> None:
    assert versions("all.warc.gz") == 0

    found = captures(Path("all.warc.gz").read_bytes())
    by_id = {one.fields["WARC-Record-ID"]: one for one in found}
    revisits = [one for one in found if one.kind == "revisit"]
    assert len(revisits) == 2
    for revisit in revisits:
        original = by_id[revisit.fields["WARC-Refers-To"]]
        assert original.kind == "resource"
        assert original.uri == revisit.fields["WARC-Refers-To-Target-URI"] == revisit.uri
        assert original.date == revisit.fields["WARC-Refers-To-Date"] < revisit.date
        digest = revisit.fields["WARC-Payload-Digest"]
        assert digest == original.fields["WARC-Payload-Digest"]
        assert revisit.fields["WARC-Profile"].endswith("/identical-payload-digest")


def test_versions_of_deleted_files_are_included_and_of_excluded_ones_not(published: Path) -> None:
    assert versions("all.wacz", "wacz") == 0

    found = in_wacz(Path("all.wacz"))
    assert [one.block for one in found if one.uri == f"{BASE}gone.txt"] == [b"gone"]
    assert not [one for one in found if b"secret" in one.block or "private" in one.uri]
    assert not (published / "gone.txt").exists()


def test_versions_are_selected_by_the_time_when_they_were_stored(
    published: Path, said: Said
) -> None:
    assert (
        export("warc", "new.warc", "--versions", "--since", "2025-06-01T15:30:00Z", folder="public")
        == 0
    )

    found = captures(Path("new.warc").read_bytes())
    assert [(one.kind, one.block) for one in found] == [("resource", b"two")]


def test_a_damaged_version_is_named_and_nothing_is_written(published: Path, said: Said) -> None:
    store = published / ".resourcesync" / "versions"
    digests = [hashlib.sha256(body).hexdigest() for body in (b"two", b"gone")]
    two, gone = (store / digest[:2] / digest for digest in digests)
    two.write_bytes(b"owt")
    gone.unlink()

    assert versions("all.wacz", "wacz") == 1

    out = said.readouterr().out
    assert out.count(f"* /.resourcesync/versions/{digests[0][:2]}/{digests[0]}") == 2
    assert out.count(f"+ /.resourcesync/versions/{digests[1][:2]}/{digests[1]}   missing") == 1
    assert "3 versions of public are damaged; nothing was written" in out
    assert left() == {"public"}


def test_a_version_that_a_publication_removes_meanwhile_is_said(
    published: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = web_archives.export_warc

    def expiring(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
        later = ManualClock(datetime(2026, 6, 1, tzinfo=UTC))
        (published / "a b.txt").write_bytes(b"more than there is room for")
        publish_tree(published, {"versions_max_bytes": 60}, clock=later)
        yield from original(holdings, options)

    monkeypatch.setattr(web_archives, "export_warc", expiring)

    assert versions("all.warc.gz") == 1
    assert "a publication removed it during the export" in said.readouterr().out
    assert left() == {"public"}


@pytest.mark.parametrize(("form", "out"), [("bagit", "bag"), ("zip", "z.zip")])
def test_a_format_with_one_copy_of_each_refuses_versions(
    published: Path, said: Said, form: str, out: str
) -> None:
    assert versions(out, form) == 2
    assert "the formats warc and wacz have versions" in said.readouterr().err
    assert left() == {"public"}


def test_a_folder_without_versions_is_refused(museum: str, tree: Path, said: Said) -> None:
    assert run(["publish", "public", "--url", BASE]) == 0
    for folder in ("museum", "public", "nothing"):
        assert export("warc", "out.warc", "--versions", folder=folder) == 2
        assert f"{folder} stores no versions" in said.readouterr().err
    assert not Path("out.warc").exists()


def test_a_place_in_the_published_folder_is_refused(published: Path, said: Said) -> None:
    assert versions("public/all.warc.gz") == 2
    assert "is inside public" in said.readouterr().err
