"""The Source's memory: what both implementations of the port promise, and what the file does."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.adapters.memory import ManualClock, MemoryCatalogue
from resourcesync.errors import DiskFullError, LockedError, StateError, StorageError
from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Catalogue

NOW = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def resource(name: str, version: int = 1) -> Resource:
    return Resource(
        uri=f"https://h/{name}",
        lastmod=NOW.replace(microsecond=0),
        length=version,
        digests=(Digest("sha-256", f"{version:064x}"), Digest("md5", f"{version:032x}")),
        media_type="text/plain",
    )


RICH = Resource(
    uri="https://h/rich",
    lastmod=None,
    length=None,
    encoding="gzip",
    changefreq="daily",
    links=(
        Link(
            rel="describedby",
            href="https://h/rich.xml",
            media_type="application/xml",
            length=0,
            digests=(Digest("odd", "a:b"),),
            modified=NOW,
            priority=1,
            extra=(("{urn:x}a", "é\n"),),
        ),
        Link(rel="up", href="https://h/"),
    ),
    extra=(("{urn:x}b", "<&>"),),
)


@pytest.fixture(params=["memory", "file"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalogue]:
    if request.param == "memory":
        yield MemoryCatalogue()
    else:
        with FileCatalogue(tmp_path / "state/catalogue.db", ManualClock()) as held:
            yield held


def record_first(catalogue: Catalogue, *resources: Resource, now: datetime = NOW) -> None:
    with catalogue.record(now) as recording:
        for item in resources:
            recording.created(item, "f1")


def changes(catalogue: Catalogue, after: int = 0) -> list[tuple[int, Change]]:
    with catalogue.snapshot() as snapshot:
        return list(snapshot.changes(after))


# --- both implementations ----------------------------------------------------------------------


def test_what_is_recorded_comes_back_equal_and_in_uri_order(catalogue: Catalogue) -> None:
    names = ["b", "a/z", "a.b", "é", "A", "~"]
    record_first(catalogue, *(resource(name) for name in names), RICH)

    held = list(catalogue.catalogued())

    assert [item.uri for item in held] == sorted([f"https://h/{name}" for name in [*names, "rich"]])
    assert {item.fingerprint for item in held} == {"f1"}
    recorded = {item.uri: item.resource for item in held}
    assert recorded["https://h/b"] == resource("b")
    assert recorded["https://h/rich"] == RICH
    with catalogue.snapshot() as snapshot:
        assert list(snapshot.resources()) == [item.resource for item in held]
        assert snapshot.count() == 7


def test_the_first_recording_logs_no_changes(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.snapshot() as snapshot:
        assert list(snapshot.changes()) == []
        assert snapshot.last_change() == 0
        assert snapshot.at == NOW


def test_an_empty_first_recording_is_a_first_recording(catalogue: Catalogue) -> None:
    record_first(catalogue)

    record_first(catalogue, resource("a"), now=NOW + timedelta(hours=1))

    assert [change.kind for _, change in changes(catalogue)] == [ChangeKind.CREATED]


def test_before_the_first_recording_there_is_nothing_to_see(catalogue: Catalogue) -> None:
    assert list(catalogue.catalogued()) == []
    with pytest.raises(StateError, match="nothing was recorded"), catalogue.snapshot():
        pass


def test_later_recordings_log_each_change_with_a_time_of_its_own(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"), resource("b"), resource("c"))
    later = NOW + timedelta(hours=1)

    with catalogue.record(later) as recording:
        recording.updated(resource("a", 2), "f2")
        recording.deleted(resource("b"))
        recording.touched(resource("c"), "f2")
        recording.created(resource("d"), "f2")

    assert changes(catalogue) == [
        (1, Change(kind=ChangeKind.UPDATED, time=later, resource=resource("a", 2))),
        (2, Change(kind=ChangeKind.DELETED, time=later + TICK, resource=Resource(uri="https://h/b"))),
        (3, Change(kind=ChangeKind.CREATED, time=later + 2 * TICK, resource=resource("d"))),
    ]  # fmt: skip
    assert [item.fingerprint for item in catalogue.catalogued()] == ["f2", "f2", "f2"]
    with catalogue.snapshot() as snapshot:
        assert snapshot.at == later + 2 * TICK
        assert snapshot.last_change() == 3


def test_changes_are_read_from_a_number_on(catalogue: Catalogue) -> None:
    record_first(catalogue)
    record_first(catalogue, *(resource(f"{number:03}") for number in range(10)))

    assert [number for number, _ in changes(catalogue, after=7)] == [8, 9, 10]
    assert changes(catalogue, after=10) == []


@pytest.mark.parametrize("step", [timedelta(hours=-1), timedelta(0), timedelta(days=3_650)])
def test_times_rise_strictly_whatever_the_clock_does(catalogue: Catalogue, step: timedelta) -> None:
    record_first(catalogue, resource("x"))
    now = NOW
    for number in range(4):
        with catalogue.snapshot() as snapshot:
            before = snapshot.at
        now += step
        with catalogue.record(now) as recording:
            recording.created(resource(f"a{number}"), "f")
            recording.created(resource(f"b{number}"), "f")
        times = [change.time for _, change in changes(catalogue)][-2:]
        assert all(time is not None and time > before for time in times)

    times = [change.time for _, change in changes(catalogue)]
    assert times == sorted(set(times), key=str)
    assert len(times) == 8


def test_a_recording_that_changes_nothing_moves_nothing(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.record(NOW + timedelta(hours=1)):
        pass

    with catalogue.snapshot() as snapshot:
        assert snapshot.at == NOW


def test_touching_moves_the_moment_so_that_two_lists_of_one_moment_are_equal(
    catalogue: Catalogue,
) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.record(NOW - timedelta(hours=1)) as recording:
        recording.touched(resource("a"), "f2")

    with catalogue.snapshot() as snapshot:
        assert snapshot.at == NOW + TICK
        assert snapshot.last_change() == 0


def test_a_recording_that_fails_leaves_no_trace(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    def fail() -> None:
        with catalogue.record(NOW + timedelta(hours=1)) as recording:
            for number in range(5_000):
                recording.created(resource(f"b{number}"), "f")
            recording.deleted(resource("a"))
            raise StorageError("the originals went away")

    with pytest.raises(StorageError, match="originals"):
        fail()

    assert [item.uri for item in catalogue.catalogued()] == ["https://h/a"]
    assert changes(catalogue) == []
    record_first(catalogue, resource("c"))
    assert [number for number, _ in changes(catalogue)] == [1]


def test_a_resource_deleted_and_created_in_one_recording_is_there(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.record(NOW) as recording:
        recording.deleted(resource("a"))
        recording.created(resource("a", 2), "f2")
        recording.updated(resource("a", 3), "f3")
        recording.deleted(resource("a"))
        recording.created(resource("a", 4), "f4")

    assert [item.resource.length for item in catalogue.catalogued()] == [4]
    assert len(changes(catalogue)) == 5


def test_a_snapshot_does_not_see_what_is_recorded_meanwhile(catalogue: Catalogue) -> None:
    record_first(catalogue, resource("a"))

    with catalogue.snapshot() as snapshot:
        record_first(catalogue, resource("b"), now=NOW + timedelta(hours=1))
        assert [item.uri for item in snapshot.resources()] == ["https://h/a"]
        assert snapshot.at == NOW
        assert snapshot.count() == 1
        assert snapshot.last_change() == 0
        assert list(snapshot.changes()) == []


def test_the_catalogue_can_be_read_while_it_is_brought_in_step(catalogue: Catalogue) -> None:
    record_first(catalogue, *(resource(f"{number:05}") for number in range(5_000)))

    with catalogue.record(NOW) as recording:
        seen = 0
        for item in catalogue.catalogued():
            seen += 1
            recording.deleted(item.resource)

    assert seen == 5_000
    assert list(catalogue.catalogued()) == []


def test_notes_are_kept_and_replaced(catalogue: Catalogue) -> None:
    assert catalogue.note("a") is None

    catalogue.write_notes({"a": "1", "b": "é"})
    catalogue.write_notes({"a": "2"})

    assert (catalogue.note("a"), catalogue.note("b")) == ("2", "é")


# --- the file ----------------------------------------------------------------------------------


def open_file(path: Path) -> FileCatalogue:
    return FileCatalogue(path, ManualClock(NOW))


def test_what_was_recorded_is_there_after_closing(tmp_path: Path) -> None:
    path = tmp_path / "s/catalogue.db"
    with open_file(path) as catalogue:
        record_first(catalogue, resource("a"))
        record_first(catalogue, resource("b"))
        catalogue.write_notes({"k": "v"})

    with open_file(path) as catalogue:
        assert [item.uri for item in catalogue.catalogued()] == ["https://h/a", "https://h/b"]
        assert changes(catalogue)[0][1].time == NOW + TICK
        assert catalogue.note("k") == "v"


def test_numbers_of_changes_are_never_used_again(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    with open_file(path) as catalogue:
        record_first(catalogue)
        record_first(catalogue, resource("a"))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM change")
    connection.close()

    with open_file(path) as catalogue:
        record_first(catalogue, resource("b"))
        assert [number for number, _ in changes(catalogue)] == [2]


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


def test_a_path_with_characters_that_mean_something_in_a_uri_works(tmp_path: Path) -> None:
    with open_file(tmp_path / "a?b#c %41\udcff/catalogue.db") as catalogue:
        record_first(catalogue, resource("a"))

        assert len(list(catalogue.catalogued())) == 1


def test_another_run_is_told_who_holds_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    program = (
        "import sys, pathlib\n"
        "from resourcesync.adapters.catalogue import FileCatalogue\n"
        "from resourcesync.adapters.memory import ManualClock\n"
        "with FileCatalogue(pathlib.Path(sys.argv[1]), ManualClock()):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
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


def test_the_same_process_cannot_hold_it_twice(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    with open_file(path):
        with pytest.raises(LockedError, match=f"process {os.getpid()}"):
            open_file(path)
        holder = json.loads((tmp_path / "publish.lock").read_text())

    assert holder == {
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "since": "2026-03-01T12:00:00.250000Z",
    }
    assert (tmp_path / "publish.lock").read_text() == ""


def test_a_lock_whose_holder_said_nothing_is_still_a_lock(tmp_path: Path) -> None:
    with open_file(tmp_path / "catalogue.db"):
        (tmp_path / "publish.lock").write_text("[")
        with pytest.raises(LockedError, match="did not say"):
            open_file(tmp_path / "catalogue.db")


def test_a_catalogue_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    with open_file(path):
        pass
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StateError, match="newer version"):
        open_file(path)

    assert path.read_bytes() == before


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StateError, match="not a catalogue"):
        open_file(path)

    assert path.read_bytes() == before


@pytest.mark.parametrize("offset", [0, 4_096 + 20])
def test_a_damaged_catalogue_says_what_to_do(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "catalogue.db"
    with open_file(path) as catalogue:
        record_first(catalogue, *(resource(f"{number}") for number in range(500)))
    content = bytearray(path.read_bytes())
    end = len(content) if offset else 100
    content[offset:end] = os.urandom(end - offset)
    path.write_bytes(content)

    with pytest.raises(StateError) as caught, open_file(path) as catalogue:
        list(catalogue.catalogued())

    assert "damaged" in caught.value.message
    assert caught.value.hint.startswith(f"delete {path}")
    with pytest.raises(StateError), open_file(path) as catalogue:  # the lock was given back
        list(catalogue.catalogued())


def test_a_place_that_cannot_hold_a_catalogue_is_an_error_of_storage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "catalogue.db").symlink_to("elsewhere.db")

    for path in (tmp_path / "file/catalogue.db", tmp_path / "catalogue.db"):
        with pytest.raises(StorageError):
            open_file(path)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    with open_file(path) as catalogue:
        record_first(catalogue, resource("a"))
        catalogue._connection.execute("PRAGMA max_page_count = 10")

        with pytest.raises(DiskFullError):
            record_first(catalogue, *(resource(f"b{number}") for number in range(5_000)))

        assert [item.uri for item in catalogue.catalogued()] == ["https://h/a"]
