"""File names as URI segments and back: by bytes, one spelling for each name (RFC 3986 §2)."""

import os
import re
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

MAX_URI: Final = 2_048
"""Characters of the longest URI that is published: the Sitemap protocol allows no longer one."""

# Unreserved characters, and those of pchar that need no escape in XML, in a shell, or in a server
# that takes "+" for a blank or ";" for a parameter.
_UNESCAPED: Final = "():,=@"
_plain: Final = re.compile(rf"[A-Za-z0-9._~{_UNESCAPED}-]+").fullmatch


def to_segment(name: str) -> str:
    """Return a file name as a URI segment; names that are not UTF-8 keep their bytes."""
    return name if _plain(name) else quote_from_bytes(os.fsencode(name), safe=_UNESCAPED)


def to_name(segment: str) -> str | None:
    """Return the file name that ``to_segment`` writes as ``segment``; ``None`` if none does.

    There is one spelling for each name, so ``%61``, ``..`` and ``a%2Fb`` name nothing.
    """
    if segment in {"", ".", ".."}:
        return None
    if _plain(segment):
        return segment
    octets = unquote_to_bytes(segment)
    if b"/" in octets or b"\0" in octets or octets in {b".", b".."}:
        return None
    name = os.fsdecode(octets)
    return name if to_segment(name) == segment else None


def to_names(path: str) -> tuple[str, ...] | None:
    """Return the file names of a relative URI path; ``None`` when one of them names nothing."""
    names = tuple(to_name(segment) for segment in path.split("/"))
    found = tuple(name for name in names if name is not None)
    return found if len(found) == len(names) else None


def uri_fault(key: str, room: int) -> str | None:
    """Return why a name cannot be in a URI that Destinations take; ``None`` if it can.

    Args:
        key: The name as a segment.
        room: Characters that are left for it.
    """
    if len(key) > room:
        return f"its URI is longer than {MAX_URI} characters"
    if "%0" in key and ("%0A" in key or "%0D" in key):
        return "a line break in its name, which Destinations refuse"
    return None
