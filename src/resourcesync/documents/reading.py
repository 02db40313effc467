"""Read a document: bytes in, entries out, one at a time.

Reading is liberal: it takes what Sources write in the wild, in 1.0, in 1.1 and in plain sitemaps.
A fault of one entry costs that entry alone. A fault of the document raises, so a list is never
shorter than its Source wrote it.
"""

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, final

from resourcesync.documents._assembling import Assembler, Irregular
from resourcesync.documents._columns import changes_of, resources_of, uris_of
from resourcesync.documents._families import family_of
from resourcesync.documents._header import header_of
from resourcesync.documents._layouts import Row, Run
from resourcesync.documents._limits import Limits, over
from resourcesync.documents._octets import blocks
from resourcesync.documents._scanning import Scanner
from resourcesync.documents._values import (
    RefusalError,
    change_kind,
    entry_uri,
    irregular_of,
    row_of,
)
from resourcesync.errors import MalformedDocumentError
from resourcesync.model.capabilities import Entry, Header, RefusedEntry
from resourcesync.model.vocabulary import ChangeKind, Dialect

__all__ = ["Document", "Limits", "Row", "read"]

_MAX_SHOWN: Final = 2_048
_DEFAULT_LIMITS: Final = Limits()


def read(
    stream: BinaryIO,
    *,
    uri: str,
    limits: Limits = _DEFAULT_LIMITS,
    on_refused: Callable[[RefusedEntry], None] | None = None,
) -> "Document":
    """Open a document: read as far as its header, and no further than it must.

    The bytes may be gzip (told by their first bytes), in UTF-8 or in UTF-16 with a byte order mark.

    Args:
        stream: The document; it stays open, and is read while the entries are.
        uri: Its address, for messages.
        limits: What it may cost at most.
        on_refused: Told of each entry that cannot be used, in order.

    Raises:
        NotAListError: Neither a ResourceSync document nor a sitemap, such as an HTML error page.
        UnexpectedDocumentError: A document of a capability that this version does not know.
        TruncatedDocumentError: It stops before its end.
        MalformedDocumentError: No well-formed XML, a DOCTYPE, another encoding, a broken header.
        DocumentLimitError: Over one of the limits.
    """
    assembler = Assembler(limits=limits, uri=uri)
    scanner = Scanner(assembler, limits=limits, uri=uri)
    rest = blocks(stream, limits=limits, uri=uri)
    while not assembler.began and assembler.depth and not scanner.closed:
        block = next(rest, None)
        if block is None:
            scanner.close()
        else:
            scanner.feed(block)
    header = header_of(
        assembler, is_index=scanner.is_index, place=scanner.header_place, uri=uri, limits=limits
    )
    return Document(header, assembler, scanner, rest, uri=uri, limits=limits, on_refused=on_refused)


