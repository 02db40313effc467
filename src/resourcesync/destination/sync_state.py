"""Synchronization state of a mirror: its notes by name and type, and its status by them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import structs

from resourcesync.destination import pending_tasks, reports
from resourcesync.destination.cursor import Cursor
from resourcesync.destination.lists.absence_proof import ListVersion
from resourcesync.destination.mapping import PAGES, TREE, FileSystemProfile, PathMapping
from resourcesync.destination.options import StoredOptions
from resourcesync.destination.planner import FILTERED, is_gone
from resourcesync.destination.reports import MirrorState as MirrorWord
from resourcesync.destination.scope_and_filters import Filters, Scope
from resourcesync.discovery.known_addresses import (
    known_uri,
    longest_first,
    moved_folders,
    present_uri,
)
from resourcesync.discovery.sets import SourceLists
from resourcesync.discovery.uris import common_beginning, is_same, origin, site_folder
from resourcesync.mirror_state import rows
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.model.timestamps import SECOND, ClockMicroseconds, Microseconds, from_microseconds

T = TypeVar("T")

CURSOR_NOTE: Final = "cursor"
"""Name of the note of the cursor."""
MOVING: Final = "moving"
"""Name of the note that copies are being moved to the paths of the mapping."""


class MirrorIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of a mirror, fixed by its first pull.

    ``base`` is the URI of the mirror's root. ``mapper`` is ``tree`` or a rule.
    ``moved`` has pairs of the Source's new base and the one that the mirror knows, each ending in a
    slash: what is listed at the first was listed at the second.
    """

    source: str
    base: str
    origins: tuple[str, ...]
    profile: FileSystemProfile
    set_uri: str = ""
    mapper: str = TREE
    moved: tuple[tuple[str, str], ...] = ()

    def was_at(self, address: str) -> bool:
        """True if the Source moved here from an address, as far as is known."""
        homes = {self.base, *(there for there, _ in self.moved)} - {f"{origin(self.source)}/"}
        bases = (there for there, _ in longest_first(self.moved) if self.source.startswith(there))
        then, now = site_folder(address), site_folder(self.source) or next(bases, "")
        is_same_place = then != now and known_uri(then, self.moved) == known_uri(now, self.moved)
        return bool(self.moved) and (f"{origin(address)}/" in homes or is_same_place)

    def after_move(
        self, address: str, found: SourceLists, known: SourceLists | None
    ) -> "MirrorIdentity":
        """Return the identity after the Source moved, with the lists known before, if any."""
        if known is not None and self.set_uri and known.set_uri == found.set_uri:
            return structs.replace(self, source=address)  # the same set by another address
        now = dict.fromkeys((f"{origin(address)}/", f"{origin(found.entry)}/"), self.base)
        homes = {there: here for there, here in self.moved if there not in now} | now
        if homes.pop(self.base, None):  # moved back
            homes = {}
        old, new = site_folder(self.source), site_folder(address)
        # The address may be of a document, or of a site in which the set has another place.
        if known is not None and (self.set_uri or not (old and new)):
            old, new = moved_folders(known.set_uri, found.set_uri)
        if old and new:  # what was below the one is below the other
            homes.pop(new, None)
            here = known_uri(old, self.moved)
            if known_uri(new, tuple(homes.items())) != here:
                homes[new] = here
        chosen = found.set_uri if self.set_uri else ""
        return structs.replace(self, source=address, set_uri=chosen, moved=tuple(homes.items()))

    def scope(self, filters: Filters) -> Scope:
        """Return the scope: the origins of the Source, and the operator's filters."""
        allowed = map(origin, filters.allow_origins)
        origins = frozenset((*self.origins, *allowed))
        return Scope(origins=origins, moved=self.moved, **structs.asdict(filters))

    def mapping(self, yielding: Iterable[str] = ()) -> PathMapping:
        """Return the mapping from URI to path."""
        if self.mapper in {TREE, PAGES}:
            from resourcesync.destination.mapping.names import NameMapping  # noqa: PLC0415 - one of these

            return NameMapping(
                base=self.base,
                profile=self.profile,
                relocated=frozenset(yielding),
                pages=self.mapper == PAGES,
            )
        from resourcesync.destination.mapping.rules import TemplateMapping  # noqa: PLC0415 - one of these

        return TemplateMapping(self.mapper, self.base, self.profile)


