"""The library in a program: mirrors that are planned, pulled, audited, mended and read on."""

import logging
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from resourcesync import Event, Mirror, MirrorState, Mode, Publisher, discover, validate
from resourcesync.errors import (
    ConfigurationError,
    LockedError,
    PlanOutdatedError,
    ResourceSyncError,
    SourceNotFoundError,
    SourceUnavailableError,
    StoppedError,
)
from resourcesync.server.running import ServerThread
from resourcesync.wiring.serving import LateApplication
from tests.support.tiny_source import TinySource

FILES = {f"/objects/{number:02}.txt": f"object {number}".encode() for number in range(12)}
EARLY, LATE, LATER = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))


@pytest.fixture
def source() -> Iterator[TinySource]:
    with TinySource() as running:
        running.offer(FILES, at=EARLY)
        yield running


@pytest.fixture
def mirror(source: TinySource, tmp_path: Path) -> Mirror:
    return Mirror(source.url, tmp_path / "mirror")


def here(folder: Path) -> dict[str, bytes]:
    return {
        f"/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".resourcesync" not in path.parts
    }


# --- pull, plan, apply -----------------------------------------------------------------------


def test_a_pull_brings_what_the_source_lists(mirror: Mirror) -> None:
    events: list[Event] = []

    report = mirror.pull(on_event=events.append)

    assert (report.state, report.created) == (MirrorState.IN_SYNC, len(FILES))
    assert here(mirror.folder) == FILES
    assert {"source", "plan", "item", "progress"} <= {it.kind for it in events}
    assert mirror.status().state is MirrorState.IN_SYNC


def test_a_mirror_knows_its_source_the_next_time(mirror: Mirror) -> None:
    mirror.pull()

    assert Mirror(None, mirror.folder).pull().same == len(FILES)


def test_a_folder_that_is_no_mirror_is_told(tmp_path: Path) -> None:
    mirror = Mirror(None, tmp_path / "none")

    for call in (mirror.pull, mirror.plan, mirror.audit, mirror.repair, mirror.status):
        with pytest.raises(ConfigurationError, match="is no mirror"):
            call()
    assert not mirror.folder.exists()


def test_a_failure_is_in_the_report_and_not_raised(mirror: Mirror, source: TinySource) -> None:
    del source.answers["/objects/03.txt"]

    report = mirror.pull()

    assert report.state is MirrorState.BEHIND
    assert [it.uri for it in report.failures] == [f"{source.url}/objects/03.txt"]


def test_planning_changes_nothing(mirror: Mirror) -> None:
    with mirror.plan() as plan:
        assert plan.create == len(list(plan)) == len(FILES)
        assert plan.size == sum(map(len, FILES.values()))
        assert not mirror.folder.exists()


def test_a_plan_is_carried_out_as_it_is(mirror: Mirror, source: TinySource) -> None:
    mirror.pull()
    files = {**FILES, "/new.txt": b"new", "/objects/05.txt": b"changed"}
    del files["/objects/07.txt"]
    source.offer(files, at=LATE)

    with mirror.plan() as plan:
        told = {it.action: it.path for it in plan}
        assert here(mirror.folder) == FILES
        report = mirror.apply(plan)

    assert told == {"create": "new.txt", "update": "objects/05.txt", "delete": "objects/07.txt"}
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert here(mirror.folder) == files


def test_a_plan_is_refused_when_the_source_changed(mirror: Mirror, source: TinySource) -> None:
    plan = mirror.plan()
    source.offer({**FILES, "/objects/05.txt": b"changed"}, at=LATE)

    with pytest.raises(PlanOutdatedError) as error:
        mirror.apply(plan)

    assert error.value.code == "plan-outdated"
    assert here(mirror.folder) == {}
    assert mirror.pull().state is MirrorState.IN_SYNC


def test_a_plan_is_refused_when_the_mirror_changed(mirror: Mirror) -> None:
    plan = mirror.plan()
    mirror.pull()

    with pytest.raises(PlanOutdatedError):
        mirror.apply(plan)


def test_a_plan_outlives_a_new_list_that_says_the_same(mirror: Mirror, source: TinySource) -> None:
    plan = mirror.plan()
    source.offer(FILES, at=LATER)

    assert mirror.apply(plan).created == len(FILES)


