"""Assembly of entries from the elements and texts that the XML parser finds."""

from typing import Final

from resourcesync.documents._context import Limits, ReadingContext, limit_error
from resourcesync.documents._expat import (
    CHANGEFREQ,
    DRAFT_ELEMENTS,
    FIXITY,
    LASTMOD,
    LN,
    LOC,
    MAX_TOKEN,
    MD,
    PRIORITY,
)
from resourcesync.documents._raw_entries import EntryColumns, RawEntry
from resourcesync.errors import MalformedDocumentError
from resourcesync.model.leniencies import Leniency

MAX_LINKS: Final = 1_000
"""Links of one entry or of one root: nothing real has as many."""

UNKNOWN_ENTRY: Final = "entry-unknown"
"""The code of an element among the entries that is none."""
_MOST_UNKNOWN: Final = 100
_TEXT_ELEMENTS: Final = frozenset({LOC, LASTMOD, CHANGEFREQ, PRIORITY, *DRAFT_ELEMENTS})
_WITH_ATTRIBUTES: Final = frozenset({LASTMOD, FIXITY})
"""Text elements whose attributes mean something in drafts."""
_HINTS: Final = frozenset({LASTMOD, CHANGEFREQ, PRIORITY})
"""Optional parts of an entry: without them it can still be used."""
_REPEATED: Final = {
    LOC: ("The entry has more than one loc", "G12"),
    LASTMOD: ("The entry has more than one lastmod", "G14"),
    MD: ("The entry has more than one rs:md", "G15"),
}
_CHILDREN: Final = "The text of the entry contains an element"


