"""The programs of ``examples/`` keep an index equal to a mirror, whatever happens to it."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from examples import search_index, vector_store
from resourcesync import Mirror
from resourcesync.cli.main import run
from tests.support.crashes.indexing import chunks_of, read_search
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import FILES, LATE, tiny_source

source = tiny_source

LATER = {
    **{name: body for name, body in FILES.items() if name != "/objects/04.txt"},
    "/objects/05.txt": b"0123456789" * 250,
    "/objects/new.txt": b"new",
}


@pytest.fixture
def mirror(source: TinySource, tmp_path: Path) -> Mirror:
    found = Mirror(source.url, tmp_path / "mirror")
    found.pull()
    return found


def files_of(source: TinySource, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {source.url.rstrip("/") + name: body for name, body in files.items()}


class Search:
    def __init__(self, path: Path) -> None:
        self.path = path

    def update(self, mirror: Mirror) -> int:
        with sqlite3.connect(self.path) as db:
            code = search_index.update(str(mirror.folder), db)
        db.close()
        return code


@pytest.fixture
def search(tmp_path: Path) -> Search:
    return Search(tmp_path / "search.db")


@pytest.mark.founding("WWW §2.2", "A service reuses the content in its own index", "`changes`")
def test_a_search_index_leaves_out_a_damaged_file_until_it_is_repaired(
    mirror: Mirror, source: TinySource, search: Search
) -> None:
    (mirror.folder / "objects/05.txt").write_bytes(b"damaged")
    assert search.update(mirror) == 0
    assert "damaged" not in {body.decode() for body in read_search(search.path).values()}
    mirror.repair()

    assert search.update(mirror) == 0

    assert read_search(search.path) == files_of(source, FILES)


def test_a_search_index_shows_why_a_folder_has_no_changes(
    search: Search, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(search.path) as db:
        assert search_index.update(str(tmp_path), db) == 2

    assert "is not a mirror" in capfd.readouterr().err


class Vectors:
    """A vector store in memory; it counts what it would have to embed."""

    def __init__(self) -> None:
        self.chunks: dict[str, tuple[str, str]] = {}
        self.embedded = 0

    def uris(self) -> set[str]:
        return {uri for uri, _ in self.chunks.values()}

    def ids(self, uri: str) -> set[str]:
        return {key for key, (owner, _) in self.chunks.items() if owner == uri}

    def upsert(self, uri: str, chunks: Mapping[str, str]) -> None:
        self.embedded += len(chunks)
        self.chunks |= {key: (uri, text) for key, text in chunks.items()}

    def delete(self, ids: set[str]) -> None:
        for key in ids:
            del self.chunks[key]

    def texts(self) -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        for uri, text in self.chunks.values():
            found.setdefault(uri, []).append(text.encode())
        return {uri: sorted(texts) for uri, texts in found.items()}


def test_a_vector_store_gets_only_new_chunks_and_loses_those_that_are_gone(
    mirror: Mirror, source: TinySource, tmp_path: Path
) -> None:
    store, progress = Vectors(), tmp_path / "position"
    vector_store.update(mirror, store, progress)
    assert store.texts() == chunks_of(files_of(source, FILES))
    source.offer(LATER, at=LATE)
    mirror.pull()
    store.embedded = 0

    vector_store.update(mirror, store, progress)
    vector_store.update(mirror, store, progress)

    assert store.texts() == chunks_of(files_of(source, LATER))
    assert store.embedded == 3  # two of 05: its three parts have two texts; one of new
    source.offer({**LATER, "/objects/05.txt": b"0123456789" * 250 + b"!"}, at="2026-03-01")
    mirror.pull()
    vector_store.update(mirror, store, progress)
    assert store.embedded == 4  # its last part alone


def test_after_a_move_an_index_has_each_page_once(
    mirror: Mirror, source: TinySource, search: Search, tmp_path: Path
) -> None:
    store, progress = Vectors(), tmp_path / "position"
    vector_store.update(mirror, store, progress)
    search.update(mirror)
    with TinySource() as moved:
        moved.offer(LATER, at=LATE)
        assert run(["pull", str(mirror.folder), "--moved", moved.url, "-q"]) == 0
    vector_store.update(mirror, store, progress)
    search.update(mirror)

    assert read_search(search.path) == files_of(source, LATER)
    assert store.texts() == chunks_of(files_of(source, LATER))
