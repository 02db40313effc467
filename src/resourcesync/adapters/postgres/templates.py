"""Texts with columns in braces: how a URI is made from the values of a row."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final, Self
from urllib.parse import quote

from resourcesync.errors import ConfigurationError

_FIELD: Final = re.compile(r"\{(\+?)([^{}]+)\}")
_ANYTHING: Final = ""
_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")

Column = Sequence[str | None]
"""The values of one column, one for each row; ``None`` for NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A text made from columns.

    Attributes:
        literals: What stands before, between and after the values: one more than there are fields.
        fields: The columns, in the order of the text.
        reserved: For each field, which characters its values keep; ``None`` takes values as they
            are.
    """

    literals: tuple[str, ...]
    fields: tuple[str, ...] = ()
    reserved: tuple[str | None, ...] = ()

    @classmethod
    def column(cls, name: str) -> Self:
        """Return the template that is one column, taken as it is."""
        return cls(literals=("", ""), fields=(name,), reserved=(None,))

    @classmethod
    def constant(cls, text: str) -> Self:
        """Return the template that is the same for all rows."""
        return cls(literals=(text,))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the template of a text with ``{column}`` and ``{+column}`` (RFC 6570, level 2).

        Values are percent-encoded (RFC 3986); ``{+column}`` keeps reserved characters and what is
        percent-encoded already, as a path needs it.

        Raises:
            ConfigurationError: A brace has no partner.
        """
        literals, fields, reserved, end = [], [], [], 0
        for field in _FIELD.finditer(text):
            literals.append(text[end : field.start()])
            fields.append(field[2])
            reserved.append(_RESERVED if field[1] else _ANYTHING)
            end = field.end()
        literals.append(text[end:])
        if any("{" in it or "}" in it for it in literals):
            raise ConfigurationError(
                f"{text[:200]!r}: a brace has no partner", hint="write https://HOST/{COLUMN}"
            )
        return cls(literals=tuple(literals), fields=tuple(fields), reserved=tuple(reserved))

    def prefixed(self, base: str) -> "Template":
        """Return the same with a text before it."""
        first, *rest = self.literals
        return Template(literals=(base + first, *rest), fields=self.fields, reserved=self.reserved)

    def expand(self, count: int, columns: Sequence[Column]) -> Iterator[str]:
        """Yield the text of each row; empty where a value is NULL.

        Args:
            count: How many rows there are.
            columns: The columns, in the order of ``fields``.
        """
        if not self.fields:
            return repeat(self.literals[0], count)
        encoded = [
            column if safe is None else [_encoded(it, safe) for it in column]
            for column, safe in zip(columns, self.reserved, strict=True)
        ]
        first, *rest = self.literals
        if len(encoded) == 1:
            last = rest[0]
            return ("" if it is None else f"{first}{it}{last}" for it in encoded[0])
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
