"""Exports to web archives, read and shown by the programs of others.

`warcio` and `fastwarc` are Python packages. `pywb`, `cdxj-indexer` and `wacz` (py-wacz) are
programs on ``PATH``; they bring many packages, so they have an environment of their own:
``python -m venv x && x/bin/pip install pywb cdxj-indexer wacz``.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import zipfile
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from campaigns import replay
from campaigns.outcome import Asked
from resourcesync.adapters.in_memory import ManualClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.cli.main import run
from tests.support.servers import wayback
from tests.support.servers.tiny_source import TinySource
from tests.support.warc_records import captures, in_wacz

BASE = "https://museum.example/"
RESOURCES = {
    "/": b"<!doctype html><title>Museum</title>",
    "/docs/about": b"<html>about</html>",
    "/a.txt": b"a",
    "/%C3%A9t%C3%A9/a%20b?x=1&y=%26": "été".encode(),
    "/empty.txt": b"",
    "/noise.bin": hashlib.shake_256(b"noise").digest(1_500_000),
    "/Case.txt": b"upper",
}
FORMS = ("all.warc", "all.warc.gz", "all.wacz")


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a mirror and its exports, and those of the versions of a published folder."""
    home = tmp_path_factory.mktemp("home")
    _publish_versions(home / "public")
    with TinySource() as source:
        source.offer(RESOURCES)
        assert run(["pull", source.url, str(home / "museum"), "-q"]) == 0
        (home / "origin").write_text(source.url)
    for name in FORMS:
        form = "wacz" if name.endswith(".wacz") else "warc"
        words = ["--format", form, "-q"]
        assert run(["export", str(home / "museum"), *words, "--out", str(home / name)]) == 0
        out = str(home / f"versions-{name}")
        assert run(["export", str(home / "public"), *words, "--versions", "--out", out]) == 0
    parts = ["--format", "warc", "--max-package", "1K", "-q"]
    assert run(["export", str(home / "museum"), *parts, "--out", str(home / "parts")]) == 0
    return home


def _publish_versions(root: Path) -> None:
    root.mkdir()
    clock = ManualClock(datetime(2025, 6, 1, 12, tzinfo=UTC))
    chosen: dict[str, object] = {"url": BASE, "versions": True, "versions_keep": 9_000_000.0}
    for text in (b"one", b"two", b"one", b"", b"one"):
        for name, body in (("page é.html", b"<p>" + text), ("empty.txt", b""), ("t.txt", text)):
            (root / name).write_bytes(body)
            modified = clock.now().timestamp()
            os.utime(root / name, (modified, modified))
        publish_tree(root, chosen, clock=clock)
        clock.advance(hours=1)
        chosen = {}
    (root / "t.txt").unlink()
    publish_tree(root, {}, clock=clock)


def warcs(home: Path) -> list[Path]:
    """All WARC files, those of a WACZ unpacked."""
    for path in home.glob("*.wacz"):
        with zipfile.ZipFile(path) as package:
            package.extractall(home / f"{path.stem}.unpacked")
    return [path for path in sorted(home.rglob("*.warc*")) if path.is_file()]


def digests(records: list[tuple[str, bytes]]) -> set[tuple[str, str]]:
    return {(uri, hashlib.sha256(body).hexdigest()) for uri, body in records}


def expected(path: Path) -> set[tuple[str, str]]:
    kept = [one for one in captures(path.read_bytes()) if one.kind == "resource"]
    return digests([(one.uri, one.block) for one in kept])


def test_warcio_reads_the_same_bytes_and_proves_the_digests(home: Path) -> None:
    iterator = pytest.importorskip("warcio.archiveiterator", reason="warcio is not installed")

    for path in warcs(home):
        with path.open("rb") as stream:
            read = [
                (record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read())
                for record in iterator.ArchiveIterator(stream, check_digests="raise")
                if record.rec_type == "resource"
            ]
        assert digests(read) == expected(path)


