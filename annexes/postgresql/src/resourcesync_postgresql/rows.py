"""Rows as resources: each value is checked, and left out if it is null."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from resourcesync.documents import ndjson
from resourcesync.errors import ConfigurationError, DocumentError
from resourcesync.model.digests import Digest, parse_digests
from resourcesync.model.entries import Link, Resource, many_resources
from resourcesync_postgresql.layout import Column, TableLayout
from resourcesync_postgresql.statements import ROW, quoted

_log = logging.getLogger(__name__)

_MAX_TEXT: Final = 2_049
"""Characters that are read of a text: one more than the limit for a URI."""
_MAX_LINKS: Final = 65_536
_MAX_LENGTH: Final = (1 << 63) - 1
_TEXT: Final = f"left({{}}::text, {_MAX_TEXT})"
_FIELDS: Final = {"hash": "digests", "type": "media_type"}

Row = Sequence[str | None]


class RowDecoder:
    """The selected expressions of each row, and their conversion to resources."""

    def __init__(self, layout: TableLayout, columns: Sequence[str]) -> None:
        self._layout = layout
        self._warned: set[str] = set()
        places: dict[str, int] = {}

        def select(column: str, expression: str) -> int:
            asked = expression.format(f"{ROW}.{quoted(column)}")
            return places.setdefault(asked, len(places))

        for name in layout.key:
            if name not in columns:
                raise ConfigurationError(
                    f"there is no column {name!r:.200} in what is read",
                    evidence=(("columns", ", ".join(columns)[:500]),),
                    hint="names are written as PostgreSQL shows them, without quotes",
                )
        self._uri_at = [select(name, _TEXT) for name in layout.uri.fields]
        known = [name for name in _COLUMNS if name in columns]
        self._at = {name: select(name, _COLUMNS[name][0]) for name in known}
        self.expressions = tuple(places)

    def resources(self, rows: Sequence[Row]) -> list[Resource]:
        """Return the resources of some rows, in their order."""
        columns = list(zip(*rows, strict=True))
        found: dict[str, Iterable[object]] = {
            "uri": self._layout.uri.expand([columns[at] for at in self._uri_at])
        }
        for name, at in self._at.items():
            found[_FIELDS.get(name, name)] = self._column(name, columns[at])
        return many_resources(len(rows), found)

    def _column(self, name: str, column: Column) -> Iterator[object]:
        _, read, absent = _COLUMNS[name]
        for value in column:
            found = None if value is None else read(value)
            if found is None and value:
                self._warn_once(name, value)
            yield absent if found is None else found

    def _warn_once(self, what: str, value: str) -> None:
        """Warn once for each kind of value that some are left out."""
        if what not in self._warned:
            self._warned.add(what)
            _log.warning("PostgreSQL: %r is no %s and is left out; more may be", value[:100], what)


def moment_of(text: str) -> datetime | None:
    """Return a time; ``None`` for infinity and for years outside of Python's range."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _length(text: str) -> int | None:
    value = int(text)
    return value if 0 <= value <= _MAX_LENGTH else None


def _digests(text: str) -> tuple[Digest, ...] | None:
    found = tuple(digest for digest in parse_digests(text) if digest.is_usable)
    return found or None


def _links(text: str) -> tuple[Link, ...] | None:
    try:
        entry = ndjson.read_line(f'{{"uri":"urn:x","links":{text}}}'.encode(), name="links")
    except DocumentError:
        return None
    return entry.links if isinstance(entry, Resource) else None


_COLUMNS: Final[dict[str, tuple[str, Callable[[str], object], object]]] = {
    "lastmod": ("{}::timestamptz", moment_of, None),
    "length": ("{}::bigint", _length, None),
    "hash": (_TEXT, _digests, ()),
    "type": (_TEXT, str, ""),
    "encoding": (_TEXT, str, ""),
    "changefreq": (_TEXT, str, ""),
    "links": (f"left({{}}::text, {_MAX_LINKS + 1})", _links, ()),
}
"""The columns that a query may have besides those of the URI: expression, reader, default."""
