"""Explanation of one resource's condition, from the mirror's state, its file and the lists."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from enum import StrEnum
from typing import Final
from urllib.parse import quote

import msgspec

from resourcesync.destination import pending_tasks, planner
from resourcesync.destination.audits.fixity import FailedCheck, SuspectMarker, listed_from_copy
from resourcesync.destination.audits.reports import AuditFinding, FindingKind
from resourcesync.destination.baseline import Baseline
from resourcesync.destination.listed_rows import ListingStatus, listing_status
from resourcesync.destination.mapping.names import uris_at
from resourcesync.destination.path_assignment import owner_of
from resourcesync.destination.pull_session import SyncSession
from resourcesync.destination.sync_state import SyncState, serves_too_little, status_of
from resourcesync.discovery.known_addresses import present_uri
from resourcesync.discovery.uris import normalise, origin, percent_encode
from resourcesync.errors import OutOfScopeError, ResourceSyncError
from resourcesync.mirror_state import rows
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.model.digests import Digest, disagree, parse_digests
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.vocabulary import ChangeKind

Findings = Callable[[], Iterable[AuditFinding]]
_DISAGREEING: Final = frozenset({*pending_tasks.MISMATCH_CODES, pending_tasks.CONTRADICTING})


class ResourceVerdict(StrEnum):
    """Conclusion about a resource, as a sentence."""

    AS_LISTED = "the copy is as the Source lists it"
    AS_FETCHED = "the copy is as it was fetched; the Source was not checked"
    LOST = "the file was removed from the mirror after it was fetched"
    ALTERED = "the file was changed in the mirror after it was fetched"
    DISAGREES = "the Source's list and its content disagree"
    FAILED = "the Source lists it, but it could not be fetched"
    WAITING = "the Source lists it; it is not fetched yet"
    OUTDATED = "the Source lists a newer version"
    STALE = "an audit found that the Source serves other bytes"
    UNDECIDED = "lists of the Source contradict each other about it"
    UNPROVEN = "the list has too little information to check the copy: check it at the Source"
    ABSENT = "the Source lists it and does not deliver it, which this mirror accepts"
    EDITED = "deleted or no longer listed at the Source; the file was changed here, and is kept"
    UNDELETED = "deleted or no longer listed at the Source, and not deleted here yet"
    HELD = "deleted or no longer listed at the Source; the deletion here is held back"
    KEPT = "the Source does not list it; the copy is kept"
    UNLISTED = "the Source does not list it; a later pull decides about the copy"
    UNWANTED = "it no longer matches the filters; the copy is kept"
    GONE = "deleted or no longer listed at the Source, and deleted here too"
    REFUSED = "the Source lists it in a way that cannot be used"
    FILTERED = "it does not match the mirror's filters"
    UNKNOWN = "the Source does not list it, and it was never in the mirror"
    UNASKED = "it is not in the mirror, and the Source was not checked"
    SOUND_AGAIN = "the file was found changed; now it is as it was fetched"
    FOREIGN = "the file did not come from the Source; resourcesync does not touch it"
    OWN = "it belongs to the mirror itself"

    @property
    def is_well(self) -> bool:
        """True if nothing is wrong with the resource."""
        return self in _SOUND_VERDICTS


_SOUND_VERDICTS: Final = frozenset(
    {
        *(ResourceVerdict.AS_LISTED, ResourceVerdict.AS_FETCHED, ResourceVerdict.ABSENT),
        *(ResourceVerdict.GONE, ResourceVerdict.FILTERED, ResourceVerdict.KEPT),
        *(ResourceVerdict.UNWANTED, ResourceVerdict.UNPROVEN, ResourceVerdict.SOUND_AGAIN),
        *(ResourceVerdict.FOREIGN, ResourceVerdict.OWN),
    }
)
_MAX_REFERRERS: Final = 20
_URI_SAFE: Final = "/%?&=;:@!$'()*+,"


class Explanation(msgspec.Struct, kw_only=True):
    """Facts known of one resource.

    ``address`` is its present one at the Source, ``finding`` that of the last audit;
    ``quarantined`` are files that were moved away from its path, newest last.
    """

    source: str
    uri: str
    address: str = ""
    path: str = ""
    copy: rows.Copy | None = None
    is_present: bool = False
    file_content: tuple[int, tuple[Digest, ...]] | None = None
    is_altered: bool = False
    listed: planner.ListedEntry | None = None
    list_uri: str = ""
    is_undecided: bool = False
    is_source_read: bool = False
    is_absence_proven: bool = False
    source_error: str = ""
    pending: rows.Pending | None = None
    is_retained: bool = False
    is_excluded: bool = False
    is_held: bool = False
    is_accepted: bool = False
    refused: rows.RefusedRow | None = None
    trash: rows.TrashRow | None = None
    last_change: rows.LoggedChange | None = None
    finding: AuditFinding | None = None
    served_at: int | None = None
    via: tuple[str, ...] = ()
    patched: rows.PatchRow | None = None
    quarantined: Sequence[str] = ()

    @property
    def verdict(self) -> ResourceVerdict:
        """Conclusion from the facts."""
        if self.path.partition("/")[0] == OWN_FOLDER:
            return ResourceVerdict.OWN
        return self._verdict_of_task() or self._verdict_of_entry() or self._verdict_of_copy()

    @property
    def next_try(self) -> int | None:
        """The time of the next try, if the resource failed so often that it waits."""
        pending = self.pending
        return pending.due if pending is not None and pending_tasks.is_resting(pending) else None

    @property
    def retained_copy(self) -> str:
        """Copy that stays while something is wrong, in words."""
        if self.copy is None or not self.is_present:
            return "no copy"
        code = self.pending.code if self.pending else ""
        is_damaged = self.is_altered or code == pending_tasks.DAMAGED
        is_verified = self.copy.fixity == rows.Fixity.VERIFIED
        return f"the {'altered ' if is_damaged else 'verified ' * is_verified}copy is kept"

    def _verdict_of_task(self) -> ResourceVerdict | None:
        pending = self.pending
        if pending is None or pending.code == pending_tasks.DAMAGED:
            return None
        if self.is_accepted:
            is_sound = self.copy is None or (self.is_present and not self.is_altered)
            return ResourceVerdict.ABSENT if is_sound else None
        if pending.task == rows.PendingTask.DELETE:
            waiting = ResourceVerdict.EDITED if self.is_altered else ResourceVerdict.UNDELETED
            return ResourceVerdict.HELD if self.is_held else waiting
        if pending.code == pending_tasks.STALE:
            return None if self.is_altered or not self.is_present else ResourceVerdict.STALE
        if pending.code in _DISAGREEING:
            return ResourceVerdict.DISAGREES
        return ResourceVerdict.FAILED if pending.code else ResourceVerdict.WAITING

    def _verdict_of_entry(self) -> ResourceVerdict | None:
        if self.refused is not None and self.copy is None:
            return ResourceVerdict.REFUSED
        if self.copy is not None:
            if not self.is_present:
                return ResourceVerdict.LOST
            if self.is_altered:
                return ResourceVerdict.ALTERED
            if self.copy.is_suspect:
                return ResourceVerdict.SOUND_AGAIN
            return None if self.refused is None else ResourceVerdict.REFUSED
        if self.listed is not None and self.listed.change == planner.FILTERED:
            return ResourceVerdict.FILTERED
        if self.listed is not None and self.listed.change != ChangeKind.DELETED:
            return ResourceVerdict.WAITING
        return None

    def _verdict_without_copy(self) -> ResourceVerdict:
        if self.is_present:
            return ResourceVerdict.FOREIGN
        trashed = self.trash if self.listed is None and not self.is_source_read else None
        if trashed is not None and trashed.reason == planner.OUT_OF_SCOPE:
            return ResourceVerdict.FILTERED
        if self.listed is not None or self.trash is not None or self.last_change is not None:
            return ResourceVerdict.GONE
        return ResourceVerdict.UNKNOWN if self.is_source_read else ResourceVerdict.UNASKED

    def _verdict_of_copy(self) -> ResourceVerdict:
        if self.copy is None:
            return self._verdict_without_copy()
        if not self.is_source_read:
            return ResourceVerdict.AS_FETCHED
        if self.listed is None or self.listed.change == ChangeKind.DELETED:
            return ResourceVerdict.KEPT if self.is_retained else ResourceVerdict.UNLISTED
        if self.listed.change == planner.FILTERED:
            return ResourceVerdict.UNWANTED
        match planner.match_copy(self.copy, self.listed):
            case planner.Match.SAME:
                return ResourceVerdict.AS_LISTED
            case planner.Match.DIFFERENT:
                return ResourceVerdict.OUTDATED
            case planner.Match.UNKNOWN:
                return ResourceVerdict.UNDECIDED if self.is_undecided else ResourceVerdict.UNPROVEN


def explain(
    pull: SyncSession, names: Sequence[str], findings: Findings, *, offline: bool
) -> Explanation:
    """Collect the facts about one resource; no copy is changed.

    A copy that is not as installed is marked suspect, as by an audit.
    """
    name, uri = _resolve_name(pull, names)
    identity = pull.sync_state.identity
    source = "" if identity is None else identity.source
    known = Explanation(source=source, uri=uri, path="" if "://" in name else _relative_path(name))
    load_recorded(pull.state, known)
    if not offline and known.path.partition("/")[0] != OWN_FOLDER:
        try:
            _read_listed(pull, known)
        except ResourceSyncError as error:
            known.source_error = error.cause
    if not known.path and (row := pull.selection.retained_row(uri)) is not None:
        known.path = row.path
    _read_file(pull, known)
    _mark_suspect(pull, known)
    audited = pull.sync_state.audited_at or 0
    is_newer = known.copy is not None and known.copy.installed > audited
    found = () if is_newer else findings()
    known.finding = next(
        (
            finding
            for finding in found
            if finding.path == known.path or (uri and finding.uri == known.address)
        ),
        None,
    )
    return known


def _resolve_name(pull: SyncSession, names: Sequence[str]) -> tuple[str, str]:
    pairs = [(name, uri) for name in names for uri in _uris_of(pull, name)]
    for name, uri in pairs:
        if _is_known(pull.state, uri):
            return name, uri
    first, copies = names[0], pull.dependencies.copies
    if "://" not in first and copies.digest(_relative_path(first), ()) is None:
        paths = [quote(_relative_path(name), safe=_URI_SAFE) for name in names]
        for uri in (home + path for home in _homes(pull.sync_state) for path in paths):
            (known,) = _uris_of(pull, uri)
            if _is_known(pull.state, known):
                return known, known
    return pairs[0]


def _is_known(state: SqliteMirrorState, uri: str) -> bool:
    if state.copy(uri) or state.pending_of(uri) or state.trash_of(uri):
        return True
    return any(row.uri == uri for row in state.refused())


def _homes(memory: SyncState) -> list[str]:
    first = [] if memory.identity is None else [memory.identity.base]
    return first + [f"{origin(there)}/" for there, _ in memory.moved]


def _uris_of(pull: SyncSession, name: str) -> list[str]:
    if "://" not in name:
        path = _relative_path(name)
        owner = owner_of(pull.state, path)
        return [owner] if owner else [*uris_at(pull.selection.mapping, path), name]
    try:
        return [normalise(pull.selection.addresses.mirror_uri(percent_encode(name)))]
    except OutOfScopeError:
        return [name]


def _relative_path(path: str) -> str:
    return path.removeprefix("./").removeprefix("/")


def load_recorded(state: SqliteMirrorState, known: Explanation) -> None:
    """Add what the mirror's state has of a resource, by its URI."""
    uri, memory = known.uri, SyncState(state)
    known.address = present_uri(uri, memory.moved)
    known.copy = copy = state.copy(uri)
    pending = state.pending_of(uri)
    known.pending = None if pending is None or pending.task == rows.PendingTask.RETAIN else pending
    known.is_retained = pending is not None and pending_tasks.is_retained(pending)
    known.is_excluded = pending is not None and pending.code == planner.FILTERED
    if pending is not None and memory.accepts(pending.code):
        listed = status_of("", state, running=False).listed
        lacking = listed.absent + listed.skipped
        known.is_accepted = not serves_too_little(memory, lacking, listed.right, listed.total)
    known.is_held = memory.holds(pending)
    known.refused = next((row for row in state.refused() if row.uri == uri), None)
    known.trash = state.trash_of(uri)
    known.last_change = next(state.changes_of(uri), None)
    known.via = tuple(state.referrers(uri, _MAX_REFERRERS))
    known.patched = state.last_patch(uri)
    if copy is not None:
        known.path = copy.path
        served = memory.served_at or 0
        is_served = copy.installed < served and state.proof_of(uri) == served
        known.served_at = served if is_served else None


