"""HTML that cannot be broken by what is in it: everything is escaped, always.

Only ``tag`` makes markup. Any other text becomes text in the page, with characters that could
fool a reader made visible.
"""

from collections.abc import Iterable
from html import escape
from typing import Final, TypeAlias
from urllib.parse import urlencode

from resourcesync.model import formatting

_VOID: Final = frozenset({"input", "link", "meta"})


class Markup(str):
    """Text that is markup; only ``tag`` and ``join_markup`` make it."""

    __slots__ = ()


Piece: TypeAlias = "str | int | Iterable[Piece] | None"
"""Content of an element: markup as it is, anything else as text; ``None`` is nothing."""


def join_markup(*pieces: Piece) -> Markup:
    """Return pieces one after the other."""
    return Markup("".join(map(_piece, pieces)))


def tag(name: str, /, *pieces: Piece, **attributes: str | int | None) -> Markup:
    """Return an element."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join_markup(*pieces)}</{name}>")


def address(page: str, /, **query: str | int) -> str:
    """Return the address of another page of ours, relative to any page."""
    pairs = {name: str(value).encode("utf-8", "surrogatepass") for name, value in query.items()}
    return f"{page}?{urlencode(pairs)}" if query else page


def _piece(piece: Piece) -> str:
    if piece is None:
        return ""
    if isinstance(piece, Markup):
        return piece
    if isinstance(piece, str):
        return _escape(piece)
    if isinstance(piece, int):
        return str(piece)
    return "".join(map(_piece, piece))


def _escape(text: str) -> str:
    return escape(formatting.escape(text))
