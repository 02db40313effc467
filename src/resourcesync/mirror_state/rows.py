"""Rows of a mirror's state, its changes among them. Pure.

Times are whole microseconds since 1970-01-01T00:00:00Z, as they are stored.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from resourcesync.errors import StateError
from resourcesync.model.digests import ALGORITHMS
from resourcesync.model.timestamps import ClockMicroseconds, Microseconds

T = TypeVar("T")

PROVEN_ALL: Final = "proven-all"
"""Name of the note with the time of the last audit that proved all copies, microseconds."""


MirrorChangeKind: TypeAlias = Literal["created", "updated", "deleted", "touched"]
"""The kind of change of a copy; ``touched``: it was fetched or confirmed again, or its entry has
other links, and the bytes are the same. Words, so that type checkers find one that is mistyped.
"""


class LoggedChange(NamedTuple):
    """One change of the mirror's content.

    Numbers rise, and may be left out. For a deletion, ``length`` is that of the deleted copy.
    Digests are empty for no bytes, and ``previous`` also for unknown ones. ``was`` is the former
    path of a copy that gave its name to another, or got it back: an update also of the same bytes.
    """

    seq: int
    time: ClockMicroseconds
    kind: MirrorChangeKind
    uri: str
    path: str
    length: int
    digests: str
    previous: str
    was: str = ""


class ChangeLogPosition(NamedTuple):
    """How far a program has read the changes of a mirror: its place in the log, and what proves it.

    As text it is ``NUMBER.TIME``, or ``NUMBER.TIME.URI`` during the first reading, which yields the
    copies in order: then ``uri`` is the last one that was read. A log that was restored from a
    backup, or begun again, has a change of another ``time`` with this ``number``; 0 if there is
    none, or it is not known.
    """

    number: int
    time: int = 0
    uri: str = ""

    def __str__(self) -> str:
        return f"{self.number}.{self.time}" + (f".{self.uri}" if self.uri else "")


_POSITION: Final = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,18})(?:\.(.+))?)?", re.DOTALL)


def parse_position(text: str) -> ChangeLogPosition | None:
    """Return the position that a text is, or whose number it is; ``None`` if it is neither."""
    found = _POSITION.fullmatch(text)
    if found is None:
        return None
    return ChangeLogPosition(int(found[1]), int(found[2] or 0), found[3] or "")


Count = Annotated[int, msgspec.Meta(ge=0)]
Digests = Annotated[str, msgspec.Meta(pattern=f"^(?:(?:{'|'.join(ALGORITHMS)}):[^ ]*(?: |$))*$")]
"""Digests that we computed, as in a ``hash`` attribute."""
FileName = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]+$")]
PathKey = Callable[[str], str]
"""Returns the key of a path: equal for paths that a file system treats as one."""


class LinkRow(NamedTuple):
    """One link of an entry, ``via``, to a resource that is not listed itself."""

    uri: str
    via: str
    generation: int


class PatchRow(NamedTuple):
    """The outcome of the last patch of a copy; the reason is empty if it was used."""

    uri: str
    time: ClockMicroseconds
    reason: str


class EntryLink(NamedTuple):
    """A link of an entry that matters when the copy is published again."""

    rel: str
    href: str
    media_type: str
    hash: str
    length: Count | None
    modified: Microseconds | None


class EntryRow(NamedTuple):
    """The links of an entry: a JSON array of ``EntryLink`` s, each an array; empty for none."""

    uri: str
    links: str
    generation: int


LARGE: Final = 16 * 1024
"""Least bytes of copies that are found by their digest; smaller ones are as quickly fetched."""


class Fixity(StrEnum):
    """The degree of proof that the bytes of a copy are those the Source lists."""

    VERIFIED = "verified"
    SERVER_VERIFIED = "server-verified"
    """The list has no hash; the server's own digest of the answer is that of the bytes."""
    WEAK = "weak"
    UNVERIFIED = "unverified"
    RESTORED = "restored"
    """Restored from the trash by hand: retained until the Source lists it again."""
    STALE = "stale"
    """The Source did not serve these bytes to an audit: no list proves them, only an answer."""


ONLY_BY_REQUEST: Final = frozenset({Fixity.STALE, Fixity.RESTORED})
"""Proofs that no list replaces: what was deleted and is listed again is a new resource."""


ALTERED: Final = "altered"
"""Value in place of a copy's signature: no file has it, so any file there goes to quarantine."""

MISSING: Final = "missing"
"""The same, of a copy without a file."""

