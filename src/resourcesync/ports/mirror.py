"""The state of a mirror: what a Destination stores between runs (``MirrorStateStore``).

It includes the paths of copies that a new one would clash with, the links of entries (``EntryLog``)
and what they did to the mirror (``LinkLog``). Times are whole microseconds since
1970-01-01T00:00:00Z, as they are stored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from resourcesync.model.digests import ALGORITHMS
from resourcesync.ports.changes import ClockMicroseconds, Microseconds, MirrorChangeLog, ProofLog

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=0)]
Digests = Annotated[str, msgspec.Meta(pattern=f"^(?:(?:{'|'.join(ALGORITHMS)}):[^ ]*(?: |$))*$")]
"""Digests that we computed, as in a ``hash`` attribute."""
FileName = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]+$")]
PathKey = Callable[[str], str]
"""Returns the key of a path: equal for paths that a file system treats as one."""


def folders_of(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, the outermost first."""
    at = path.find("/")
    while at > 0:
        yield path[:at]
        at = path.find("/", at + 1)


def conflicting_paths(
    named: Iterable[tuple[str, str]], paths: Iterable[str], key: PathKey | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the URIs and paths that some new paths would clash with, in one pass over all.

    Args:
        named: URI and path of all copies.
        paths: The new ones.
        key: Returns the same key for paths that the file system treats as one; ``None`` if each
            differs.

    Returns:
        The copies at these paths or at one of their folders; and at least one of those below a
        path.
    """
    wanted = {path if key is None else key(path) for path in paths}
    above = {folder for path in wanted for folder in folders_of(path)}
    found: set[str] = set()
    for uri, path in named:
        known = path if key is None else key(path)
        if known in wanted or known in above:
            yield uri, path
        for folder in folders_of(known):
            if folder in wanted and folder not in found:
                found.add(folder)
                yield uri, path


class LinkRow(NamedTuple):
    """One link of an entry to a resource that is not listed itself.

    Attributes:
        uri: The linked resource, normalised.
        via: The entry, normalised.
        generation: The last reading of the Source that listed it.
    """

    uri: str
    via: str
    generation: int


class PatchRow(NamedTuple):
    """The outcome of the last patch of a copy.

    Attributes:
        uri: The resource, normalised.
        time: Time, microseconds.
        reason: Reason why it could not be used; empty when the copy was made by it.
    """

    uri: str
    time: ClockMicroseconds
    reason: str


class EntryLink(NamedTuple):
    """A link of an entry that matters when the copy is published again.

    Attributes:
        rel: The relation, in lower case.
        href: Its target.
        media_type: ``type``.
        hash: ``hash`` of the target, in our form.
        length: Bytes of the target, or ``None``.
        modified: Last modification of the target, microseconds, or ``None``.
    """

    rel: str
    href: str
    media_type: str
    hash: str
    length: Count | None
    modified: Microseconds | None


class EntryRow(NamedTuple):
    """The links of a listed entry, as last listed by the Source.

    Attributes:
        uri: The entry, normalised.
        links: A JSON array of ``EntryLink`` s, each an array; empty for none.
        generation: The last reading of the Source that listed it.
    """

    uri: str
    links: str
    generation: int


class EntryLog(Protocol):
    """The links of entries, followed or not."""

    def has_entries(self) -> bool:
        """True if any entry has, or had, links that are remembered."""

    def entry_links(self, uri: str) -> str:
        """Return the links of an entry as in ``EntryRow.links``; empty when it has none."""

    def entry_changed(self, uri: str) -> int:
        """Return the number of the logged change of its links; 0 for none."""

    def entries_linking(self, targets: Sequence[str]) -> list[str]:
        """Return the entries that link to any of some URIs, normalised, in order."""


class LinkLog(Protocol):
    """The copies fetched by links, the entries that link to them, and the outcomes of patches."""

    def is_linked(self, uri: str) -> bool:
        """True if it is mirrored, or wanted, only because entries link to it, or did so."""

    def referrers(self, uri: str, limit: int) -> list[str]:
        """Return the first entries that link to it, in order."""

    def orphans(self) -> Iterator[str]:
        """Yield, in order, URIs that are no longer linked to; safe while rows are written."""

    def linked_count(self) -> int:
        """Count the copies that exist only because entries link to them."""

    def last_patch(self, uri: str) -> PatchRow | None:
        """Return the outcome of the last patch of a copy; ``None`` for none."""


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


class Copy(NamedTuple):
    """One resource in the mirror. A named tuple, since millions are read in a row.

    Attributes:
        uri: Its URI, normalised (RFC 3986 §6.2.2).
        path: Its place in the mirror, relative, with ``/``.
        length: Bytes.
        digests: Digests of the bytes, computed locally, as in a ``hash`` attribute.
        listed: The ``hash`` that the Source listed when it was installed; empty unless it matched.
        lastmod: The ``lastmod`` that the Source listed, if it tells whether the resource changed
            since: a hash was listed too, or it was over when the bytes came; else ``None``.
        etag: The answer's ``ETag``, for conditional requests.
        last_modified: The answer's ``Last-Modified``, for conditional requests.
        signature: The file's stat signature when it was installed.
        fixity: A ``Fixity``.
        installed: Time of its installation.
        evidence: The last moment at which the resource is known to have existed at the Source, by
            the Source's clocks: of the answer that delivered or confirmed it, or of the list that
            named it. Only what is later can prove it absent. 0: none.
    """

    uri: str
    path: str
    length: Annotated[int, msgspec.Meta(ge=-1)]
    digests: Digests
    listed: str
    lastmod: Microseconds | None
    etag: str
    last_modified: str
    signature: str
    fixity: str
    installed: ClockMicroseconds
    evidence: Microseconds = 0

    @property
    def is_stale(self) -> bool:
        """True if an audit was served other bytes or none, and no answer had these since."""
        return self.fixity == Fixity.STALE


make_copy: Final[Callable[[tuple[Any, ...]], Copy]] = partial(tuple.__new__, Copy)
"""Makes a copy of all its fields; its own constructor is Python code, and millions are made."""


class UnhashedCounts(NamedTuple):
    """Numbers of copies that no listed hash proves.

    Attributes:
        copies: All of them.
        dated: Those with a ``lastmod``.
        unconfirmed: Those of which the Source said "not modified" though their date moved.
    """

    copies: int
    dated: int
    unconfirmed: int


class PendingTask(StrEnum):
    """The task that is pending for a URI."""

    FETCH = "fetch"
    DELETE = "delete"
    RETAIN = "keep"
    """Nothing: the copy is retained though the Source does not list it, or not as selected."""


class Pending(NamedTuple):
    """A listed resource that the mirror lacks or has differently, or a deletion not done yet.

    Attributes:
        uri: Its URI, normalised.
        loc: Its URI as the Source wrote it.
        path: Its place in the mirror.
        task: A ``Task``.
        listed: The ``hash`` that the Source lists now.
        length: The ``length`` that the Source lists now, or ``None``.
        lastmod: The ``lastmod`` that the Source lists now, or ``None``.
        code: A stable code of why it is not done; empty when it was not tried yet.
        reason: The same in a sentence.
        tries: Number of tries, over all runs.
        due: Earliest time of the next try.
        first: Time when it was first read (retained when the row is written again).
        first_at: The Source's time then (retained too): the second of two lists must be later.
        generation: The last reading of the Source that listed it.
        elsewhere: Its memento (or nothing) and its mirrors, one on each line; empty for neither.
    """

    uri: str
    loc: str
    path: str
    task: str
    listed: str
    length: Count | None
    lastmod: Microseconds | None
    code: str
    reason: str
    tries: Count
    due: ClockMicroseconds
    first: ClockMicroseconds
    first_at: Microseconds
    generation: int
    elsewhere: str = ""


class PendingCounts(msgspec.Struct, frozen=True):
    """Numbers of pending rows.

    Attributes:
        rows: The number of rows of each task and code.
    """

    rows: Mapping[tuple[str, str], int]

    def of_task(self, task: PendingTask) -> int:
        """Return the number of rows of a task."""
        return sum(count for (of, _), count in self.rows.items() if of == task)

    def with_codes(self, *codes: str) -> int:
        """Return the number of rows that are not done for one of some reasons."""
        return sum(count for (_, code), count in self.rows.items() if code in codes)


class ProcessedDocument(NamedTuple):
    """A document that was read, with the state needed to read only its new part.

    Attributes:
        uri: Its address.
        from_: The Change List's ``from``; a list at the same URI with another ``from`` is another
            list. 0 when it has none.
        until: Its ``until``, or ``None`` when it is open.
        entries: Number of its changes that have been processed.
        prefix: SHA-256 over those changes.
        etag: For conditional requests.
        last_modified: For conditional requests.
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
    """A copy that was removed and is in the trash.

    Attributes:
        place: Its name in the trash.
        uri: Its URI; empty if unknown.
        path: Its former path in the mirror; empty if unknown.
        removed: Time of its removal.
        reason: The reason.
        digests: Digests of its bytes, as in a ``hash`` attribute; empty if unknown.
    """

    place: FileName
    uri: str
    path: str
    removed: ClockMicroseconds
    reason: str
    digests: str = ""


class StateTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction of the mirror's state: all of it is stored, or none.

    Attributes:
        suspect: Copies whose files are about to change; their pending rows stay.
        installed: Copies that are in place now (their pending rows end; then those of this step
            are written).
        removed: URIs whose copies are gone (their pending rows end).
        pending: Rows to write; ``first`` and ``first_at`` of an existing row are retained.
        outdated: Forget the pending rows of readings older than this generation.
        completed: URIs with nothing left to do.
        documents: Documents that were read.
        only_documents: Forget all other documents.
        notes: Values to store; the cursor is among them.
        trashed: Copies moved to the trash.
        purged: Places in the trash that are empty now.
        unlinked: Entries whose links are removed; that a resource was linked to is not.
        listed: URIs that are listed themselves now: links no longer count for them.
        linked: Links to store; written after the others were removed.
        patched: Outcomes of patches.
        entries: Present links of entries. If they changed, the copy is logged as touched.
        unconfirmed: URIs of copies of which the Source said "not modified" though their date
            moved; they are so until they are fetched.
        now: Time of the transaction; needed for removals, with ``entries`` and ``unconfirmed``.
    """

    suspect: Sequence[Copy] = ()
    installed: Sequence[Copy] = ()
    removed: Sequence[str] = ()
    pending: Sequence[Pending] = ()
    outdated: int = 0
    completed: Sequence[str] = ()
    documents: Sequence[ProcessedDocument] = ()
    only_documents: bool = False
    notes: Mapping[str, str] | None = None
    trashed: Sequence[TrashRow] = ()
    purged: Sequence[str] = ()
    unlinked: Sequence[str] = ()
    listed: Sequence[str] = ()
    linked: Sequence[LinkRow] = ()
    patched: Sequence[PatchRow] = ()
    entries: Sequence[EntryRow] = ()
    unconfirmed: Sequence[str] = ()
    now: int = 0


class RunRow(NamedTuple):
    """One run, for ``status``."""

    run: str
    started: ClockMicroseconds
    ended: ClockMicroseconds
    mode: str
    outcome: str
    counts: str


class MirrorStateStore(MirrorChangeLog, ProofLog, LinkLog, EntryLog, Protocol):
    """The state of a mirror. All writes go through ``commit``; one process writes at a time."""

    def note(self, key: str) -> str | None:
        """Return a remembered value, or ``None``."""

    def read_note(self, key: str, kind: type[T]) -> T | None:
        """Return a remembered value of a type, or ``None``.

        Raises:
            StateError: It is no such value.
        """

    def copies(self) -> Iterator[Copy]:
        """Yield the copies in rising URI order; rows may be written behind the reader."""

    def copy(self, uri: str) -> Copy | None:
        """Return the copy of a URI, or ``None``."""

    def copy_by_digest(self, digest: str, length: int) -> Copy | None:
        """Return a copy whose first digest is this one, of at least ``LARGE`` bytes, or ``None``.

        Args:
            digest: As in a ``hash`` attribute, such as ``sha-256:…``.
            length: Bytes.
        """

    def count(self) -> int:
        """Return the number of copies."""

    def size(self) -> int:
        """Return the bytes of the copies."""

    def count_unhashed(self) -> UnhashedCounts:
        """Count the copies that no listed hash proves."""

    def unhashed(self, after: str, limit: int, *, dated: bool) -> Sequence[Copy]:
        """Return the first copies after a URI that no listed hash proves, in URI order.

        Those with a pending row are left out: they are requested anyway, or not listed.

        Args:
            after: The URI; empty to begin.
            limit: Most copies.
            dated: Only those with a ``lastmod``.
        """

    def unconfirmed_since(self, uri: str) -> int | None:
        """Return when the Source said "not modified" though the date moved; ``None``: it did not.

        A fetch of the copy ends that.
        """

    def path_conflicts(
        self, base: str, paths: Sequence[str], key: PathKey | None
    ) -> Iterator[tuple[str, str]]:
        """Yield the URIs and paths of copies and pending rows that paths would clash with.

        Args:
            base: The URI of the mirror's root.
            paths: A few thousand at most.
            key: Returns the same key for paths that the file system treats as one; ``None`` if each
                differs.

        Returns:
            As from ``conflicting_paths``; one may be yielded several times.
        """

    def pending(self, task: PendingTask) -> Iterator[Pending]:
        """Yield the pending rows of a task in rising URI order; safe while rows are written."""

    def pending_of(self, uri: str) -> Pending | None:
        """Return the pending row of a URI, or ``None``."""

    def pending_count(self, task: PendingTask, *, met_before: int, listed_before: int) -> int:
        """Count a task's rows with ``first <= met_before`` and ``first_at < listed_before``."""

    def pending_with_copy(self, task: PendingTask, codes: Sequence[str] = ()) -> int:
        """Count a task's rows whose URI has a copy.

        Args:
            task: The task.
            codes: Only rows pending for one of these reasons; empty for all.
        """

    def pending_after(self, task: PendingTask, moment: int) -> tuple[int, int]:
        """Return how many of a task's rows are due only after a moment, and when the first is."""

    def pending_counts(self) -> PendingCounts:
        """Count all rows, by their tasks and codes."""

    def document(self, uri: str, from_: int | None = None) -> ProcessedDocument | None:
        """Return the row of a document: of one ``from``, or the one read last."""

    def closed_documents(self, limit: int) -> Sequence[ProcessedDocument]:
        """Return the closed Change Lists that were processed, those read last first."""

    def commit(self, step: StateTransaction) -> None:
        """Store a step durably.

        Raises:
            StorageError: It was not stored; nothing of it.
        """

    def replace_refused(self, refused: Sequence[RefusedRow], now: int) -> None:
        """Replace the stored refused entries."""

    def refused(self) -> Sequence[RefusedRow]:
        """Return the refused entries that are remembered (a bounded number)."""

    def trash(self, *, removed_before: int) -> Iterator[TrashRow]:
        """Yield the rows trashed before a moment, by place; safe while rows are written."""

    def trash_at(self, place: str) -> TrashRow | None:
        """Return the row of one place of the trash, or ``None``."""

    def trash_of(self, uri: str) -> TrashRow | None:
        """Return where the last copy of a URI went that waits in the trash, or ``None``."""

    def add_run(self, row: RunRow) -> None:
        """Store a run; only the newest 10,000 are retained."""

    def last_run(self) -> RunRow | None:
        """Return the newest run, or ``None``."""