def test_a_plan_of_another_mirror_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    plan = mirror.plan()

    with pytest.raises(ConfigurationError):
        Mirror(mirror.source, tmp_path / "other").apply(plan)


def test_what_failed_is_planned_again(mirror: Mirror, source: TinySource) -> None:
    body = source.answers.pop("/objects/03.txt")
    mirror.pull()
    source.answers["/objects/03.txt"] = body

    plan = mirror.plan()

    assert [(it.action, it.path) for it in plan] == [("create", "objects/03.txt")]
    assert mirror.apply(plan).created == 1
    assert here(mirror.folder) == FILES


def test_options_are_those_of_a_pull(source: TinySource, tmp_path: Path) -> None:
    mirror = Mirror(
        source.url, tmp_path / "m", include=["/objects/0*"], delete="never", max_delete=3
    )
    assert mirror.pull().created == 10
    source.offer({"/objects/00.txt": FILES["/objects/00.txt"]}, at=LATE)

    plan = mirror.plan()

    assert (plan.same, plan.delete, plan.keep) == (1, 0, 9)


# --- a Source of ours: Change Lists --------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "public"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(name)
    return folder


@pytest.fixture
def publisher(tree: Path) -> Iterator[Publisher]:
    late = LateApplication()
    with ServerThread(late) as server:
        publisher = Publisher(tree, url=server.uri)
        publisher.publish()
        late.application = publisher.application()
        yield publisher


def test_publishing_tells_what_it_did(publisher: Publisher, tree: Path) -> None:
    (tree / "d.txt").write_text("d")
    (tree / "a.txt").unlink()

    planned = publisher.publish(dry_run=True)
    done = publisher.publish()

    assert (planned.dry_run, planned.written) == (True, ())
    assert (done.files, done.created, done.updated, done.deleted) == (3, 1, 0, 1)
    assert done.written
    assert not done.first
    assert publisher.publish().written == ()


def test_what_is_published_is_discovered_and_read(publisher: Publisher, tree: Path) -> None:
    url = publisher.publish().url
    (tree / "d.txt").write_text("d")
    publisher.publish()

    found = discover(url)

    assert [it.uri for it in found.resources()] == [f"{url}{it}.txt" for it in "abc"]
    assert [(it.kind.value, it.uri) for it in found.changes()] == [("created", f"{url}d.txt")]
    moment = next(found.changes()).time
    assert list(found.changes(since=moment)) == []
    assert list(validate(f"{url}.well-known/resourcesync", live=True)) == []


def test_an_incremental_plan_is_carried_out_as_it_is(
    publisher: Publisher, tree: Path, tmp_path: Path
) -> None:
    mirror = Mirror(publisher.publish().url, tmp_path / "mirror")
    mirror.pull()
    (tree / "d.txt").write_text("d")
    (tree / "b.txt").write_text("longer")
    (tree / "a.txt").unlink()
    publisher.publish()

    plan = mirror.plan()
    outdated = mirror.plan()
    told = {(it.action, it.path) for it in plan}
    report = mirror.apply(plan)

    assert plan.mode is Mode.INCREMENTAL
    assert told == {("create", "d.txt"), ("update", "b.txt"), ("delete", "a.txt")}
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    with pytest.raises(PlanOutdatedError):
        mirror.apply(outdated)


def test_an_incremental_plan_that_is_refused_moves_no_cursor(
    publisher: Publisher, tree: Path, tmp_path: Path
) -> None:
    mirror = Mirror(publisher.publish().url, tmp_path / "mirror")
    mirror.pull()
    (tree / "d.txt").write_text("d")
    publisher.publish()
    plan = mirror.plan()
    (tree / "e.txt").write_text("e")
    publisher.publish()

    with pytest.raises(PlanOutdatedError):
        mirror.apply(plan)

    assert "/d.txt" not in here(mirror.folder)
    assert mirror.apply(mirror.plan()).created == 2


def test_a_source_without_change_lists_says_so(source: TinySource) -> None:
    found = discover(source.url)

    assert len(list(found.resources())) == len(FILES)
    with pytest.raises(SourceNotFoundError):
        next(found.changes())