class _Note(Generic[T]):
    def __init__(self, key: str, kind: type[T]) -> None:
        self._key, self._kind = key, kind

    def __get__(self, notes: "SyncState", _owner: object) -> T | None:
        return notes.decode(self._key, self._kind)


class _Flag:
    def __init__(self, key: str) -> None:
        self._key = key

    def __get__(self, notes: "SyncState", _owner: object) -> bool:
        return notes.is_note_set(self._key)


class SyncState:
    """Notes of a mirror, typed."""

    def __init__(self, state: SqliteMirrorState) -> None:
        self._state = state
        self._cursor: Cursor | None = None
        self._cursor_text = ""

    identity = _Note("identity", MirrorIdentity)
    """Identity of the mirror; ``None`` before its first pull."""
    discovered = _Note("found", SourceLists)
    """Result of the last discovery."""
    discovered_at = _Note("found-at", Microseconds)
    filters = _Note("filters", Filters)
    """The filters of the last pull."""
    filters_at = _Note("filters-at", Microseconds)
    stored_options = _Note("options", StoredOptions)
    """The options of the last pull that are remembered besides the filters."""
    list_head = _Note("list-head", ListVersion)
    """Version of the Resource List that need not be read again."""
    list_read_at = _Note("list-read-at", Microseconds)
    """Time of the last reading of the Resource List without a condition."""
    rechecks = _Note("rechecks", rows.RecheckState)
    """State of the walk of the rechecks; ``None`` before there was one to request."""
    audited_at = _Note("audited", Microseconds)
    """End of the last audit."""
    served_at = _Note("served", Microseconds)
    """Time of the last audit that requested copies from the Source."""
    last_failure = _Note("failed", tuple[ClockMicroseconds, reports.FailedRun])
    """The end and the error of the last run that failed.

    Its row says the same, but a full disk may have room for this and not for that.
    """
    _shared = _Note("shared-answers", dict[str, bool])
    held_of = _Note("held-of", int)
    """Number of copies when deletions were held; 0 if none is."""
    held_gone = _Note("held-gone", int)
    """Number of held deletions done since, proven by the Source."""
    is_trashing = _Flag("trashing")
    """Files are being moved to the trash."""
    is_refuted = _Flag("refuted")
    """An audit since the last complete run found that the mirror is not in sync."""
    has_uncertain_entries = _Flag("unsure")
    """The last list had entries that only a request to the Source can verify."""
    is_unproving = _Flag("unproving")
    """The Resource List, as read last, cannot show what is gone: see `ListFaults`."""
    accepts_missing = _Flag("missing-accepted")
    """Listed resources that are not served (404, robots.txt) count as no failure."""

    def decode(self, key: str, kind: type[T]) -> T | None:
        """Return the value of a note; ``None`` if there is none."""
        return self._state.read_note(key, kind)

    def on_hold(self, counts: rows.PendingCounts) -> int:
        """Return how many deletions a limit holds; others wait for the next pull."""
        return deletions_to_confirm(counts) if self.held_of else 0

    def holds(self, row: rows.Pending | None) -> bool:
        """True if a task is a deletion that a limit holds; one that was tried was allowed."""
        is_due = row is not None and (row.task, row.code) == (rows.PendingTask.DELETE, "")
        return is_due and bool(self.held_of)

    def is_note_set(self, key: str) -> bool:
        """True if the value of a note is "1"."""
        return self._state.note(key) == "1"

    @property
    def shared_answers(self) -> dict[str, bool]:
        """Answers of the Source that would replace many copies: held, or accepted (true)."""
        return self._shared or {}

    @property
    def changes_since(self) -> Microseconds | None:
        """Moment since which the mirror follows changes alone; ``None`` if a list tells all."""
        return self.decode("changes-since", Microseconds) or None

    @property
    def has_gap(self) -> bool:
        """True if changes are missing, or may be, and the operator has not accepted that.

        A Source without a Resource List never proves what it had before its changes.
        """
        accepted = self.changes_since and self.decode("changes-accepted", Microseconds)
        return self.cursor.has_gap and (not accepted or accepted != self.changes_since)

    @property
    def moved(self) -> tuple[tuple[str, str], ...]:
        """Pairs of the Source's base now and the one that the mirror knows, if it moved."""
        identity = self.identity
        return () if identity is None else identity.moved

    @property
    def moved_from(self) -> str:
        """The Source's address when the mirror was last in sync, if it moved since; else empty."""
        return self._state.note("moved-from") or ""

    def set_before_move(self, address: str) -> str:
        """Return the set that was followed at the address before a move; empty elsewhere."""
        is_back = is_same(address, self.moved_from)
        return (self._state.note("moved-from-set") or "") if is_back else ""

    @property
    def relocated_uris(self) -> tuple[str, ...]:
        """URIs that cannot have their names."""
        return self.decode("yielding", tuple[str, ...]) or ()

    def mapping(self) -> PathMapping | None:
        """Return the mirror's mapping from URI to path; ``None`` before its first pull."""
        identity = self.identity
        return None if identity is None else identity.mapping(self.relocated_uris)

    @property
    def cursor(self) -> Cursor:
        """Position of the mirror in the Source's history."""
        text = self._state.note(CURSOR_NOTE)
        if not text:
            return Cursor()
        if text != self._cursor_text:
            self._cursor, self._cursor_text = self.decode(CURSOR_NOTE, Cursor), text
        assert self._cursor is not None, "the note is there"
        return self._cursor

    @property
    def as_of(self) -> datetime | None:
        """The Source's time up to which the mirror is complete."""
        through = self.cursor.checkpoint
        return None if not through else from_microseconds(through)

    def accepts(self, code: str) -> bool:
        """True if a listed resource that is not served, by this code, counts as no failure."""
        return code in pending_tasks.UNAVAILABLE_CODES and self.accepts_missing

    @property
    def last_state(self) -> MirrorWord:
        """State of the mirror after the last run."""
        return self.decode("word", MirrorWord) or MirrorWord.NEW

    def evidence(
        self, resources: int, by_request: int, incoming: int = 0
    ) -> reports.EvidenceCounts:
        """Return the numbers of listed copies by the evidence that they are as at the Source."""
        unhashed = self._state.count_unhashed() if incoming else self.unhashed()[0]
        copies = unhashed.copies - incoming  # these have no hash yet
        doubtful_hashed, doubtful = self._state.count_doubtful()
        return reports.EvidenceCounts(
            by_hash=resources - copies - doubtful_hashed,
            by_request=min(by_request, copies - doubtful),
            by_date=max(copies - doubtful - by_request, 0),
            unconfirmed=unhashed.unconfirmed,
        )

    @property
    def refused_count(self) -> int:
        """Number of entries of the Source that cannot be used."""
        return self.decode("refused", int) or 0

    def unhashed(self) -> tuple[rows.UnhashedCounts, int]:
        """Return the numbers of copies that no hash proves, and of the last logged change."""
        known, last = self.rechecks, self._state.change_bounds()[1]
        is_known = known is not None and known.counted == last
        return known.counts if known and is_known else self._state.count_unhashed(), last

    @property
    def in_sync_at(self) -> datetime | None:
        """Start of the last run that found the mirror in sync; ``None`` if there is none."""
        return self._moment("in-sync-at")

    @property
    def certificate_until(self) -> datetime | None:
        """End of the first TLS certificate of the servers of the lists, by the last run."""
        return self._moment("certificate-until")

    def _moment(self, key: str) -> datetime | None:
        moment = self.decode(key, Microseconds)
        return from_microseconds(moment) if moment else None

    def damaged_retained(self) -> Iterator[rows.Pending]:
        """Yield the rows of copies beside the list that stay, and whose files are damaged.

        These are the copies that are retained or whose deletion is held: unlisted, excluded by the
        filters, restored, or of an unread part.
        """
        retained = rows.PendingTask.RETAIN
        return (
            row for row in self._state.suspect_tasks() if row.task == retained or self.holds(row)
        )

    def failing_tasks(self) -> Iterator[rows.Pending]:
        """Yield the tasks of edited files, and of what is not here as listed or fetched."""
        for row in self.damaged_retained():
            excluded = "the Source does not list it"
            excluded = "the filters exclude it" if row.code == FILTERED else excluded
            reason = f"its file was changed or removed here, and {excluded}"
            yield row._replace(code=pending_tasks.DAMAGED, reason=reason, due=0)
        for row in self._state.pending(rows.PendingTask.DELETE):
            if row.code == pending_tasks.EDITED:
                reason = pending_tasks.EDITED_REASON
                yield row._replace(code=pending_tasks.LOCAL_CHANGE, reason=reason)
        for row in self._state.pending(rows.PendingTask.FETCH):
            if not self.accepts(row.code):
                yield row._replace(reason=row.reason or pending_tasks.NOT_TRIED)

    def failures(self, most: int) -> tuple[reports.Failing, ...]:
        """Return the first failures: see `failing_tasks`."""
        moved = self.moved
        return tuple(
            pending_tasks.failing(row, present_uri(row.uri, moved) if moved else row.loc)
            for row in islice(self.failing_tasks(), most)
        )

    def save(self, cursor: Cursor) -> None:
        """Store the cursor."""
        if cursor != self.cursor:
            self._state.commit(rows.StateTransaction(notes=cursor_note(cursor)))

    def write(self, **notes: object) -> None:
        """Store values; ``None`` leaves the old value."""
        self._state.commit(rows.StateTransaction(notes=encode_notes(**notes)))


