"""The fastest path: entries that equal, letter for letter, one that expat has read, but for values.

Programs write lists, so most entries differ from their neighbour in their values alone. A
`Stencil` is learnt from an entry that the general path (`_scanner`, `_assembler`) has read and
found good: everything but its values, as it was written. An entry that fits it, with values of
plain ASCII characters that need no escape, is well-formed XML and means the same with its own
values, so expat need not read it.

expat always reads the first block of a document and every entry that fits no stencil. In place of
the entries that fit it reads as many blanks and line feeds, so all its positions are right. When
few entries fit, the fast path switches itself off.
"""

import codecs
import re
from collections.abc import Iterator
from itertools import accumulate
from operator import add
from typing import Any, Final, NamedTuple

from resourcesync.documents._assembler import EntryAssembler, RawEntry
from resourcesync.documents._context import Limits
from resourcesync.documents._entries import raw_entry_of
from resourcesync.documents._expat import CHANGEFREQ, LASTMOD, LOC, PRIORITY
from resourcesync.documents._layouts import ATTRIBUTES, EntryColumns, TextRow
from resourcesync.documents._scanner import DocumentScanner

# Printable ASCII without " & < >, which alone could end a value or mean something else. Possessive,
# so that no value is read twice.
_PLAIN: Final = "[ !#-%'-;=?-~]"
_TEXT: Final = f"({_PLAIN}++)"
_VALUE: Final = f"({_PLAIN}*+)"

_LONGEST: Final = 4_096
"""Characters of an entry that is worth a stencil: a pattern is compiled from it."""

OPENING: Final = re.compile(r"<(?:[A-Za-z_][A-Za-z0-9_.-]*:)?url>")
_TAG: Final = re.compile(r"<(/?)([A-Za-z_][A-Za-z0-9_.:-]*)([^<>]*?)(/?)>([^<>]*)")
_ATTRIBUTE: Final = re.compile(r'([ \n\t]+([A-Za-z]+)[ \n\t]*=[ \n\t]*")([^"]*)"')
_TEXTS: Final = {"loc": LOC, "lastmod": LASTMOD, "changefreq": CHANGEFREQ, "priority": PRIORITY}
_FIELDS: Final = (*TextRow._fields, "priority")
_FIELD_OF: Final = {
    **ATTRIBUTES,
    "loc": "uri",
    "lastmod": "lastmod_text",
    "changefreq": "changefreq",
    "priority": "priority",
}


class Stencil(NamedTuple):
    """The form of one entry as written.

    Attributes:
        pattern: Fits an entry written in the same way, with the blanks after it; one group for
            each value.
        groups: Number of its values.
        places: Group of each field of a `Run`, counted from 0; -1 for one that is absent.
        size: Characters of everything but the values.
        lines: Line feeds in it.
        column: Column of the entry that follows, 1-based; unknown without line feeds.
    """

    pattern: re.Pattern[str]
    groups: int
    places: tuple[int, ...]
    size: int
    lines: int
    column: int

    def run(self, values: list[list[str]], line: int, column: int) -> tuple[EntryColumns, int, int]:
        """Return entries with these values, and line and column of what follows them.

        Args:
            values: The values of all entries for each group; at least one.
            line: Line of the first of them, 1-based.
            column: As ``line``.
        """
        count = len(values[0])
        columns: list[Any] = [None if place < 0 else values[place] for place in self.places]
        if self.lines:
            end = line + self.lines * count
            places = [column] + [self.column] * (count - 1)
            columns[_LINE], columns[_COLUMN] = range(line, end, self.lines), places
            return EntryColumns._make(columns), end, self.column
        lengths = [self.size] * count
        for texts in values:
            lengths = list(map(add, lengths, map(len, texts)))
        *places, after = accumulate(lengths, initial=column)
        columns[_LINE], columns[_COLUMN] = [line] * count, places
        return EntryColumns._make(columns), line, after


_LINE: Final = _FIELDS.index("line")
_COLUMN: Final = _FIELDS.index("column")