class EntryAssembler:
    """An assembler of elements and texts into complete entries.

    ``depth`` counts open elements. Once it ``began`` an entry the header is complete. ``metadata``
    has names and values of the root's ``rs:md``, ``links`` those of each ``rs:ln``; ``items`` are
    complete entries that were not read yet.
    """

    def __init__(self, *, limits: Limits, context: ReadingContext) -> None:
        self.depth = 1
        self.began = False
        self.metadata: list[str] | None = None
        self.links: list[list[str]] = []
        self.foreign: list[str] = []
        self.entry: RawEntry | None = None
        self.items: list[EntryColumns | RawEntry] = []
        self._limits = limits
        self._uri = context.uri
        self._context = context
        self._leaf: int | None = None  # which element of the entry is open
        self._pieces: list[str] = []
        self._length = 0
        self._unknown = 0

    @property
    def is_between_entries(self) -> bool:
        """True if the root alone is open, and its first entry was there."""
        return self.began and self.depth == 1

    def drain(self) -> list[EntryColumns | RawEntry]:
        """Return the complete entries and forget them."""
        items, self.items = self.items, []
        return items

    def enter_foreign(self) -> list[str] | None:
        """Note that an element of others starts; return what its XML is to be added to.

        ``None`` means that it is at a place where it cannot be stored.
        """
        entry = self.entry
        if entry is None:
            return self.foreign if self.depth == 1 and not self.began else None
        if self._leaf in _TEXT_ELEMENTS:
            entry.mark_faulty("entry-invalid", _CHILDREN)
        return entry.foreign if self.depth == 2 else None  # noqa: PLR2004 - a child of the entry

    def refuse(self, line: int, column: int) -> None:
        """Record an element among the entries that is none, and may be meant as one.

        The first hundred suffice.
        """
        self._unknown += 1
        if self._unknown > _MOST_UNKNOWN:
            return
        entry = RawEntry(line, column)
        entry.mark_faulty(UNKNOWN_ENTRY, "An element among the entries is not an entry", "G03")
        self.items.append(entry)

    def start_entry(self, line: int, column: int, *, misplaced: bool = False) -> None:
        """Start an entry."""
        self._enter_element(line, column)
        self.began = True
        if self.entry is not None:
            self.entry.mark_faulty("entry-invalid", "The entry contains another entry", "G03")
        elif self.depth == 2:  # noqa: PLR2004 - a child of the root
            self.entry = RawEntry(line, column)
            if misplaced:
                self.entry.mark_faulty(
                    "entry-misplaced", "A document has url or sitemap entries, not both", "G03"
                )

    def start_outside(self, mark: int, attributes: list[str], line: int, column: int) -> None:
        """Start an element that matters in entries or under the root, outside of entries."""
        self._enter_element(line, column)
        if self.depth > 2:  # noqa: PLR2004 - not right under the root
            return
        if mark == LN:
            self._add_link(attributes, line, column)
        elif mark == MD:
            if self.began or self.metadata is not None:
                where = "after the first entry" if self.began else "twice"
                raise MalformedDocumentError(
                    f"The root's rs:md comes {where}",
                    uri=self._uri,
                    line=line,
                    column=column,
                    code="xml-metadata",
                )
            self.metadata = attributes
        elif mark == LOC:
            self.refuse(line, column)

    def start(self, mark: int, attributes: list[str]) -> None:
        """Start an element that matters in the entry that is open."""
        entry = self.entry
        assert entry is not None
        self._enter_element(entry.line, entry.column)
        if self.depth == 3:  # noqa: PLR2004 - a child of the entry
            self._start_in_entry(entry, mark, attributes)
        elif self._leaf in _TEXT_ELEMENTS:
            entry.mark_faulty("entry-invalid", _CHILDREN)

    def end(self, _name: str) -> None:
        """End the element that was started last."""
        self.depth -= 1
        entry = self.entry
        if entry is None:
            return
        if self.depth == 1:
            if LOC not in entry.texts:
                entry.mark_faulty("entry-invalid", "The entry has no loc")
            self.items.append(entry)
            self.entry = None
        elif self.depth == 2:  # noqa: PLR2004 - an element of the entry ended
            if self._leaf in _TEXT_ELEMENTS and self._leaf is not None:
                self._end_text(entry, self._leaf)
            self._leaf = None

    def add_text(self, text: str) -> None:
        """Add text of the element that is open; only that of some elements matters."""
        entry = self.entry
        if entry is None or self._leaf not in _TEXT_ELEMENTS:
            return
        if room := max(0, self._limits.text - self._length):
            self._pieces.append(text[:room])
        self._length += len(text)
        if self._length > MAX_TOKEN:
            self._fail(MAX_TOKEN, "characters in one text", entry.line, entry.column)

    def _start_in_entry(self, entry: RawEntry, mark: int, attributes: list[str]) -> None:
        self._leaf = mark
        self._pieces, self._length = [], 0
        if mark == LN:
            entry.links.append(attributes)
            if len(entry.links) > MAX_LINKS:
                self._fail(MAX_LINKS, "links in one entry", entry.line, entry.column)
        elif mark == MD and entry.metadata is None:
            entry.metadata = attributes
        elif mark == MD or (mark in entry.texts and mark in _REPEATED):
            entry.mark_faulty("entry-invalid", *_REPEATED[mark])
        if attributes and mark in _WITH_ATTRIBUTES:
            entry.given.setdefault(mark, attributes)

    def _add_link(self, attributes: list[str], line: int, column: int) -> None:
        """Add a link of the root."""
        if self.began:  # the header is already in use
            self._context.set_place(line, column)
            self._context.tolerate(Leniency.LINK_LATE)
            return
        self.links.append(attributes)
        if len(self.links) > MAX_LINKS:
            self._fail(MAX_LINKS, "links under the root", line, column)

    def _end_text(self, entry: RawEntry, leaf: int) -> None:
        is_long = self._length > self._limits.text
        if is_long and leaf in _HINTS:
            self._context.set_place(entry.line, entry.column)
            self._context.drop_value(Leniency.VALUE_LONG, about=self._pieces[0])
            return
        if is_long:
            code = "uri-too-long" if leaf == LOC else "entry-invalid"
            entry.mark_faulty(code, f"A text has more than {self._limits.text:,} characters", "G13")
        entry.texts.setdefault(leaf, "".join(self._pieces))

    def _enter_element(self, line: int, column: int) -> None:
        self.depth += 1
        if self.depth > self._limits.depth:
            raise limit_error(
                self._limits.depth, "levels of elements", uri=self._uri, line=line, column=column
            )

    def _fail(self, limit: int, what: str, line: int, column: int) -> None:
        raise limit_error(limit, what, uri=self._uri, line=line, column=column)
