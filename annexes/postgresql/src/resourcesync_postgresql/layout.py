"""The mapping of a table or query to resources: the options of the account.

A ``Template`` is a text with columns in braces: it makes a URI from the values of a row.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final, Self
from urllib.parse import quote

import msgspec

from resourcesync.errors import ConfigurationError
from resourcesync.model.digests import ALGORITHMS

_FIELD: Final = re.compile(r"\{(\+?)([^{}]+)\}")
_ANYTHING: Final = ""
_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")

Column = Sequence[str | None]
"""The values of one column, one for each row; ``None`` for NULL."""


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A text with placeholders for columns.

    Attributes:
        literals: The texts before, between and after the values: one more than there are fields.
        fields: The columns, in the order of the text.
        reserved: For each field, the characters that stay unescaped; ``None`` for no escaping.
    """

    literals: tuple[str, ...]
    fields: tuple[str, ...] = ()
    reserved: tuple[str | None, ...] = ()

    @classmethod
    def column(cls, name: str) -> Self:
        """Return the template of one column without escaping."""
        return cls(literals=("", ""), fields=(name,), reserved=(None,))

    @classmethod
    def constant(cls, text: str) -> Self:
        """Return the template of a constant text."""
        return cls(literals=(text,))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the template of a text with ``{column}`` and ``{+column}`` (RFC 6570, level 2).

        Values are percent-encoded (RFC 3986); ``{+column}`` leaves reserved characters and existing
        percent-encoding as they are, as a path needs it.
        """
        literals, fields, reserved, end = [], [], [], 0
        for field in _FIELD.finditer(text):
            literals.append(text[end : field.start()])
            fields.append(field[2])
            reserved.append(_RESERVED if field[1] else _ANYTHING)
            end = field.end()
        literals.append(text[end:])
        if any("{" in literal or "}" in literal for literal in literals):
            raise ConfigurationError(
                f"{text[:200]!r}: a brace has no partner", hint="write https://HOST/{COLUMN}"
            )
        return cls(literals=tuple(literals), fields=tuple(fields), reserved=tuple(reserved))

    def prefixed(self, base: str) -> "Template":
        """Return the same with a text before it."""
        first, *rest = self.literals
        return Template(literals=(base + first, *rest), fields=self.fields, reserved=self.reserved)

    def expand(self, count: int, columns: Sequence[Column]) -> Iterator[str]:
        """Yield the text of each row; empty where a value is NULL."""
        if not self.fields:
            return repeat(self.literals[0], count)
        encoded = [
            column if safe is None else [_encoded(name, safe) for name in column]
            for column, safe in zip(columns, self.reserved, strict=True)
        ]
        first, *rest = self.literals
        if len(encoded) == 1:
            last = rest[0]
            return ("" if name is None else f"{first}{name}{last}" for name in encoded[0])
        return (_joined(first, rest, values) for values in zip(*encoded, strict=True))


def _joined(first: str, rest: list[str], values: tuple[str | None, ...]) -> str:
    parts = [first]
    for value, literal in zip(values, rest, strict=True):
        if value is None:
            return ""
        parts += (value, literal)
    return "".join(parts)


def _encoded(value: str | None, safe: str) -> str | None:
    if value is None or (value.isascii() and value.isalnum()):
        return value
    if not safe:
        return quote(value, safe="")
    return _LONE_PERCENT.sub("%25", quote(value, safe=f"{safe}%"))


COLUMNS: Final = ("lastmod", "length", "hash", "links")
"""Fields of a resource that a column provides, besides digests and texts."""
TEXTS: Final = ("type", "encoding", "changefreq")
"""Fields that a column or a constant text provides."""
_LINK: Final = "link."
_OPTIONS: Final = ("layout", "table", "query", "log", "joins", "columns", "notify", "reader")
_CONNECTION: Final = ("password", "timeout")
KNOWN: Final = frozenset(
    {"uri", *COLUMNS, *TEXTS, *ALGORITHMS, *_OPTIONS, *_CONNECTION}
)  # fmt: skip
_CATALOGUE: Final = {
    "table": "resourcesync.resource",
    "uri": "uri",
    "lastmod": "lastmod",
    "length": "length",
    "hash": "hash",
    "type": "media_type",
    "links": "links",
}
_JOIN: Final = re.compile(r"\s*([^(),]+?)\s*\(([^()]+)\)\s*(?:,|$)")
_MAX_NAME: Final = 48
_MAX_TIMEOUT: Final = 86_400
_HOUR: Final = 3_600

TableName = tuple[str, ...]
"""The name of a table, with or without its schema."""


class TableLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The mapping of a table or query to resources.

    Attributes:
        table: The table; with ``query``, the one whose changes are followed. May be empty with a
            query.
        query: The query to read instead of the table.
        uri: The URI of a row; its columns are the key of logged changes.
        columns: Columns by field: ``COLUMNS``.
        texts: By field, ``TEXTS``: a column, or a text for all rows.
        digests: Columns by the algorithm of the bare digest in them.
        links: Relation types, and the target of each.
        log: The table of the change log; empty if there can be none.
        joins: Other tables whose rows are part of the query, with the columns that are the key.
        compared: The columns of ``table`` whose update is a change; empty for all of them.
        is_catalogue: The table is a catalogue of this package.
        notifies: A change sends a notification.
        reader: The role that reads; empty if not named.
        timeout: Seconds after which one statement is cancelled.
    """

    table: TableName = ()
    query: str = ""
    uri: Template
    columns: Mapping[str, str]
    texts: Mapping[str, Template]
    digests: Mapping[str, str]
    links: tuple[tuple[str, Template], ...] = ()
    log: TableName = ()
    joins: tuple[tuple[TableName, tuple[str, ...]], ...] = ()
    compared: tuple[str, ...] = ()
    is_catalogue: bool = False
    notifies: bool = True
    reader: str = ""
    timeout: int = _HOUR

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that the URI is made of, each once."""
        return tuple(dict.fromkeys(self.uri.fields))

    @property
    def watched(self) -> tuple[TableName, ...]:
        """The tables whose triggers write the log."""
        return (self.table, *(name for name, _ in self.joins)) if self.table else ()


def parse_layout(values: Mapping[str, str], base_uri: str) -> TableLayout:
    """Return the layout of the options of an account."""
    given = {**_defaults(values), **values}
    table, query = _read_from(given)
    uri = _uri(given.get("uri", ""), base_uri)
    columns = {name: given[name] for name in COLUMNS if given.get(name)}
    texts = {name: _text(given[name], "/") for name in TEXTS if given.get(name)}
    digests = {name: given[name] for name in ALGORITHMS if given.get(name)}
    links = tuple(
        (key.removeprefix(_LINK), _text(value, ":"))
        for key, value in sorted(given.items())
        if key.startswith(_LINK)
    )
    said = (
        field for template in (*texts.values(), *dict(links).values()) for field in template.fields
    )
    published = (*uri.fields, *columns.values(), *digests.values(), *said)
    layout = TableLayout(
        table=table,
        query=query,
        uri=uri,
        columns=columns,
        texts=texts,
        digests=digests,
        links=links,
        log=_name(given.get("log", "")) or _log_of(table),
        joins=_joins(given.get("joins", "")),
        compared=_compared(given.get("columns", ""), () if query else published),
        is_catalogue=given.get("layout") == "catalogue",
        notifies=_yes_or_no(given, "notify"),
        reader=given.get("reader", ""),
        timeout=_seconds(given.get("timeout", str(_HOUR))),
    )
    _check_log(layout)
    return layout


def check_column(column: str, there: Iterable[str]) -> None:
    """Refuse a missing column."""
    if column not in there:
        raise ConfigurationError(
            f"there is no column {column!r:.200} in what is read",
            evidence=(("columns", ", ".join(there)[:500]),),
            hint="names are written as PostgreSQL shows them, without quotes",
        )


def _read_from(given: Mapping[str, str]) -> tuple[TableName, str]:
    """Return the table and the query; one of them may be empty."""
    for key in given:
        if key not in KNOWN and not key.startswith(_LINK):
            raise ConfigurationError(
                f"PostgreSQL has no option {key}",
                hint=f"known: {', '.join(sorted(KNOWN))}, {_LINK}RELATION",
            )
    table, query = _name(given.get("table", "")), given.get("query", "").strip().rstrip(";")
    if not table and not query:
        raise ConfigurationError(
            "no table or query is given",
            hint="give one by the option table or query (query=file:PATH): "
            "--with table=SCHEMA.NAME, or --with query='SELECT …'",
        )
    return table, query


def _defaults(values: Mapping[str, str]) -> Mapping[str, str]:
    layout = values.get("layout", "")
    if layout not in ("", "catalogue"):
        raise ConfigurationError(
            f"there is no layout {layout[:100]!r}",
            hint="the only one is catalogue: --with layout=catalogue",
        )
    return _CATALOGUE if layout else {}


def _name(text: str) -> TableName:
    """Return a name and its schema; a name has no dots otherwise."""
    parts = tuple(part.strip() for part in text.split(".")) if text.strip() else ()
    if len(parts) > 2 or not all(parts) or "\0" in text:  # noqa: PLR2004 - schema and name
        raise ConfigurationError(
            f"{text[:200]!r} is not a table name", hint="write SCHEMA.NAME or NAME"
        )
    return parts


def _log_of(table: TableName) -> TableName:
    return ("resourcesync", f"{table[-1]}_change") if table else ()


def _check_log(layout: TableLayout) -> None:
    if layout.log and len(layout.log[-1].encode()) > _MAX_NAME:
        raise ConfigurationError(
            f"the name of the log is longer than {_MAX_NAME} bytes: {layout.log[-1]}",
            hint="name it by the option log: --with log=resourcesync.SHORTER",
        )
    if layout.joins and not layout.table:
        raise ConfigurationError("joins needs table: the one that the key is of")
    for name, columns in layout.joins:
        if len(columns) != len(layout.key):
            raise ConfigurationError(
                f"joins: {'.'.join(name)} needs {len(layout.key)} columns, one for each that the"
                f" URI is made of: {', '.join(layout.key)}"
            )


def _uri(text: str, base_uri: str) -> Template:
    if not text:
        raise ConfigurationError(
            "the URI of a row is not given",
            hint="give a column or a template by the option uri: "
            "--with uri=COLUMN, or --with 'uri=https://HOST/{COLUMN}'",
        )
    if "{" not in text and "}" not in text:
        return Template.column(text)
    template = Template.parse(text)
    return template if "://" in text.partition("{")[0] else template.prefixed(base_uri)


def _text(text: str, mark: str) -> Template:
    """Return the template of a text with braces, of a constant, or of a column."""
    if "{" in text or "}" in text:
        return Template.parse(text)
    return Template.constant(text) if mark in text else Template.column(text)


def _joins(text: str) -> tuple[tuple[TableName, tuple[str, ...]], ...]:
    found, end = [], 0
    while end < len(text):
        match = _JOIN.match(text, end)
        if match is None:
            raise ConfigurationError(
                f"joins={text[:200]!r} cannot be read", hint="write joins=TABLE(COLUMN),…"
            )
        columns = tuple(name.strip() for name in match[2].split(","))
        found.append((_name(match[1]), columns))
        end = match.end()
    return tuple(found)


def _compared(text: str, published: tuple[str, ...]) -> tuple[str, ...]:
    named = tuple(name.strip() for name in text.split(",") if name.strip())
    return tuple(dict.fromkeys(named or published))


def _yes_or_no(given: Mapping[str, str], key: str) -> bool:
    value = given.get(key, "yes")
    if value not in ("yes", "no"):
        raise ConfigurationError(f"{key} is yes or no, not {value[:100]!r}")
    return value == "yes"


def _seconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= _MAX_TIMEOUT:
        raise ConfigurationError(
            f"timeout={text[:100]!r} is no number of seconds from 1 to {_MAX_TIMEOUT}"
        )
    return int(text)