def learn_stencil(sample: str, entry: RawEntry, known: frozenset[str]) -> Stencil | None:
    """Return the stencil of an entry, or ``None`` if it has more than a `TextRow`.

    Args:
        sample: The entry as written, with all text before the next one.
        entry: Its value as read on the general path.
        known: The attributes of ``rs:md`` that may be in it.
    """
    written = _EntryParts(known)
    if len(sample) > _LONGEST or not written.parse(sample) or not _has_equal_values(written, entry):
        return None
    *before, last = written.literals
    lines = sum(literal.count("\n") for literal in written.literals)
    if lines and "\n" not in last:
        return None  # where the next one starts would depend on the values
    kinds = [_TEXT if field in _TEXTS else _VALUE for field in written.names]
    expression = "".join(
        re.escape(literal) + kind for literal, kind in zip(before, kinds, strict=True)
    )
    fields = [_FIELD_OF[name] for name in written.names]
    return Stencil(
        pattern=re.compile(expression + re.escape(last)),
        groups=len(fields),
        places=tuple(fields.index(name) if name in fields else -1 for name in _FIELDS),
        size=sum(map(len, written.literals)),
        lines=lines,
        column=len(last) - last.rfind("\n"),
    )


class _EntryParts:
    """The parts of an entry as written: its values, their names, and the text between.

    Attributes:
        literals: Text before each value, and after the last.
        names: Local name of the element, or name of the attribute, of each value.
        values: The values.
    """

    def __init__(self, known: frozenset[str]) -> None:
        self._known = known
        self.literals = [""]
        self.names: list[str] = []
        self.values: list[str] = []

    def parse(self, sample: str) -> bool:
        """Parse a well-formed entry; return whether it is plain enough."""
        at = 0
        while tag := _TAG.match(sample, at):
            if not self._parse_tag(*tag.groups()):
                return False
            at = tag.end()
        return at == len(sample)

    def _parse_tag(self, slash: str, name: str, attributes: str, end: str, text: str) -> bool:
        local = name.rpartition(":")[2]
        self.literals[-1] += f"<{slash}{name}"
        if local == "md" and not slash:
            if not self._parse_attributes(attributes):
                return False
        elif attributes:
            return False
        self.literals[-1] += f"{end}>"
        if local in _TEXTS and not slash and not end:
            self._add(local, text)
            return True
        self.literals[-1] += text
        return not text.strip(" \n\t") and (local in ("md", "url") or bool(slash))

    def _parse_attributes(self, attributes: str) -> bool:
        at = 0
        while attribute := _ATTRIBUTE.match(attributes, at):
            before, name, value = attribute.groups()
            if name not in self._known:
                return False
            self.literals[-1] += before
            self._add(name, value)
            self.literals[-1] += '"'
            at = attribute.end()
        self.literals[-1] += attributes[at:]
        return at > 0 and not attributes[at:].strip(" \n\t")

    def _add(self, name: str, value: str) -> None:
        self.names.append(name)
        self.values.append(value)
        self.literals.append("")


def _has_equal_values(written: _EntryParts, entry: RawEntry) -> bool:
    """True if the general path found the very same values, under the same names, and no more."""
    pairs = list(zip(written.names, written.values, strict=True))
    texts = [(_TEXTS[name], value) for name, value in pairs if name in _TEXTS]
    attributes = [pair for pair in pairs if pair[0] in ATTRIBUTES]
    found = iter(entry.metadata or ())
    return (
        entry.fault is None
        and not (entry.links or entry.given or entry.foreign)
        and len(texts) == len(entry.texts)
        and dict(texts) == entry.texts
        and sorted(attributes) == sorted(zip(found, found, strict=True))
    )


_TRIES: Final = 4
"""Stencils that are learnt from one document."""
_WORTH: Final = 16
"""Entries that must fit for each place that does not."""
_MAX_BUFFERED: Final = 16_384
"""Characters that wait for the rest of their entry."""
_FILLING: Final = 65_536


