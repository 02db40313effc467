"""Text into XML: what must be escaped, what XML cannot carry, and the names of attributes."""

import pyexpat
import re
from functools import lru_cache
from typing import Final

SPECIAL: Final = re.compile('[&<>"\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]')
"""Characters that do not stand in XML text or attributes as they are."""

_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    # A reader turns these into blanks or line feeds unless they are written as references; the
    # controls from 7F on are legal, but nobody should meet them raw.
    | {chr(code): f"&#{code};" for code in (9, 10, 13, *range(0x7F, 0xA0))}
)
_REFERENCE: Final = re.compile(rb"&(?:#([0-9]+)|(amp|lt|gt|quot));")
_NAMED: Final = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"'}
_ASCII_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9._\-]*")
_NO_NAME: Final = re.compile(r"[\s<>&'\"/=:?!{}\x00-\x1f]")


def escape(text: str) -> str:
    """Return ``text`` for an element or for an attribute in double quotes.

    Raises:
        ValueError: It holds a character that XML 1.0 cannot carry at all.
    """
    if not SPECIAL.search(text):
        return text
    found = _FORBIDDEN.search(text)
    if found:
        raise ValueError(f"XML cannot carry the character {found[0]!r} in {text[:64]!r}")
    return text.translate(_ESCAPES)


def unescaped(octets: bytes) -> bytes:
    """Return the UTF-8 of the text that `escape` made these octets of."""
    return _REFERENCE.sub(_character, octets) if b"&" in octets else octets


def _character(found: re.Match[bytes]) -> bytes:
    return _NAMED[found[2]] if found[1] is None else chr(int(found[1])).encode()


@lru_cache(maxsize=256)
def is_name(text: str) -> bool:
    """Whether ``text`` can be the local name of an attribute."""
    if _ASCII_NAME.fullmatch(text):
        return True
    if not text or _NO_NAME.search(text):
        return False
    try:  # XML's letters beyond ASCII are a long list, and expat is what knows it
        pyexpat.ParserCreate().Parse(f"<{text}/>".encode(), True)  # noqa: FBT003 - its signature
    except (pyexpat.ExpatError, UnicodeEncodeError):
        return False
    return True
