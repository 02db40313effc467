"""Fixity checks: an audit's verification of copies, and the suspect mark of those that fail.

Only the mirror's state is written, never a copy. A suspect copy equals nothing that is listed, so
every later run fetches it again; its file then goes to quarantine.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from resourcesync import ports
from resourcesync.destination import pending_tasks, planner
from resourcesync.destination.audits.reports import AuditCounts, FindingKind
from resourcesync.destination.audits.sampling import AuditRolling, chosen_copies
from resourcesync.destination.held_deletion_probes import exists, probe_all
from resourcesync.destination.pull_session import SyncSession
from resourcesync.destination.transfers.derived_bytes import decode_staged
from resourcesync.destination.transfers.verification import check_installed, verify_bytes
from resourcesync.errors import BadResponseError, StorageError
from resourcesync.merge_join import Created, Deleted, Same, Updated, compare
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import (
    Copy,
    Fixity,
    Pending,
    PendingTask,
    StateTransaction,
    decode_entry_links,
)
from resourcesync.model.content_codings import content_codings
from resourcesync.model.digests import disagree, parse_digests
from resourcesync.model.vocabulary import Relation
from resourcesync.ports import CopyContent

_GROUP: Final = 256


class SuspectMarker:
    """Writer of the suspect marks that an audit sets and clears."""

    def __init__(self, pull: SyncSession, *, offline: bool, is_kept: bool = True) -> None:
        self._pull = pull
        self._is_stored = is_kept
        self._is_offline = offline
        self._checkpoint = pull.cursor.checkpoint or 0
        self._generation = pull.cursor.generation
        self._copies: list[Copy] = []
        self._pending: list[Pending] = []
        self._finished: list[str] = []
        self.count = 0

    def mark_suspect(self, copy: Copy, row: planner.ListedEntry | None, bad: "FailedCheck") -> None:
        """Mark a copy that is not as installed; without a row it cannot be fetched again."""
        self.count += row is not None
        known = self._pull.state.pending_of(copy.uri)
        # Offline it is unknown whether a retained copy is needed: it is not fetched again.
        is_wanted = known is None or (known.task == PendingTask.RETAIN and not self._is_offline)
        if row is not None and is_wanted:
            self._pending.append(self._task(copy, row, bad.reason))
        is_missing = bad.kind is FindingKind.MISSING
        marked = planner.as_suspect(copy, is_missing=is_missing)
        # A file that a deletion found changed is moved by none, whatever an audit finds.
        is_edited = known is not None and known.code == pending_tasks.EDITED and not is_missing
        if marked != copy and not (copy.is_unknown or is_edited):
            self._copies.append(marked)
        self._flush_when_full()

    def mark_answer(self, copy: Copy, row: planner.ListedEntry, answer: "FailedCheck") -> None:
        """Record that the Source served other bytes than a copy has, or none, to an audit.

        What the list shows by itself, the next pull learns from the list; a date leads to a
        conditional request only.
        """
        is_gone = answer.code in pending_tasks.UNAVAILABLE_CODES
        if answer.is_of_origin or not (is_gone or answer.kind is FindingKind.DIFFERENT):
            return  # it proves nothing of the copy
        known = self._pull.state.pending_of(copy.uri)
        is_shown = planner.match_copy(copy, row) is planner.Match.DIFFERENT
        if is_shown and not planner.has_moved_date(copy, row):
            return
        if known is None:
            code = answer.code if is_gone else pending_tasks.STALE
            self._pending.append(self._task(copy, row, answer.reason)._replace(code=code))
        if known is None or known.task == PendingTask.FETCH:
            # Without validators: the next answer has bytes, whatever the server compares.
            self._copies.append(copy._replace(fixity=Fixity.STALE, etag="", last_modified=""))
        self._flush_when_full()

    def mark_served(self, copy: Copy) -> None:
        """Record that the Source served the bytes of a copy, if that was not so before."""
        known = self._pull.state.pending_of(copy.uri)
        answers = {pending_tasks.STALE, *pending_tasks.UNAVAILABLE_CODES}
        if known is None or known.code not in answers:
            return
        row, unproven = planner.listed_from_task(known), copy._replace(fixity="", lastmod=None)
        if row.undated or planner.match_copy(unproven, row) is planner.Match.DIFFERENT:
            return
        fixity, _ = verify_bytes(row._replace(hash=copy.listed), copy.length, copy.digests)
        lastmod = planner.recordable_lastmod(row, self._pull.now)
        self._copies.append(copy._replace(fixity=fixity, lastmod=lastmod))
        self._finished.append(copy.uri)
        self._flush_when_full()

    def mark_returned(self, task: Pending) -> None:
        """Record that the Source serves a resource again, to be fetched by the next pull."""
        task = task._replace(code="", reason="", tries=0, due=self._pull.now)
        self._pending.append(task)
        self._flush_when_full()

    def _task(self, copy: Copy, row: planner.ListedEntry, reason: str) -> Pending:
        # The entry at the time of the fetch, not the present one, which may be later than T.
        length = copy.length if copy.listed else None
        row = row._replace(hash=copy.listed, length=length)
        task = pending_tasks.pending_fetch(
            row,
            known=None,
            now=self._pull.now,
            at=self._checkpoint,
            generation=self._generation,
            failed=False,
        )
        return task._replace(code=pending_tasks.DAMAGED, reason=reason)

    def record_sound(self, copy: Copy, sound: Copy) -> Copy:
        """Record the present signature of a file whose bytes are as installed; clear its mark."""
        if sound.signature == copy.signature:
            return copy
        self._copies.append(sound)
        known = self._pull.state.pending_of(copy.uri)
        if known is not None and known.code == pending_tasks.DAMAGED:
            self._finished.append(copy.uri)
        self._flush_when_full()
        return sound

    def _flush_when_full(self) -> None:
        if len(self._copies) + len(self._pending) >= _GROUP:
            self.flush()

    def flush(self) -> None:
        """Store the collected marks."""
        if self._is_stored and (self._copies or self._pending or self._finished):
            step = StateTransaction(
                suspect=self._copies, pending=self._pending, completed=self._finished
            )
            self._pull.state.commit(step)
        self._copies, self._pending, self._finished = [], [], []


def listed_from_copy(copy: Copy) -> planner.ListedEntry:
    """Return the Source's entry of a copy when it was fetched, as far as it is known."""
    return planner.ListedEntry(
        uri=copy.uri,
        loc=copy.uri,
        path=copy.path,
        hash=copy.listed or copy.digests,
        length=None if copy.is_unknown else copy.length,
        lastmod=copy.lastmod,
        change="",
    )


