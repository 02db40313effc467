"""The catalogue's file: locked, private, and honest about damage."""

import os
import resource as limits
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from resourcesync.catalogue.database import PublishLock, SourceCatalogue
from resourcesync.catalogue.reader import CatalogueReader
from resourcesync.errors import LockedError, StateError, StorageError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Link, Resource
from tests.support.in_memory import ManualClock
from tests.support.sources.recording import NOW, record_first, resource


def open_file(path: Path) -> SourceCatalogue:
    return SourceCatalogue(path, ManualClock(NOW))


def test_state_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / ".resourcesync/catalogue.db"
    before = os.umask(0)
    try:
        with open_file(path) as catalogue:
            record_first(catalogue, resource("a"))
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(before)

    assert set(modes) >= {"catalogue.db", "catalogue.db-wal", "publish.lock"}
    assert set(modes.values()) == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_another_run_is_told_who_holds_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    program = (
        "import sys, pathlib\n"
        "from resourcesync.catalogue.database import SourceCatalogue\n"
        "from tests.support.in_memory import ManualClock\n"
        "with SourceCatalogue(pathlib.Path(sys.argv[1]), ManualClock()):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(Path(__file__).parents[3] / "src")},
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"held\n"

        with pytest.raises(LockedError) as caught:
            open_file(path)

        host = os.uname().nodename
        assert f"process {other.pid} on {host} since 2025-12-31T00:00:00Z" in caught.value.message
        other.kill()
        other.wait()

    with open_file(path):
        pass  # a lock does not outlive the process that held it


def test_a_lock_whose_holder_said_nothing_is_still_a_lock(tmp_path: Path) -> None:
    with open_file(tmp_path / "catalogue.db"):
        (tmp_path / "publish.lock").write_text("[")
        with pytest.raises(LockedError, match="did not say"):
            open_file(tmp_path / "catalogue.db")


def test_a_place_that_cannot_hold_a_catalogue_is_an_error_of_storage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "catalogue.db").symlink_to("elsewhere.db")

    for path in (tmp_path / "file/catalogue.db", tmp_path / "catalogue.db"):
        with pytest.raises(StorageError):
            open_file(path)


def test_a_full_disk_does_not_keep_the_lock_from_being_held(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    with open_file(path):
        pass
    before = limits.getrlimit(limits.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits.setrlimit(limits.RLIMIT_FSIZE, (0, before[1]))  # every writing fails
    try:
        lock = PublishLock(tmp_path / "publish.lock", ManualClock())
        with pytest.raises(LockedError, match="did not say"):
            PublishLock(tmp_path / "publish.lock", ManualClock())
        lock.close()
    finally:
        limits.setrlimit(limits.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_dry_run_takes_every_step_and_records_nothing(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    with open_file(path) as catalogue:
        record_first(catalogue, resource("a"))
    with SourceCatalogue(path, ManualClock(NOW), dry_run=True) as rehearsed:
        with rehearsed.record(NOW) as recording:
            recording.created(resource("b"), "f")
        rehearsed.write_notes({"key": "value"})
        rehearsed.rewind(NOW - timedelta(days=1))

    with open_file(path) as catalogue:
        assert [uri for uri, _ in catalogue.fingerprints()] == [resource("a").uri]
        assert (catalogue.note("key"), catalogue.latest()) == (None, NOW)


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
