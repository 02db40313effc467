"""Addresses of the copies of a mirror that is published again: from a URI to an address, and back.

Copies get addresses by URI, not by file name: what follows the base of the mirror follows the new
base too, so ``/docs/`` stays ``/docs/``. Other URIs go below ``!6/SCHEME/HOST/``; no address of the
Source's own can be there, since one that begins with ``!`` and a digit has ``!21`` for the ``!``.
"""

import re
from typing import Final

from resourcesync.destination.mapping.escapes import FOREIGN_FOLDER

_RESERVED: Final = re.compile(r"!(?=[0-9])")
_RESERVED_ESCAPE: Final = "!21"
_PARTS: Final = 3
_BRACKETS: Final = {"%5B": "[", "%5D": "]"}


def published_tail(uri: str, base: str) -> str:
    """Return what follows the new base in the address of a copy: unique for each URI."""
    if uri.startswith(base):
        tail = uri.removeprefix(base)
        return f"{_RESERVED_ESCAPE}{tail[1:]}" if _RESERVED.match(tail) else tail
    scheme, _, authority, rest = uri.split("/", 3)
    for escaped, bracket in _BRACKETS.items():
        authority = authority.replace(bracket, escaped)
    return f"{FOREIGN_FOLDER}/{scheme[:-1]}/{authority}/{rest}"


def uri_of_published(tail: str, base: str) -> str | None:
    """Return the URI of the copy with this address; ``None`` if none can have it."""
    uri = base + tail
    if tail.startswith(_RESERVED_ESCAPE):
        uri = f"{base}!{tail.removeprefix(_RESERVED_ESCAPE)}"
    elif tail.startswith(f"{FOREIGN_FOLDER}/") and tail.count("/") >= _PARTS:
        _, scheme, authority, rest = tail.split("/", _PARTS)
        for escaped, bracket in _BRACKETS.items():
            authority = authority.replace(escaped, bracket)
        uri = f"{scheme}://{authority}/{rest}"
    return uri if published_tail(uri, base) == tail else None