def gone_rows(state: SqliteMirrorState) -> Iterator[rows.Pending]:
    """Yield the tasks of copies whose resources are gone at the Source, in URI order."""
    kept = filter(is_gone, state.pending(rows.PendingTask.RETAIN))
    return merge(state.pending(rows.PendingTask.DELETE), kept, key=attrgetter("uri"))


def undone_tasks(state: SqliteMirrorState) -> Iterator[rows.Pending]:
    """Yield the tasks that decisions depend on: fetches, resources gone or missed, in URI order."""
    kept = state.pending(rows.PendingTask.RETAIN)
    retained = (row for row in kept if is_gone(row) or pending_tasks.is_missed(row))
    others = state.pending(rows.PendingTask.FETCH), state.pending(rows.PendingTask.DELETE)
    return merge(*others, retained, key=attrgetter("uri"))


def cursor_note(cursor: Cursor) -> dict[str, str]:
    """Return the note of a cursor."""
    return {CURSOR_NOTE: msgspec.json.encode(cursor).decode()}


def question_notes(cursor: Cursor) -> dict[str, str]:
    """Return the notes of a contradiction that nothing decided, and that nobody has accepted."""
    due = cursor.with_question()
    return cursor_note(due) | (encode_notes(changes_accepted=0) if due.has_gap else {})


