"""From a URI to its place in a mirror and back: the mapping ``tree/1``. Pure.

One rule set for every operating system. No two URIs share a place, no place is inside another
copy's file, and every place can be turned back into its URI, so that a mirror can be understood
without its state. In short:

- Below the base a URI loses scheme and host: ``https://museum.example/objects/2.html`` is
  ``objects/2.html``. All others go below ``!6/scheme/host[,port]/``, where no URI of the base can.
- A character that is not safe everywhere is written ``!`` and two hex digits; ``%XX`` stays. On a
  file system that takes ``A`` for ``a``, an upper-case letter is ``!`` and its lower-case form.
- Folders and files never clash: a folder with a dot ends in ``!8``, a file without one in ``!9``;
  an empty folder name is ``!0``. Device names, and dots at either end, are escaped.
- Names over 200 characters are split (``!1``); a place over 900 characters becomes a digest below
  ``!7/``, the only form that cannot be turned back.

No name starts with a dot, so the mirror's own ``.resourcesync`` cannot be reached by any URI.

Names that every file system takes: the escapes of ``tree/1``, of one segment at a time. Pure.

A character that is not safe everywhere is written ``!`` and two hex digits; ``%XX`` stays. On a
file system that takes ``A`` for ``a``, an upper-case letter is ``!`` and its lower-case form. What
is too long is split into parts that end in ``!1``, but for the last.

The addresses that copies have when their mirror is published again, and back. Pure.

What follows the base of the mirror follows the new base too: ``/docs/`` stays ``/docs/``. So the
address of a copy does not depend on the name of its file. What is not below the base of the mirror
goes below ``!6/SCHEME/HOST/``; there an address of the Source's own cannot be, since one that
begins with ``!`` and a digit has ``!21`` for the ``!``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Final

from resourcesync.destination.uris import MAX_URI, normalise, origin
from resourcesync.errors import ConfigurationError, OutOfScopeError

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


__all__ = [
    "FOREIGN_FOLDER",
    "MAX_PATH",
    "MAX_URI",
    "FileSystemProfile",
    "TreeMapping",
    "check_base",
    "foreign_root",
    "hashed_path",
    "normalise",
    "origin",
    "root_of",
]

MAX_PATH: Final = 900
"""Bytes of a place in the mirror."""

# --- the whole place ---------------------------------------------------------------------------

FOREIGN_FOLDER: Final = "!6"
"""The folder of what is not below the mirror's base."""
_HASHED: Final = "!7"
_CACHE_SIZE: Final = 4_096
_MAX_FOLDERS_LENGTH: Final = MAX_PATH - MAX_PART - len("!9")

