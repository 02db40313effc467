"""Names that are safe on every file system, by escapes; and a mapping that consists of them. Pure.

- Below the base a URI loses scheme and host: ``https://museum.example/objects/2.html`` is
  ``objects/2.html``. All others go below ``!6/scheme/host[,port]/``, where no URI of the base can.
- A character that is not safe everywhere is written ``!`` and two hex digits; ``%XX`` stays. On a
  file system without case an upper-case letter is ``!`` and its lower-case form.
- Folders and files never clash: a folder with a dot ends in ``!8``, a file without one in ``!9``;
  an empty folder name is ``!0``. Device names, and dots at either end, are escaped.
- Names over 200 characters are split into parts that end in ``!1``, except the last; a path over
  900 characters becomes a digest below ``!7/``, the only form that cannot be turned back.

No name starts with a dot or has a ``~``, so no URI gets a path in a folder that is, or that some
file system takes for, a mirror's own ``.resourcesync``.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from resourcesync.destination.mapping import FOREIGN_FOLDER, MAX_PATH, FileSystemProfile, check_base
from resourcesync.discovery.uris import normalise
from resourcesync.errors import OutOfScopeError

MAX_PART: Final = 200
"""Largest number of characters of a part of a name."""
DEVICES: Final = r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|con(?:in|out)!24|clock!24)"
"""Device names of some systems, as a regular expression of their escaped form."""
_DEVICE: Final = re.compile(rf"(?i:{DEVICES})(?:\.|\Z)")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.=+,@%-]")
_UPPER: Final = re.compile(r"%[0-9A-F]{2}|[A-Z]")
_ESCAPE: Final = re.compile(r"!([2-7][0-9a-f]|[a-z])")
QUERY: Final = "!3f"
"""Escape of the ``?`` before a query."""


def _escape_uppercase(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == "%" else f"!{match[0].lower()}"


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return code.upper() if len(code) == 1 else chr(int(code, 16))


def encode_name(text: str, profile: FileSystemProfile) -> str:
    """Return text with every character escaped that is not safe everywhere."""
    text = _UNSAFE.sub(lambda match: f"!{ord(match[0]):02x}", text)
    return text if profile is FileSystemProfile.POSIX else _UPPER.sub(_escape_uppercase, text)


def decode_name(text: str) -> str:
    """Return a name without its escapes."""
    return _ESCAPE.sub(_unescape, text)


def _split_parts(text: str) -> list[str]:
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
    if part.startswith(".") or _DEVICE.match(part):
        part = f"!{ord(part[0]):02x}{part[1:]}"
    return f"{part[:-1]}!2e" if part.endswith(".") else part


def split_name(encoded: str, *, dotted: str = "", dotless: str = "") -> list[str]:
    """Return the names of one segment, the last with the suffix that it needs."""
    parts = [_guard_device_name(part) for part in _split_parts(encoded)]
    parts[-1] += dotted if any("." in part for part in parts) else dotless
    return [*(f"{part}!1" for part in parts[:-1]), parts[-1]]


def safe_names(text: str, profile: FileSystemProfile) -> list[str]:
    """Return the names of a segment with every character escaped that is not safe everywhere."""
    return split_name(encode_name(text, profile))


def join_parts(components: Sequence[str]) -> list[str]:
    """Join the parts of names; a name without its last part is left out."""
    names, pending = [], ""
    for component in components:
        if component.endswith("!1"):
            pending += component[:-2]
        else:
            names.append(pending + component)
            pending = ""
    return names


_HASHED: Final = "!7"


class EscapedMapping(msgspec.Struct, frozen=True, kw_only=True):
    """Mapping from URIs to paths, and back, in which each URI has a path of its own.

    No two URIs share a path, no path is inside another copy's file, and every path can be turned
    back into its URI. ``base``, the URI of the mirror's root, is normalised and ends in ``/``.
    """

    base: str
    profile: FileSystemProfile

    def __post_init__(self) -> None:
        check_base(self.base)

    def path(self, uri: str) -> str:
        """Return the path of a URI in the mirror: relative, with ``/``, in ASCII."""
        normal = normalise(uri)
        root, relative = root_of(normal, self.base, self.profile)
        location, question, query = relative.partition("?")
        *segments, leaf = location.split("/")
        names = list(root)
        for segment in segments:
            encoded = encode_name(segment, self.profile)
            names += split_name(encoded, dotted="!8") if segment else ["!0"]
        names += split_name(encode_name(leaf + question + query, self.profile), dotless="!9")
        path = "/".join(names)
        return path if len(path) <= MAX_PATH else hashed_path(root, normal)

    def uri(self, path: str) -> str | None:
        """Return the normalised URI of a path.

        ``None`` if the mapping makes no such path, or if it is a digest: then only the mirror's
        state has the URI.
        """
        if len(path) > MAX_PATH:
            return None
        root, names = self.base, join_parts(path.split("/"))
        if names[:1] == [FOREIGN_FOLDER]:
            root, names = foreign_root(names), names[3:]
        if not names:
            return None
        leaf, question, query = names[-1].removesuffix("!9").partition(QUERY)
        folders = ("" if name == "!0" else name.removesuffix("!8") for name in names[:-1])
        location = "/".join(map(decode_name, (*folders, leaf)))
        uri = f"{root}{location}{'?' if question else ''}{decode_name(query)}"
        try:
            # This check excludes every spelling that the mapping never makes.
            return uri if self.path(uri) == path else None
        except OutOfScopeError:
            return None


def root_of(normal: str, base: str, profile: FileSystemProfile) -> tuple[list[str], str]:
    """Return the folders for the start of a URI, and the rest of the URI."""
    if normal.startswith(base):
        return [], normal[len(base) :]
    scheme, _, authority, relative = normal.split("/", 3)
    # A colon outside brackets precedes a port; no host has a comma.
    host, bracket, tail = authority.rpartition("]")
    name = encode_name(host + bracket + tail.replace(":", ","), profile)
    # Only hosts are at this level, and always folders: no suffix is needed.
    return [FOREIGN_FOLDER, scheme[:-1], *split_name(name)], relative


def hashed_path(root: Sequence[str], normal: str) -> str:
    """Return the path of a URI by its digest, which cannot be turned back."""
    from hashlib import sha256  # noqa: PLC0415 - status needs none

    digest = sha256(normal.encode()).hexdigest()
    return "/".join((*root, _HASHED, digest[:2], digest))


def foreign_root(names: Sequence[str]) -> str:
    """Return scheme and host from the first names; meaningless for other names."""
    scheme, host = (*names[1:3], "", "")[:2]
    name, comma, port = decode_name(host).partition(",")
    return f"{scheme}://{name}{':' if comma else ''}{port}/"