EDITED: Final = "edited"
"""The same as altered, but no audit found it: no deletion moves the file."""


class Copy(NamedTuple):
    """One resource in the mirror. A named tuple, since millions are read in a row.

    ``listed`` is the ``hash`` that the Source listed when it was installed; empty unless it
    matched. ``lastmod`` is that of the list if it tells whether the resource changed since: a hash
    was listed too, or it was over when the bytes came.

    ``evidence`` is the last moment at which the resource is known to have existed at the Source, by
    the Source's clocks: of the answer that delivered or confirmed it, or of the list that named it.
    Only what is later can prove it absent.
    """

    uri: str
    path: str
    length: Annotated[int, msgspec.Meta(ge=-1)]  # -1 while its file is being replaced
    digests: Digests  # computed locally
    listed: str
    lastmod: Microseconds | None
    etag: str
    last_modified: str
    signature: str  # of the file when it was installed
    fixity: str
    installed: ClockMicroseconds
    evidence: Microseconds = 0  # 0: none

    @property
    def is_stale(self) -> bool:
        """True if an audit was served other bytes or none, and no answer had these since."""
        return self.fixity == Fixity.STALE

    @property
    def is_marked_by_audit(self) -> bool:
        """True if a deletion moves a changed file to quarantine: an audit found it."""
        return self.signature in {ALTERED, MISSING}

    @property
    def is_suspect(self) -> bool:
        """True if its file was found altered or missing, and it was not repaired yet."""
        return self.is_marked_by_audit or self.signature == EDITED

    @property
    def is_unknown(self) -> bool:
        """True if its content is unknown: a run was killed while its file was replaced."""
        return self.length < 0

    @property
    def is_damaged(self) -> bool:
        """True if its file is not known to be as installed."""
        return self.is_unknown or self.is_suspect

    @property
    def is_incoming(self) -> bool:
        """True while its first file is being put in place, and after a run killed meanwhile."""
        return self.length < 0 and not self.signature


make_copy: Final[Callable[[tuple[Any, ...]], Copy]] = partial(tuple.__new__, Copy)
"""Makes a copy of all its fields; its own constructor is Python code, and millions are made."""


class UnhashedCounts(NamedTuple):
    """Numbers of copies that no listed hash proves; of the last the Source denies a new date."""

    copies: int
    dated: int
    unconfirmed: int


class RecheckState(msgspec.Struct, frozen=True, kw_only=True):
    """State of the walk of the rechecks. Times are microseconds.

    ``base`` is the chosen period (0: none), ``period`` the present one, within which each copy is
    requested once. ``paced`` is the time up to which the walk is where it should be; ``after`` the
    last copy of the round so far. ``lasted`` is the duration of the last round, ``clean`` the
    number of rechecks since the last stale copy, ``unvalidated`` that of copies without a validator
    in this round. ``counted`` is the last logged change when ``counts`` were made: there are many
    copies.
    """

    base: int
    period: int
    began: int
    paced: int
    pulled: int
    after: str = ""
    rounds: int = 0
    lasted: int = 0
    clean: int = 0
    unvalidated: int = 0
    unvalidated_before: int = 0
    by_request: int = 0
    counts: UnhashedCounts = UnhashedCounts(0, 0, 0)
    counted: int = -1

    @property
    def reached(self) -> int:
        """Period that the walk keeps, by its last round and by the present one so far."""
        return max(self.lasted, self.pulled - self.began)

    @property
    def is_late(self) -> bool:
        """True if a round takes longer than the period."""
        return 0 < self.period < self.reached


class PendingTask(StrEnum):
    """The task that is pending for a URI."""

    FETCH = "fetch"
    DELETE = "delete"
    RETAIN = "keep"
    """Nothing: the copy is retained though the Source does not list it, or not as selected."""


class Pending(NamedTuple):
    """A listed resource that the mirror lacks or has differently, or a deletion not done yet."""

    uri: str
    loc: str  # its URI as the Source wrote it
    path: str
    task: str
    listed: str  # the ``hash`` that the Source lists now
    length: Count | None
    lastmod: Microseconds | None
    code: str  # a stable code of why it is not done; empty when it was not tried yet
    reason: str  # the same in a sentence
    tries: Count  # over all runs
    due: ClockMicroseconds
    first: ClockMicroseconds  # when it was first read; retained when the row is written again
    first_at: Microseconds  # the Source's time then; the second of two lists must be later
    generation: int  # the last reading of the Source that listed it
    elsewhere: str = ""  # its memento (or nothing) and its mirrors, one on each line


