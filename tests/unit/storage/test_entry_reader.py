"""Single resources of a catalogue that a publisher may write, or replace, meanwhile."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.catalogue.reader import CatalogueReader
from resourcesync.errors import StateError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Link, Resource
from tests.support.in_memory import ManualClock

URI = "http://h.example/a"
SHA = Digest("sha-256", "a" * 64)
LINKS = (Link(rel="license", href="https://cc.example/by"),)


def record(folder: Path, fingerprint: str, *links: Link) -> Path:
    clock, path = ManualClock(), folder / "catalogue.db"
    with SourceCatalogue(path, clock) as catalogue, catalogue.record(clock.now()) as log:
        log.created(Resource(uri=URI, digests=(SHA,), links=links), fingerprint)
    return path


def test_a_resource_is_found_with_its_hash_fingerprint_and_links(tmp_path: Path) -> None:
    reader = CatalogueReader(record(tmp_path, "1:2:3:4", *LINKS))

    assert reader.entry(URI) == (str(SHA), "1:2:3:4", LINKS)
    assert reader.entry(URI + "x") is None
    reader.close()


def test_a_catalogue_that_is_replaced_is_read_once_the_connection_was_closed(
    tmp_path: Path,
) -> None:
    path = record(tmp_path / "old", "old")
    reader = CatalogueReader(path)
    assert reader.entry(URI) == (str(SHA), "old", ())

    record(tmp_path / "new", "new").replace(path)
    reader.close()
    reader.close()

    assert reader.entry(URI) == (str(SHA), "new", ())
    reader.close()


def test_a_row_that_another_program_spoilt_is_an_error_of_its_own(tmp_path: Path) -> None:
    path = record(tmp_path, "1")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE resource SET more = '{broken'")
    reader = CatalogueReader(path)

    with pytest.raises(StateError, match="invalid row"):
        reader.entry(URI)
    reader.close()
