"""The addresses that copies have when their mirror is published again, and back. Pure.

What follows the base of the mirror follows the new base too: ``/docs/`` stays ``/docs/``. So the
address of a copy does not depend on the name of its file. What is not below the base of the mirror
goes below ``!6/SCHEME/HOST/``; there an address of the Source's own cannot be, since one that
begins with ``!`` and a digit has ``!21`` for the ``!``.
"""

import re
from typing import Final

from resourcesync.destination.mapping import ELSEWHERE

_RESERVED: Final = re.compile(r"!(?=[0-9])")
_OURS: Final = "!21"
_PARTS: Final = 3
_BRACKETS: Final = {"%5B": "[", "%5D": "]"}


def tail_of(uri: str, base: str) -> str:
    """Return what follows the new base in the address of a copy: no two URIs have the same.

    Args:
        uri: That of the copy, normalised.
        base: That of the mirror.
    """
    if uri.startswith(base):
        tail = uri.removeprefix(base)
        return f"{_OURS}{tail[1:]}" if _RESERVED.match(tail) else tail
    scheme, _, authority, rest = uri.split("/", 3)
    for escaped, bracket in _BRACKETS.items():
        authority = authority.replace(bracket, escaped)
    return f"{ELSEWHERE}/{scheme[:-1]}/{authority}/{rest}"


def uri_at(tail: str, base: str) -> str | None:
    """Return the URI whose copy has this address; ``None`` when none can have it.

    Args:
        tail: What follows the new base.
        base: That of the mirror.
    """
    uri = base + tail
    if tail.startswith(_OURS):
        uri = f"{base}!{tail.removeprefix(_OURS)}"
    elif tail.startswith(f"{ELSEWHERE}/") and tail.count("/") >= _PARTS:
        _, scheme, authority, rest = tail.split("/", _PARTS)
        for escaped, bracket in _BRACKETS.items():
            authority = authority.replace(escaped, bracket)
        uri = f"{scheme}://{authority}/{rest}"
    return uri if tail_of(uri, base) == tail else None
