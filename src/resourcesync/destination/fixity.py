"""Put copies in doubt that an audit could not prove, and take the doubt back when one is proven.

Only the mirror's memory is written, never a copy. What is in doubt equals nothing that is listed,
so every later run fetches it again; the file that is here then goes to quarantine.

The rolling part of an audit: prove some copies, longest ago first, within a time.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from typing import Final, NamedTuple

from resourcesync.destination.budget import check_cancelled
from resourcesync.destination.planner import (
    DAMAGED,
    UNKNOWN_CONTENT,
    ListedEntry,
    as_suspect,
    is_suspect,
    is_unknown,
)
from resourcesync.destination.reports import FindingKind
from resourcesync.destination.session import SyncSession
from resourcesync.destination.tasks import pending_fetch
from resourcesync.model.digests import disagree, parse_digests
from resourcesync.ports import CopyInspector, FetchFailure, FetchRequest, FetchResponse, StagedCopy
from resourcesync.ports.mirror import Copy, Pending, PendingTask, StateTransaction

_GROUP: Final = 256


class SuspectMarker:
    """Remembers what an audit thinks of copies.

    Args:
        pull: What the audit works with.
        offline: Whether what is listed now is not known.
        is_kept: Whether anything is remembered.

    Attributes:
        count: How many copies were found that are not as they were put there.
    """

    def __init__(self, pull: SyncSession, *, offline: bool, is_kept: bool = True) -> None:
        self._pull = pull
        self._is_stored = is_kept
        self._is_offline = offline
        self._checkpoint = pull.sync_state.checkpoint or 0
        self._generation = pull.sync_state.generation
        self._copies: list[Copy] = []
        self._pending: list[Pending] = []
        self._finished: list[str] = []
        self.count = 0

    def mark_suspect(self, copy: Copy, row: ListedEntry, reason: str) -> None:
        """Take a copy that is not what was put in place.

        Args:
            copy: The copy.
            row: What the Source lists of it.
            reason: What is wrong with it.
        """
        self.count += 1
        known = self._pull.state.pending_of(copy.uri)
        # Offline nobody knows whether what is kept is wanted: it is not fetched for that.
        if known is None or (known.task == PendingTask.RETAIN and not self._is_offline):
            self._pending.append(self._task(copy, row, reason))
        if not is_suspect(copy) and not is_unknown(copy):
            self._copies.append(as_suspect(copy))
        self._flush_when_full()

    def _task(self, copy: Copy, row: ListedEntry, reason: str) -> Pending:
        # Not what is listed now, which T may not tell of yet, but what was, as far as we know.
        length = copy.length if copy.listed else None
        row = row._replace(hash=copy.listed, length=length)
        task = pending_fetch(
            row,
            known=None,
            now=self._pull.now,
            at=self._checkpoint,
            generation=self._generation,
            failed=False,
        )
        return task._replace(code=DAMAGED, reason=reason)

    def clear_suspect(self, copy: Copy, look: CopyInspector) -> Copy:
        """Take a copy whose bytes were proven; return it without the doubt, if there was one."""
        signature = look.signature(copy.path) if is_suspect(copy) else None
        if signature is None:
            return copy
        sound = copy._replace(signature=signature)
        self._copies.append(sound)
        known = self._pull.state.pending_of(copy.uri)
        if known is not None and known.code == DAMAGED:
            self._finished.append(copy.uri)
        self._flush_when_full()
        return sound

    def _flush_when_full(self) -> None:
        if len(self._copies) + len(self._pending) >= _GROUP:
            self.flush()

    def flush(self) -> None:
        """Remember what was taken.

        Raises:
            StorageError: It cannot be written.
        """
        if self._is_stored and (self._copies or self._pending):
            step = StateTransaction(
                suspect=self._copies, pending=self._pending, completed=self._finished
            )
            self._pull.state.commit(step)
        self._copies, self._pending, self._finished = [], [], []


def listed_from_copy(copy: Copy) -> ListedEntry:
    """Return what the Source listed of a copy when it was fetched, as far as that is known."""
    return ListedEntry(
        uri=copy.uri,
        loc=copy.uri,
        path=copy.path,
        hash=copy.listed or copy.digests,
        length=None if is_unknown(copy) else copy.length,
        lastmod=copy.lastmod,
        change="",
    )


_MAX_FAILED: Final = 100_000
_HASH_RANGE: Final = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRolling:
    """Which copies are proven.

    Attributes:
        share: Of the copies, 0 to 1.
        oldest_first: Those that were proven longest ago; else any.
        seconds: Stop after so long; ``None`` goes on to the end.
    """

    share: float = 1.0
    oldest_first: bool = False
    seconds: float | None = None


class FailedCheck(NamedTuple):
    """A copy that could not be proven.

    Attributes:
        kind: What is found.
        reason: The same in a sentence.
        is_here: Whether the file here is not what was put there, whatever the Source serves.
        code: Why the Source did not give it, by its stable word; empty where it did.
    """

    kind: FindingKind
    reason: str
    is_local: bool = True
    code: str = ""


@dataclass(slots=True, kw_only=True)
class FixityResult:
    """What was proven, and what is not as it should be.

    Attributes:
        count: Copies that were looked at.
        read: Bytes that were read of them.
        bad: What is wrong, by URI.
        stopped: Whether it ended early.
        oldest: When the copy was proven that now is the one proven longest ago, microseconds.
    """

    count: int = 0
    read: int = 0
    failed: dict[str, FailedCheck] = field(default_factory=dict)
    stopped: bool = False
    oldest: int | None = None


class FixityChecker:
    """Proves copies: their files against what was put there, and the Source's answer if wanted.

    Args:
        pull: What it works with; of the mirror's memory only the times of proof are written.
        method: ``stat``, ``hash`` or ``remote``.
        run: The run's id: another run takes another sample.
        doubts: Told of copies that are proven.
    """

    def __init__(self, pull: SyncSession, method: str, run: str, doubts: SuspectMarker) -> None:
        self._pull = pull
        self._method = method
        self._run = run
        self._suspects = doubts
        self._result = FixityResult()

    def check(self, rolling: AuditRolling) -> FixityResult:
        """Prove copies.

        Raises:
            StorageError: The mirror cannot be read.
        """
        clock, proven = self._pull.dependencies.clock, self._result
        began = clock.monotonic()
        chosen = self._sample(rolling)
        with self._pull.dependencies.copies.inspect() as look:
            while group := list(islice(chosen, _GROUP)):
                self._check_group(group, look)
                late = rolling.seconds is not None and clock.monotonic() - began >= rolling.seconds
                if late or len(proven.failed) >= _MAX_FAILED:
                    proven.stopped = True
                    break
        self._suspects.flush()
        first = next(self._pull.state.oldest_proofs(), None)
        proven.oldest = None if first is None else first[1]
        return proven

    def _sample(self, rolling: AuditRolling) -> Iterator[Copy]:
        state = self._pull.state
        if not rolling.oldest_first:
            limit = int(rolling.share * _HASH_RANGE)
            for copy in state.copies():
                if zlib.crc32(f"{self._run} {copy.uri}".encode()) < limit:
                    yield copy
            return
        number = ceil(state.count() * rolling.share)
        for uri, _ in islice(state.oldest_proofs(), number):
            found = state.copy(uri)
            if found is not None:
                yield found

    def _check_group(self, group: list[Copy], look: CopyInspector) -> None:
        proven = self._result
        for copy in check_cancelled(group, self._pull.dependencies.clock, every=1):
            proven.count += 1
            bad = self._check_file(copy, look)
            if bad is not None:
                proven.failed[copy.uri] = bad
        if self._method == "remote":
            self._check_source([copy for copy in group if copy.uri not in proven.failed])
        if self._method != "stat":
            good = [copy.uri for copy in group if copy.uri not in proven.failed]
            self._pull.state.add_proofs(good, self._pull.now)

    def _check_file(self, copy: Copy, look: CopyInspector) -> FailedCheck | None:
        signature = look.signature(copy.path)
        if signature is None:
            return FailedCheck(FindingKind.MISSING, "missing")
        if is_unknown(copy):
            return FailedCheck(FindingKind.DIFFERENT, UNKNOWN_CONTENT)
        if self._method == "stat":
            if signature == copy.signature:
                return None
            return FailedCheck(FindingKind.DIFFERENT, "changed here since it was fetched")
        known = parse_digests(copy.digests)
        found = look.digest(copy.path, [digest.algorithm for digest in known])
        if found is None:
            return FailedCheck(FindingKind.MISSING, "missing")
        self._result.read += found[0]
        if found[0] == copy.length and not disagree(found[1], known):
            self._suspects.clear_suspect(copy, look)
            return None
        same = " (same length)" if found[0] == copy.length else ""
        algorithm = known[0].algorithm if known else "content"
        reason = f"{algorithm} differs{same}: silent corruption or local edit"
        return FailedCheck(FindingKind.DIFFERENT, reason)

    def _check_source(self, copies: Iterable[Copy]) -> None:
        """Ask the Source whether its resources are still these bytes."""
        asked: dict[FetchRequest, tuple[Copy, StagedCopy]] = {}

        def requests() -> Iterator[FetchRequest]:
            for copy in copies:
                algorithms = [digest.algorithm for digest in parse_digests(copy.digests)]
                sink = self._pull.dependencies.copies.stage(algorithms)
                request = FetchRequest(
                    uri=self._pull.selection.source_uri(copy.uri),
                    sink=sink,
                    etag=copy.etag,
                    last_modified=copy.last_modified,
                )
                asked[request] = copy, sink
                yield request

        try:
            for outcome in self._pull.dependencies.fetcher.fetch(requests()):
                copy, sink = asked.pop(outcome.request)
                bad = _compare_answer(copy, sink, outcome)
                sink.discard()
                if bad is not None:
                    self._result.failed[copy.uri] = bad
        finally:
            for _, sink in asked.values():
                sink.discard()


def _compare_answer(
    copy: Copy, sink: StagedCopy, outcome: FetchResponse | FetchFailure
) -> FailedCheck | None:
    match outcome:
        case FetchFailure():
            error = outcome.error
            reason = f"the Source: {error.message}"
            return FailedCheck(FindingKind.FAILED, reason, is_local=False, code=error.code)
        case FetchResponse(status=304):
            return None
        case FetchResponse():
            length, found = sink.seal()
            if length == copy.length and not disagree(found, parse_digests(copy.digests)):
                return None
            reason = "the Source serves other bytes than are here"
            return FailedCheck(FindingKind.DIFFERENT, reason, is_local=False)
