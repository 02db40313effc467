"""The options of an account: a query, the URI of its rows, and the table that logs changes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Self
from urllib.parse import quote

import msgspec

from resourcesync.errors import ConfigurationError

_FIELD: Final = re.compile(r"\{(\+?)([^{}]+)\}")
_ANYTHING: Final = ""
_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
OPTIONS: Final = ("query", "uri", "table", "columns", "log", "reader", "password", "timeout")
_MAX_NAME: Final = 48
_MAX_TIMEOUT: Final = 86_400
_HOUR: Final = 3_600

TableName = tuple[str, ...]
"""The name of a table, with or without its schema."""
Column = Sequence[str | None]
"""The values of one column, one for each row; ``None`` for NULL."""


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A text with placeholders for columns."""

    literals: tuple[str, ...]  # before, between and after the values: one more than fields
    fields: tuple[str, ...] = ()
    reserved: tuple[str | None, ...] = ()  # characters that stay; ``None`` for no escaping

    @classmethod
    def column(cls, name: str) -> Self:
        """Return the template of one column without escaping."""
        return cls(literals=("", ""), fields=(name,), reserved=(None,))

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

    def expand(self, columns: Sequence[Column]) -> Iterator[str]:
        """Yield the text of each row; empty where a value is NULL."""
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


class TableLayout(msgspec.Struct, frozen=True, kw_only=True):
    """The query that is read, and the table whose changes are followed."""

    query: str  # its columns have the names of the fields of a resource
    uri: Template  # its columns are the key of logged changes
    table: TableName = ()  # its triggers write the log
    columns: tuple[str, ...] = ()  # those whose update is a change; empty for all of them
    log: TableName = ()
    reader: str = ""  # the role that reads
    timeout: int = _HOUR  # seconds of one statement

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that the URI is made of, each once."""
        return tuple(dict.fromkeys(self.uri.fields))


def parse_layout(values: Mapping[str, str], base_uri: str) -> TableLayout:
    """Return the layout of the options of an account; the query may be empty."""
    for key in values:
        if key not in OPTIONS:
            raise ConfigurationError(
                f"PostgreSQL has no option {key}", hint=f"known: {', '.join(OPTIONS)}"
            )
    table = _name(values.get("table", ""))
    log = _name(values.get("log", "")) or ("resourcesync", f"{table[-1]}_change") if table else ()
    if log and len(log[-1].encode()) > _MAX_NAME:
        raise ConfigurationError(
            f"the name of the log is longer than {_MAX_NAME} bytes: {log[-1]}",
            hint="name it by the option log: --with log=resourcesync.SHORTER",
        )
    return TableLayout(
        query=values.get("query", "").strip().rstrip(";"),
        uri=_uri(values.get("uri", ""), base_uri),
        table=table,
        columns=tuple(filter(None, map(str.strip, values.get("columns", "").split(",")))),
        log=log,
        reader=values.get("reader", ""),
        timeout=_seconds(values.get("timeout", str(_HOUR))),
    )


def _name(text: str) -> TableName:
    """Return a name and its schema; a name has no dots otherwise."""
    parts = tuple(part.strip() for part in text.split(".")) if text.strip() else ()
    if len(parts) > 2 or not all(parts) or "\0" in text:  # noqa: PLR2004 - schema and name
        raise ConfigurationError(
            f"{text[:200]!r} is not a table name", hint="write SCHEMA.NAME or NAME"
        )
    return parts


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


def _seconds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= _MAX_TIMEOUT:
        raise ConfigurationError(
            f"timeout={text[:100]!r} is no number of seconds from 1 to {_MAX_TIMEOUT}"
        )
    return int(text)
