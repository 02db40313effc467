"""Audit: the copies of a mirror compared with what the Source lists (§5.2).

No copy is changed. A copy whose file is not as it was installed is marked suspect: see
`SuspectMarker`.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec import structs

from resourcesync.destination import pending_tasks, planner
from resourcesync.destination.audits import fixity
from resourcesync.destination.audits.reports import (
    AuditCounts,
    AuditFinding,
    AuditReport,
    FindingKind,
)
from resourcesync.destination.audits.sampling import AuditRolling
from resourcesync.destination.baseline import Baseline
from resourcesync.destination.cursor import Phase
from resourcesync.destination.external_sort import PairSorter
from resourcesync.destination.listed_rows import ListingStatus, listing_status
from resourcesync.destination.mapping.names import NameMapping, uris_at
from resourcesync.destination.options import FindingWriter
from resourcesync.destination.pull_session import SyncSession
from resourcesync.destination.sync_state import (
    SyncState,
    count_unavailable,
    count_unread,
    serves_too_little,
)
from resourcesync.errors import SourceNotFoundError, StorageError
from resourcesync.merge_join import Created, Deleted, Difference, Same, Updated, compare
from resourcesync.mirror_state.rows import PROVEN_ALL, Copy, Pending, PendingTask, StateTransaction
from resourcesync.model.digests import agree, format_digests, parse_digests, usable
from resourcesync.model.formatting import count
from resourcesync.model.settings import AuditMethod
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import CopyContent, CopyInspector

_DEFAULT_MAX_FINDINGS: Final = 10_000
MAX_REPAIR_FINDINGS: Final = 100_000
"""Findings that one repair mends."""

_ONE_STRONG: Final = ("sha-256",)
_READ_AHEAD: Final = 32
"""Copies that are opened at a time."""
_LARGE: Final = 1 << 20
"""Bytes of a copy after which the audit checks whether it is to end."""
_CONTRADICTING_LISTS: Final = "lists of the Source contradict each other"
_OTHER_VERSION: Final = "the Source lists another version"
_END_OF_CLAIMS: Final = ("\U0010ffff" * 2, "")


class Audit:
    """An audit of one mirror."""

    def __init__(
        self,
        pull: SyncSession,
        method: AuditMethod,
        *,
        kept: int = _DEFAULT_MAX_FINDINGS,
        doubting: bool = True,
        store: FindingWriter | None = None,
    ) -> None:
        self._store = store
        self._max_findings = kept
        self._marks_suspects = doubting
        self._pull = pull
        self._method: str = method
        self._failed_checks: dict[str, fixity.FailedCheck] = {}
        self._finds_foreign = method != "lists"
        self._counts = AuditCounts()
        self._findings: list[AuditFinding] = []
        self._contents: dict[str, CopyContent | StorageError | None] = {}
        self._has_gap = self._is_offline = self._is_served = False
        self._unread_parts = count_unread(pull.state)
        self._is_read, self._is_unproving = True, pull.sync_state.is_unproving
        self._has_unavailable = any(count_unavailable(pull.state.pending_counts(), pull.sync_state))
        self._suspects = fixity.SuspectMarker(pull, offline=False)

    def run(self, run: str, *, offline: bool, rolling: AuditRolling | None = None) -> AuditReport:
        """Compare and count."""
        self._is_offline = offline
        self._suspects = fixity.SuspectMarker(
            self._pull, offline=offline, is_kept=self._marks_suspects
        )
        proven = self._check_fixity(run, rolling)
        sync_state, counts, cursor = self._pull.sync_state, self._counts, self._pull.cursor
        at, refusals = cursor.checkpoint, self._pull.selection.refusals
        with ExitStack() as held:
            rows = fixity.stored_rows(self._pull.state)
            if not offline:
                at, rows = self._read_listed_rows(held)
            self._compare(rows, held.enter_context(self._pull.dependencies.copies.inspect()))
        self._suspects.flush()
        self._find_foreign_files()
        self._record_proof()
        found = structs.asdict(counts) | {
            "listed": counts.listed - counts.unknown,
            "present": counts.present - counts.unknown,
        }
        return AuditReport(
            **found,
            audit=run,
            at=_datetime_of(at),
            findings=tuple(self._findings),
            refused=sync_state.refused_count if offline else refusals.count,
            unread=self._unread_parts,
            doubted=self._suspects.count,
            proven=None if proven is None else proven.count,
            proven_since=_datetime_of(None if proven is None else proven.oldest),
            stopped=proven is not None and proven.stopped,
            is_begun=offline and cursor.checkpoint is None,
            is_looking=self._finds_foreign or proven is not None,
            lacks_pages=self._lacks_pages(),
            unproving=self._is_unproving,
            has_gap=self._has_gap or _lacks_changes(sync_state, offline=offline),
        )

    def _check_fixity(self, run: str, rolling: AuditRolling | None) -> fixity.FixityResult | None:
        if rolling is None and self._method not in {"remote", "origin"}:
            return None
        proven = fixity.FixityChecker(self._pull, self._method, run, self._suspects).check(
            rolling or AuditRolling()
        )
        self._failed_checks, self._counts.read_bytes = proven.failed, proven.read_bytes
        if self._method == "remote":
            self._record_requests(proven)
        self._is_served = self._method == "remote" and rolling is None and not proven.stopped
        self._method = "lists"
        self._finds_foreign = rolling is None
        return proven

    def _record_requests(self, proven: fixity.FixityResult) -> None:
        pull, rechecks = self._pull, self._pull.sync_state.rechecks
        if rechecks is not None:
            found = {"by_request": proven.by_request, "counts": pull.state.count_unhashed()}
            rechecks = structs.replace(rechecks, **found)
        pull.sync_state.write(served=pull.now, rechecks=rechecks)

    def _lacks_pages(self) -> bool:
        counts = self._counts
        lacking = counts.absent + counts.skipped
        listed = counts.listed - counts.unknown + lacking
        return serves_too_little(self._pull.sync_state, lacking, counts.accurate, listed)

    def _record_proof(self) -> None:
        all_read = self._method == "hash" and self._counts.present == self._pull.state.count()
        if all_read and not self._findings:
            self._pull.state.commit(StateTransaction(notes={PROVEN_ALL: str(self._pull.now)}))

    def _read_listed_rows(
        self, held: ExitStack
    ) -> tuple[int | None, Iterator[planner.ListedEntry]]:
        pull, found = self._pull, self._pull.found
        if found.resource_list is None:
            raise SourceNotFoundError(
                "the Source has no Resource List to compare with",
                uri=found.entry,
                hint="audit against the mirror's own state: resourcesync audit MIRROR --offline",
            )
        listed = Baseline(pull).read_listed_rows(held)
        self._has_gap, self._is_read = listed.has_gap, listed.was_read
        self._is_unproving = not listed.proves_absence
        self._unread_parts = len(pull.selection.refusals.unread)
        return listed.at, listed.rows()

    def _compare(self, rows: Iterator[planner.ListedEntry], inspector: CopyInspector) -> None:
        wanted = (row for row in rows if row.change != ChangeKind.DELETED)
        is_simple = self._method != "stat" and not (self._failed_checks or self._has_unavailable)
        same = _is_plainly_same if is_simple else fixity.never_same
        differences = compare(self._pull.state.copies(), wanted, same=same)
        if self._method == "hash":
            differences = self._read_copies(differences, inspector)
        plain, cancel = 0, self._pull.dependencies.cancel
        for difference in cancel.checked(differences):
            if isinstance(difference, Same):
                plain += 1
                continue
            cancel.raise_if_cancelled()  # the finding before may be the last one wanted
            match difference:
                case Updated(copy, row):
                    self._check_listed(copy, row, inspector)
                case Created(row):
                    self._report_missing(row)
                case Deleted(copy):
                    self._check_unlisted(copy, inspector)
        self._counts.listed += plain
        self._counts.present += plain
        self._counts.accurate += plain

    def _read_copies(
        self, differences: Iterator[Difference[planner.ListedEntry, Copy]], inspector: CopyInspector
    ) -> Iterator[Difference[planner.ListedEntry, Copy]]:
        cancel, counts = self._pull.dependencies.cancel, self._counts
        while group := list(islice(differences, _READ_AHEAD)):
            cancel.raise_if_cancelled()
            copies = [pair for pair in group if not isinstance(pair, Created)]
            contents = inspector.digest_all([_request(*pair) for pair in copies])
            for difference in group:
                if isinstance(difference, Created):
                    yield difference
                    continue
                copy, content = difference[0], next(contents)
                if isinstance(difference, Same) and fixity.is_as_recorded(copy, content):
                    counts.read_bytes += copy.length
                    yield difference
                else:
                    self._contents[copy.uri] = content
                    yield Updated(*difference) if isinstance(difference, Same) else difference
                if copy.length >= _LARGE:
                    cancel.raise_if_cancelled()

    def _check_listed(self, copy: Copy, row: planner.ListedEntry, inspector: CopyInspector) -> None:
        if row.change == planner.FILTERED:
            self._check_filtered(copy, inspector)
            return
        if self._listing_status(copy, row) is ListingStatus.GONE:
            self._check_unlisted(copy, inspector)
            return
        self._counts.listed += 1
        # The copy of an unavailable resource stays as it was.
        self._check(
            copy,
            fixity.listed_from_copy(copy) if self._unavailable_code(row.uri) else row,
            inspector,
        )

    def _listing_status(self, copy: Copy | None, row: planner.ListedEntry) -> ListingStatus:
        if not row.undated:  # as most are
            return ListingStatus.LISTED
        return listing_status(
            row, copy, self._pull.state.pending_of(row.uri), is_read=self._is_read
        )

    def _report_missing(self, row: planner.ListedEntry) -> None:
        if row.change == planner.FILTERED or self._listing_status(None, row) is ListingStatus.GONE:
            return
        waiting = self._pull.state.pending_of(row.uri)
        if waiting is not None and self._pull.sync_state.accepts(waiting.code):
            self._count_unavailable(waiting.code)
        else:
            self._counts.listed += 1
            self._add_finding(FindingKind.MISSING, row.uri, row.path, _missing_reason(waiting))

    def _unavailable_code(self, uri: str) -> str:
        bad = self._failed_checks.get(uri)
        last: fixity.FailedCheck | Pending | None = bad
        was_requested = self._is_served or (bad is not None and not bad.is_local)
        if self._has_unavailable and not was_requested:
            last = self._pull.state.pending_of(uri)
        return last.code if last is not None and self._pull.sync_state.accepts(last.code) else ""

    def _count_unavailable(self, code: str) -> None:
        self._counts.absent += code in pending_tasks.ABSENT_CODES
        self._counts.skipped += code not in pending_tasks.ABSENT_CODES

    def _check_filtered(self, copy: Copy, inspector: CopyInspector) -> None:
        if damage := self._damage_of(copy, inspector):
            self._counts.extra += 1
            self._counts.damaged += 1
            self._counts.excluded += 1
            reason = f"{damage}; excluded by the filters"
            self._add_finding(FindingKind.EXTRA, copy.uri, copy.path, reason)

    def _check_unlisted(self, copy: Copy, inspector: CopyInspector) -> None:
        waiting = self._pull.state.pending_of(copy.uri)
        if waiting is not None and waiting.code == planner.FILTERED:
            self._check_filtered(copy, inspector)
            return
        damage = self._damage_of(copy, inspector)
        if self._unread_parts and not damage:  # an unread part may list it
            return
        is_edited = waiting is not None and waiting.code == pending_tasks.EDITED
        is_kept = waiting is not None and waiting.task == PendingTask.RETAIN and not damage
        self._has_gap |= waiting is not None and pending_tasks.is_missed(waiting)  # a pull decides
        self._counts.unlisted += is_kept
        self._counts.extra += not is_kept
        self._counts.held += self._pull.sync_state.holds(waiting)
        self._counts.edited += is_edited
        self._counts.damaged += bool(damage) and not is_edited
        unlisted = "no longer listed (kept)" if is_kept else "not listed by the Source"
        where = "a part of the list is not read" if self._unread_parts else "no longer listed"
        reason = f"{damage}; {where}" if damage else unlisted
        reason = pending_tasks.EDITED_REASON if is_edited else reason
        self._add_finding(FindingKind.EXTRA, copy.uri, copy.path, reason)

    def _damage_of(self, copy: Copy, inspector: CopyInspector) -> str:
        """Return in which way the file of a copy is not as installed; mark it as suspect."""
        bad, _ = self._check_file(copy, inspector)
        if bad is not None and bad.is_local:
            self._suspects.mark_suspect(copy, None, bad)
            return bad.reason
        is_known = copy.is_damaged if self._method == "lists" else copy.is_unknown
        return planner.UNKNOWN_CONTENT if is_known else ""

    def _check_file(
        self, copy: Copy, inspector: CopyInspector
    ) -> tuple[fixity.FailedCheck | None, CopyContent | StorageError | None]:
        if self._method == "hash":
            content = self._contents.pop(copy.uri)
            found = copy, content, inspector, self._suspects, self._counts
            return fixity.check_content(*found), content
        if self._method == "stat":
            return fixity.check_file(copy, "stat", inspector, self._suspects, self._counts), None
        return self._failed_checks.get(copy.uri), None

    def _check(self, copy: Copy, row: planner.ListedEntry, inspector: CopyInspector) -> None:
        bad, content = self._check_file(copy, inspector)
        self._counts.present += bad is None or bad.kind is not FindingKind.MISSING
        if bad is not None:
            if bad.is_local:
                self._suspects.mark_suspect(copy, row, bad)
            else:
                self._suspects.mark_answer(copy, row, bad)
        if bad is not None and not (bad.code and self._unavailable_code(copy.uri)):
            self._report_failed(copy, row, bad)
        elif isinstance(content, CopyContent):
            sound = copy if copy.is_unknown else fixity.as_read(copy, content, inspector)
            self._check_digests(sound, row, content)
        else:
            self._check_against_state(copy, row)

    def _report_failed(self, copy: Copy, row: planner.ListedEntry, bad: fixity.FailedCheck) -> None:
        is_other = planner.match_copy(copy, row) is planner.Match.DIFFERENT
        is_refuted = is_other and not (bad.is_local or planner.has_moved_date(copy, row))
        if is_refuted and bad.kind is FindingKind.FAILED:  # the list shows it without an answer
            bad = fixity.FailedCheck(FindingKind.DIFFERENT, f"{_OTHER_VERSION}; {bad.reason}")
        self._counts.unchecked += bad.kind is FindingKind.FAILED
        self._counts.unserved += bad.code in pending_tasks.ABSENT_CODES
        self._counts.originals += bad.is_of_origin and bad.kind is FindingKind.DIFFERENT
        self._add_finding(bad.kind, copy.uri, copy.path, bad.reason)

    def _check_against_state(self, copy: Copy, row: planner.ListedEntry) -> None:
        match planner.match_copy(copy, row):
            case planner.Match.DIFFERENT:
                reason = planner.UNKNOWN_CONTENT if copy.is_damaged else _OTHER_VERSION
                self._add_finding(FindingKind.DIFFERENT, copy.uri, copy.path, reason)
            case planner.Match.UNKNOWN if self._is_to_be_fetched(copy):
                self._add_finding(FindingKind.DIFFERENT, copy.uri, copy.path, "to be fetched")
            case planner.Match.UNKNOWN | planner.Match.SAME:
                self._count_accurate(copy, row)

    def _is_to_be_fetched(self, copy: Copy) -> bool:
        waiting = self._pull.state.pending_of(copy.uri)
        is_due = waiting is not None and waiting.task == PendingTask.FETCH
        return is_due and not self._is_served and not self._unavailable_code(copy.uri)

    def _count_accurate(self, copy: Copy, row: planner.ListedEntry) -> None:
        """Count a copy that is as listed, and whether a hash or an answer of the Source proves it.

        Without the Source, a digest that was computed here proves only that the file is unchanged.
        An old copy of an unavailable resource is not known to be right.
        """
        why = self._unavailable_code(copy.uri)
        if why:
            self._counts.unknown += 1
            self._count_unavailable(why)
            return
        is_right = self._is_served and bool(row.rivals)  # the Source serves these bytes now
        if self._listing_status(copy, row) is ListingStatus.OPEN and not is_right:
            self._add_finding(FindingKind.DIFFERENT, copy.uri, copy.path, _CONTRADICTING_LISTS)
            return
        if copy.is_stale and not self._is_served:
            reason = pending_tasks.STALE_REASON
            self._add_finding(FindingKind.DIFFERENT, copy.uri, copy.path, reason)
            return
        self._counts.accurate += 1
        if self._is_served:
            return
        if self._is_offline:
            self._counts.unproven += not copy.listed
        elif not row.hash or row.hash != copy.digests:  # own digests can be computed
            self._counts.unproven += not usable(parse_digests(row.hash))

    def _check_digests(self, copy: Copy, row: planner.ListedEntry, content: CopyContent) -> None:
        length, digests = content.length, parse_digests(content.digests)
        claims = usable(parse_digests(row.hash))
        if row.length is not None and row.length != length:
            reason = f"{count(length)} B in the mirror, the Source lists {count(row.length)} B"
            self._add_finding(FindingKind.DIFFERENT, copy.uri, copy.path, reason)
        elif claims and not agree(digests, claims):
            reason = f"{claims[0].algorithm} differs from what the Source lists"
            self._add_finding(FindingKind.DIFFERENT, copy.uri, copy.path, reason)
        elif claims:
            self._count_accurate(copy, row)
        else:
            self._check_against_state(copy._replace(digests=format_digests(digests)), row)

    def _find_foreign_files(self) -> None:
        if not self._finds_foreign:
            return
        copies = self._pull.dependencies.copies
        # Each copy found has its own path, so equal numbers leave no foreign file.
        if sum(1 for _ in copies.paths()) == self._counts.present:
            return
        mapping, scratch = self._pull.selection.mapping, self._pull.dependencies.scratch
        key = mapping.key if isinstance(mapping, NameMapping) else str
        with PairSorter(scratch) as found, PairSorter(scratch) as known:
            found.add_all((key(path), path) for path in copies.paths())
            known.add_all((key(copy.path), copy.path) for copy in self._pull.state.copies())
            ours, last = iter(known), ""
            for name, path in found:
                while last < name:
                    last, _ = next(ours, _END_OF_CLAIMS)
                if last != name:
                    self._counts.foreign += 1
                    uris = uris_at(mapping, path)  # of those, one without a copy
                    uri = next((uri for uri in uris if self._pull.state.copy(uri) is None), "")
                    self._add_finding(FindingKind.EXTRA, uri, path, "not fetched by resourcesync")

    def _add_finding(self, kind: FindingKind, uri: str, path: str, reason: str) -> None:
        uri = self._pull.selection.addresses.source_uri(uri)
        finding = AuditFinding(kind=kind, uri=uri, path=path, reason=reason)
        if len(self._findings) < self._max_findings:
            self._findings.append(finding)
        fields = {"kind": kind.value, "uri": uri, "path": path, "reason": reason}
        if self._store is not None:
            self._store.add(fields)
        self._pull.dependencies.report("finding", fields)


def _lacks_changes(memory: SyncState, *, offline: bool) -> bool:
    is_cut = memory.cursor.phase is Phase.CUT_LIST
    return is_cut or (offline and (memory.has_gap or memory.cursor.is_incomplete))


def _request(copy: Copy, row: planner.ListedEntry | None = None) -> tuple[str, Sequence[str]]:
    row = row or fixity.listed_from_copy(copy)
    if row.hash == copy.digests and row.hash.startswith("sha-256:") and " " not in row.hash:
        return copy.path, _ONE_STRONG  # as most
    known = (*parse_digests(copy.digests), *usable(parse_digests(row.hash)))
    return copy.path, tuple(dict.fromkeys(digest.algorithm for digest in known))


def _datetime_of(value: int | None) -> datetime | None:
    return from_microseconds(value) if value else None


def _missing_reason(waiting: Pending | None) -> str:
    if waiting is None or waiting.task != PendingTask.FETCH:
        return "missing"
    reason = waiting.reason
    return f"missing, to be fetched: {reason}" if reason else pending_tasks.NOT_TRIED


def _is_plainly_same(copy: Copy, row: planner.ListedEntry) -> bool:
    return (
        row.hash == copy.listed != ""
        and (row.hash == copy.digests or row.hash in copy.digests.split(" "))
        and (row.length == copy.length or row.length is None)
        and row.change != planner.FILTERED
        and not row.undated
        and not copy.is_suspect
        and not copy.is_stale
    )
