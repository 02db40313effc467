"""Entries and the root as written: assembled one by one with all parts, or many as columns.

A `RawEntry` is what the XML parser found. `EntryColumns` are what the fast path extracted; they
can always become raw entries, so every rule for entries exists once, for raw entries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from resourcesync.documents import expat
from resourcesync.model.entries import Foreign
from resourcesync.model.leniencies import Leniency
from resourcesync.model.vocabulary import SITEMAP_NS

K = TypeVar("K")


class RawEntry(msgspec.Struct, eq=False):
    """One entry with all its parts, as written.

    ``metadata`` has names and values of ``rs:md`` in turn; ``links`` the same for each ``rs:ln``,
    ``given`` for the text elements of drafts. ``fault`` has code, reason and broken rule when it
    cannot be used.
    """

    line: int
    column: int
    texts: dict[int, str] = msgspec.field(default_factory=dict)
    metadata: list[str] | None = None
    links: list[list[str]] = msgspec.field(default_factory=list)
    given: dict[int, list[str]] = msgspec.field(default_factory=dict)
    foreign: list[str] = msgspec.field(default_factory=list)
    fault: tuple[str, str, str] | None = None

    def mark_faulty(self, code: str, reason: str, rule: str = "G12") -> None:
        """Note a fault; the first one counts."""
        self.fault = self.fault or (code, reason, rule)


class TextRow(NamedTuple):
    """One entry of a list as strings: planning of millions reads these instead of values.

    ``None`` means absent. Links and foreign attributes are left out; nothing is checked yet but
    ``change`` of a Change List.
    """

    uri: str
    lastmod_text: str | None
    hash_text: str | None
    length_text: str | None
    media_type: str | None
    encoding: str | None
    changefreq: str | None
    change: str | None
    datetime_text: str | None
    line: int
    column: int
    path: str | None = None


# The constructor of a named tuple is Python code; this one is C, and the columns have all fields.
_make_row: Final[Callable[[tuple[Any, ...]], TextRow]] = partial(tuple.__new__, TextRow)

Column = Sequence[str | None]
"""One text of each entry; ``None`` where the entry lacks it."""

TEXT_FIELDS: Final = {
    expat.LOC: "uris",
    expat.LASTMOD: "lastmods",
    expat.CHANGEFREQ: "changefreqs",
    expat.PRIORITY: "priorities",
}
"""Column of each element that plain entries may have."""
ATTRIBUTE_FIELDS: Final = {
    "hash": "hashes",
    "length": "lengths",
    "type": "media_types",
    "encoding": "encodings",
    "change": "changes",
    "datetime": "datetimes",
    "path": "paths",
}
"""Column of each attribute of ``rs:md`` that has one."""


class EntryColumns(NamedTuple):
    """Entries as columns; the fields are those of `TextRow`, the priority and the links.

    A column is ``None`` when all the entries lack it.
    """

    uris: Sequence[str]
    lastmods: Column | None = None
    hashes: Column | None = None
    lengths: Column | None = None
    media_types: Column | None = None
    encodings: Column | None = None
    changefreqs: Column | None = None
    changes: Column | None = None
    datetimes: Column | None = None
    lines: Sequence[int] = ()
    columns: Sequence[int] = ()
    paths: Column | None = None
    priorities: Column | None = None
    links: Sequence[list[list[str]] | None] | None = None
    """For each entry, names and values of each ``rs:ln`` in turn."""

    def rows(self) -> Iterator[TextRow]:
        columns = (repeat(None) if column is None else column for column in self[:-2])
        return map(_make_row, zip(*columns, strict=False))

    def raw_entries(self) -> Iterator[RawEntry]:
        """Yield the entries as the XML parser would have found them."""
        texts = self._present(TEXT_FIELDS)
        attributes = self._present(ATTRIBUTE_FIELDS)
        for index, (line, column) in enumerate(zip(self.lines, self.columns, strict=True)):
            entry = RawEntry(line, column)
            metadata: list[str] = []
            for mark, found in texts:
                if (text := found[index]) is not None:
                    entry.texts[mark] = text
            for name, found in attributes:
                if (text := found[index]) is not None:
                    metadata += (name, text)
            entry.metadata = metadata
            if self.links is not None:
                entry.links = self.links[index] or []
            yield entry

    def _present(self, fields: Mapping[K, str]) -> list[tuple[K, Column]]:
        columns = [(key, getattr(self, name)) for key, name in fields.items()]
        return [(key, column) for key, column in columns if column is not None]


_OURS: Final = frozenset(
    f"{namespace}{expat.SEPARATOR}{local}"
    for namespaces, names in (
        (expat.RS_NAMESPACES, ("md", "ln")),
        (expat.SITEMAP_NAMESPACES, ("urlset", "sitemapindex", "url", "sitemap")),
        (expat.SITEMAP_NAMESPACES, ("loc", "lastmod", "changefreq")),
    )
    for namespace in namespaces
    for local in names
)
"""Elements that are written from values, and so cannot come as a fragment."""
_PRIORITY: Final = f'<priority xmlns="{SITEMAP_NS}"'
_AROUND: Final = (f'<r xmlns="{SITEMAP_NS}">'.encode(), b"</r>")


def foreign_text(foreign: Foreign) -> str:
    """Return the elements, one after the other."""
    for fragment in foreign:
        _check_fragment(fragment)
    return "".join(foreign)


def split_priority(foreign: Foreign) -> tuple[str, str]:
    """Return the same as two texts: ``priority``, which is before ``rs:md``, and the rest."""
    before = tuple(fragment for fragment in foreign if fragment.startswith(_PRIORITY))
    after = tuple(fragment for fragment in foreign if not fragment.startswith(_PRIORITY))
    return foreign_text(before), foreign_text(after)


@lru_cache(maxsize=256)  # many entries have the same
def _check_fragment(fragment: str) -> None:
    look = _FragmentOutline()
    # Inside the default namespace that it will meet, and with no prefix bound around it.
    before, after = _AROUND
    driver = expat.XmlDriver(
        lambda fault: ValueError(f"no XML that stands alone ({fault.detail}): {fragment[:64]!r}")
    )
    driver.parser.StartElementHandler = look.start
    driver.parser.EndElementHandler = look.end
    driver.parser.CharacterDataHandler = look.text
    driver.read(before + fragment.encode() + after)
    if look.has_text or len(look.names) != 1:
        raise ValueError(f"not exactly one element: {fragment[:64]!r}")
    if look.names[0] in _OURS:
        raise ValueError(f"not an element of another community: {fragment[:64]!r}")


class _FragmentOutline:
    """The level directly around a fragment: names of elements, and whether there is text."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.has_text = False
        self._depth = 0

    def start(self, name: str, _attributes: object) -> None:
        if self._depth == 1:
            self.names.append(name)
        self._depth += 1

    def end(self, _name: str) -> None:
        self._depth -= 1

    def text(self, _text: str) -> None:
        self.has_text = self.has_text or self._depth == 1


