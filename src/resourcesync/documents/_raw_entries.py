"""Entries as written: one by one with all their parts, or many as columns of strings.

A `RawEntry` is what the XML parser found. `EntryColumns` are what the fast path extracted; they
can always become raw entries, so every rule for entries exists once, for raw entries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from resourcesync.documents._expat import CHANGEFREQ, LASTMOD, LOC, PRIORITY

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

    ``None`` means absent. Links and foreign attributes are left out.

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
    LOC: "uris",
    LASTMOD: "lastmods",
    CHANGEFREQ: "changefreqs",
    PRIORITY: "priorities",
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
        """Yield the entries as rows."""
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
        """Return those of these columns that are there."""
        columns = [(key, getattr(self, name)) for key, name in fields.items()]
        return [(key, column) for key, column in columns if column is not None]
