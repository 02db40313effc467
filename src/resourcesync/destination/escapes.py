"""Names that every file system takes: the escapes of ``tree/1``, of one segment at a time. Pure.

A character that is not safe everywhere is written ``!`` and two hex digits; ``%XX`` stays. On a
file system that takes ``A`` for ``a``, an upper-case letter is ``!`` and its lower-case form. What
is too long is split into parts that end in ``!1``, but for the last.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

MAX_PART: Final = 200
"""Characters of a part of a name."""
DEVICES: Final = r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|con(?:in|out)!24|clock!24)"
"""Names that some systems take for devices, as a regular expression of what is escaped."""
_DEVICE: Final = re.compile(rf"(?i:{DEVICES})(?:\.|\Z)")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.=+,@%-]")
_UPPER: Final = re.compile(r"%[0-9A-F]{2}|[A-Z]")
_ESCAPE: Final = re.compile(r"!([2-7][0-9a-f]|[a-z])")
QUERY: Final = "!3f"
"""The escape of the ``?`` before a query."""


class FileSystemProfile(StrEnum):
    """What the mirror's file system tells apart."""

    POSIX = "posix"
    PORTABLE = "portable"
    """It may take upper for lower case, as macOS and Windows do."""


def _escape_bytes(match: re.Match[str]) -> str:
    return f"!{ord(match[0]):02x}"


def _escape_uppercase(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == "%" else f"!{match[0].lower()}"


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return code.upper() if len(code) == 1 else chr(int(code, 16))


def encode_name(text: str, profile: FileSystemProfile) -> str:
    """Return text with what is not safe everywhere escaped."""
    if _UNSAFE.search(text):
        text = _UNSAFE.sub(_escape_bytes, text)
    return text if profile is FileSystemProfile.POSIX else _UPPER.sub(_escape_uppercase, text)


def decode_name(text: str) -> str:
    """Return a name with its escapes undone."""
    return _ESCAPE.sub(_unescape, text)


def _split_parts(text: str) -> list[str]:
    """Cut an encoded name into parts of at most 200 characters, never inside an escape."""
    parts = []
    while len(text) > MAX_PART:
        cut = MAX_PART
        if text[cut - 1] in "!%":
            cut -= 1
        elif text[cut - 2] == "%" or (text[cut - 2] == "!" and text[cut - 1].isdigit()):
            cut -= 2
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text]


def _guard_device_name(part: str) -> str:
    """Escape what some system does not take for an ordinary name."""
    if part.startswith(".") or _DEVICE.match(part):
        part = f"!{ord(part[0]):02x}{part[1:]}"
    return f"{part[:-1]}!2e" if part.endswith(".") else part


def split_name(encoded: str, *, dotted: str = "", dotless: str = "") -> list[str]:
    """Return the names that one segment becomes, the last with the suffix that it needs."""
    parts = [_guard_device_name(part) for part in _split_parts(encoded)]
    parts[-1] += dotted if any("." in part for part in parts) else dotless
    return [*(f"{part}!1" for part in parts[:-1]), parts[-1]]


def join_parts(components: Sequence[str]) -> list[str]:
    """Undo the splitting; a name without an end is left out."""
    names, pending = [], ""
    for component in components:
        if component.endswith("!1"):
            pending += component[:-2]
        else:
            names.append(pending + component)
            pending = ""
    return names