class FastPathReader:
    """A reader that feeds entries that fit to an assembler, and all else to a scanner.

    Args:
        scanner: A scanner that has read the header, and is not past the end.
        assembler: Receives the entries.
        limits: Bounds of the document.
    """

    def __init__(self, scanner: DocumentScanner, assembler: EntryAssembler, limits: Limits) -> None:
        self._scanner = scanner
        self._assembler = assembler
        self._longest = min(limits.uri, limits.text)
        self._stencil: Stencil | None = None
        self._tries = _TRIES
        self._is_off = assembler.attributes is None  # then no entry fits into columns
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._buffered = (
            ""  # what may be the start of an entry, and comes right after what was taken
        )
        # End of the extracted entries; ``None`` if the scanner has reached it.
        self._reached: tuple[int, int] | None = None

    def feed(self, block: bytes) -> None:
        """Feed the next bytes.

        Raises:
            DocumentError: They cannot be used.
        """
        if self._is_off:
            self._feed_scanner(self._rest() + block)
            return
        cut, _ = self._decoder.getstate()
        held, self._buffered = self._buffered, ""
        try:
            text = held + self._decoder.decode(block)
        except UnicodeDecodeError:  # expat reports the fault
            self._is_off = True
            self._decoder.reset()
            self._feed_scanner(held.encode() + cut + block)
            return
        while text:
            text = self._process(text)

    def finish(self) -> None:
        """Let the scanner read what waits: nothing more comes.

        Raises:
            DocumentError: It cannot be used.
        """
        self._catch_up()
        self._feed_scanner(self._buffered.encode() + self._rest())
        self._buffered = ""

    def _rest(self) -> bytes:
        """Return the start of a character whose end has not come, and forget it."""
        cut, _ = self._decoder.getstate()
        self._decoder.reset()
        return cut

    def _process(self, text: str) -> str:
        """Process a text to its end, or until another stencil is needed; return the rest."""
        start = OPENING.search(text)
        if start is None:
            return self._buffer(text)
        self._feed_scanner(text[: start.start()].encode())
        text = text[start.start() :]
        if self._stencil is None and not self._tries:
            self._is_off = True
        if self._is_off or (self._reached is None and not self._scanner.is_between_entries):
            self._feed_scanner(
                text.encode()
            )  # when it is inside of something, the next block may do
            return ""
        if self._stencil is None:
            return self._learn(text, start[0])
        return self._extract(text, self._stencil)

    def _learn(self, text: str, start: str) -> str:
        """Let the scanner read one entry, and see how it is written; return what follows it."""
        after = text.find(start, len(start))
        if after < 0:
            return self._buffer(text)
        self._tries -= 1
        before = len(self._assembler.items)
        self._feed_scanner(text[:after].encode())
        found = self._assembler.items[before:]
        if len(found) == 1:
            item = found[0]
            if isinstance(item, EntryColumns):
                first = None if item.priorities is None else item.priorities[0]
                item = raw_entry_of(next(item.rows()), first)
            assert self._assembler.attributes is not None
            self._stencil = learn_stencil(text[:after], item, self._assembler.attributes)
        return text[after:]

    def _extract(self, text: str, stencil: Stencil) -> str:
        """Extract the entries that fit, and pass on the text between them."""
        pieces = stencil.pattern.split(text)
        width = stencil.groups + 1
        *gaps, rest = pieces[::width]
        values = [pieces[place::width] for place in range(1, width)]
        strays = [index for index, gap in enumerate(gaps) if gap]
        if len(strays) * _WORTH > len(gaps) or (not gaps and len(rest) > _MAX_BUFFERED):
            self._stencil = None  # the next entries are written in another way
            if not gaps:
                return rest
        if any(max(map(len, texts), default=0) > self._longest for texts in values):
            self._feed_scanner(text.encode())
            return ""
        first = at = 0
        for index in (*strays, len(gaps)):
            at += self._append_entries(stencil, [texts[first:index] for texts in values])
            first = index
            if index < len(gaps):
                self._feed_scanner(gaps[index].encode())
                at += len(gaps[index])
                if not self._scanner.is_between_entries:
                    return text[at:]
        return self._buffer(rest)

    def _append_entries(self, stencil: Stencil, values: list[list[str]]) -> int:
        """Extract entries; return the number of their characters."""
        if not values[0]:
            return 0
        line, column = self._reached or self._scanner.place()
        run, *reached = stencil.run(values, line, column)
        self._assembler.items.append(run)
        self._reached = reached[0], reached[1]
        return stencil.size * len(values[0]) + sum(sum(map(len, texts)) for texts in values)

    def _buffer(self, text: str) -> str:
        if len(text) > _MAX_BUFFERED:
            self._feed_scanner(text.encode())
        else:
            self._buffered = text
        return ""

    def _feed_scanner(self, data: bytes) -> None:
        """Let the scanner read."""
        if data:
            self._catch_up()
            self._scanner.feed(data)

    def _catch_up(self) -> None:
        """Advance the scanner to the end of the extracted entries."""
        if self._reached is not None:
            for filling in _padding(self._scanner.place(), self._reached):
                self._scanner.feed(filling)
            self._reached = None


def _padding(here: tuple[int, int], there: tuple[int, int]) -> Iterator[bytes]:
    """Yield the blanks and line feeds from one place to a later one."""
    lines, columns = there[0] - here[0], there[1] - here[1]
    if lines:
        columns = there[1] - 1
    for mark, count in ((b"\n", lines), (b" ", columns)):
        for done in range(0, count, _FILLING):
            yield mark * min(_FILLING, count - done)
