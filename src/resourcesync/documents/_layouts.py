"""The fast path for tokens: entries written exactly like one before them are cut by position.

Programs write lists, so nearly every entry has the same elements, attributes and blanks as its
neighbour. A `Layout` records where in the tokens of an entry the values are and what all other
tokens are. A whole run of entries is then cut into columns by strided slices, with one comparison
for everything that is no value: C code, for many entries at a time. It is exact, not a guess:
element names, attribute names and counts must all be equal, and a value is what stands between
them. Any entry that differs takes the general path (`_assembler`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

from resourcesync.documents._expat import (
    CHANGEFREQ,
    LASTMOD,
    LN,
    LOC,
    MD,
    PRIORITY,
    SEPARATOR,
    Token,
)


class TextRow(NamedTuple):
    """One entry of a list as strings: planning of millions reads these instead of values.

    ``None`` means absent. Links and foreign attributes are left out.

    Attributes:
        uri: ``loc``, surrounding blanks removed.
        lastmod_text: ``lastmod`` as written; not yet checked, as all texts here.
        hash_text: ``hash`` as written.
        length_text: ``length`` as written.
        media_type: ``type`` as written.
        encoding: ``encoding`` as written.
        changefreq: ``changefreq`` as written.
        change: ``change``; in a Change List always a term of the specification.
        datetime_text: ``datetime`` as written.
        line: 1-based line of the entry.
        column: 1-based column of the entry.
        path: ``path`` as written; in manifests only.
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


# The constructor of a named tuple is Python code; this one is C, and the run has all the fields.
_make_row: Final[Callable[[tuple[Any, ...]], TextRow]] = partial(tuple.__new__, TextRow)


class EntryColumns(NamedTuple):
    """Entries of one layout, as columns; the fields are those of `Row`, and the priority.

    A column is ``None`` when the entries lack it.
    """

    uris: list[str]
    lastmods: list[str] | None
    hashes: list[str] | None
    lengths: list[str] | None
    media_types: list[str] | None
    encodings: list[str] | None
    changefreqs: list[str] | None
    changes: list[str] | None
    datetimes: list[str] | None
    lines: Sequence[int]
    columns: Sequence[int]
    paths: list[str] | None
    priorities: list[str] | None

    def rows(self) -> Iterator[TextRow]:
        """Yield the entries one by one."""
        return map(
            _make_row,
            zip(
                *(repeat(None) if column is None else column for column in self[:-1]), strict=False
            ),
        )


ATTRIBUTES: Final = {
    "hash": "hash_text",
    "length": "length_text",
    "type": "media_type",
    "encoding": "encoding",
    "change": "change",
    "datetime": "datetime_text",
    "path": "path",
}
"""Attributes of ``rs:md`` that have a place in a `Row`."""

_TEXTS: Final = {
    LOC: "uri",
    LASTMOD: "lastmod_text",
    CHANGEFREQ: "changefreq",
    PRIORITY: "priority",
}
_FIELDS: Final = (*TextRow._fields, "priority")


class EntryLayout(NamedTuple):
    """The form of one entry as written.

    Attributes:
        size: Tokens of the entry, with the blanks after it.
        shape: These tokens, with ``None`` in place of the values.
        free: Positions of the values.
        places: Position of each field of a `Run`; -1 for one that is absent.
    """

    size: int
    shape: list[Token]
    free: tuple[int, ...]
    places: tuple[int, ...]

    def cut(self, tokens: list[Token], at: int, count: int) -> EntryColumns | None:
        """Return ``count`` entries from ``at`` on, or ``None`` when one of them differs."""
        size = self.size
        entries = tokens[at : at + count * size]
        columns: list[Any] = [None if at < 0 else entries[at::size] for at in self.places]
        nothing = [None] * count
        for place in self.free:
            entries[place::size] = nothing
        return EntryColumns._make(columns) if entries == self.shape * count else None


def learn_layout(entry: list[Token], attributes: frozenset[str]) -> EntryLayout | None:
    """Return the layout of a sound entry, or ``None`` if it has more than a `TextRow`.

    Args:
        entry: All tokens of the entry, from ``ENTRY`` on.
        attributes: The attributes of ``rs:md`` that may be in it.
    """
    places = {"line": 1, "column": 2}
    at = 3
    while at < len(entry):
        token = entry[at]
        at += 1
        if token == LN:
            return None
        if token == MD:
            names, after = _names(entry, at)
            if not attributes.issuperset(names):
                return None
            for index, name in enumerate(names):
                places[ATTRIBUTES[name]] = at + 2 + 2 * index
            at = after
        elif isinstance(token, int):
            field = _TEXTS.get(token)
            if field is None or field in places or not _is_plain(entry, at):
                return None  # an element of a draft, one that is there twice or in several pieces
            places[field] = at
    free = tuple(places.values())
    shape = [None if at in free else token for at, token in enumerate(entry)]
    return EntryLayout(len(entry), shape, free, tuple(places.get(name, -1) for name in _FIELDS))


def _is_plain(entry: list[Token], at: int) -> bool:
    """True if an element that starts before ``at`` has one piece of text."""
    return not is_end(entry[at]) and is_end(entry[at + 1])


def _names(entry: list[Token], at: int) -> tuple[list[str], int]:
    """Return the names of the attributes counted at ``at``, and where they end."""
    count = entry[at]
    assert isinstance(count, int)
    after = at + 1 + count
    return [name for name in entry[at + 1 : after : 2] if isinstance(name, str)], after


def is_end(token: Token) -> bool:
    """True if the token ends an element."""
    return isinstance(token, str) and SEPARATOR in token


def is_text(token: Token) -> bool:
    """True if the token is text."""
    return isinstance(token, str) and SEPARATOR not in token