def stored_rows(state: SqliteMirrorState) -> Iterator[planner.ListedEntry]:
    """Yield the last known entries: of listed copies, and of pending fetches."""
    unlisted = state.pending(PendingTask.DELETE), state.pending(PendingTask.RETAIN)
    going = (row.uri for row in merge(*unlisted, key=attrgetter("uri")))
    next_to_go = next(going, None)
    for difference in compare(state.copies(), state.pending(PendingTask.FETCH), same=never_same):
        match difference:
            case Deleted(copy):
                while next_to_go is not None and next_to_go < copy.uri:
                    next_to_go = next(going, None)
                if next_to_go != copy.uri:
                    yield listed_from_copy(copy)
            case Updated(copy, waiting) | Same(copy, waiting):
                is_by_audit = waiting.code in {pending_tasks.DAMAGED, pending_tasks.STALE}
                yield listed_from_copy(copy) if is_by_audit else planner.listed_from_task(waiting)
            case Created(waiting):
                yield planner.listed_from_task(waiting)


def never_same(copy: Copy, row: planner.ListedEntry | Pending) -> bool:
    """Find no pair to be the same, so that each is checked."""
    del copy, row
    return False


_MAX_FAILED: Final = 100_000


class FailedCheck(NamedTuple):
    """Copy that could not be verified.

    ``is_local``: the file is not as installed, whatever the Source serves. ``code`` is that of the
    Source's answer; empty if it served the resource. ``is_of_origin``: the original is not as the
    aggregator's copy, which says nothing about the copy here.
    """

    kind: FindingKind
    reason: str
    is_local: bool = True
    code: str = ""
    is_of_origin: bool = False


class FixityResult(msgspec.Struct, kw_only=True):
    """Result of a fixity check; ``oldest`` is the time of the oldest verification after it."""

    count: int = 0
    by_request: int = 0
    read_bytes: int = 0
    failed: dict[str, FailedCheck] = msgspec.field(default_factory=dict)
    stopped: bool = False
    oldest: int | None = None


