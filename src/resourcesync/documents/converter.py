"""Conversion of any document, a sitemap, Atom or the native draft, into another dialect.

`writer` is exact; this is lenient: documents in the wild have less, or more, than the rules of the
new dialect ask for. What is added or left out is counted and reported.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import BinaryIO, Final, Protocol, TypeVar

from msgspec.structs import replace

from resourcesync.documents._context import Limits, Tolerated
from resourcesync.documents.dialects import form_of, left_out, narrow_entry, narrow_header
from resourcesync.documents.feeds import read_feed
from resourcesync.documents.reader import read_stream
from resourcesync.documents.writer import write
from resourcesync.errors import MalformedDocumentError, NotAListError, UnexpectedDocumentError
from resourcesync.model.capabilities import (
    CapabilityEntry,
    DocumentChange,
    Entry,
    Header,
    Package,
    Part,
    RefusedEntry,
)
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, Dialect

__all__ = ["AnyDocument", "Tolerated", "read_any"]

_DEFAULT_LIMITS: Final = Limits()
_MAX_BUFFERED: Final = 1_048_576
"""Bytes in which the root must be met, for the form to be recognized."""
_FEED_ROOTS: Final = frozenset({"<feed>", "<resync>"})


class AnyDocument(Protocol):
    """An open document of any form; its entries are read lazily, once."""

    header: Header
    uri: str
    refused: int

    @property
    def dialect(self) -> Dialect:
        """The dialect of the document; certain once all entries were read."""

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in the order of the document.

        Raises:
            DocumentError: As from `read_any`.
        """


def read_any(
    stream: BinaryIO,
    *,
    uri: str,
    limits: Limits = _DEFAULT_LIMITS,
    on_refused: Callable[[RefusedEntry], None] | None = None,
    on_tolerated: Callable[[Tolerated], None] | None = None,
    strict: bool = False,
) -> AnyDocument:
    """Open a document of any dialect: read as far as its header.

    Args:
        stream: The document; it stays open, and is read while the entries are.
        uri: Its address, for messages.
        limits: Its bounds.
        on_refused: Called with each entry that cannot be used, in order.
        on_tolerated: Called once for each kind of tolerated fault. The abandoned forms have no
            rules of the standard to break, so it is never called for them.
        strict: As in `reader.read`; in those forms, True to raise for an entry that cannot be used.

    Raises:
        DocumentError: As from `reader.read` and `feeds.read_feed`.
    """
    replay = _ReplayStream(stream)
    try:
        return read_stream(
            replay,
            uri=uri,
            limits=limits,
            on_refused=on_refused,
            on_tolerated=on_tolerated,
            strict=strict,
        )
    except NotAListError as error:
        if dict(error.evidence).get("root") not in _FEED_ROOTS or not replay.rewind():
            raise
    told = _raise_refused(uri) if strict else on_refused
    return read_feed(replay, uri=uri, limits=limits, on_refused=told)


def _raise_refused(uri: str) -> Callable[[RefusedEntry], None]:
    """Return what makes an entry that cannot be used the end of its document."""

    def refuse(entry: RefusedEntry) -> None:
        raise MalformedDocumentError(
            entry.reason, uri=uri, line=entry.line, column=1, code=entry.code
        )

    return refuse