class PendingCause(NamedTuple):
    """Resources to fetch or to delete, pending for one cause: their number, and one of them."""

    task: str
    code: str  # empty: not tried yet
    number: int
    uri: str
    reason: str
    due: Microseconds  # the earliest next try


class PendingCounts(msgspec.Struct, frozen=True):
    """Numbers of pending rows, by task and code."""

    rows: Mapping[tuple[str, str], int]

    def of_task(self, task: PendingTask) -> int:
        """Return the number of rows of a task."""
        return sum(count for (of, _), count in self.rows.items() if of == task)

    def with_codes(self, *codes: str) -> int:
        """Return the number of rows that are not done for one of some reasons."""
        return sum(count for (_, code), count in self.rows.items() if code in codes)


class ProcessedDocument(NamedTuple):
    """A document that was read, with the state needed to read only its new part.

    ``from_`` is 0 when it has none: a Change List at the same URI with another one is another list.
    ``until`` is ``None`` when it is open. ``prefix`` is SHA-256 over its processed changes.
    """

    uri: str
    from_: Microseconds
    until: Microseconds | None
    entries: Count
    prefix: str
    etag: str
    last_modified: str


class RefusedRow(NamedTuple):
    """An entry of the Source that cannot be used."""

    uri: str
    code: str
    reason: str


class TrashRow(NamedTuple):
    """A copy that was removed and is in the trash; empty fields are unknown."""

    place: FileName
    uri: str
    path: str
    removed: ClockMicroseconds
    reason: str
    digests: str = ""


class StateTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction of the mirror's state: all of it is stored, or none."""

    suspect: Sequence[Copy] = ()  # their files are about to change; their pending rows stay
    installed: Sequence[Copy] = ()  # in place; their pending rows end, then ``pending`` is written
    removed: Sequence[str] = ()  # URIs whose copies are gone; their pending rows end
    pending: Sequence[Pending] = ()  # ``first`` and ``first_at`` of an existing row are retained
    outdated: int = 0  # forget the pending rows of readings older than this generation
    completed: Sequence[str] = ()  # URIs with nothing left to do
    documents: Sequence[ProcessedDocument] = ()
    only_documents: bool = False  # forget all other documents
    notes: Mapping[str, str] | None = None  # the cursor is among them
    trashed: Sequence[TrashRow] = ()  # copies moved to the trash
    purged: Sequence[str] = ()  # places in the trash that are empty now
    unlinked: Sequence[str] = ()  # their links are removed; that they were linked to is not
    listed: Sequence[str] = ()  # URIs that are listed now: links no longer count for them
    linked: Sequence[LinkRow] = ()  # written after others were removed
    patched: Sequence[PatchRow] = ()
    entries: Sequence[EntryRow] = ()  # if their links changed, the copy is logged as touched
    unconfirmed: Sequence[str] = ()  # "not modified" though the date moved, until they are fetched
    now: int = 0  # for removals, ``entries`` and ``unconfirmed``


class RunRow(NamedTuple):
    """One run, for ``status``."""

    run: str
    started: ClockMicroseconds
    ended: ClockMicroseconds
    mode: str
    outcome: str
    counts: str


_decode_links: Final = msgspec.json.Decoder(list[EntryLink]).decode
_LINE: Final = "patch "


def decode_entry_links(text: str) -> list[EntryLink]:
    """Return the links of an entry as stored by its reader."""
    return _decode_links(text) if text else []


class PatchLink(NamedTuple):
    """Patch that leads to a listed version; ``length`` is an upper limit unless ``is_exact``.

    One with a ``path`` is in a package of a Change Dump, and nowhere else.
    """

    media_type: str
    uri: str
    hash: str
    length: int
    is_exact: bool
    path: str = ""


def encode_patch(patch: PatchLink | None) -> tuple[str, ...]:
    """Return the line that stores a patch; none if there is no patch."""
    return () if patch is None else (_LINE + json.dumps(patch),)


def decode_patch(line: str) -> PatchLink | None:
    """Return the patch in a line; ``None`` if the line stores something else."""
    if not line.startswith(_LINE):
        return None
    return decode_stored(line.removeprefix(_LINE), PatchLink)


def decode_stored(text: str, kind: type[T]) -> T:
    """Return a value that a field of the mirror's state has as JSON."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise StateError(
            f"the mirror's state is damaged: {error}: {text[:100]!r}",
            evidence=(("kept", "all copies, and the last complete step"),),
            hint="move .resourcesync/state.db away and pull the address again: copies are kept",
        ) from error
