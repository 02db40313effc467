"""The library in a program: mirrors audited, mended, read on and stopped; and its threads."""

import gc
import io
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Catalogue, Event, Mirror, MirrorChange, MirrorState, ports, read
from resourcesync.destination.planner import as_unknown
from resourcesync.errors import (
    ConfigurationError,
    DiscontinuityError,
    LockedError,
    ResourceSyncError,
    StateError,
    StoppedError,
    StorageError,
)
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import FILES, LATE, here, tiny_source
from tests.support.waiting import once

source = tiny_source


@pytest.fixture
def mirror(source: TinySource, tmp_path: Path) -> Mirror:
    return Mirror(source.url, tmp_path / "mirror")


@pytest.mark.founding("0.9 §2.2.2", "What an audit finds is mended", "`repair`")
def test_what_an_audit_finds_is_mended(mirror: Mirror) -> None:
    mirror.pull()
    (mirror.folder / "objects/02.txt").write_text("altered")
    (mirror.folder / "objects/03.txt").unlink()
    found: list[Event] = []

    audit = mirror.audit(on_event=found.append)
    report = mirror.repair(audit)

    assert not audit.in_sync
    assert [event.kind for event in found if event.kind == "finding"] == ["finding"] * 2
    assert len(audit.findings) == 2
    assert (report.created, report.updated) == (1, 1)
    assert here(mirror.folder) == FILES
    assert mirror.audit().in_sync


def test_a_position_of_another_history_is_an_error_and_start_helps(
    mirror: Mirror, source: TinySource
) -> None:
    mirror.pull()
    source.offer({**FILES, "/objects/05.txt": b"changed"}, at=LATE)
    backup = mirror.folder.with_name("backup")
    shutil.copytree(mirror.folder, backup)
    mirror.pull()
    last = list(mirror.changes())[-1].position
    list(mirror.changes("index"))
    consumer = (mirror.folder / ".resourcesync/consumers/index.json").read_bytes()
    restored = Mirror(source.url, backup)
    restored.pull()
    assert list(restored.changes())[-1].number == int(last.partition(".")[0])
    (backup / ".resourcesync/consumers").mkdir()
    (backup / ".resourcesync/consumers/index.json").write_bytes(consumer)

    with pytest.raises(DiscontinuityError, match="restored"):
        next(iter(restored.changes(since=last)))
    with pytest.raises(DiscontinuityError, match="restored"):
        next(iter(restored.changes("index")))
    assert len(list(restored.changes(since="start"))) == len(FILES)
    assert len(list(restored.changes("index", restart=True))) == len(FILES)


def test_a_change_gives_the_bytes_that_it_tells_of_or_none(
    mirror: Mirror, source: TinySource
) -> None:
    mirror.pull()
    old = {change.uri: change for change in mirror.changes()}
    files = {**FILES, "/objects/05.txt": b"changed"}
    del files["/objects/04.txt"]
    source.offer(files, at=LATE)
    mirror.pull()

    by_name = {uri.removeprefix(source.url.rstrip("/")): change for uri, change in old.items()}
    (deleted,) = [change for change in mirror.changes() if change.kind == "deleted"]
    assert by_name["/objects/03.txt"].read() == FILES["/objects/03.txt"]
    assert by_name["/objects/04.txt"].read() is None
    assert by_name["/objects/05.txt"].read() is None
    assert deleted.read() is None


@pytest.mark.parametrize("damage", [b"damaged", None])
def test_a_damaged_file_is_never_passed_over(mirror: Mirror, damage: bytes | None) -> None:
    mirror.pull()
    path = mirror.folder / "objects/05.txt"
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    change = next(found for found in mirror.changes() if found.path == path)

    with pytest.raises(StorageError, match="is missing" if damage is None else "is damaged"):
        change.read()
    mirror.repair()
    assert change.read() == FILES["/objects/05.txt"]


def replaced_by_a_killed_pull(mirror: Mirror) -> MirrorChange:
    """Let a file have other bytes that its pull did not record; return the change that it had."""
    path = mirror.folder / "objects/05.txt"
    change = next(found for found in mirror.changes() if found.path == path)
    with SqliteMirrorState(mirror.folder / ".resourcesync/state.db") as state:
        copy = state.copy(change.uri)
        assert copy is not None
        state.commit(StateTransaction(suspect=[as_unknown(copy)]))
    path.write_bytes(b"other")
    return change


def test_a_change_whose_file_a_killed_pull_replaced_is_left_to_a_later_one(mirror: Mirror) -> None:
    mirror.pull()
    change = replaced_by_a_killed_pull(mirror)
    first = {found.uri: found.read() for found in mirror.changes("index")}

    assert change.read() is None
    assert (len(first), first[change.uri]) == (len(FILES), None)
    mirror.pull(mode="baseline")
    (again,) = mirror.changes("index")
    assert (again.uri, again.kind, again.read()) == (change.uri, "updated", change.read())
    assert again.read() == FILES["/objects/05.txt"]


@pytest.mark.slow
def test_a_change_whose_file_is_being_replaced_is_waited_for(mirror: Mirror) -> None:
    mirror.pull()
    change = replaced_by_a_killed_pull(mirror)

    with mirror, ThreadPoolExecutor() as threads:  # locked, as by a pull
        with pytest.raises(StorageError, match="being replaced"):
            change.read()
        reading = threads.submit(change.read)
        change.path.write_bytes(FILES["/objects/05.txt"])
        assert reading.result() == FILES["/objects/05.txt"]


