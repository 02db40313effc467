"""File names as URI segments and back, and media types by extension.

Names are bytes; each has one spelling as a segment (RFC 3986 §2). The media types are a table of
our own: the standard library's ``mimetypes`` also reads the system's files, so two machines would
describe the same tree differently.
"""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from resourcesync.model.own_names import UNESCAPED

_plain: Final = re.compile(rf"[A-Za-z0-9._~{UNESCAPED}-]+").fullmatch


def to_segment(name: str) -> str:
    """Return a file name as a URI segment; names that are not UTF-8 retain their bytes."""
    return name if _plain(name) else quote_from_bytes(os.fsencode(name), safe=UNESCAPED)


def are_segments(names: Sequence[str]) -> bool:
    """True if ``to_segment`` returns each of these file names unchanged, as it does with most."""
    return _plain("".join(names)) is not None


def to_name(segment: str) -> str | None:
    """Return the file name that ``to_segment`` writes as ``segment``; ``None`` if none does.

    Each name has one spelling, so ``%61``, ``..`` and ``a%2Fb`` name nothing.
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


def names_of(keys: list[str]) -> list[str]:
    """Return the file names of some keys, which are names as URI segments."""
    if "%" not in "".join(keys):
        return keys
    names = [to_name(key) for key in keys]
    return [name for name in names if name is not None]  # each key was made of a name


UNKNOWN_TYPE: Final = "application/octet-stream"

MEDIA_TYPES: Final = Path(__file__).with_name("media_types.conf").read_text("ascii")
"""The extensions of each media type that is known, as nginx has them in ``types``."""
_BY_EXTENSION: Final = {
    extension: line.split()[0]
    for line in MEDIA_TYPES.replace(";", "").splitlines()
    for extension in line.split()[1:]
}


def media_type(name: str) -> str:
    """Return the media type of a file of this name; ``application/octet-stream`` if unknown."""
    _, dot, extension = name.rpartition(".")
    return _type_of(extension) if dot else UNKNOWN_TYPE


def media_types(uris: Sequence[str]) -> list[str]:
    """Return what ``media_type`` returns for each of some URIs."""
    return [_type_of(uri.rpartition(".")[2]) for uri in uris]


@lru_cache(maxsize=1_024)
def _type_of(extension: str) -> str:
    return _BY_EXTENSION.get(extension) or _BY_EXTENSION.get(extension.lower(), UNKNOWN_TYPE)
