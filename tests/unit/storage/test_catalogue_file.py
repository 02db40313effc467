"""The catalogue's file: locked, private, honest about damage, and filled by other programs."""

import os
import resource as limits
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync import sqlite_file
from resourcesync.catalogue.database import PublishLock, SourceCatalogue
from resourcesync.catalogue.reader import CatalogueReader
from resourcesync.errors import LockedError, StateError, StorageError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Link, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import Posted
from tests.support.in_memory import ManualClock
from tests.support.sources.recording import FULL_SAMPLE, NOW, record_first, resource


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


HOUR = timedelta(hours=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "posted" / "catalogue.db"


@pytest.fixture
def catalogue(path: Path) -> Iterator[SourceCatalogue]:
    with SourceCatalogue(path) as opened:
        yield opened


def change(kind: str, name: str, version: int = 1) -> Change:
    return Change(kind=ChangeKind(kind), resource=resource(name, version))


def log(catalogue: SourceCatalogue) -> list[tuple[str, str]]:
    found = [change for _, change in catalogue.changes()]
    times = [change.time for change in found if change.time is not None]
    assert len(times) == len(found)
    assert all(moment < other for moment, other in pairwise(times))
    return [(change.kind.value, change.uri.rpartition("/")[2]) for change in found]


def names(catalogue: SourceCatalogue) -> list[str]:
    return [resource.uri.rpartition("/")[2] for resource in catalogue.resources()]


def test_what_is_posted_is_in_both_tables_and_never_told_wrongly(
    catalogue: SourceCatalogue,
) -> None:
    catalogue.fill([resource("b")], NOW)

    done = catalogue.post(
        [
            *(change("updated", "a"), change("created", "a"), change("deleted", "a")),
            *(change("deleted", "a"), change("deleted", "never")),
            *(change("updated", "b", 2), change("created", "c")),
        ],
        NOW + HOUR,
    )

    assert done == Posted(created=2, updated=2, deleted=1)
    told = [
        ("created", "a"),
        ("updated", "a"),
        ("deleted", "a"),
        ("updated", "b"),
        ("created", "c"),
    ]
    assert log(catalogue) == told
    assert list(catalogue.resources()) == [resource("b", 2), resource("c")]


def test_more_changes_than_fit_into_memory_at_once_are_told_rightly(
    catalogue: SourceCatalogue,
) -> None:
    catalogue.fill([], NOW)
    many = [change("created", f"{number:05}") for number in range(4_100)]

    done = catalogue.post([*many, *many[:10]], NOW + HOUR)

    assert done == Posted(created=4_100, updated=10)
    assert len(names(catalogue)) == 4_100


ACCOUNTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3))


@settings(max_examples=30)
@given(ACCOUNTS, ACCOUNTS)
def test_filling_records_the_difference(before: dict[str, int], after: dict[str, int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, SourceCatalogue(Path(folder, "c")) as catalogue:
        catalogue.fill([resource(*item) for item in reversed(before.items())], NOW)

        done = catalogue.fill(
            [resource(*item) for item in reversed(after.items())], NOW + HOUR, allow_empty=True
        )

        assert list(catalogue.resources()) == [resource(*item) for item in sorted(after.items())]
        updated = {name for name in before.keys() & after if before[name] != after[name]}
        assert done == Posted(
            created=len(after.keys() - before),
            updated=len(updated),
            deleted=len(before.keys() - after),
        )
        expected = [
            *(("created", name) for name in after.keys() - before),
            *(("updated", name) for name in updated),
            *(("deleted", name) for name in before.keys() - after),
        ]
        assert log(catalogue) == sorted(expected, key=lambda item: item[1])


def test_what_is_not_told_stays_when_it_is_not_all(catalogue: SourceCatalogue) -> None:
    catalogue.fill([resource("a"), FULL_SAMPLE], NOW)

    done = catalogue.fill([resource("b")], NOW + HOUR, is_all=False)

    assert done == Posted(created=1)
    assert names(catalogue) == ["a", "b", "rich"]


@pytest.mark.parametrize("name", ["length", "lastmod"])
def test_without_a_hash_another_length_or_time_is_a_change(
    catalogue: SourceCatalogue, name: str
) -> None:
    values = {"length": (1, 2), "lastmod": (NOW, NOW + HOUR)}[name]
    resource, other = (Resource(uri="https://h/a", **{name: value}) for value in values)  # type: ignore[arg-type]  # either name
    catalogue.fill([resource], NOW)

    assert catalogue.fill([other], NOW + HOUR) == Posted(updated=1)


def test_a_program_that_waits_too_long_for_another_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_MILLISECONDS", 10)
    with SourceCatalogue(path) as other, closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")

        with pytest.raises(LockedError, match="another program is writing"):
            other.post([change("created", "a")], NOW)


@pytest.fixture
def sql(catalogue: SourceCatalogue, path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("change", "renamed"), ("change", None), ("uri", ""), ("uri", None), ("uri", b"x"),
        ("uri", "a"), ("uri", "https://"), ("uri", "ftp://h/"),
        ("uri", "https://h/a b"), ("uri", "https://h/\n"),
        ("uri", "https://h/\x80"), ("uri", "https://h/\x7f"),
        ("length", -1), ("length", "12 KB"), ("lastmod_us", "yesterday"), ("lastmod_us", 10**18),
        ("hash", "abc"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_published_is_refused_by_the_database(
    catalogue: SourceCatalogue, sql: sqlite3.Connection, column: str, value: object
) -> None:
    row = {"change": "created", "uri": "https://h/a", column: value}
    columns = ", ".join(row)
    with pytest.raises(sqlite3.IntegrityError):
        sql.execute(
            f"INSERT INTO post ({columns}) VALUES (?{', ?' * (len(row) - 1)})", [*row.values()]
        )

    assert log(catalogue) == []
    assert names(catalogue) == []


def test_numbers_may_have_gaps_and_changes_in_the_wrong_order_are_not_published(
    catalogue: SourceCatalogue, sql: sqlite3.Connection
) -> None:
    catalogue.fill([], NOW)
    catalogue.post([change("created", name) for name in "abc"], NOW + HOUR)
    sql.execute("DELETE FROM change WHERE seq = 2")

    assert log(catalogue) == [("created", "a"), ("created", "c")]
    assert [number for number, _ in catalogue.changes(after=1)] == [3]
    sql.execute("UPDATE change SET datetime_us = datetime_us - 10 WHERE seq = 3")
    for after in (0, 1):
        with pytest.raises(StateError, match="change 3 is not later"):
            list(catalogue.changes(after))