class FixityChecker:
    """Checker of copies: their files, and the Source's answers if requested."""

    def __init__(self, pull: SyncSession, method: str, run: str, doubts: SuspectMarker) -> None:
        self._pull = pull
        self._method = method
        self._run = run
        self._suspects = doubts
        self._result = FixityResult()
        self._without_original = 0

    def check(self, rolling: AuditRolling) -> FixityResult:
        """Verify the selected copies."""
        clock, proven = self._pull.dependencies.clock, self._result
        began = clock.monotonic()
        chosen = chosen_copies(self._pull.state, rolling, self._run)
        with self._pull.dependencies.copies.inspect() as look:
            while group := list(islice(chosen, _GROUP)):
                self._check_group(group, look)
                late = rolling.seconds is not None and clock.monotonic() - began >= rolling.seconds
                if late or len(proven.failed) >= _MAX_FAILED:
                    proven.stopped = True
                    break
        if self._method == "remote" and not proven.stopped:
            self._check_absent()
        self._suspects.flush()
        if self._without_original:
            number = proven.count + len(proven.failed)
            said = f"{self._without_original} of {number} copies name no original (via)"
            self._pull.warn("no-original", f"{said}: their files were checked, and nothing else")
        first = next(self._pull.state.oldest_proofs(), None)
        proven.oldest = None if first is None else first[1]
        return proven

    def _check_group(self, group: list[Copy], look: ports.CopyInspector) -> None:
        proven = self._result
        for copy in self._pull.dependencies.cancel.checked(group, every=1):
            bad = check_file(copy, self._method, look, self._suspects, proven)
            if bad is not None:
                proven.failed[copy.uri] = bad
        if self._method in {"remote", "origin"}:
            self._suspects.flush()
            known = (self._pull.state.copy(copy.uri) for copy in group)
            self._check_source([copy for copy in known if copy and copy.uri not in proven.failed])
        sound = [copy for copy in group if copy.uri not in proven.failed]
        good = [copy.uri for copy in sound]
        proven.count += len(good)
        if self._method == "remote":
            proven.by_request += sum(not copy.listed for copy in sound)
            self._pull.state.confirm(good)
        if self._method != "stat":
            self._pull.state.add_proofs(good, self._pull.now)

    def _check_absent(self) -> None:
        pull = self._pull
        tasks = (
            task
            for task in pull.state.pending(PendingTask.FETCH)
            if task.code in pending_tasks.UNAVAILABLE_CODES and pull.state.copy(task.uri) is None
        )
        while group := list(islice(tasks, _GROUP)):
            asked = {pull.selection.addresses.source_uri(task.uri): task for task in group}
            for uri, outcome in probe_all(pull.dependencies, asked):
                if exists(outcome):
                    self._suspects.mark_returned(asked[uri])

    def _check_source(self, copies: Iterable[Copy]) -> None:
        in_flight: dict[ports.FetchRequest, tuple[Copy, ports.StagedCopy]] = {}

        def requests() -> Iterator[ports.FetchRequest]:
            for copy in copies:
                if uri := self._address_of(copy):
                    wanted = [digest.algorithm for digest in parse_digests(copy.digests)]
                    sink = self._pull.dependencies.copies.stage(wanted)
                    # Without a condition: two versions may have the same validators.
                    request = ports.FetchRequest(uri=uri, sink=sink, as_sent=True)
                    in_flight[request] = copy, sink
                    yield request

        try:
            for outcome in self._pull.dependencies.fetcher.fetch(requests()):
                copy, sink = in_flight.pop(outcome.request)
                bad = _compare_answer(copy, sink, outcome, self._pull.dependencies.copies)
                sink.discard()
                self._record_answer(copy, bad, outcome.request.uri)
        finally:
            for _, sink in in_flight.values():
                sink.discard()

    def _record_answer(self, copy: Copy, bad: FailedCheck | None, uri: str) -> None:
        if bad is None and self._method == "remote":
            self._suspects.mark_served(copy)
        elif bad is not None:
            is_of_origin = self._method == "origin"
            self._result.failed[copy.uri] = _of_origin(bad, uri) if is_of_origin else bad

    def _address_of(self, copy: Copy) -> str:
        if self._method != "origin":
            return self._pull.selection.addresses.source_uri(copy.uri)
        links = decode_entry_links(self._pull.state.entry_links(copy.uri))
        original = next((link.href for link in links if link.rel == Relation.VIA), "")
        self._without_original += not original
        return original


def _of_origin(bad: FailedCheck, uri: str) -> FailedCheck:
    kind, reason = bad.kind, f"the original {uri} has other bytes"
    if kind is not FindingKind.DIFFERENT:
        reason = f"the original {uri}: {bad.reason.removeprefix('the Source: ')}"
        kind = FindingKind.DIFFERENT if bad.code in pending_tasks.ABSENT_CODES else kind
    return FailedCheck(kind, reason, is_local=False, is_of_origin=True)