class _ReplayStream(io.RawIOBase, BinaryIO):
    """A stream whose first bytes can be read twice."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        self._held: bytearray | None = bytearray()
        self._again = b""

    def rewind(self) -> bool:
        """Start again, if that is still possible; from then on nothing is buffered."""
        if self._held is None:
            return False
        self._again, self._held = bytes(self._held), None
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        if self._again:
            data = self._again if size < 0 else self._again[:size]
            self._again = self._again[len(data) :]
            return data
        data = self._stream.read(size)
        if self._held is not None:
            self._held += data
            if len(self._held) > _MAX_BUFFERED:
                self._held = None
        return data


T = TypeVar("T", Header, Part, Package)


class Conversion:
    """The conversion of one document into another dialect.

    Args:
        document: The open document; its entries are read while it is converted.
        dialect: The dialect to write.
        now: The time of writing, for dialects that require it.
        lastmod_compat: As in `writer.write`.

    Attributes:
        header: The header of the document.
        entries: Entries written so far.
        left_out_of_header: Properties of the document that the new dialect lacks.
        left_out_of_entries: The same of the entries, with the number of entries that had each.
        added: Properties that the new dialect requires and the document lacked, in words.
        inferred: Number of entries that got each property they lacked, by its name: ``datetime``
            from ``lastmod``, which was the time of a change before 1.1, or ``lastmod`` from the
            time of the entry. Complete at the end.
    """

    def __init__(
        self,
        document: AnyDocument,
        dialect: Dialect,
        *,
        now: datetime,
        lastmod_compat: bool = False,
    ) -> None:
        self.header = document.header
        self.entries = 0
        self.left_out_of_header: frozenset[str] = frozenset()
        self.left_out_of_entries: Counter[str] = Counter()
        self.added: list[str] = []
        self.inferred: Counter[str] = Counter()
        self._document = document
        self._dialect = dialect
        self._now = now
        self._lastmod_compat = lastmod_compat

    def chunks(self) -> Iterator[bytes]:
        """Yield the document in the new dialect.

        Raises:
            DocumentError: The document cannot be read, or the dialect cannot express it at all.
        """
        try:
            yield from self._chunks()
        except ValueError as error:
            raise UnexpectedDocumentError(
                f"{self._dialect} cannot say this {self.header.phrase}: {error}",
                uri=self._document.uri,
            ) from error

    def _chunks(self) -> Iterator[bytes]:
        entries = self._document.entries()
        first = next(entries, None)
        header = self._with_required_times(
            _without_invalid_times(self.header, self.header.capability), first
        )
        self.left_out_of_header = left_out(self.header, narrow_header(header, self._dialect))
        all_entries = entries if first is None else chain([first], entries)
        yield from write(
            header,
            self._counted(all_entries, header),
            self._dialect,
            lastmod_compat=self._lastmod_compat,
        )
        if self._document.dialect is Dialect.V1_1:  # it has the time of a change itself
            del self.inferred["datetime"]

    def _with_required_times(self, header: Header, first: Entry | None) -> Header:
        """Return the header with the times that the dialect requires."""
        form = form_of(self._dialect)
        kind = header.capability
        if kind is None or form.is_plain:
            return header
        if kind.is_snapshot and header.at is None and header.modified is not None:
            header = replace(header, at=header.modified)
            self.added.append("at: the time of its last update")
        if kind.is_log and header.from_ is None and form.times != "modified":
            header = self._with_from(header, first)
        told = header.modified or header.until or header.at
        if told is None and (form.times == "modified" or (form.times == "from" and kind.is_log)):
            header = replace(header, modified=self._now)
            self.added.append(f"{'until' if form.times == 'from' else 'modified'}: now")
        return header

    def _with_from(self, header: Header, first: Entry | None) -> Header:
        """Begin where the first change is: from there on, all changes are listed."""
        time = first.time if isinstance(first, Change) else None
        if isinstance(first, Part | Package):
            time = first.from_ or first.lastmod
        if time is not None:
            self.added.append("from: the time of its first entry")
        elif header.modified is not None:
            time = header.modified
            self.added.append("from: the time of its last update")
        return replace(header, from_=time)

    def _counted(self, entries: Iterable[Entry], header: Header) -> Iterator[Entry]:
        is_dated = form_of(self._dialect).is_dated
        for entry in entries:
            fitting = _writable_entry(entry, header)
            told = narrow_entry(fitting, header, self._dialect)
            is_named = isinstance(entry, CapabilityEntry | DocumentChange)
            # How a capability is spelled is no loss.
            self.left_out_of_entries.update(left_out(fitting if is_named else entry, told))
            self.inferred.update(_inferred(entry, told, is_dated=is_dated))
            self.entries += 1
            yield fitting


def _inferred(before: Entry, after: Entry, *, is_dated: bool) -> Iterator[str]:
    """Yield the names of inferred properties, as far as they follow from the entry's values."""
    old, new = (item.resource if isinstance(item, Change) else item for item in (before, after))
    if old.lastmod is None and new.lastmod is not None:
        yield "lastmod"
    if is_dated and isinstance(before, Change) and before.time and before.time == old.lastmod:
        yield "datetime"


def _writable_entry(entry: Entry, header: Header) -> Entry:
    """Return the entry as a strict writer accepts it."""
    match entry:
        case CapabilityEntry() | DocumentChange():
            return replace(entry, label="") if entry.capability else entry
        case Part():
            return _without_invalid_times(entry, _listed_capability(header))
        case Package():
            return _without_invalid_times(entry, _listed_capability(header))
        case Change():
            resource = _with_slash(entry.resource)
            return entry if resource is entry.resource else replace(entry, resource=resource)
        case Resource():
            return _with_slash(entry)


def _with_slash(resource: Resource) -> Resource:
    """Return the resource with the slash that some programs leave out of paths."""
    if not resource.path or resource.path.startswith("/"):
        return resource
    return replace(resource, path=f"/{resource.path}")


def _without_invalid_times(told: T, kind: Capability | None) -> T:
    """Return the header or entry without times that such documents do not have (Appendix A)."""
    if (told.at or told.completed) and not (kind and kind.is_snapshot):
        told = replace(told, at=None, completed=None)
    if (told.from_ or told.until) and not (kind and kind.is_log):
        told = replace(told, from_=None, until=None)
    return told


def _listed_capability(header: Header) -> Capability | None:
    """Return what the entries point to: in an archive, documents of the past."""
    kind = header.capability
    return kind.archived if kind is not None and kind.is_archive else kind