def test_what_cannot_be_judged_is_an_error_at_the_end(source: TinySource) -> None:
    del source.answers["/resourcelist.xml"]
    findings = validate(source.url, live=True)

    with pytest.raises(ResourceSyncError):
        list(findings)


# --- audit, repair, changes ----------------------------------------------------------------------


def test_what_an_audit_finds_is_mended(mirror: Mirror) -> None:
    mirror.pull()
    (mirror.folder / "objects/02.txt").write_text("altered")
    (mirror.folder / "objects/03.txt").unlink()
    found: list[Event] = []

    audit = mirror.audit(on_event=found.append)
    report = mirror.repair(audit)

    assert not audit.in_sync
    assert [it.kind for it in found if it.kind == "finding"] == ["finding"] * 2
    assert len(audit.findings) == 2
    assert report.updated == 2
    assert here(mirror.folder) == FILES
    assert mirror.audit().in_sync


def test_only_some_findings_may_be_mended(mirror: Mirror) -> None:
    mirror.pull()
    for number in (2, 3):
        (mirror.folder / f"objects/0{number}.txt").unlink()

    mirror.repair(mirror.audit().findings[:1])

    assert (mirror.folder / "objects/02.txt").exists()
    assert not (mirror.folder / "objects/03.txt").exists()
    assert mirror.repair().updated == 1
    assert here(mirror.folder) == FILES


def test_an_audit_in_sync_leaves_nothing_to_mend(mirror: Mirror, source: TinySource) -> None:
    mirror.pull()
    audit = mirror.audit()
    source.asked.clear()

    assert mirror.repair(audit).updated == 0
    assert [it for it in source.asked if it.target.startswith("/objects")] == []


def test_a_consumer_is_told_of_each_change_once(mirror: Mirror, source: TinySource) -> None:
    mirror.pull()
    first = list(mirror.changes("index"))
    source.offer({**FILES, "/objects/05.txt": b"changed"}, at=LATE)
    mirror.pull()

    second = list(mirror.changes("index"))

    assert [it.kind.value for it in first] == ["created"] * len(FILES)
    assert [(it.kind.value, it.path.read_bytes()) for it in second] == [("updated", b"changed")]
    assert second[0].previous != second[0].digests
    assert second[0].time.tzinfo is not None
    assert list(mirror.changes("index")) == []
    assert len(list(mirror.changes("index", restart=True))) == len(FILES)


def test_a_consumer_that_stops_half_way_is_told_again(mirror: Mirror) -> None:
    mirror.pull()
    reading = mirror.changes("index")
    next(reading)
    reading.close()  # type: ignore[attr-defined]  # it is a generator

    assert len(list(mirror.changes("index"))) == len(FILES)


def test_changes_are_read_from_a_number_or_a_moment_on(mirror: Mirror) -> None:
    mirror.pull()
    everything = list(mirror.changes())

    assert list(mirror.changes(since=everything[4].number)) == everything[5:]
    assert list(mirror.changes(since=everything[0].time)) == everything
    with pytest.raises(ConfigurationError):
        mirror.changes("index", since=1)
    with pytest.raises(ConfigurationError):
        mirror.changes(restart=True)


def test_changes_are_read_while_the_mirror_is_held(mirror: Mirror) -> None:
    with mirror:
        mirror.pull()
        assert len(list(mirror.changes("index"))) == len(FILES)


# --- stopping ----------------------------------------------------------------------------------


def test_a_program_may_stop_a_pull_and_go_on_later(mirror: Mirror) -> None:
    done: list[Event] = []

    with pytest.raises(StoppedError):
        mirror.pull(on_event=done.append, stop=lambda: any(it.kind == "plan" for it in done))

    assert mirror.pull().state is MirrorState.IN_SYNC
    assert here(mirror.folder) == FILES


def test_a_call_that_is_stopped_before_it_begins_does_nothing(
    mirror: Mirror, source: TinySource
) -> None:
    for call in (mirror.pull, mirror.plan):
        with pytest.raises(StoppedError):
            call(stop=lambda: True)

    assert source.asked == []
    assert not mirror.folder.exists()


