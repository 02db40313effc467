"""The plan of a dry run, in numbers and by URI, is what the next run does."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from hypothesis import given, note, settings
from hypothesis import strategies as st

from resourcesync.destination.cursor import Phase
from resourcesync.destination.destination import Destination
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.pending_tasks import DAMAGED, RESTORED
from resourcesync.destination.planner import (
    ABSENT,
    DELETED_BY_SOURCE,
    FILTERED,
    MAY_BE_GONE,
    OUT_OF_SCOPE,
    Delete,
    Fetch,
    ReviewedDecision,
    as_suspect,
    as_unknown,
)
from resourcesync.destination.reports import MirrorState, Mode, RunReport
from resourcesync.destination.runs import uri_of
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import ResourceSyncError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, Fixity, Pending, PendingTask, StateTransaction
from resourcesync.model.settings import Limit
from resourcesync.model.timestamps import format_w3c, from_microseconds, to_microseconds
from resourcesync.ports import CancelToken, CopyRemoval, FetchRequest
from resourcesync_simulator.clock import SimulatedClock
from resourcesync_simulator.destination import SimulatedCopies
from resourcesync_simulator.faults import FaultInjector
from resourcesync_simulator.scenario import Faults
from tests.support.documents.text import document, url
from tests.support.storage.cursors import set_cursor
from tests.support.worlds.network import Answer, MemoryFetcher

BASE = "http://source.example/"
START = from_microseconds(1_767_139_200_000_000)
POINTERS = {
    ".well-known/resourcesync": ("description", {"capabilities.xml": "capabilitylist"}),
    "capabilities.xml": (
        "capabilitylist",
        {"resources.xml": "resourcelist", "changes.xml": "changelist"},
    ),
}


def content(name: str, version: int) -> bytes:
    return f"version {version} of {name}".encode()


def md(kind: str, more: str = "") -> str:
    return f'<rs:md capability="{kind}"{more}/>'


def digest(name: str, version: int) -> str:
    return f"sha-256:{hashlib.sha256(content(name, version)).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    task: PendingTask
    reason: str = ""  # of a deletion
    generation: int = 1  # its reading; the first is the last completed one
    is_due: bool = True  # whether a fetch is due
    version: int = 2  # the version to fetch
    code: str = "unavailable"  # of a fetch: why it failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    copy: str = "as listed"  # the state of its copy
    task: Task | None = None
    listed: tuple[str, ...] = ("1",)  # its entries in the Resource List, by hash and time
    change: tuple[str, str, bool] | None = None  # its kind, version and whether it has a time
    served: int = 1  # the version that the Source serves, or the status of its answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A mirror, its Source, and the options of the pull."""

    things: tuple[Thing, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    rewrites_list: bool = True
    has_newer_list: bool = False
    has_unusable_entry: bool = False
    is_rolled_back: bool = False


class Mirror:
    """A mirror in memory whose state was made up, and its Source."""

    def __init__(self, case: Case) -> None:
        self.clock = SimulatedClock(START)
        injector = FaultInjector(Faults(), 0, self.clock, lambda *_: None)
        self.copies = SimulatedCopies(lambda *_: None, injector)
        self.state = SqliteMirrorState(":memory:")
        self.fetcher = MemoryFetcher(self.serve)
        self.events: list[tuple[str, Mapping[str, object]]] = []
        self.things = {f"{'x' * (n == 0)}{n}": thing for n, thing in enumerate(case.things)}
        self.listed = {name: Thing() for name in self.things}
        self.at, self.rewrites_list, self.has_unusable_entry = START, True, False
        self.pull()
        self.clock.sleep(3_600)
        self.fetched_at = START + timedelta(seconds=60)
        self.listed = self.things
        self.at += timedelta(seconds=120 * case.has_newer_list)
        self.rewrites_list = case.rewrites_list
        self.has_unusable_entry = case.has_unusable_entry
        set_cursor(self.state, generation=2)  # of a reading that was interrupted
        for name, thing in self.things.items():
            self._make_up(name, thing)
        if case.is_rolled_back:
            set_cursor(self.state, phase=Phase.ROLLED_BACK)

    def close(self) -> None:
        self.state.close()

    def _make_up(self, name: str, thing: Thing) -> None:
        """Bring the copy of a resource and its task into their states."""
        state, uri = self.state, BASE + name
        copy = state.copy(uri)
        assert copy is not None
        match thing.copy:
            case "none" | "lost":
                self.copies.remove([CopyRemoval(path=copy.path, signature=copy.signature)], "")
                if thing.copy == "none":
                    state.commit(StateTransaction(removed=[uri]))
            case "other":
                other = copy._replace(digests=digest(name, 9), listed="", lastmod=None)
                state.commit(StateTransaction(installed=[other]))
            case "restored":
                state.commit(StateTransaction(installed=[copy._replace(fixity=Fixity.RESTORED)]))
                state.commit(StateTransaction(pending=[self._task(name, _RESTORED)]))
            case "suspect":
                state.commit(StateTransaction(suspect=[as_suspect(copy)]))
            case "unknown":
                state.commit(StateTransaction(suspect=[as_unknown(copy)]))
            case _:
                assert thing.copy == "as listed"
        if thing.task is not None:
            state.commit(StateTransaction(pending=[self._task(name, thing.task)]))

    def _task(self, name: str, task: Task) -> Pending:
        now, is_fetch = to_microseconds(self.clock.now()), task.task == PendingTask.FETCH
        code = {"": FILTERED, RESTORED: RESTORED}.get(task.reason, "")
        return Pending(
            uri=BASE + name,
            loc=BASE + name,
            path=name,
            task=task.task,
            listed=digest(name, task.version) if is_fetch else "",
            length=len(content(name, task.version)) if is_fetch else None,
            lastmod=to_microseconds(START) if is_fetch else None,
            code=task.code if is_fetch else code if task.task == PendingTask.RETAIN else "",
            reason="" if task.reason == RESTORED else task.reason,
            tries=7 if is_fetch else 0,
            due=now - 1 if task.is_due else now + 3_600_000_000,
            first=now,
            first_at=0,
            generation=task.generation,
        )

    def serve(self, request: FetchRequest) -> Answer:
        name = request.uri.removeprefix(BASE)
        if name in POINTERS:
            kind, targets = POINTERS[name]
            entries = (url(BASE + to, md(of)) for to, of in targets.items())
            return Answer(body=document(*entries, md=md(kind)))
        if name == "resources.xml":
            return Answer(body=self._resource_list())
        if name == "changes.xml":
            return Answer(body=self._change_list())
        thing = self.listed.get(name)
        if thing is None or thing.served > 9:
            return Answer(status=404 if thing is None else thing.served)
        return Answer(body=content(name, thing.served))

    def _resource_list(self) -> bytes:
        entries = [
            self._entry(name, version, "")
            for name, thing in self.listed.items()
            for version in (thing.listed if self.rewrites_list else ("1",))
        ]
        if self.has_unusable_entry:
            entries.append(url("http://elsewhere.example/1"))
        return document(*entries, md=md("resourcelist", f' at="{format_w3c(self.at)}"'))

    def _change_list(self) -> bytes:
        time, entries = START + timedelta(seconds=180), []
        for name, thing in self.listed.items():
            if thing.change is not None:
                kind, version, is_dated = thing.change
                time += timedelta(seconds=1)
                dated = f' datetime="{format_w3c(time)}"' if is_dated else ""
                entries.append(self._entry(name, version, f' change="{kind}"{dated}'))
        return document(*entries, md=md("changelist", f' from="{format_w3c(START)}"'))

    @staticmethod
    def _entry(name: str, version: str, more: str) -> str:
        """Return an entry: a version by its hash; ``dated``: by its time; else by nothing."""
        if version.isdigit():
            data = content(name, int(version))
            more += f' hash="{digest(name, int(version))}" length="{len(data)}"'
        lastmod = f"<lastmod>{format_w3c(START)}</lastmod>" if version in ("1", "dated") else ""
        return url(BASE + name, lastmod, f"<rs:md{more}/>")

    def pull(self, **options: Any) -> RunReport:
        return self._destination().pull(PullOptions(**options))

    def repair(self, *, deleting: bool, **options: Any) -> RunReport:
        return self._destination().repair(None, PullOptions(**options), deleting=deleting)

    def _destination(self) -> Destination:
        self.events.clear()
        self.fetcher.asked.clear()
        return Destination(
            Dependencies(
                folder="mirror",
                source=BASE,
                fetcher=self.fetcher,
                copies=self.copies,
                state=self.state,
                clock=self.clock,
                cancel=CancelToken(self.clock),
                report=lambda event, fields: self.events.append((event, fields)),
                scratch=lambda: cast(BinaryIO, SpooledTemporaryFile()),
                check_folder=lambda: None,
                purge=lambda _: None,
            )
        )

    def touched(self) -> set[str]:
        requested = {uri for uri in self.fetcher.asked if uri.removeprefix(BASE) in self.things}
        return requested | self._items("create", "update")

    def answered_deleted(self, fetched: set[str]) -> set[str]:
        """Return what the Source does not have: where lists dispute it, its answer deletes."""
        return {uri for uri in fetched if self.things[uri.removeprefix(BASE)].served == 404}

    def serves_as_listed(self, fetch: Fetch) -> bool:
        """True if the answer to a fetch is what the lists agree on: so its plan shows its end."""
        listed, name = fetch.listed, fetch.listed.uri.removeprefix(BASE)
        is_agreed = not (listed.undated or listed.change in MAY_BE_GONE)
        return is_agreed and listed.hash == digest(name, self.things[name].served)

    def deleted(self) -> set[str]:
        return self._items("delete")

    def held(self) -> set[str]:
        return {task.uri for task in self.state.pending(PendingTask.DELETE)}

    def _items(self, *actions: str) -> set[str]:
        return {
            str(fields["uri"])
            for event, fields in self.events
            if event == "item" and fields["action"] in actions and not fields.get("dry_run")
        }

    def plans(self) -> list[Mapping[str, object]]:
        found = [fields for event, fields in self.events if event == "plan"]
        return [{**plan, "absent": None} for plan in found]  # counted in a dry run only


_RESTORED = Task(task=PendingTask.RETAIN, reason=RESTORED)
_REASONS = [DELETED_BY_SOURCE, ABSENT, OUT_OF_SCOPE]

fetches = st.builds(
    Task,
    task=st.just(PendingTask.FETCH),
    is_due=st.booleans(),
    version=st.sampled_from([1, 2]),
    code=st.sampled_from(["unavailable", "missing", DAMAGED]),
)
deletions = st.builds(
    Task,
    task=st.sampled_from([PendingTask.DELETE, PendingTask.RETAIN]),
    reason=st.sampled_from(_REASONS),
    generation=st.sampled_from([1, 2]),
)
versions = st.sampled_from(["1", "2", "dated", ""])
things = st.builds(
    Thing,
    copy=st.sampled_from(
        ["as listed", "as listed", "none", "other", "restored", "suspect", "unknown", "lost"]
    ),
    task=st.none() | fetches | deletions,
    listed=st.one_of(
        st.just(()), st.tuples(versions), st.tuples(versions), st.tuples(versions, versions)
    ),
    change=st.none()
    | st.tuples(st.sampled_from(["created", "updated", "deleted"]), versions, st.booleans()),
    served=st.sampled_from([1, 2, 404, 503]),
)
limits = st.sampled_from([Limit(percent=100), Limit(number=0)])
options: dict[str, st.SearchStrategy[Any]] = {
    "delete": st.sampled_from(["signalled", "absent", "never"]),
    "max_delete": limits,
    "lists_only": st.sampled_from([False, False, False, True]),
    "accept_missing": st.booleans(),
}
whole_list: dict[str, st.SearchStrategy[Any]] = {
    "mode": st.just("baseline"),
    "filters": st.just(Filters(exclude=("x*",))),
    "prune": st.just(True),
}
many_things = st.lists(things, min_size=1, max_size=5).map(tuple)
changes = st.builds(
    Case,
    things=many_things,
    options=st.fixed_dictionaries({}, optional=options),
    rewrites_list=st.just(False),
)
lists = st.builds(
    Case,
    things=many_things,
    options=st.fixed_dictionaries({}, optional=options | whole_list),
    has_newer_list=st.booleans(),
    has_unusable_entry=st.booleans(),
    is_rolled_back=st.booleans(),
)

Decisions = dict[str, ReviewedDecision]


class Reviewer:
    def __init__(self) -> None:
        self.decisions: Decisions = {}
        self.same = 0

    def review(
        self, mode: Mode, decide: Callable[[], Iterator[ReviewedDecision]], same: int
    ) -> None:
        del mode
        found = list(decide())
        self.decisions = {uri_of(decision): decision for decision in found}
        assert len(found) == len(self.decisions), "one decision for each resource"
        self.same = same

    def fetches(self) -> list[Fetch]:
        return [each for each in self.decisions.values() if isinstance(each, Fetch)]

    def of(self, kind: type[ReviewedDecision]) -> set[str]:
        return {uri for uri, each in self.decisions.items() if isinstance(each, kind)}


def _kinds(decisions: Decisions) -> dict[str, tuple[str, str]]:
    """Return the decisions without what only a request would use."""
    return {
        uri: (type(each).__name__, "" if isinstance(each, Fetch) else each.reason)
        for uri, each in decisions.items()
    }


def _check(mirror: Mirror, run: Callable[..., RunReport], *, plans_all: bool) -> None:
    """See that a dry run says what a run does, which may also execute what earlier runs left."""
    held = mirror.held()
    foreseen, seen = Reviewer(), Reviewer()
    before = {copy.uri: copy for copy in mirror.state.copies()}
    try:
        dry = run(dry_run=True, review=foreseen.review)
    except ResourceSyncError as error:
        refused = type(error)
        try:
            run()
        except refused:
            return
        raise AssertionError(f"only the dry run says {refused}") from error
    plans = mirror.plans()
    assert before == {copy.uri: copy for copy in mirror.state.copies()}
    assert not mirror.touched()

    report = run(review=seen.review)

    note(f"dry run {dry}\nplanned {plans} {_kinds(foreseen.decisions)}")
    note(f"run {report}\nplanned {mirror.plans()} {_kinds(seen.decisions)}")
    assert mirror.plans() == plans
    assert _kinds(seen.decisions) == _kinds(foreseen.decisions)
    assert report.mode == dry.mode
    assert report.retained.unlisted == dry.retained.unlisted or not plans_all
    _check_counts(plans, foreseen)
    is_served = all(map(mirror.serves_as_listed, foreseen.fetches()))
    _check_states(dry, report, is_served=is_served)
    if report.lists_only:
        assert _lacking(report) == _lacking(dry)
    else:
        others = set[str]() if plans_all else held - foreseen.of(Delete)
        _check_deeds(mirror, foreseen, mirror.held() - others)
        answered = mirror.answered_deleted(foreseen.of(Fetch))
        assert (dry.held == report.held) or answered or not plans_all
    after = {copy.uri: copy for copy in mirror.state.copies()}
    others = before.keys() - foreseen.of(Fetch) - foreseen.of(Delete)
    assert all(_content(after.get(uri)) == _content(before[uri]) for uri in others)


def _check_states(dry: RunReport, report: RunReport, *, is_served: bool) -> None:
    """See that the end is foreseen where no answer or deletion alters it."""
    was_absent = dry.listed.absent or dry.reasons.get("missing")
    is_sure = not was_absent if report.lists_only else is_served
    is_sure = is_sure and not report.faults.absent_below and "storage" not in report.reasons
    assert dry.state is report.state or not is_sure
    assert dry.state is not MirrorState.BEHIND or report.state is not MirrorState.IN_SYNC


def _lacking(report: RunReport) -> int:
    return report.listed.pending + report.listed.absent


def _content(copy: Copy | None) -> tuple[int, str] | None:
    return None if copy is None else (copy.length, copy.digests)


def _check_counts(plans: list[Mapping[str, object]], seen: Reviewer) -> None:
    for plan in plans:
        fetched = seen.fetches()
        created = sum(fetch.creates for fetch in fetched)
        counted = (plan["create"], plan["update"], plan["delete"], plan["same"])
        assert counted == (created, len(fetched) - created, len(seen.of(Delete)), seen.same)


def _check_deeds(mirror: Mirror, foreseen: Reviewer, held: set[str]) -> None:
    fetched, deleted = foreseen.of(Fetch), foreseen.of(Delete)
    assert mirror.touched() == fetched
    assert deleted <= mirror.deleted() | held <= deleted | mirror.answered_deleted(fetched)


@settings(max_examples=160, deadline=None)
@given(changes | lists)
def test_a_pull_of_changes_or_whole_lists_does_what_its_dry_run_says(case: Case) -> None:
    with closing(Mirror(case)) as mirror:
        _check(mirror, partial(mirror.pull, **case.options), plans_all=True)


@settings(max_examples=30, deadline=None)
@given(lists, st.booleans())
def test_a_repair_does_what_its_dry_run_says(case: Case, deleting: bool) -> None:
    with closing(Mirror(case)) as mirror:
        _check(mirror, partial(mirror.repair, deleting=deleting), plans_all=False)