TEXT_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
VALUE_ESCAPES: Final = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "\t": "&#9;",
        "\n": "&#10;",
        "\r": "&#13;",
    }
)


def text_element(namespace: str, local: str, text: str) -> str:
    start = f'<{local} xmlns="{namespace}"'
    return f"{start}>{text.translate(TEXT_ESCAPES)}</{local}>" if text else f"{start}/>"


class ForeignFragment:
    """One element, written as its parts arrive; ``is_over``: longer than its budget, dropped."""

    def __init__(self, budget: int) -> None:
        self.is_over = budget <= 0
        self._left = budget
        self._pieces: list[str] = []
        self._inside: list[tuple[str, str, dict[str, str]]] = []  # name, namespace, prefixes
        self._is_open = False  # whether the last start tag still lacks its end

    def start(self, name: str, attributes: list[str]) -> None:
        namespace, _, local = name.rpartition(expat.SEPARATOR)
        _, around, prefixes = self._inside[-1] if self._inside else ("", None, {})
        parts = [">" if self._is_open else "", "<", local]
        if namespace != around:
            parts.append(f' xmlns="{namespace.translate(VALUE_ESCAPES)}"')
        pairs = iter(attributes)
        for key, value in zip(pairs, pairs, strict=True):
            place, _, word = key.rpartition(expat.SEPARATOR)
            if place == expat.XML_NS:
                word = f"xml:{word}"
            elif place:
                if place not in prefixes:
                    prefixes = {**prefixes, place: f"n{len(prefixes) + 1}"}
                    parts.append(f' xmlns:{prefixes[place]}="{place.translate(VALUE_ESCAPES)}"')
                word = f"{prefixes[place]}:{word}"
            parts.append(f' {word}="{value.translate(VALUE_ESCAPES)}"')
        self._inside.append((local, namespace, prefixes))
        self._is_open = True
        self._add("".join(parts))

    def end(self) -> None:
        local = self._inside.pop()[0]
        self._add("/>" if self._is_open else f"</{local}>")
        self._is_open = False

    def text(self, text: str) -> None:
        self._add((">" if self._is_open else "") + text.translate(TEXT_ESCAPES))
        self._is_open = False

    def __str__(self) -> str:
        return "".join(self._pieces)

    def _add(self, piece: str) -> None:
        self._left -= len(piece)
        if self._left < 0:
            self.is_over = True
            self._pieces.clear()
        if not self.is_over:
            self._pieces.append(piece)