def test_a_source_that_hangs_does_not_keep_a_program_from_stopping(tmp_path: Path) -> None:
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mirror = Mirror(f"http://127.0.0.1:{silent.getsockname()[1]}/", tmp_path / "mirror")
        timer = threading.Timer(0.2, stop.set)
        timer.start()
        began = time.monotonic()

        with pytest.raises(StoppedError):
            mirror.pull(stop=stop.is_set)

        timer.join()
    assert time.monotonic() - began < 5


def test_what_an_event_raises_ends_the_call_and_nothing_else(mirror: Mirror) -> None:
    def raise_at_once(event: Event) -> None:
        raise ZeroDivisionError(event.kind)

    with pytest.raises(ZeroDivisionError):
        mirror.pull(on_event=raise_at_once)

    assert mirror.pull().state is MirrorState.IN_SYNC


def test_a_call_out_of_its_own_event_is_refused(mirror: Mirror) -> None:
    with pytest.raises(ConfigurationError, match="busy"):
        mirror.pull(on_event=lambda _: mirror.pull())


# --- in a program --------------------------------------------------------------------------------


def test_a_held_mirror_is_pulled_by_nobody_else(mirror: Mirror) -> None:
    other = Mirror(mirror.source, mirror.folder)

    with mirror:
        mirror.pull()
        with pytest.raises(LockedError):
            other.pull()
        assert mirror.audit().in_sync
        assert mirror.repair().updated == 0
    assert other.pull().same == len(FILES)


def test_a_mirror_is_not_held_twice(mirror: Mirror) -> None:
    with mirror:
        mirror.pull()
        with pytest.raises(ConfigurationError, match="held already"), mirror:
            pass
        assert mirror.pull().same == len(FILES)


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

    assert [type(it) for it in raised] == [ConfigurationError]


def test_a_mirror_that_could_not_be_opened_is_not_held(mirror: Mirror) -> None:
    with mirror, pytest.raises(LockedError), Mirror(mirror.source, mirror.folder) as other:
        other.pull()
    with mirror:
        assert mirror.pull().state is MirrorState.IN_SYNC


def test_two_mirrors_are_pulled_at_once_in_threads(source: TinySource, tmp_path: Path) -> None:
    mirrors = [Mirror(source.url, tmp_path / name) for name in ("one", "two")]
    meet = threading.Barrier(2, timeout=20)
    events: dict[int, list[Event]] = {0: [], 1: []}

    def pull(number: int) -> None:
        def hear(event: Event) -> None:
            if event.kind == "plan":
                with suppress(threading.BrokenBarrierError):
                    meet.wait()
            events[number].append(event)

        mirrors[number].pull(on_event=hear)

    threads = [threading.Thread(target=pull, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not meet.broken
    assert [here(it.folder) for it in mirrors] == [FILES, FILES]
    items = [[it for it in events[number] if it.kind == "item"] for number in range(2)]
    assert [len(it) for it in items] == [len(FILES), len(FILES)]


def test_an_embedding_program_keeps_its_signals_logging_and_output(
    mirror: Mirror, capfd: pytest.CaptureFixture[str]
) -> None:
    numbers = [it for it in signal.Signals if it not in (signal.SIGKILL, signal.SIGSTOP)]
    during: list[object] = []

    def state() -> tuple[object, ...]:
        root = logging.getLogger()
        own = logging.getLogger("resourcesync")
        return (
            [signal.getsignal(it) for it in numbers],
            (list(root.handlers), root.level, list(own.handlers), own.level, own.propagate),
            [it.name for it in threading.enumerate() if "process_request" not in it.name],
        )

    before = state()
    mirror.pull(on_event=lambda event: during.append(state()))
    mirror.audit()
    mirror.repair()
    list(mirror.changes("index"))

    assert state() == before
    assert during
    assert all(it == before for it in during)
    assert capfd.readouterr() == ("", "")


def test_a_source_that_is_away_is_an_error_of_this_package(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        mirror = Mirror(f"http://127.0.0.1:{held.getsockname()[1]}/", tmp_path / "mirror")

        with pytest.raises(SourceUnavailableError):
            mirror.pull()
    assert not mirror.folder.exists()