# Names that stay as they are: folders without dots, and files. No repetition holds what ends it,
# so both take linear time; classes are spelled out, and ASCII, so that no case rule widens them.
_SAFE: Final = {
    FileSystemProfile.POSIX: "A-Za-z0-9_=+,@",
    FileSystemProfile.PORTABLE: "a-z0-9_=+,@",
}
_PLAIN_FOLDERS: Final = {
    profile: re.compile(rf"(?:(?!(?i:{DEVICES})/)[{safe}-]{{1,{MAX_PART}}}/)*", re.ASCII)
    for profile, safe in _SAFE.items()
}
_PLAIN_FILE: Final = {
    profile: re.compile(
        rf"(?!(?i:{DEVICES})(?:\.|\Z))[{safe}-](?:[{safe}.-]{{0,{MAX_PART - 2}}}[{safe}-])?",
        re.ASCII,
    )
    for profile, safe in _SAFE.items()
}
# A last segment and a query that are normal as they stand: no escape, no dot segment.
_CLEAN_LEAF: Final = re.compile(
    r"(?!\.)[A-Za-z0-9._~!$&'()*+,;=:@-]*(?:\?[A-Za-z0-9._~!$&'()*+,;=:@?-]*)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeMapping:
    """Gives every URI its place in one mirror, and every place its URI.

    Attributes:
        base: The URI that the mirror's root stands for: normalised, ending in ``/``.
        profile: What the mirror's file system tells apart. A mirror keeps it for life.

    Raises:
        ConfigurationError: ``base`` is not normalised or does not end in ``/``.
    """

    base: str
    profile: FileSystemProfile
    # What is already known of folders, by the URI up to its last slash; bounded.
    _folders: dict[str, str] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        check_base(self.base)

    def path(self, uri: str) -> str:
        """Return the place of a URI in the mirror: relative, with ``/``, in ASCII.

        Raises:
            OutOfScopeError: As for ``normalise``: it gets no place.
        """
        head, _, leaf = uri.rpartition("/")
        folder = self._folders.get(head)
        if folder is None:
            folder = self._folder_of(head)
        if folder is not None:
            if _PLAIN_FILE[self.profile].fullmatch(leaf):
                return folder + leaf if "." in leaf else f"{folder}{leaf}!9"
            if not leaf:
                return f"{folder}!9"
            if _CLEAN_LEAF.fullmatch(leaf) and len(uri) <= MAX_URI:
                path = folder + self._file_names(leaf)
                if len(path) <= MAX_PATH:
                    return path
        return self._new_path(uri, head)

    def plain_folder(self, head: str) -> str | None:
        """Return the folder of URIs that begin so, up to the last slash, if it is plain.

        Then each that goes on with a ``plain_name`` is below the base, and normal as it stands; its
        place is the folder and that name, with ``!9`` after a name without a dot.

        Returns:
            The folder, empty or with its last slash; ``None`` says nothing of such URIs.
        """
        return self._folder_of(head)

    @property
    def ending(self) -> str:
        """What is added to a plain name without a dot."""
        return "!9"

    @property
    def plain_name(self) -> re.Pattern[str]:
        """The names in question, as a whole."""
        return _PLAIN_FILE[self.profile]

    def uri(self, path: str) -> str | None:
        """Return the normalised URI whose place this is.

        ``None`` when the mapping makes no such place, or when it is a digest: then only the
        mirror's state knows.
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
            # The one proof that covers every spelling the mapping never makes.
            return uri if self.path(uri) == path else None
        except OutOfScopeError:
            return None

    # --- the common case ---

    def _folder_of(self, head: str) -> str | None:
        """Return the folder of a URI up to its last slash if it stays as it is below the base."""
        inside = f"{head}/"
        if not inside.startswith(self.base) or len(inside) > _MAX_FOLDERS_LENGTH:
            return None
        folder = inside[len(self.base) :]
        if _PLAIN_FOLDERS[self.profile].fullmatch(folder) is None:
            return None
        self._remember(head, folder)
        return folder

    def _remember(self, head: str, folder: str) -> None:
        if len(self._folders) >= _CACHE_SIZE:
            self._folders.clear()
        self._folders[head] = folder

    # --- any case ---

    def _new_path(self, uri: str, head: str) -> str:
        normal = normalise(uri)
        root, relative = root_of(normal, self.base, self.profile)
        location, question, query = relative.partition("?")
        *segments, leaf = location.split("/")
        folders = list(root)
        for segment in segments:
            folders += (
                split_name(encode_name(segment, self.profile), dotted="!8") if segment else ["!0"]
            )
        folder = "".join(f"{name}/" for name in folders)
        path = folder + self._file_names(leaf + question + query)
        if len(path) > MAX_PATH:
            return hashed_path(root, normal)
        if (
            len(folder) <= _MAX_FOLDERS_LENGTH
            and len(head) < MAX_URI - MAX_PART
            and _is_folder(head)
        ):
            self._remember(head, folder)
        return path

    def _file_names(self, leaf: str) -> str:
        """Return the name of a file, or its parts, from the last segment and the query."""
        return "/".join(split_name(encode_name(leaf, self.profile), dotless="!9"))


def check_base(base: str) -> None:
    """Refuse a base that no mirror can have.

    Raises:
        ConfigurationError: It is not normalised or does not end in ``/``.
    """
    try:
        normal = normalise(base)
    except OutOfScopeError as error:
        raise ConfigurationError(
            f"{base} cannot be a mirror's base: {error.message}",
            code="base",
            hint="name the Source by an address such as https://HOST/",
        ) from error
    if base != normal or "?" in normal or not normal.endswith("/"):
        raise ConfigurationError(
            f"{base} cannot be a mirror's base: it is not normalised, or ends in no slash",
            hint=f"use {normal.partition('?')[0].rstrip('/')}/",
            code="base",
        )


def root_of(normal: str, base: str, profile: FileSystemProfile) -> tuple[list[str], str]:
    """Return the folders that stand for the start of a URI, and the rest of it.

    Args:
        normal: The URI, normalised.
        base: That of the mirror.
        profile: What the mirror's file system tells apart.
    """
    if normal.startswith(base):
        return [], normal[len(base) :]
    scheme, _, authority, relative = normal.split("/", 3)
    # A colon outside brackets stands before a port; no host has a comma of its own.
    host, bracket, tail = authority.rpartition("]")
    name = encode_name(host + bracket + tail.replace(":", ","), profile)
    # A host is always a folder, and only hosts stand here: it needs no suffix.
    return [FOREIGN_FOLDER, scheme[:-1], *split_name(name)], relative


def hashed_path(root: Sequence[str], normal: str) -> str:
    """Return the path of a URI by its digest: it cannot be turned back."""
    digest = sha256(normal.encode()).hexdigest()
    return "/".join((*root, _HASHED, digest[:2], digest))


def _is_folder(head: str) -> bool:
    """Whether a URI up to its last slash is scheme, host and folders, so speaks for others."""
    return "://" in head and "?" not in head and "#" not in head


def foreign_root(names: Sequence[str]) -> str:
    """Return scheme and host that the first names stand for; nonsense for nonsense."""
    scheme, host = (*names[1:3], "", "")[:2]
    name, comma, port = decode_name(host).partition(",")
    return f"{scheme}://{name}{':' if comma else ''}{port}/"


_RESERVED: Final = re.compile(r"!(?=[0-9])")
_RESERVED_ESCAPE: Final = "!21"
_PARTS: Final = 3
_BRACKETS: Final = {"%5B": "[", "%5D": "]"}


def published_tail(uri: str, base: str) -> str:
    """Return what follows the new base in the address of a copy: no two URIs have the same.

    Args:
        uri: That of the copy, normalised.
        base: That of the mirror.
    """
    if uri.startswith(base):
        tail = uri.removeprefix(base)
        return f"{_RESERVED_ESCAPE}{tail[1:]}" if _RESERVED.match(tail) else tail
    scheme, _, authority, rest = uri.split("/", 3)
    for escaped, bracket in _BRACKETS.items():
        authority = authority.replace(bracket, escaped)
    return f"{FOREIGN_FOLDER}/{scheme[:-1]}/{authority}/{rest}"


def uri_of_published(tail: str, base: str) -> str | None:
    """Return the URI whose copy has this address; ``None`` when none can have it.

    Args:
        tail: What follows the new base.
        base: That of the mirror.
    """
    uri = base + tail
    if tail.startswith(_RESERVED_ESCAPE):
        uri = f"{base}!{tail.removeprefix(_RESERVED_ESCAPE)}"
    elif tail.startswith(f"{FOREIGN_FOLDER}/") and tail.count("/") >= _PARTS:
        _, scheme, authority, rest = tail.split("/", _PARTS)
        for escaped, bracket in _BRACKETS.items():
            authority = authority.replace(escaped, bracket)
        uri = f"{scheme}://{authority}/{rest}"
    return uri if published_tail(uri, base) == tail else None
