"""Assembly of entries from tokens: regular ones as a `Run`, any other as a `RawEntry`."""

from dataclasses import dataclass, field
from typing import Final

from resourcesync.documents._context import Limits, ReadingContext, limit_error
from resourcesync.documents._expat import (
    CHANGEFREQ,
    DRAFT_ELEMENTS,
    ENTRY,
    GIVEN,
    LASTMOD,
    LN,
    LOC,
    MAX_TOKEN,
    MD,
    MISPLACED,
    PRIORITY,
    Token,
)
from resourcesync.documents._layouts import EntryColumns, EntryLayout, is_end, is_text, learn_layout
from resourcesync.errors import MalformedDocumentError

MAX_LINKS: Final = 1_000
"""Links of one entry or of one root: nothing real has as many."""

UNKNOWN_ENTRY: Final = "entry-unknown"
"""The code of an element among the entries that is none."""
_MOST_UNKNOWN: Final = 100
_MAX_LAYOUTS: Final = 8
_MAX_LESSONS: Final = 64
_TEXT_ELEMENTS: Final = frozenset({LOC, LASTMOD, CHANGEFREQ, PRIORITY, *DRAFT_ELEMENTS})
_HINTS: Final = frozenset({LASTMOD, CHANGEFREQ, PRIORITY})
"""Optional parts of an entry: without them it can still be used."""
_REPEATED: Final = {
    LOC: ("The entry has more than one loc", "G12"),
    LASTMOD: ("The entry has more than one lastmod", "G14"),
    MD: ("The entry has more than one rs:md", "G15"),
}
_CHILDREN: Final = "The text of the entry contains an element"


@dataclass(slots=True, eq=False)
class RawEntry:
    """One entry with all its parts, as written.

    Attributes:
        line, column: Its place, 1-based.
        texts: The text of each text element, by its number.
        metadata: Names and values of ``rs:md`` in turn; ``None`` without one.
        links: The same for each ``rs:ln``.
        given: The same for the text elements of drafts, by their number.
        foreign: Elements of other communities, as XML.
        fault: Code, reason and broken rule when it cannot be used.
    """

    line: int
    column: int
    texts: dict[int, str] = field(default_factory=dict)
    metadata: list[str] | None = None
    links: list[list[str]] = field(default_factory=list)
    given: dict[int, list[str]] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    fault: tuple[str, str, str] | None = None

    def mark_faulty(self, code: str, reason: str, rule: str = "G12") -> None:
        """Note a fault; the first one counts."""
        self.fault = self.fault or (code, reason, rule)