@final
class Document:
    """An open document; its entries are read as they are asked for, once.

    Attributes:
        header: What its root says.
        uri: Its address.
        refused: Entries that could not be used so far.
    """

    def __init__(  # noqa: PLR0913 - made by read() alone
        self,
        header: Header,
        assembler: Assembler,
        scanner: Scanner,
        rest: Iterator[bytes],
        *,
        uri: str,
        limits: Limits,
        on_refused: Callable[[RefusedEntry], None] | None,
    ) -> None:
        self.header = header
        self.uri = uri
        self.refused = 0
        self._assembler = assembler
        self._scanner = scanner
        self._rest = rest
        self._limits = limits
        self._longest = min(limits.uri, limits.text)
        self._on_refused = on_refused
        self._family = family_of(header)
        self._tells_changes = self._family.tells_changes
        if self._family.is_regular:
            assembler.attributes = self._family.known
        self._is_taken = False
        self._saw_lastmod = False
        self._saw_datetime = False
        self._count = 0

    @property
    def dialect(self) -> Dialect:
        """Which version the document is written in; certain once all entries were read."""
        if self.header.capability is None:
            return Dialect.SITEMAP
        if self._tells_changes and self._saw_lastmod and not self._saw_datetime:
            return Dialect.V1_0
        return Dialect.V1_1

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in the order of the document; each is of the kind its header says.

        A list, a plain sitemap or the manifest of a Resource Dump holds `Resource`; a Change List,
        the manifest of a Change Dump or a Change Notification `Change`; any index or archive
        `Part`; a dump `Package`; a Capability List or Source Description `CapabilityEntry`; a
        Framework Notification `DocumentChange`.

        Raises:
            DocumentError: As `read` does; and, where changes are told, an entry whose ``change`` is
                missing or unknown (§12.1: the order of changes matters, so none may be left out).
        """
        for items in self._items():
            for item in items:
                if isinstance(item, Run):
                    yield from self._of_run(item)
                else:
                    yield from self._of_entry(item)

    def rows(self) -> Iterator[Row]:
        """Yield the entries as rows of strings: faster than `entries`, and less checked.

        Faults of ``loc`` and of the entry's structure are found as by `entries`; the other texts
        are given as they were written. Not for documents that list documents or packages:
        their entries say what a row cannot hold.

        Raises:
            DocumentError: As `entries` does.
        """
        for items in self._items():
            for item in items:
                if isinstance(item, Run):
                    yield from self._rows_of_run(item)
                else:
                    yield from self._row_of_entry(item)

    def _items(self) -> Iterator[list[Run | Irregular]]:
        if self._is_taken:
            raise RuntimeError("the entries of a document can be read once")
        self._is_taken = True
        yield self._counted()
        for block in self._rest:
            self._scanner.feed(block)
            yield self._counted()
        self._scanner.close()
        yield self._counted()

    def _counted(self) -> list[Run | Irregular]:
        items = self._assembler.take()
        most = self._limits.entries
        for item in items:
            self._count += len(item.lines) if isinstance(item, Run) else 1
            if self._count > most:
                line, column = _place(item, most - self._count)
                raise over(most, "entries", uri=self.uri, line=line, column=column)
        return items

    # --- many regular entries ------------------------------------------------------------------

    def _of_run(self, run: Run) -> Iterator[Entry]:
        """Make the values of a run at once; if one entry stands in the way, one by one."""
        try:
            if not self._tells_changes:
                yield from resources_of(run)
                return
            kinds = self._kinds(run)
            if kinds is not None:
                yield from changes_of(run, kinds)
                return
        except RefusalError:
            pass
        for row in run.rows():
            yield from self._of_entry(irregular_of(row))

    def _rows_of_run(self, run: Run) -> Iterator[Row]:
        try:
            kinds = self._kinds(run) if self._tells_changes else None
            if kinds is not None or not self._tells_changes:
                changes = run.changes if kinds is None else [kind.value for kind in kinds]
                yield from run._replace(uris=uris_of(run.uris), changes=changes).rows()
                return
        except RefusalError:
            pass
        for row in run.rows():
            yield from self._row_of_entry(irregular_of(row))

    def _kinds(self, run: Run) -> list[ChangeKind] | None:
        """Return what happened in each entry, or ``None`` when one does not say."""
        self._saw_lastmod = self._saw_lastmod or run.lastmods is not None
        self._saw_datetime = self._saw_datetime or run.datetimes is not None
        kinds = [change_kind(text) for text in run.changes or (None,)]
        found = [kind for kind in kinds if kind is not None]
        return found if len(found) == len(kinds) else None

    # --- one entry of any form -----------------------------------------------------------------

    def _of_entry(self, entry: Irregular) -> Iterator[Entry]:
        try:
            yield self._make(entry)
        except RefusalError as refusal:
            self._refuse(entry, refusal)

    def _make(self, entry: Irregular) -> Entry:
        kind = self._kind(row_of(entry)) if self._tells_changes else None
        return self._family.make(entry, kind, self._longest)

    def _row_of_entry(self, entry: Irregular) -> Iterator[Row]:
        row = row_of(entry)
        if self._tells_changes:
            row = row._replace(change=self._kind(row).value)
        try:
            yield row._replace(uri=entry_uri(entry, self._longest))
        except RefusalError as refusal:
            self._refuse(entry, refusal)

    def _kind(self, row: Row) -> ChangeKind:
        """Return what happened, and note what the entry shows of the dialect.

        Raises:
            MalformedDocumentError: It does not say, in a word that is known.
        """
        self._saw_lastmod = self._saw_lastmod or row.lastmod_text is not None
        self._saw_datetime = self._saw_datetime or row.datetime_text is not None
        kind = change_kind(row.change)
        if kind is None:
            said = "no change" if row.change is None else f"the change {row.change[:64]!r}"
            raise MalformedDocumentError(
                f"An entry of the {self.header.phrase} has {said}",
                uri=self.uri,
                line=row.line,
                column=row.column,
                evidence=(("loc", row.uri.strip()[:_MAX_SHOWN]),),
                code="change-unknown",
            )
        return kind

    def _refuse(self, entry: Irregular, refusal: RefusalError) -> None:
        self.refused += 1
        if self._on_refused is not None:
            uri = row_of(entry).uri.strip()[:_MAX_SHOWN]
            self._on_refused(
                RefusedEntry(line=entry.line, code=refusal.code, reason=refusal.reason, uri=uri)
            )


def _place(item: Run | Irregular, index: int) -> tuple[int, int]:
    """Return line and column of an entry; in a run, of the entry with this (negative) index."""
    if isinstance(item, Run):
        return item.lines[index], item.columns[index]
    return item.line, item.column