def encode_notes(**notes: object) -> dict[str, str]:
    """Return notes as they are stored; underscores in names become hyphens."""
    stored: dict[str, str] = {}
    for name, value in notes.items():
        if value is None:
            continue
        if isinstance(value, bool | int):
            text = str(int(value))
        elif isinstance(value, str):
            text = str(value)
        else:
            text = msgspec.json.encode(value).decode()
        stored[name.replace("_", "-")] = text
    return stored


def discovery_rank(found: SourceLists) -> tuple[bool, bool, bool]:
    """Return a rank of what a Source offers: more lists rank higher, and any above a sitemap."""
    return (not found.is_sitemap, found.resource_list is not None, found.change_list is not None)


_MAX_SHOWN_FAILURES = 100
_FEW = 4
"""Listed resources below which a share says little."""


def status_of(folder: str, state: SqliteMirrorState, *, running: bool) -> reports.MirrorStatus:
    """Return the status of a mirror."""
    memory, (resources, size, incoming) = SyncState(state), state.count_and_size()
    identity, last, cursor = memory.identity, state.last_run(), memory.cursor
    counts = state.pending_counts()
    retained = count_retained(state, counts, memory)
    listed = _listed_counts(state, resources, counts, memory, retained)
    resting, due = 0, 0
    if last is not None and counts.rows:
        resting, due = state.pending_after(rows.PendingTask.FETCH, last.ended)
    waits = listed.pending + counts.of_task(rows.PendingTask.DELETE) + retained.damaged
    # After a killed run, or with other filters.
    waits = waits or cursor.is_incomplete or memory.has_gap or memory.refused_count
    return reports.MirrorStatus(
        mirror=folder,
        source="" if identity is None else identity.source,
        state=MirrorWord.SYNCING if running else _state_left(memory, is_behind=bool(waits)),
        left=_state_left(memory, is_behind=False) if running else None,
        resources=resources,
        listed=listed,
        retained=retained,
        faults=_faults(last, state, memory),
        resting=resting,
        tried_again=from_microseconds(due) if resting else None,
        deletions=deletions_to_confirm(counts),
        held=memory.on_hold(counts),
        held_of=(memory.held_of or 0) if memory.on_hold(counts) else 0,
        stopped_command=state.note("stopped-command") or "pull",
        as_of=memory.as_of,
        in_sync_at=memory.in_sync_at,
        **_last_run(last, state, memory),
        failures=memory.failures(_MAX_SHOWN_FAILURES) if counts.rows else (),
        certificate_until=memory.certificate_until,
        size_bytes=size,
        has_trash=state.has_trash(),
        is_refuted=memory.is_refuted,
        is_counted=not (cursor.checkpoint is None or cursor.is_incomplete or cursor.has_gap),
        **_rechecks(memory, resources, incoming),
    )