class EntryAssembler:
    """An assembler of tokens into complete entries.

    Attributes:
        depth: Elements open now; 1 is the root.
        began: True if the first entry has started: from then on the header is complete.
        metadata: Names and values of the root's ``rs:md``; ``None`` as long as there is none.
        links: The same for each ``rs:ln`` of the root.
        foreign: Elements of other communities under the root, before the first entry.
        items: Complete entries that were not read yet.
        attributes: Attributes of ``rs:md`` that a regular entry may have; ``None`` makes every
            entry irregular.
    """

    def __init__(self, *, limits: Limits, context: ReadingContext) -> None:
        self.depth = 1
        self.began = False
        self.metadata: list[str] | None = None
        self.links: list[list[str]] = []
        self.foreign: list[str] = []
        self.items: list[EntryColumns | RawEntry] = []
        self.attributes: frozenset[str] | None = None
        self._limits = limits
        self._uri = context.uri
        self._context = context
        self._given: list[str] = []
        self._longest = min(limits.uri, limits.text)
        self._entry: RawEntry | None = None
        self._leaf: int | None = None  # which element of the entry is open
        self._pieces: list[str] = []
        self._length = 0
        self._layouts: list[EntryLayout] = []
        self._lessons = 0
        self._unknown = 0

    @property
    def is_between_entries(self) -> bool:
        """True if the root alone is open, and its first entry was there."""
        return self.began and self.depth == 1

    def drain(self) -> list[EntryColumns | RawEntry]:
        """Return the complete entries and forget them."""
        items, self.items = self.items, []
        return items

    def consume(self, tokens: list[Token]) -> None:
        """Consume the next tokens of the document."""
        at = 0
        while at < len(tokens):
            if tokens[at] is ENTRY and self.depth == 1:
                after = self._match_layouts(tokens, at)
                if after == at:
                    after = self._read_entry(tokens, at)
                at = after
            else:
                at = self._step(tokens, at)

    def enter_foreign(self) -> list[str] | None:
        """Note that an element of others starts; return what its XML is to be added to.

        ``None`` means that it is at a place where it cannot be stored.
        """
        entry = self._entry
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

    def _match_layouts(self, tokens: list[Token], at: int) -> int:
        for index, layout in enumerate(self._layouts):
            after = self._match_layout(layout, tokens, at)
            if after > at:
                if index:
                    self._layouts.insert(0, self._layouts.pop(index))
                return after
        return at

    def _match_layout(self, layout: EntryLayout, tokens: list[Token], at: int) -> int:
        """Consume entries that repeat the layout; return the start of the next one."""
        count, growth = 1, 4  # few at first, so that a short run costs little
        while count := min(count, (len(tokens) - at) // layout.size):
            run = layout.cut(tokens, at, count)
            if run is not None and self._is_within(run):
                self.items.append(run)
                at += count * layout.size
                count *= growth
            else:
                count, growth = count // 4, 1
        return at

    def _is_within(self, run: EntryColumns) -> bool:
        longest = self._longest
        return (
            max(map(len, run.uris)) <= longest
            and (run.lastmods is None or max(map(len, run.lastmods)) <= longest)
            and (run.changefreqs is None or max(map(len, run.changefreqs)) <= longest)
            and (run.priorities is None or max(map(len, run.priorities)) <= longest)
        )

    def _read_entry(self, tokens: list[Token], start: int) -> int:
        """Consume one entry step by step, as far as its tokens are available; learn from it."""
        at = self._step(tokens, start)
        while at < len(tokens) and self._entry is not None:
            at = self._step(tokens, at)
        # The blanks after an entry belong to its layout, so nothing is learnt from the last entry.
        if self._entry is None and at < len(tokens) and self.attributes is not None:
            at += is_text(tokens[at])
            if self._lessons < _MAX_LESSONS:
                self._learn_layout(tokens[start:at], self.attributes)
        return at

    def _learn_layout(self, tokens: list[Token], attributes: frozenset[str]) -> None:
        entry = self.items[-1]
        assert isinstance(entry, RawEntry)
        if entry.fault is not None or LOC not in entry.texts:
            return
        self._lessons += 1
        layout = learn_layout(tokens, attributes)
        if layout is not None:
            self._layouts.insert(0, layout)
            del self._layouts[_MAX_LAYOUTS:]

    def _step(self, tokens: list[Token], at: int) -> int:
        """Consume a start, an end or a text; return the position of the next token."""
        token = tokens[at]
        if token is ENTRY or token == MISPLACED:
            line, column = tokens[at + 1], tokens[at + 2]
            assert isinstance(line, int)
            assert isinstance(column, int)
            self._start_entry(line, column, misplaced=token is not ENTRY)
            return at + 3
        if isinstance(token, int):
            attributes: list[str] = []
            after = at + 1
            if token in (MD, LN, GIVEN):
                count = tokens[at + 1]
                assert isinstance(count, int)
                after = at + 2 + count
                attributes = [text for text in tokens[at + 2 : after] if isinstance(text, str)]
            if token == GIVEN:
                self._given = attributes
            else:
                self._start(token, attributes)
            return after
        if is_end(token):
            self._end()
        elif self._leaf in _TEXT_ELEMENTS and isinstance(token, str):
            self._text(token)
        return at + 1

    def _start_entry(self, line: int, column: int, *, misplaced: bool) -> None:
        self._enter_element(line, column)
        self.began = True
        if self._entry is not None:
            self._entry.mark_faulty("entry-invalid", "The entry contains another entry", "G03")
        elif self.depth == 2:  # noqa: PLR2004 - a child of the root
            self._entry = RawEntry(line, column)
            if misplaced:
                self._entry.mark_faulty(
                    "entry-misplaced", "A document has url or sitemap entries, not both", "G03"
                )

    def _start(self, mark: int, attributes: list[str]) -> None:
        entry = self._entry
        if entry is None:
            self._enter_element(0, 0)
            if self.depth == 2:  # noqa: PLR2004 - a child of the root
                self._start_in_root(mark, attributes)
            return
        self._enter_element(entry.line, entry.column)
        if self.depth == 3:  # noqa: PLR2004 - a child of the entry
            self._start_in_entry(entry, mark, attributes)
        elif self._leaf in _TEXT_ELEMENTS:
            entry.mark_faulty("entry-invalid", _CHILDREN)

    def _start_in_entry(self, entry: RawEntry, mark: int, attributes: list[str]) -> None:
        self._leaf = mark
        self._pieces, self._length = [], 0
        if mark == LN:
            entry.links.append(attributes)
            if len(entry.links) > MAX_LINKS:
                self._fail(MAX_LINKS, "links in one entry", entry)
        elif mark == MD and entry.metadata is None:
            entry.metadata = attributes
        elif mark == MD or (mark in entry.texts and mark in _REPEATED):
            entry.mark_faulty("entry-invalid", *_REPEATED[mark])
        if self._given:
            entry.given.setdefault(mark, self._given)
            self._given = []

    def _start_in_root(self, mark: int, attributes: list[str]) -> None:
        if mark == LN:
            if self.began:  # the header is already in use
                self._context.set_place(0, 0)
                self._context.tolerate("link-late")
                return
            self.links.append(attributes)
            if len(self.links) > MAX_LINKS:
                self._fail(MAX_LINKS, "links under the root", None)
        elif mark == MD:
            if self.began or self.metadata is not None:
                where = "after the first entry" if self.began else "twice"
                raise MalformedDocumentError(
                    f"The root's rs:md comes {where}", uri=self._uri, code="xml-metadata"
                )
            self.metadata = attributes
        elif mark == LOC:
            self.refuse(0, 0)

    def _end(self) -> None:
        self.depth -= 1
        entry = self._entry
        if entry is None:
            return
        if self.depth == 1:
            if LOC not in entry.texts:
                entry.mark_faulty("entry-invalid", "The entry has no loc")
            self.items.append(entry)
            self._entry = None
        elif self.depth == 2:  # noqa: PLR2004 - an element of the entry ended
            if self._leaf in _TEXT_ELEMENTS and self._leaf is not None:
                self._end_text(entry, self._leaf)
            self._leaf = None

    def _end_text(self, entry: RawEntry, leaf: int) -> None:
        is_long = self._length > self._limits.text
        if is_long and leaf in _HINTS:
            self._context.set_place(entry.line, entry.column)
            self._context.drop_value("value-long", about=self._pieces[0])
            return
        if is_long:
            code = "uri-too-long" if leaf == LOC else "entry-invalid"
            entry.mark_faulty(code, f"A text has more than {self._limits.text:,} characters", "G13")
        entry.texts.setdefault(leaf, "".join(self._pieces))

    def _text(self, text: str) -> None:
        entry = self._entry
        assert entry is not None
        if room := max(0, self._limits.text - self._length):
            self._pieces.append(text[:room])
        self._length += len(text)
        if self._length > MAX_TOKEN:
            self._fail(MAX_TOKEN, "characters in one text", entry)

    def _enter_element(self, line: int, column: int) -> None:
        self.depth += 1
        if self.depth > self._limits.depth:
            raise limit_error(
                self._limits.depth, "levels of elements", uri=self._uri, line=line, column=column
            )

    def _fail(self, limit: int, what: str, entry: RawEntry | None) -> None:
        line, column = (entry.line, entry.column) if entry is not None else (0, 0)
        raise limit_error(limit, what, uri=self._uri, line=line, column=column)
