"""Mapping ``tree/1``: from a URI to its path in a mirror and back. Pure.

One rule set for every operating system. No two URIs share a path, no path is inside another copy's
file, and every path can be turned back into its URI, so that a mirror can be understood without its
state. In short:

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

A mirror that is published again gives its copies addresses by URI, not by file name: what follows
the base of the mirror follows the new base too, so ``/docs/`` stays ``/docs/``. Other URIs go below
``!6/SCHEME/HOST/``; no address of the Source's own can be there, since one that begins with ``!``
and a digit has ``!21`` for the ``!``.
"""

import re
from collections.abc import Sequence
from functools import cache, cached_property
from hashlib import sha256
from typing import Final

import msgspec

from resourcesync.destination.mapping.path_mapping import FileSystemProfile
from resourcesync.discovery.uris import MAX_URI, normalise, origin
from resourcesync.errors import ConfigurationError, OutOfScopeError

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


def _escape_bytes(match: re.Match[str]) -> str:
    return f"!{ord(match[0]):02x}"


def _escape_uppercase(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == "%" else f"!{match[0].lower()}"


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return code.upper() if len(code) == 1 else chr(int(code, 16))


def encode_name(text: str, profile: FileSystemProfile) -> str:
    """Return text with every character escaped that is not safe everywhere."""
    if _UNSAFE.search(text):
        text = _UNSAFE.sub(_escape_bytes, text)
    return text if profile is FileSystemProfile.POSIX else _UPPER.sub(_escape_uppercase, text)


def decode_name(text: str) -> str:
    """Return a name without its escapes."""
    return _ESCAPE.sub(_unescape, text)


def _split_parts(text: str) -> list[str]:
    """Return the parts of an encoded name, of at most 200 characters, cut outside escapes."""
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
    """Escape a name that is special on some system."""
    if part.startswith(".") or _DEVICE.match(part):
        part = f"!{ord(part[0]):02x}{part[1:]}"
    return f"{part[:-1]}!2e" if part.endswith(".") else part


def split_name(encoded: str, *, dotted: str = "", dotless: str = "") -> list[str]:
    """Return the names of one segment, the last with the suffix that it needs."""
    parts = [_guard_device_name(part) for part in _split_parts(encoded)]
    parts[-1] += dotted if any("." in part for part in parts) else dotless
    return [*(f"{part}!1" for part in parts[:-1]), parts[-1]]


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
"""Largest number of bytes of a path in the mirror."""

FOREIGN_FOLDER: Final = "!6"
"""Folder of URIs that are not below the mirror's base."""
_HASHED: Final = "!7"
_CACHE_SIZE: Final = 4_096
_MAX_FOLDERS_LENGTH: Final = MAX_PATH - MAX_PART - len("!9")

# Names that stay unchanged: folders without dots, and files. No repetition matches its own end, so
# both take linear time; classes are spelled out, and ASCII, so that no case rule widens them.
_SAFE: Final = {
    FileSystemProfile.POSIX: "A-Za-z0-9_=+,@",
    FileSystemProfile.PORTABLE: "a-z0-9_=+,@",
}


@cache
def _plain_folders(profile: FileSystemProfile) -> re.Pattern[str]:
    safe = _SAFE[profile]
    return re.compile(rf"(?:(?!(?i:{DEVICES})/)[{safe}-]{{1,{MAX_PART}}}/)*", re.ASCII)


@cache
def _plain_file(profile: FileSystemProfile) -> re.Pattern[str]:
    safe = _SAFE[profile]
    return re.compile(
        rf"(?!(?i:{DEVICES})(?:\.|\Z))[{safe}-](?:[{safe}.-]{{0,{MAX_PART - 2}}}[{safe}-])?",
        re.ASCII,
    )


# A last segment and a query in normal form: no escape, no dot segment.
_CLEAN_LEAF: Final = re.compile(
    r"(?!\.)[A-Za-z0-9._~!$&'()*+,;=:@-]*(?:\?[A-Za-z0-9._~!$&'()*+,;=:@?-]*)?"
)


class TreeMapping(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Mapping from URIs to paths in one mirror, and back.

    Attributes:
        base: URI of the mirror's root: normalised, ending in ``/``.
        profile: Profile of the mirror's file system, fixed for the mirror's life.

    Raises:
        ConfigurationError: ``base`` is not normalised or does not end in ``/``.
    """

    base: str
    profile: FileSystemProfile

    def __post_init__(self) -> None:
        check_base(self.base)

    @cached_property
    def _folders(self) -> dict[str, str]:
        """Cache of folders, by the URI up to its last slash; bounded."""
        return {}

    def path(self, uri: str) -> str:
        """Return the path of a URI in the mirror: relative, with ``/``, in ASCII.

        Raises:
            OutOfScopeError: It has no path, as for ``normalise``.
        """
        head, _, leaf = uri.rpartition("/")
        folder = self._folders.get(head)
        if folder is None:
            folder = self._folder_of(head)
        if folder is not None:
            if _plain_file(self.profile).fullmatch(leaf):
                return folder + leaf if "." in leaf else f"{folder}{leaf}!9"
            if not leaf:
                return f"{folder}!9"
            if _CLEAN_LEAF.fullmatch(leaf) and len(uri) <= MAX_URI:
                path = folder + self._file_names(leaf)
                if len(path) <= MAX_PATH:
                    return path
        return self._new_path(uri, head)

    def plain_folder(self, head: str) -> str | None:
        """Return the folder of the URIs with this head, up to the last slash, if it is plain.

        Then each URI that continues with a ``plain_name`` is below the base and in normal form; its
        path is the folder and that name, with ``!9`` after a name without a dot.

        Returns:
            The folder, empty or with its last slash; ``None`` says nothing about such URIs.
        """
        return self._folder_of(head)

    @property
    def ending(self) -> str:
        """Suffix of a plain name without a dot."""
        return "!9"

    @property
    def plain_name(self) -> re.Pattern[str]:
        """Pattern of a whole plain name."""
        return _plain_file(self.profile)

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

    def _folder_of(self, head: str) -> str | None:
        """Return the folder of a URI's head below the base, if it needs no escape."""
        inside = f"{head}/"
        if not inside.startswith(self.base) or len(inside) > _MAX_FOLDERS_LENGTH:
            return None
        folder = inside[len(self.base) :]
        if _plain_folders(self.profile).fullmatch(folder) is None:
            return None
        self._remember(head, folder)
        return folder

    def _remember(self, head: str, folder: str) -> None:
        if len(self._folders) >= _CACHE_SIZE:
            self._folders.clear()
        self._folders[head] = folder

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
    """Check the base of a mirror.

    Raises:
        ConfigurationError: It is not normalised or does not end in ``/``.
    """
    try:
        normal = normalise(base)
    except OutOfScopeError as error:
        raise ConfigurationError(
            f"{base} cannot be a mirror's base: {error.message}",
            code="base",
            hint="give the Source's address as https://HOST/",
        ) from error
    if base != normal or "?" in normal or not normal.endswith("/"):
        raise ConfigurationError(
            f"{base} cannot be a mirror's base: it is not normalised, or does not end in a slash",
            hint=f"use {normal.partition('?')[0].rstrip('/')}/",
            code="base",
        )


def root_of(normal: str, base: str, profile: FileSystemProfile) -> tuple[list[str], str]:
    """Return the folders for the start of a URI, and the rest of the URI.

    Args:
        normal: The URI, normalised.
        base: Base of the mirror.
        profile: Profile of the mirror's file system.
    """
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
    digest = sha256(normal.encode()).hexdigest()
    return "/".join((*root, _HASHED, digest[:2], digest))


def _is_folder(head: str) -> bool:
    """True if the head of a URI is scheme, host and folders, so that it holds for other URIs."""
    return "://" in head and "?" not in head and "#" not in head


def foreign_root(names: Sequence[str]) -> str:
    """Return scheme and host from the first names; meaningless for other names."""
    scheme, host = (*names[1:3], "", "")[:2]
    name, comma, port = decode_name(host).partition(",")
    return f"{scheme}://{name}{':' if comma else ''}{port}/"


_RESERVED: Final = re.compile(r"!(?=[0-9])")
_RESERVED_ESCAPE: Final = "!21"
_PARTS: Final = 3
_BRACKETS: Final = {"%5B": "[", "%5D": "]"}


def published_tail(uri: str, base: str) -> str:
    """Return what follows the new base in the address of a copy: unique for each URI.

    Args:
        uri: URI of the copy, normalised.
        base: Base of the mirror.
    """
    if uri.startswith(base):
        tail = uri.removeprefix(base)
        return f"{_RESERVED_ESCAPE}{tail[1:]}" if _RESERVED.match(tail) else tail
    scheme, _, authority, rest = uri.split("/", 3)
    for escaped, bracket in _BRACKETS.items():
        authority = authority.replace(bracket, escaped)
    return f"{FOREIGN_FOLDER}/{scheme[:-1]}/{authority}/{rest}"


def uri_of_published(tail: str, base: str) -> str | None:
    """Return the URI of the copy with this address; ``None`` if none can have it.

    Args:
        tail: What follows the new base.
        base: Base of the mirror.
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