def test_warcio_finds_no_fault(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli = pytest.importorskip("warcio.cli", reason="warcio is not installed")

    with pytest.raises(SystemExit) as ended:
        cli.main(["check", *map(str, warcs(home))])

    assert not ended.value.code, capsys.readouterr().out


def test_fastwarc_reads_the_same_bytes_and_proves_the_digests(home: Path) -> None:
    fastwarc = pytest.importorskip("fastwarc.warc", reason="fastwarc is not installed")

    for path in warcs(home):
        read = []
        with path.open("rb") as stream:
            for record in fastwarc.ArchiveIterator(stream):
                if record.record_type == fastwarc.WarcRecordType.resource:
                    body = record.reader.read()
                    read.append((record.headers["WARC-Target-URI"], body))
        assert digests(read) == expected(path)
        with path.open("rb") as stream:
            for record in fastwarc.ArchiveIterator(stream):
                if record.record_type == fastwarc.WarcRecordType.resource:
                    assert record.verify_block_digest()


@needs("cdxj-indexer")
def test_another_program_makes_the_same_index(home: Path) -> None:
    for path in home.glob("*.wacz"):
        with zipfile.ZipFile(path) as package:
            package.extractall(home / "indexed" / path.stem)
            ours = gzip.decompress(package.read("indexes/index.cdx.gz")).decode()
        files = map(str, (home / "indexed" / path.stem / "archive").iterdir())
        made = subprocess.run(
            ["cdxj-indexer", "--sort", *files], check=True, capture_output=True, text=True
        )
        assert ours == made.stdout


@needs("wacz")
def test_another_program_finds_a_wacz_valid(home: Path) -> None:
    for path in home.glob("*.wacz"):
        ran = subprocess.run(
            ["wacz", "validate", "-f", path], check=False, capture_output=True, text=True
        )
        assert "the passed WACZ is valid" in ran.stdout, ran.stdout + ran.stderr


@needs("wayback", "wb-manager")
def test_pywb_shows_each_resource_with_its_bytes(home: Path, tmp_path: Path) -> None:
    origin = (home / "origin").read_text()
    for name in FORMS:
        wayback.add(tmp_path, name.replace(".", "-"), home / name)
    wayback.add(tmp_path, "parts", *(home / "parts").iterdir())

    with wayback.running(tmp_path) as shown:
        for collection in (*(name.replace(".", "-") for name in FORMS), "parts"):
            for target, body in RESOURCES.items():
                assert shown.get(collection, "2026", f"{origin}{target}")[0] == body


@needs("wayback", "wb-manager")
def test_pywb_shows_each_version_at_its_time(home: Path, tmp_path: Path) -> None:
    versions = in_wacz(home / "versions-all.wacz")
    assert {one.kind for one in versions} == {"resource", "revisit"}
    originals = {one.fields["WARC-Record-ID"]: one for one in versions}
    for name in FORMS:
        wayback.add(tmp_path, name.replace(".", "-"), home / f"versions-{name}")

    with wayback.running(tmp_path) as shown:
        for name in FORMS:
            for one in versions:
                moment = datetime.fromisoformat(one.date).replace(microsecond=0)
                stamp = moment.strftime("%Y%m%d%H%M%S")
                body, memento = shown.get(name.replace(".", "-"), stamp, one.uri)
                refers_to = one.fields.get("WARC-Refers-To")
                assert body == (originals[refers_to].block if refers_to else one.block)
                assert parsedate_to_datetime(memento) == moment


@needs(*replay.PROGRAMS)
def test_a_folder_that_changes_at_random_is_shown_as_it_was(tmp_path: Path) -> None:
    """A small run; the long one is ``python -m campaigns replay``."""
    outcome = replay.replay(Asked(size=40, seed=7, folder=tmp_path))

    assert outcome.violations == []
    assert dict(outcome.rows)["shown by pywb"]