def _listed_counts(
    state: SqliteMirrorState,
    resources: int,
    counts: rows.PendingCounts,
    memory: SyncState,
    retained: reports.RetainedCounts,
) -> reports.ListedCounts:
    absent, skipped = count_unavailable(counts, memory)
    pending = counts.of_task(rows.PendingTask.FETCH) - absent - skipped
    outdated = state.pending_with_copy(rows.PendingTask.FETCH) - retained.unknown if pending else 0
    unlisted = counts.of_task(rows.PendingTask.RETAIN) + counts.of_task(rows.PendingTask.DELETE)
    wrong = outdated + retained.unknown + unlisted
    return reports.ListedCounts(
        unchanged=max(resources - wrong, 0),
        pending=pending,
        absent=absent,
        skipped=skipped,
        refused=memory.refused_count,
        **listed_since(memory),
    )


def listed_since(memory: SyncState) -> dict[str, Any]:
    """Return the fields about a Source that lists changes only; none if it lists all."""
    since = memory.changes_since
    if since is None:
        return {}
    return {"since": from_microseconds(since), "is_since_accepted": not memory.has_gap}


def deletions_to_confirm(counts: rows.PendingCounts) -> int:
    """Return the number of deletions not allowed yet; one that was tried and failed was."""
    return counts.rows.get((rows.PendingTask.DELETE, ""), 0)


def count_retained(
    state: SqliteMirrorState, counts: rows.PendingCounts, memory: SyncState
) -> reports.RetainedCounts:
    """Return the numbers of copies that are not what the Source lists, as they are stored."""
    damaged = Counter((row.task, row.code) for row in memory.damaged_retained())
    codes = pending_tasks.UNAVAILABLE_CODES
    unknown = memory.accepts_missing and state.pending_with_copy(rows.PendingTask.FETCH, codes)

    def sound(code: str) -> int:
        key = rows.PendingTask.RETAIN, code
        return counts.rows.get(key, 0) - damaged[key]

    unlisted = sound("")
    if unlisted and count_unread(state):
        gone = sum(map(is_gone, state.pending(rows.PendingTask.RETAIN)))  # it may list others
        unlisted = min(unlisted, gone)
    return reports.RetainedCounts(
        unlisted=unlisted,
        open=sound(pending_tasks.OPEN),
        filtered=sound(FILTERED),
        restored=sound(pending_tasks.RESTORED),
        damaged=damaged.total(),
        excluded=damaged[rows.PendingTask.RETAIN, FILTERED],
        edited=counts.with_codes(pending_tasks.EDITED),
        contradicting=counts.with_codes(pending_tasks.CONTRADICTING),
        unknown=int(unknown),
        linked=state.linked_count(),
    )


