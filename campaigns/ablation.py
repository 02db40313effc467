"""Each rule that keeps a mirror right is taken away alone: the simulated worlds must notice.

A rule whose absence nobody notices is either not needed, or not tried: both are to be known.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from campaigns.cursor import scenario_of
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.destination import baseline, cursor, incremental, pull_session
from resourcesync.destination.changes import intervals, reader, scan
from resourcesync.destination.changes.intervals import ChangeHistory, Continuation
from resourcesync.destination.lists import absence_proof, resource_reader
from resourcesync.destination.planner import Absence, ListedEntry
from resourcesync.destination.transfers import commit, verification
from resourcesync.discovery.document_fetcher import FetchedDocument
from resourcesync.documents.writer import closing, opening
from resourcesync.errors import DocumentError, SourceError
from resourcesync.mirror_state.rows import Fixity, PendingTask, StateTransaction
from resourcesync.model.entries import Change, Header
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import Purpose
from resourcesync_simulator import destination, network
from resourcesync_simulator.simulation import simulate

Patch = tuple[object, str, Any]
"""A thing, the name of a part of it, and what stands in its place."""


def _holes_ignored() -> Iterator[Patch]:
    def blind(position: cursor.Cursor, read: ChangeHistory) -> cursor.Verdict:
        return cursor.judge(position, replace(read, is_contiguous=True, starts_in_time=True))

    yield incremental, "judge", blind


def _always_following() -> Iterator[Patch]:
    yield incremental, "judge", lambda *_: cursor.Following()


def _prefixes_unread() -> Iterator[Patch]:
    yield scan, "is_same_prefix", lambda *_: True


def _lost_lists_ignored() -> Iterator[Patch]:
    yield cursor, "_continues", lambda *_: True


def _last_change_believed() -> Iterator[Patch]:
    yield intervals.LastChanges, "has_last", True


def _last_change_unread() -> Iterator[Patch]:
    yield intervals.LastChanges, "has_last", False


def _after_t_only() -> Iterator[Patch]:
    def new(self: scan.ChangeListScan, change: Change, _position: int) -> bool:
        begin = self._reading.start.new_since
        return change.time is not None and to_microseconds(change.time) > begin

    yield scan.ChangeListScan, "_accept_by_time", new
    yield scan.Reading, "follows", lambda *_: False


def _from_t_on_only() -> Iterator[Patch]:
    def new(self: scan.ChangeListScan, change: Change, _position: int) -> bool:
        begin = self._reading.start.new_since
        return change.time is not None and to_microseconds(change.time) >= begin

    yield scan.ChangeListScan, "_accept_by_time", new
    yield scan.Reading, "follows", lambda *_: False


def _mismatches_dropped() -> Iterator[Patch]:
    def fail(self: commit.CommitBatch, fetch: Any, *_: object) -> bool:
        self.add_unchanged(fetch)
        return True

    yield commit.CommitBatch, "add_failure", fail


def _no_hash_check() -> Iterator[Patch]:
    yield verification, "verify_bytes", lambda *_: (Fixity.VERIFIED, None)


def _time_of_fetching() -> Iterator[Patch]:
    def advance(_through: int, *, now: int, **_: object) -> int:
        return now

    yield intervals, "advance_checkpoint", advance


def _old_lists_accepted() -> Iterator[Patch]:
    yield absence_proof.ListMoments, "check_no_older", lambda *_: None
    yield baseline, "after_list", lambda _cursor, changes, _now: changes


def _cut_lists_accepted() -> Iterator[Patch]:
    harmed = network.SimulatedNetwork._harmed  # noqa: SLF001 - the same

    def mended(self: network.SimulatedNetwork, body: bytes, purpose: Purpose, path: str) -> bytes:
        got = harmed(self, body, purpose, path)
        if purpose is Purpose.RESOURCE or len(got) == len(body) or b"</url>" not in got:
            return got
        return got[: got.rindex(b"</url>") + 6] + b"</urlset>"

    yield network.SimulatedNetwork, "_harmed", mended


def _old_lastmod_believed() -> Iterator[Patch]:
    def undated(change: Change, _through: int) -> bool:
        return change.time is None

    yield intervals, "is_undated", undated
    yield scan, "has_own_time", lambda _change: True


def _late_changes_ignored() -> Iterator[Patch]:
    yield intervals.ListPositions, "position_of", lambda *_: None


def _last_second_unread() -> Iterator[Patch]:
    yield intervals, "OVERLAP", 0


def _starts_of_lists_unread() -> Iterator[Patch]:
    add = intervals.LastChanges.add

    def anywhere(self: intervals.LastChanges, change: Change, _begin: int | None) -> None:
        add(self, change, None)

    yield intervals.LastChanges, "add", anywhere


def _newer_lists_ignored() -> Iterator[Patch]:
    yield incremental.Incremental, "_check_for_newer_list", lambda *_: False


def _refusals_ignored() -> Iterator[Patch]:
    yield baseline.Baseline, "_is_understood", True


def _one_open_list() -> Iterator[Patch]:
    lists: Any = cursor.Cursor.open_lists
    yield cursor.Cursor, "open_lists", property(lambda self: lists.fget(self)[-1:])


def _killed_work_believed() -> Iterator[Patch]:
    yield pull_session.SyncSession, "begin", lambda _self: None


def _caches_believed() -> Iterator[Patch]:
    def cached(
        self: reader.ChangeListReader, uri: str, at: int, positions: intervals.ListPositions
    ) -> ChangeHistory:
        begin = intervals.ReadingStart(checkpoint=at, list_clock=at, is_resource_list=True)
        near = replace(self, positions=positions)
        return near.read_consistent(uri, begin, None)

    yield reader.ChangeListReader, "read_since", cached


def _one_clock() -> Iterator[Patch]:
    after = cursor.Cursor.after

    def one(self: cursor.Cursor, changes: ChangeHistory) -> cursor.Cursor:
        return replace(after(self, changes), list_clock=changes.checkpoint)

    yield cursor.Cursor, "after", one


def _order_unread() -> Iterator[Patch]:
    yield intervals, "count_old_entries", lambda *_: 0


def _outdated_index_believed() -> Iterator[Patch]:
    yield reader, "_index_record", lambda record, _reading: record


def _unreadable_lists_skipped() -> Iterator[Patch]:
    read_chain = reader.ChangeListReader._read_chain  # noqa: SLF001 - a part is replaced

    def skipping(self: reader.ChangeListReader, present: Any, get: Any, reading: Any) -> None:
        known = {span.uri: span for span in present}

        def get_or_skip(uri: str) -> FetchedDocument:
            try:
                fetched: FetchedDocument = get(uri)
                for _ in fetched.open().entries():
                    pass
            except (SourceError, DocumentError):
                return _without_changes(known[uri])
            return fetched

        read_chain(self, present, get_or_skip, reading)

    yield reader.ChangeListReader, "_read_chain", skipping


def _without_changes(span: intervals.ChangeListSpan) -> FetchedDocument:
    header = Header(
        capability=Capability.CHANGE_LIST,
        from_=from_microseconds(span.from_ or 0),
        until=None if span.until is None else from_microseconds(span.until),
    )
    stream = BytesIO(opening(header) + closing(header))
    uri = span.uri
    return FetchedDocument(uri=uri, final_uri=uri, stream=stream)


def _evidence_ignored() -> Iterator[Patch]:
    yield absence_proof, "proven_absence", lambda *_: (Absence.DELETED, 1 << 62)


def _windows_believed() -> Iterator[Patch]:
    def believed(changes: Any, *_: object) -> Continuation:
        return Continuation(is_proven=True, news=range(len(changes)))

    yield intervals, "continuation", believed


def _deletions_at_once() -> Iterator[Patch]:
    new_rows = incremental.Incremental._new_rows  # noqa: SLF001 - a part is replaced

    def without_gap(self: Any, history: ChangeHistory) -> Iterator[ListedEntry]:
        pull = self._pull
        before, pull.cursor = pull.cursor, replace(pull.cursor, phase=cursor.Phase.FOLLOWING)
        rows = list(new_rows(self, history))
        pull.cursor = before
        return iter(rows)

    yield incremental.Incremental, "_new_rows", without_gap


def _tasks_forgotten() -> Iterator[Patch]:
    begin_anew = destination.SimulatedDestination._restart  # noqa: SLF001 - the same

    def forgetful(self: destination.SimulatedDestination) -> None:
        begin_anew(self)
        state = self._mirror.state
        assert state is not None
        state.commit(
            StateTransaction(completed=[row.uri for row in state.pending(PendingTask.FETCH)])
        )

    yield destination.SimulatedDestination, "_restart", forgetful


def _hashes_of_parts_believed() -> Iterator[Patch]:
    yield resource_reader, "agree", lambda _found, listed: bool(listed)


RULES: Final[dict[str, Callable[[], Iterator[Patch]]]] = {
    "the lists are judged": _always_following,
    "holes between lists are found": _holes_ignored,
    "processed prefixes are compared": _prefixes_unread,
    "lists that are gone prove nothing": _lost_lists_ignored,
    "the last change is looked up": _last_change_believed,
    "the last change proves": _last_change_unread,
    "a mismatch stays pending": _mismatches_dropped,
    "more than `datetime` > T counts": _after_t_only,
    "more than `datetime` >= T counts": _from_t_on_only,
    "digests are compared": _no_hash_check,
    "T is told by the lists": _time_of_fetching,
    "older lists are refused": _old_lists_accepted,
    "lists that are cut short are refused": _cut_lists_accepted,
    "a list that cannot be read is not left out": _unreadable_lists_skipped,
    "what is to be done is written down before T moves": _tasks_forgotten,
    "an old lastmod hides no change": _old_lastmod_believed,
    "a change listed late counts beside a Resource List": _late_changes_ignored,
    "the second before T is read again": _last_second_unread,
    "a change before the start of its list proves nothing": _starts_of_lists_unread,
    "a newer Resource List is read": _newer_lists_ignored,
    "what is not understood is not taken for gone": _refusals_ignored,
    "every open list is asked": _one_open_list,
    "after a kill a baseline is due": _killed_work_believed,
    "a baseline reads the Change Lists past all caches": _caches_believed,
    "the clock of the lists is asked": _one_clock,
    "the order of undated changes counts": _order_unread,
    "an index that is outdated is read again": _outdated_index_believed,
    "absence is proven against the last evidence": _evidence_ignored,
    "a list without an interval proves that it goes on": _windows_believed,
    "while changes are missing, deletions wait": _deletions_at_once,
    "a part has the hash that its index lists": _hashes_of_parts_believed,
}
"""What each rule is, and what takes it away."""

_JOURNEYS: Final = Path(__file__).parents[1] / "tests/journeys"
HELD: Final = {
    "after a kill a baseline is due": "set_back_sources",
    "a newer Resource List is read": "lists_that_do_not_go_on",
    "what is not understood is not taken for gone": "pulling_absence",
    "a change listed late counts beside a Resource List": "times_of_changes",
    "the second before T is read again": "times_of_changes",
    "a change before the start of its list proves nothing": "pulling_gaps",
    "holes between lists are found": "convergence_of_lists",
    "older lists are refused": "pulling_gaps",
    "T is told by the lists": "two_clocks",
    "every open list is asked": "lists_that_do_not_go_on",
    "the last change proves": "times_of_changes",
    "a baseline reads the Change Lists past all caches": "pulling_rewritten_lists",
    "the clock of the lists is asked": "times_of_changes",
    "the order of undated changes counts": "lists_behind_the_resource_list",
    "an index that is outdated is read again": "lists_behind_the_resource_list",
    "absence is proven against the last evidence": "what_lists_prove",
    "a list without an interval proves that it goes on": "what_lists_prove",
    "while changes are missing, deletions wait": "found_by_campaigns",
    "a part has the hash that its index lists": "what_lists_prove",
}
"""Rules that hardly any world needs, each with the tests of the lives that do."""


@contextmanager
def without(rule: str) -> Iterator[None]:
    """Take a rule away while the block runs; an empty name takes none."""
    with ExitStack() as undo:
        for thing, name, other in RULES[rule]() if rule else ():
            undo.callback(setattr, thing, name, getattr(thing, name))
            setattr(thing, name, other)
        yield


def noticed(rule: str, *, first: int, most: int) -> int | None:
    """Return how many worlds it took to notice that a rule is not there; ``None`` for too many."""
    worlds = map(scenario_of, range(first, first + most))
    with without(rule):
        for number, scenario in enumerate(worlds):
            measured = simulate(scenario, scenario.destinations[0])
            if measured.lies or measured.outcome == "silently wrong":
                return number + 1
    return None


def is_held(rule: str, tests: str) -> bool:
    """Whether tests pass, and fail as soon as a rule is taken away."""
    words = ["-q", "-p", "no:cacheprovider", str(_JOURNEYS / f"test_{tests}.py")]
    ended = []
    for name in ("", rule):
        with without(name), redirect_stdout(StringIO()):
            ended.append(pytest.main(words))
    return ended == [pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED]


def run(asked: Asked) -> Outcome:
    """Take each rule away, in worlds of at most ``size`` seeds, or in the tests that hold it."""
    outcome, longest = Outcome(), 0
    with ProcessPoolExecutor(max_workers=os.cpu_count(), max_tasks_per_child=1) as pool:
        held = {rule: pool.submit(is_held, rule, tests) for rule, tests in HELD.items()}
        rules = [rule for rule in RULES if rule not in HELD]
        found = pool.map(partial(noticed, first=asked.seed, most=asked.size), rules)
        for rule, future in held.items():
            failed = future.result()
            outcome.add(f"without: {rule}", "its tests fail" if failed else "unnoticed")
            outcome.require(failed, f"no test notices without: {rule}")
        for rule, worlds in zip(rules, found, strict=True):
            outcome.add(f"without: {rule}", "unnoticed" if worlds is None else f"world {worlds}")
            outcome.require(worlds, f"nobody notices without: {rule}")
            longest = max(longest, worlds or 0)
    control = noticed("", first=asked.seed, most=longest)
    outcome.add(f"with all rules, {longest} worlds", "a lie" if control else "no lie")
    outcome.require(not control, f"with all rules, world {control} is a lie: nothing was proven")
    return outcome


CAMPAIGN: Final = Campaign(
    run=run, size=300, unit="worlds at most for each rule", least=300, exact=True
)
