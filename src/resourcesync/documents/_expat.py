"""expat as every reader here sets it up, with the doors closed that a document could use.

Who reads must say what is to happen at a DOCTYPE and at the XML declaration: neither can be
forgotten.
"""

import pyexpat
from collections.abc import Callable
from typing import Final

from resourcesync.documents._tokens import SEPARATOR

MAX_TOKEN: Final = 65_536
"""Bytes of one tag or instruction, and characters of one text: no list has as many.

It keeps expat's time linear; comments are parted before (see `_octets`).
"""
MAX_NAMES: Final = 1_000
"""Different element and attribute names: expat keeps each until the end."""
MAX_PREFIXES: Final = 100
"""Different namespace prefixes, for the same reason."""

UTF_ENCODINGS: Final = frozenset({"utf-8", "utf8", "utf-16", "utf-16le", "utf-16be"})
"""What a declaration may name: what is in UTF-16 has been turned into UTF-8 before."""
CUT_SHORT: Final = frozenset({3, 5, 6, 20})
"""expat's codes for: no element, an unclosed token, half a character, an unclosed CDATA section."""


def new_parser(
    *,
    on_declaration: Callable[[str, str | None, int], None],
    on_doctype: Callable[..., None],
) -> pyexpat.XMLParserType:
    """Return a parser that tells names as namespace, `SEPARATOR`, local name.

    Args:
        on_declaration: Takes version, encoding and standalone of the XML declaration.
        on_doctype: Takes the start of a DOCTYPE; it must raise, so that nothing is expanded.
    """
    # The encoding is decided before (see `_octets`); nothing in the document changes it.
    parser = pyexpat.ParserCreate("utf-8", SEPARATOR)
    parser.buffer_text = True
    # Newer expats wait for more bytes before they try a token again; MAX_TOKEN does it for all.
    at_once = getattr(parser, "SetReparseDeferralEnabled", None)
    if at_once is not None:
        at_once(False)  # noqa: FBT003 - expat's signature
    parser.XmlDeclHandler = on_declaration
    parser.StartDoctypeDeclHandler = on_doctype
    return parser


def exceeded_bound(parser: pyexpat.XMLParserType, fed: int) -> tuple[int, str] | None:
    """Return which bound is passed, as limit and what it counts, after ``fed`` bytes in all."""
    if fed - parser.CurrentByteIndex > MAX_TOKEN:
        return MAX_TOKEN, "bytes in one tag"
    if len(parser.intern) > MAX_NAMES:
        return MAX_NAMES, "different names"
    return None