def test_a_loop_that_follows_gets_later_changes_and_ends_when_it_is_asked_to(
    mirror: Mirror, source: TinySource
) -> None:
    mirror.pull()
    stop = threading.Event()
    told: list[str] = []

    for change in mirror.changes("index", follow=True, stop=stop.is_set):
        told.append(change.kind)
        if len(told) == len(FILES):  # the Source changes while the loop goes on
            source.offer({**FILES, "/objects/05.txt": b"changed"}, at=LATE)
            Mirror(source.url, mirror.folder).pull()
        if change.kind == "updated":
            stop.set()

    assert told == ["created"] * len(FILES) + ["updated"]
    assert list(mirror.changes("index")) == []


@pytest.mark.parametrize("since", ["", "x", "1.x", "-1", "3", 3])
def test_what_is_no_position_as_a_number_alone_is_refused(mirror: Mirror, since: Any) -> None:
    with pytest.raises(ConfigurationError, match="since"):
        mirror.changes(since=since)


def test_changes_are_read_while_the_mirror_is_held(mirror: Mirror) -> None:
    with mirror:
        mirror.pull()
        assert len(list(mirror.changes("index"))) == len(FILES)


def test_a_call_that_is_stopped_before_it_begins_does_nothing(
    mirror: Mirror, source: TinySource
) -> None:
    for call in (mirror.pull, mirror.dry_run):
        with pytest.raises(StoppedError):
            call(stop=lambda: True)

    assert source.asked == []
    assert not mirror.folder.exists()


def test_a_source_that_hangs_does_not_keep_a_program_from_stopping(tmp_path: Path) -> None:
    stop = threading.Event()
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        mirror = Mirror(f"http://127.0.0.1:{silent.getsockname()[1]}/", tmp_path / "mirror")
        began = time.monotonic()

        def is_connected() -> bool:
            stack.enter_context(silent.accept()[0])
            return True

        with once(is_connected, stop.set), pytest.raises(StoppedError):
            mirror.pull(stop=stop.is_set)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("asked", range(1, 60, 4))
def test_a_pull_may_be_stopped_wherever_it_asks(
    mirror: Mirror, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "POLL_SECONDS", 0.0)
    left = iter(range(asked))
    told: list[bool] = []

    def stop() -> bool:
        told.append(next(left, None) is None)
        return told[-1]

    is_stopped = False
    try:
        mirror.pull(stop=stop)
    except StoppedError:
        is_stopped = True

    assert is_stopped is any(told)
    assert is_stopped or asked > 9  # a quick machine asks less often
    kept = here(mirror.folder)
    assert {name: FILES[name] for name in kept} == kept
    assert mirror.pull().state is MirrorState.IN_SYNC
    assert here(mirror.folder) == FILES
    assert mirror.audit().in_sync


def test_a_call_out_of_its_own_event_is_refused(mirror: Mirror) -> None:
    with pytest.raises(ConfigurationError, match="busy"):
        mirror.pull(on_event=lambda _: mirror.pull())


def test_a_mirror_that_is_held_belongs_to_one_thread(mirror: Mirror) -> None:
    raised: list[BaseException] = []

    def pull() -> None:
        try:
            mirror.pull()
        except ResourceSyncError as error:
            raised.append(error)

    with mirror:
        thread = threading.Thread(target=pull)
        thread.start()
        thread.join()

    assert [type(exception) for exception in raised] == [ConfigurationError]


def test_a_mirror_that_could_not_be_opened_is_not_held(mirror: Mirror) -> None:
    with mirror, pytest.raises(LockedError), Mirror(mirror.source, mirror.folder) as other:
        other.pull()
    with mirror:
        assert mirror.pull().state is MirrorState.IN_SYNC


def test_an_audit_stops_between_two_copies(mirror: Mirror) -> None:
    mirror.pull()
    for name in FILES:
        (mirror.folder / name.removeprefix("/")).write_text("altered")
    found: list[Event] = []

    def hear(event: Event) -> None:
        if event.kind == "finding":
            time.sleep(0.06)  # as if a copy were large
            found.append(event)

    with pytest.raises(StoppedError):
        mirror.audit(on_event=hear, stop=lambda: len(found) >= 3)

    assert len(found) == 3
    assert len(mirror.audit().findings) == len(FILES)


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")  # since Python 3.13
def test_what_one_thread_began_to_read_another_does_not_go_on_with(mirror: Mirror) -> None:
    mirror.pull()
    reading = mirror.changes()
    next(reading)

    with ThreadPoolExecutor() as threads, pytest.raises(ConfigurationError) as refused:
        threads.submit(list, reading).result()

    assert "another thread" in str(refused.value)
    assert refused.value.hint == "read in the thread that began to read"
    del reading, refused  # only its own thread could close the file
    gc.collect()


def test_a_mirror_that_is_open_is_used_and_not_opened(mirror: Mirror) -> None:
    with mirror, pytest.raises(ConfigurationError) as refused, mirror:
        pass

    assert refused.value.hint == "use it in the block that opened it"


def test_what_is_no_catalogue_is_moved_away_and_never_deleted(tmp_path: Path) -> None:
    path = tmp_path / "junk.db"
    path.write_bytes(b"no database" * 1_000)

    with pytest.raises(StateError) as refused:
        Catalogue(path).fill([])

    assert f"move {path} away" in refused.value.hint
    assert "begin anew with the address" in refused.value.hint


@pytest.mark.parametrize("stream", [io.StringIO("<a/>"), None])
def test_a_document_is_read_from_bytes_and_not_from_text(stream: Any, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a/>")

    with (
        (tmp_path / "a.xml").open() as opened,
        pytest.raises(TypeError, match=r"open\(name, 'rb'\)"),
    ):
        read(stream or opened)  # type: ignore[arg-type]  # as a caller may