def count_unread(state: SqliteMirrorState) -> int:
    """Return the number of parts of lists that could not be read, as they are stored."""
    return sum(row.code == pending_tasks.PART_UNREAD for row in state.refused())


def _last_run(
    last: rows.RunRow | None, state: SqliteMirrorState, memory: SyncState
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    is_failing = memory.last_state is MirrorWord.FAILING
    if is_failing and (since := state.failing_since()) is not None:
        found["failing_since"] = from_microseconds(since)
    failure = memory.last_failure if is_failing else None
    if failure is not None and (last is None or last.ended < failure[0]):  # no room for its row
        ended, found["failed_run"] = failure
        found["outcome"] = failure[1].code
        found.setdefault("failing_since", from_microseconds(ended))
    elif last is not None:
        ended, found["failed_run"], found["outcome"] = last.ended, read_failed(last), last.outcome
    else:
        return found
    return found | {"last_run": from_microseconds(ended)}


def _faults(
    last: rows.RunRow | None, state: SqliteMirrorState, memory: SyncState
) -> reports.ListFaults:
    found = reports.ListFaults()
    if last is not None and last.mode:
        with suppress(msgspec.MsgspecError):  # the row is damaged
            found = msgspec.json.decode(last.counts, type=reports.RunReport).faults
    known = {"gap": memory.has_gap, "unproving": memory.is_unproving}
    return structs.replace(found, **known, unread=count_unread(state), moved_from=memory.moved_from)


def _rechecks(memory: SyncState, resources: int, incoming: int) -> dict[str, Any]:
    rechecks = memory.rechecks
    by_request = 0 if rechecks is None else rechecks.by_request
    found: dict[str, Any] = {"evidence": memory.evidence(resources, by_request, incoming)}
    if rechecks is not None:
        found["recheck_seconds"] = rechecks.period / SECOND
        found["recheck_reached_seconds"] = rechecks.reached / SECOND if rechecks.period else 0.0
    return found


def _state_left(memory: SyncState, *, is_behind: bool) -> MirrorWord:
    is_behind, word = is_behind or memory.is_refuted, memory.last_state
    return MirrorWord.BEHIND if word is MirrorWord.IN_SYNC and is_behind else word


def count_unavailable(counts: rows.PendingCounts, memory: SyncState) -> tuple[int, int]:
    """Return how many listed resources are accepted as absent, and how many as skipped."""
    if not memory.accepts_missing:
        return 0, 0
    skipped = counts.with_codes(*pending_tasks.SKIPPED_CODES)
    return counts.with_codes(*pending_tasks.ABSENT_CODES), skipped


def serves_too_little(memory: SyncState, lacking: int, served: int, listed: int) -> bool:
    """True if so few of the listed pages are served that no mirror of them is in sync.

    Nothing delivered never is. Until a mirror was in sync once, or the operator accepts it, nor is
    one of a site that lacks more than half of its pages (absent or skipped): most are wrong.
    """
    if not lacking or not served:
        return lacking > 0
    stored = memory.stored_options
    is_first = memory.in_sync_at is None and (stored is None or stored.accept_missing is None)
    return is_first and listed >= _FEW and 2 * lacking > listed


def absent_folder(state: SqliteMirrorState) -> str:
    """Return the longest common prefix, up to a slash, of the listed resources that are lacking."""
    fetches = state.pending(rows.PendingTask.FETCH)
    lacking = (row.loc for row in fetches if row.code in pending_tasks.UNAVAILABLE_CODES)
    first = last = next(lacking, "")
    for uri in lacking:
        first, last = min(first, uri), max(last, uri)
    return common_beginning(first, last).rpartition("/")[0] + "/"


def read_failed(row: rows.RunRow | None) -> reports.FailedRun | None:
    """Return the error that ended a run; ``None`` if it completed."""
    if row is None or row.mode or row.outcome == "ok":
        return None
    try:
        return msgspec.json.decode(row.counts, type=reports.FailedRun)
    except msgspec.MsgspecError:  # the row is damaged
        return reports.FailedRun(code=row.outcome)