def check_file(
    copy: Copy,
    method: str,
    look: ports.CopyInspector,
    suspects: SuspectMarker,
    counts: AuditCounts | FixityResult,
) -> FailedCheck | None:
    """Compare a copy's file with what was installed: its bytes, or by method ``stat`` its size."""
    if look.signature(copy.path) is None:
        return FailedCheck(FindingKind.MISSING, "missing")
    if copy.is_unknown:
        return FailedCheck(FindingKind.DIFFERENT, planner.UNKNOWN_CONTENT)
    if method == "stat":
        return _check_by_stat(copy, look, suspects, counts)
    wanted = [digest.algorithm for digest in parse_digests(copy.digests)]
    return check_content(copy, next(look.digest_all([(copy.path, wanted)])), look, suspects, counts)


def _check_by_stat(
    copy: Copy,
    look: ports.CopyInspector,
    suspects: SuspectMarker,
    counts: AuditCounts | FixityResult,
) -> FailedCheck | None:
    try:
        sound = check_installed(copy, look)
    except StorageError as error:
        return FailedCheck(FindingKind.FAILED, error.message)
    if sound is None:
        return FailedCheck(FindingKind.DIFFERENT, "changed locally since it was fetched")
    if sound is not copy:
        counts.read_bytes += copy.length
        suspects.record_sound(copy, sound)
    return None


def check_content(
    copy: Copy,
    content: CopyContent | StorageError | None,
    look: ports.CopyInspector,
    suspects: SuspectMarker,
    counts: AuditCounts | FixityResult,
) -> FailedCheck | None:
    """Compare the bytes of a copy's file with what was installed, as far as that is known."""
    if content is None:
        return FailedCheck(FindingKind.MISSING, "missing")
    if isinstance(content, StorageError):
        return FailedCheck(FindingKind.FAILED, content.message)
    length, known = content.length, parse_digests(copy.digests)
    counts.read_bytes += length
    if length != copy.length >= 0 or disagree(parse_digests(content.digests), known):
        same = " (same length)" if length == copy.length else ""
        algorithm = known[0].algorithm if known else "content"
        reason = f"{algorithm} differs{same}: silent corruption or local edit"
        return FailedCheck(FindingKind.DIFFERENT, reason)
    if not copy.is_unknown:
        suspects.record_sound(copy, as_read(copy, content, look))
    return None


def is_as_recorded(copy: Copy, content: CopyContent | StorageError | None) -> bool:
    """True if a file has the recorded content, and its recorded signature, if that is known."""
    return isinstance(content, CopyContent) and content in (
        (copy.length, copy.digests, copy.signature),
        (copy.length, copy.digests, None),
    )


def as_read(copy: Copy, content: CopyContent, look: ports.CopyInspector) -> Copy:
    """Return a copy whose bytes were just read and are as installed, with its present signature."""
    signature = content.signature
    if signature is None and copy.is_suspect:
        signature = look.signature(copy.path)
    return copy if signature is None else copy._replace(signature=signature)


def _compare_answer(
    copy: Copy,
    sink: ports.StagedCopy,
    outcome: ports.FetchResponse | ports.FetchFailure,
    copies: ports.Copies,
) -> FailedCheck | None:
    match outcome:
        case ports.FetchFailure():
            code, reason = pending_tasks.failure_of(outcome.error, outcome.request.uri)
            return FailedCheck(
                FindingKind.FAILED, f"the Source: {reason}", is_local=False, code=code
            )
        case ports.FetchResponse():
            codings = content_codings(outcome.headers.get("content-encoding", ""))
            if _has_bytes_of(copy, sink) or (
                codings and _has_content_of(copy, sink, codings, copies)
            ):
                return None
            return FailedCheck(FindingKind.DIFFERENT, pending_tasks.STALE_REASON, is_local=False)


def _has_bytes_of(copy: Copy, staged: ports.StagedCopy) -> bool:
    length, found = staged.seal()
    return length == copy.length and not disagree(found, parse_digests(copy.digests))


def _has_content_of(
    copy: Copy, staged: ports.StagedCopy, codings: tuple[str, ...], copies: ports.Copies
) -> bool:
    algorithms = [digest.algorithm for digest in parse_digests(copy.digests)]
    try:
        content = decode_staged(copies, staged, codings, algorithms, copy.length)
    except BadResponseError:
        return False
    is_same = _has_bytes_of(copy, content)
    content.discard()
    return is_same
