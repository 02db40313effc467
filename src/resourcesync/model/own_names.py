"""The name of a mirror's own folder, and every name that some file system takes for it. Pure."""

import re
import unicodedata
from typing import Final

OWN_FOLDER: Final = ".resourcesync"
"""Folder of a mirror's state, trash and quarantine."""
LIKE_OWN: Final = r"(?i:\.resourcesync)|.{6}~"
"""Start of every ASCII name that `has_own_name` finds, as a quick regular expression."""
# Windows drops dots and blanks at the end, and what follows a colon is a stream of the same file;
# NTFS and FAT have a short name for each long one.
_OWN_NAME: Final = re.compile(
    r"(?i:\.resourcesync|re(?:sour|[0-9a-f]{4})~[0-9])[. ]*(?::|\Z)", re.ASCII
)
# What HFS+ and folders of ext4 without case ignore: Default_Ignorable_Code_Point of Unicode.
_IGNORED: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def has_own_name(path: str) -> bool:
    """True if some file system takes a name in a path for ``.resourcesync``.

    A mirror may be copied to another file system, so this does not depend on the present one.
    """
    if path.isascii() and "~" not in path and OWN_FOLDER not in path.lower():
        return False  # as most
    return any(map(_is_own, path.split("/")))


def _is_own(name: str) -> bool:
    if not name.isascii():
        name = _IGNORED.sub("", unicodedata.normalize("NFKD", name).casefold())
    return _OWN_NAME.match(name) is not None


MAX_URI: Final = 2_048
"""Characters of the longest URI, as written and normalised: the limit of the Sitemap protocol."""
UNESCAPED: Final = "():,=@"
"""Beside the unreserved characters those of pchar that need no escape in XML, in a shell, or in a
server that reads "+" as a blank or ";" as a parameter."""


def uri_fault(key: str, room: int) -> str | None:
    """Return why Destinations refuse a name in a URI; ``None`` if they do not."""
    if len(key) > room:
        return f"its URI is longer than {MAX_URI} characters"
    if "%0" in key and ("%0A" in key or "%0D" in key):
        return "its file name contains a line break, which Destinations refuse"
    return None


_ESCAPED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def decode_unreserved(text: str) -> str:
    """Return text with only those escapes that a normalised URI has."""
    return _ESCAPED.sub(_normal_escape, text) if "%" in text else text


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[0][1:], 16))
    return character if character in _UNRESERVED else match[0].upper()
