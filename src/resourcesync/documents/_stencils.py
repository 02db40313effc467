"""The fastest road: entries that are, letter for letter, like one that expat has read.

Programs write lists, so most entries differ from their neighbour in their values alone. A
`Stencil` is learnt from an entry that the general road (`_scanning`, `_assembling`) has read and
found good: everything of it but its values, as it was written. What fits it letter for letter, with
values of plain ASCII characters that need no escape, is well-formed XML and means the same, with
the values exchanged: there is nothing left to ask expat. Everything else goes to expat.
"""

import re
from itertools import accumulate
from operator import add
from typing import Any, Final, NamedTuple

from resourcesync.documents._assembling import RawEntry
from resourcesync.documents._layouts import ATTRIBUTES, EntryColumns, TextRow
from resourcesync.documents._tokens import CHANGEFREQ, LASTMOD, LOC, PRIORITY

# Printable ASCII without " & < >, which alone could end a value or mean something else. Possessive,
# so that no value is looked at twice.
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
    """How one entry was written.

    Attributes:
        pattern: Fits an entry written in the same way, with the blanks after it; one group for
            each value.
        groups: How many values it has.
        places: Which group holds each field of a `Run`, counted from 0; -1 for one that is absent.
        size: Characters of everything but the values.
        lines: Line feeds in it.
        column: Where an entry that follows it starts, 1-based; without line feeds nobody knows.
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
            values: For each group, those of all entries: one at least.
            line: Where the first of them starts, 1-based.
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
    """Return the stencil of an entry, or ``None`` when it says more than a `Row` holds.

    Args:
        sample: The entry as it was written, with all that stands before the next one.
        entry: What the general road found in it.
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
    """An entry taken apart as it was written: the names of its values, and what stands between.

    Attributes:
        literals: What stands before each value, and after the last.
        names: Local name of the element, or name of the attribute, of each value.
        values: The values.
    """

    def __init__(self, known: frozenset[str]) -> None:
        self._known = known
        self.literals = [""]
        self.names: list[str] = []
        self.values: list[str] = []

    def parse(self, sample: str) -> bool:
        """Take an entry that is well-formed; return whether it is as plain as it must be."""
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
    """Whether the general road found the very same values, under the same names, and no more."""
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