MAX_LINKS: Final = 1_000
"""Links of one entry or of one root: nothing real has as many."""

UNKNOWN_ENTRY: Final = "entry-unknown"
"""The code of an element among the entries that is none."""
_MOST_UNKNOWN: Final = 100
_TEXT_ELEMENTS: Final = frozenset(
    {expat.LOC, expat.LASTMOD, expat.CHANGEFREQ, expat.PRIORITY, *expat.DRAFT_ELEMENTS}
)
_WITH_ATTRIBUTES: Final = frozenset({expat.LASTMOD, expat.FIXITY})
"""Text elements whose attributes mean something in drafts."""
_HINTS: Final = frozenset({expat.LASTMOD, expat.CHANGEFREQ, expat.PRIORITY})
"""Optional parts of an entry: without them it can still be used."""
_REPEATED: Final = {
    expat.LOC: ("The entry has more than one loc", "G12"),
    expat.LASTMOD: ("The entry has more than one lastmod", "G14"),
    expat.MD: ("The entry has more than one rs:md", "G15"),
}
_CHILDREN: Final = "The text of the entry contains an element"


class EntryAssembler:
    """An assembler of elements and texts into the root as written, and into complete entries.

    ``depth`` counts open elements. Once it ``began`` an entry the header is complete. ``metadata``
    has names and values of the root's ``rs:md`` in turn, ``links`` those of each ``rs:ln``;
    ``kind`` and ``modified`` are those of a draft. ``items`` are complete entries that were not
    read yet.
    """

    def __init__(self, *, limits: expat.Limits, context: expat.ReadingContext) -> None:
        self.depth = 1
        self.began = False
        self.is_index = False
        self.kind = self.modified = ""
        self.metadata: list[str] | None = None
        self.links: list[list[str]] = []
        self.foreign: list[str] = []
        self.entry: RawEntry | None = None
        self.items: list[EntryColumns | RawEntry] = []
        self._limits = limits
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
        """Record an element among the entries that is none, and may be meant as one."""
        self._unknown += 1
        if self._unknown > _MOST_UNKNOWN:
            return
        entry = RawEntry(line, column)
        entry.mark_faulty(UNKNOWN_ENTRY, "An element among the entries is not an entry", "G03")
        self.items.append(entry)

    def start_entry(self, line: int, column: int, *, misplaced: bool = False) -> None:
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
        if mark == expat.LN:
            self._add_link(attributes, line, column)
        elif mark == expat.MD:
            if self.began or self.metadata is not None:
                where = "after the first entry" if self.began else "twice"
                self._context.set_place(line, column)
                self._context.refuse("xml-metadata", f"The root's rs:md comes {where}")
            self.metadata = attributes
        elif mark == expat.LOC:
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
        self.depth -= 1
        entry = self.entry
        if entry is None:
            return
        if self.depth == 1:
            if expat.LOC not in entry.texts:
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
        if self._length > expat.MAX_TOKEN:
            self._fail(expat.MAX_TOKEN, "characters in one text", entry.line, entry.column)

    def _start_in_entry(self, entry: RawEntry, mark: int, attributes: list[str]) -> None:
        self._leaf = mark
        self._pieces, self._length = [], 0
        if mark == expat.LN:
            entry.links.append(attributes)
            if len(entry.links) > MAX_LINKS:
                self._fail(MAX_LINKS, "links in one entry", entry.line, entry.column)
        elif mark == expat.MD and entry.metadata is None:
            entry.metadata = attributes
        elif mark == expat.MD or (mark in entry.texts and mark in _REPEATED):
            entry.mark_faulty("entry-invalid", *_REPEATED[mark])
        if attributes and mark in _WITH_ATTRIBUTES:
            entry.given.setdefault(mark, attributes)

    def _add_link(self, attributes: list[str], line: int, column: int) -> None:
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
            code = "uri-too-long" if leaf == expat.LOC else "entry-invalid"
            entry.mark_faulty(code, f"A text has more than {self._limits.text:,} characters", "G13")
        entry.texts.setdefault(leaf, "".join(self._pieces))

    def _enter_element(self, line: int, column: int) -> None:
        self.depth += 1
        if self.depth > self._limits.depth:
            self._fail(self._limits.depth, "levels of elements", line, column)

    def _fail(self, limit: int, what: str, line: int, column: int) -> None:
        raise expat.limit_error(limit, what, uri=self._context.uri, line=line, column=column)