def _read_file(pull: SyncSession, known: Explanation) -> None:
    copies, copy = pull.dependencies.copies, known.copy
    known.quarantined = copies.quarantined(known.path) if known.path else ()
    digests = () if copy is None else parse_digests(copy.digests)
    algorithms = [digest.algorithm for digest in digests]
    found = copies.digest(known.path, algorithms) if known.path else None
    known.is_present, known.file_content = found is not None, found
    if copy is not None and found is not None:
        is_same = found[0] == copy.length and not disagree(found[1], digests)
        known.is_altered = copy.is_unknown or not is_same


def _mark_suspect(pull: SyncSession, known: Explanation) -> None:
    copy, row = known.copy, known.listed
    if copy is None or copy.is_unknown or (known.is_present and not known.is_altered):
        return
    is_listed = row is not None and row.change not in planner.NOT_WANTED
    is_fetched_again = is_listed or not known.is_source_read
    suspects = SuspectMarker(pull, offline=row is None)
    bad = FailedCheck(FindingKind.DIFFERENT, "changed locally since it was fetched")
    bad = bad if known.is_present else FailedCheck(FindingKind.MISSING, "missing")
    row = row or listed_from_copy(copy)
    suspects.mark_suspect(copy, row if is_fetched_again else None, bad)
    suspects.flush()


def _read_listed(pull: SyncSession, known: Explanation) -> None:
    with ExitStack() as held:
        listed_rows = Baseline(pull).read_listed_rows(held)
        for row in listed_rows.rows():
            if row.uri == known.uri:
                known.listed, known.path = row, row.path
                task, is_read = pull.state.pending_of(row.uri), listed_rows.was_read
                status = listing_status(row, known.copy, task, is_read=is_read)
                known.is_undecided = status is ListingStatus.OPEN
                found = pull.found.change_list if row.change else pull.found.resource_list
                known.list_uri = found or ""
                known.via = known.via or ((row.via,) if row.via else ())
    known.is_source_read = known.listed is not None or not pull.selection.refusals.unread
    known.is_absence_proven = listed_rows.proves_absence
    if not known.is_source_read:
        known.source_error = "a part of the Source's list cannot be read"
    refusals = pull.selection.refusals.stored
    known.refused = next((row for row in refusals if row.uri == known.uri), known.refused)
