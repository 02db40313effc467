"""Rows as resources: each column is checked, and left out if it is null."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import compress
from typing import Final, TypeVar

from resourcesync.documents import ndjson
from resourcesync.errors import DocumentError
from resourcesync.model.digests import ALGORITHMS, Digest, parse_digests
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource, many_resources
from resourcesync_postgresql.layout import Column, TableLayout, Template, check_column
from resourcesync_postgresql.statements import ROW, quoted

_log = logging.getLogger(__name__)

_BYTEA: Final = 17
_MAX_TEXT: Final = 2_049
"""Characters that are read of a text: one more than the limit for a URI."""
_MAX_LINKS: Final = 65_536
_MAX_LENGTH: Final = (1 << 63) - 1
_FORMS: Final = {name: re.compile(f"[0-9a-f]{{{size}}}") for name, size in ALGORITHMS.items()}
_FIELDS: Final = {"type": "media_type", "encoding": "encoding", "changefreq": "changefreq"}

Row = Sequence[str | None]
_Value = TypeVar("_Value")


class RowDecoder:
    """The selected expressions of each row, and their conversion to resources.

    Attributes:
        expressions: The SQL expressions of a published row.
    """

    def __init__(self, layout: TableLayout, types: Mapping[str, int]) -> None:
        self._layout = layout
        self._types = types
        self._warned: set[str] = set()
        self._places: dict[str, int] = {}
        self.uri_at = [self._text(field) for field in layout.uri.fields]
        texts = [*layout.texts.values(), *(template for _, template in layout.links)]
        self._texts_at = {text: [self._text(name) for name in text.fields] for text in texts}
        columns = layout.columns
        self._lastmod = self._select("lastmod", "{}::timestamptz")
        self._length = self._select("length", "{}::bigint")
        self._hash = self._text(columns["hash"]) if "hash" in columns else None
        self._links = self._select("links", f"left({{}}::text, {_MAX_LINKS + 1})")
        self._digests = {name: self._digest(text) for name, text in layout.digests.items()}
        self.expressions = tuple(self._places)

    def resources(self, rows: Sequence[Row]) -> list[Resource]:
        """Return the resources of some rows, in their order."""
        count, columns = len(rows), list(zip(*rows, strict=True))
        found: dict[str, Iterable[object]] = {
            "uri": self.uris(count, [columns[at] for at in self.uri_at])
        }
        if self._lastmod is not None:
            found["lastmod"] = self._decode_column("lastmod", columns[self._lastmod], moment_of)
        if self._length is not None:
            found["length"] = self._decode_column("length", columns[self._length], _length)
        if self._digests or self._hash is not None:
            found["digests"] = self._all_digests(count, columns)
        for name, template in self._layout.texts.items():
            found[_FIELDS[name]] = self._expanded(template, count, columns)
        if self._layout.links or self._links is not None:
            found["links"] = self._all_links(count, columns)
        return many_resources(count, found)

    def uris(self, count: int, columns: Sequence[Column]) -> Iterator[str]:
        """Return the URIs of some rows, from the columns that they are made of."""
        return self._layout.uri.expand(count, columns)

    def _add_expression(self, column: str, expression: str) -> int:
        check_column(column, self._types)
        asked = expression.format(f"{ROW}.{quoted(column)}")
        return self._places.setdefault(asked, len(self._places))

    def _select(self, what: str, expression: str) -> int | None:
        column = self._layout.columns.get(what)
        return None if column is None else self._add_expression(column, expression)

    def _text(self, column: str) -> int:
        return self._add_expression(column, f"left({{}}::text, {_MAX_TEXT})")

    def _digest(self, column: str) -> int:
        """Add the expression of a bare digest in hex, from bytes, a uuid, or a text."""
        is_bytes = self._types.get(column) == _BYTEA
        hexed = "encode({}, 'hex')" if is_bytes else "replace({}::text, '-', '')"
        return self._add_expression(column, f"left({hexed}, {_MAX_TEXT})")

    def _expanded(self, template: Template, count: int, columns: Sequence[Column]) -> Iterator[str]:
        return template.expand(count, [columns[at] for at in self._texts_at[template]])

    def _decode_column(
        self, what: str, column: Column, read: Callable[[str], _Value | None]
    ) -> Iterator[_Value | None]:
        for value in column:
            found = None if value is None else read(value)
            if found is None and value is not None:
                self._warn_once(what, value)
            yield found

    def _all_digests(self, count: int, columns: Sequence[Column]) -> Iterable[tuple[Digest, ...]]:
        told = [self._bare(name, columns[at]) for name, at in self._digests.items()]
        bare: Iterable[tuple[Digest | None, ...]] = zip(*told, strict=True)
        found = [tuple(filter(None, item)) for item in bare] if told else [()] * count
        if self._hash is None:
            return found
        texts = columns[self._hash]
        return (
            (*item, *self._usable(name or "", item))
            for name, item in zip(texts, found, strict=True)
        )

    def _bare(self, name: str, column: Column) -> Iterator[Digest | None]:
        fits = _FORMS[name].fullmatch
        for value in column:
            if value is None or fits(value):
                yield None if value is None else Digest(name, value)
            else:
                digest = Digest(name, value.strip().lower())
                if not digest.is_usable:
                    self._warn_once(name, value)
                yield digest if digest.is_usable else None

    def _usable(self, text: str, known: tuple[Digest, ...]) -> Iterator[Digest]:
        names = {digest.algorithm for digest in known}
        for digest in parse_digests(text):
            if not digest.is_usable:
                self._warn_once("hash", text)
            elif digest.algorithm not in names:
                yield digest

    def _all_links(self, count: int, columns: Sequence[Column]) -> Iterator[tuple[Link, ...]]:
        ruled = [
            [Link(rel=rel, href=href) for href in self._expanded(template, count, columns)]
            for rel, template in self._layout.links
        ]
        by_rule = zip(*ruled, strict=True) if ruled else ((),) * count
        if self._links is not None:
            told = self._decode_column("links", columns[self._links], _links)
        else:
            told = iter((None,) * count)
        for links, more in zip(by_rule, told, strict=True):
            yield (*compress(links, (link.href for link in links)), *(more or ()))

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


def _links(text: str) -> tuple[Link, ...] | None:
    try:
        entry = ndjson.read_line(f'{{"uri":"urn:x","links":{text}}}'.encode(), name="links")
    except DocumentError:
        return None
    return entry.links if isinstance(entry, Resource) else None
