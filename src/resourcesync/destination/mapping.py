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
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Final

from resourcesync.destination.uris import MAX_URI, normalise, origin
from resourcesync.errors import ConfigurationError, OutOfScopeError

__all__ = ["MAX_PATH", "MAX_URI", "Profile", "TreeMapping", "normalise", "origin"]

MAX_PATH: Final = 900
"""Bytes of a place in the mirror."""

# --- one name ----------------------------------------------------------------------------------

_PART: Final = 200
_DEVICES: Final = r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|con(?:in|out)!24|clock!24)"
_DEVICE: Final = re.compile(rf"(?i:{_DEVICES})(?:\.|\Z)")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.=+,@%-]")
_UPPER: Final = re.compile(r"%[0-9A-F]{2}|[A-Z]")
_ESCAPE: Final = re.compile(r"!([2-7][0-9a-f]|[a-z])")
_QUERY: Final = "!3f"


class Profile(StrEnum):
    """What the mirror's file system tells apart."""

    POSIX = "posix"
    PORTABLE = "portable"
    """It may take upper for lower case, as macOS and Windows do."""


def _hex(match: re.Match[str]) -> str:
    return f"!{ord(match[0]):02x}"


def _fold(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == "%" else f"!{match[0].lower()}"


def _character(match: re.Match[str]) -> str:
    code = match[1]
    return code.upper() if len(code) == 1 else chr(int(code, 16))


def _decode(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _split(text: str) -> list[str]:
    """Cut an encoded name into parts of at most 200 characters, never inside an escape."""
    parts = []
    while len(text) > _PART:
        cut = _PART
        if text[cut - 1] in "!%":
            cut -= 1
        elif text[cut - 2] == "%" or (text[cut - 2] == "!" and text[cut - 1].isdigit()):
            cut -= 2
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text]


def _guard(part: str) -> str:
    """Escape what some system does not take for an ordinary name."""
    if part.startswith(".") or _DEVICE.match(part):
        part = f"!{ord(part[0]):02x}{part[1:]}"
    return f"{part[:-1]}!2e" if part.endswith(".") else part


def _names(encoded: str, *, dotted: str = "", dotless: str = "") -> list[str]:
    """Return the names that one segment becomes, the last with the suffix that it needs."""
    parts = [_guard(part) for part in _split(encoded)]
    parts[-1] += dotted if any("." in part for part in parts) else dotless
    return [*(f"{part}!1" for part in parts[:-1]), parts[-1]]


def _join(components: Sequence[str]) -> list[str]:
    """Undo the splitting; a name without an end is left out."""
    names, pending = [], ""
    for component in components:
        if component.endswith("!1"):
            pending += component[:-2]
        else:
            names.append(pending + component)
            pending = ""
    return names


# --- the whole place ---------------------------------------------------------------------------

_ELSEWHERE: Final = "!6"
_HASHED: Final = "!7"
_REMEMBERED: Final = 4_096
_ROOM: Final = MAX_PATH - _PART - len("!9")

# Names that stay as they are: folders without dots, and files. No repetition holds what ends it,
# so both take linear time; classes are spelled out, and ASCII, so that no case rule widens them.
_SAFE: Final = {Profile.POSIX: "A-Za-z0-9_=+,@", Profile.PORTABLE: "a-z0-9_=+,@"}
_PLAIN_FOLDERS: Final = {
    profile: re.compile(rf"(?:(?!(?i:{_DEVICES})/)[{safe}-]{{1,{_PART}}}/)*", re.ASCII)
    for profile, safe in _SAFE.items()
}
_PLAIN_FILE: Final = {
    profile: re.compile(
        rf"(?!(?i:{_DEVICES})(?:\.|\Z))[{safe}-](?:[{safe}.-]{{0,{_PART - 2}}}[{safe}-])?", re.ASCII
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
    profile: Profile
    # What is already known of folders, by the URI up to its last slash; bounded.
    _folders: dict[str, str] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        try:
            normal = normalise(self.base)
        except OutOfScopeError as error:
            raise ConfigurationError(
                f"{self.base} cannot be a mirror's base: {error.message}",
                code="base",
                hint="name the Source by an address such as https://HOST/",
            ) from error
        if self.base != normal or "?" in normal or not normal.endswith("/"):
            raise ConfigurationError(
                f"{self.base} cannot be a mirror's base: it is not normalised, or ends in no slash",
                hint=f"use {normal.partition('?')[0].rstrip('/')}/",
                code="base",
            )

    def path(self, uri: str) -> str:
        """Return the place of a URI in the mirror: relative, with ``/``, in ASCII.

        Raises:
            OutOfScopeError: As for ``normalise``: it gets no place.
        """
        head, _, leaf = uri.rpartition("/")
        folder = self._folders.get(head)
        if folder is None:
            folder = self._enter(head)
        if folder is not None:
            if _PLAIN_FILE[self.profile].fullmatch(leaf):
                return folder + leaf if "." in leaf else f"{folder}{leaf}!9"
            if not leaf:
                return f"{folder}!9"
            if _CLEAN_LEAF.fullmatch(leaf) and len(uri) <= MAX_URI:
                path = folder + self._file(leaf)
                if len(path) <= MAX_PATH:
                    return path
        return self._place(uri, head)

    def plain_folder(self, head: str) -> str | None:
        """Return the folder of URIs that begin so, up to the last slash, if it is plain.

        Then each that goes on with a ``plain_name`` is below the base, and normal as it stands; its
        place is the folder and that name, with ``!9`` after a name without a dot.

        Returns:
            The folder, empty or with its last slash; ``None`` says nothing of such URIs.
        """
        return self._enter(head)

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
        root, names = self.base, _join(path.split("/"))
        if names[:1] == [_ELSEWHERE]:
            root, names = _elsewhere(names), names[3:]
        if not names:
            return None
        leaf, question, query = names[-1].removesuffix("!9").partition(_QUERY)
        folders = ("" if name == "!0" else name.removesuffix("!8") for name in names[:-1])
        location = "/".join(map(_decode, (*folders, leaf)))
        uri = f"{root}{location}{'?' if question else ''}{_decode(query)}"
        try:
            # The one proof that covers every spelling the mapping never makes.
            return uri if self.path(uri) == path else None
        except OutOfScopeError:
            return None

    # --- the common case ---

    def _enter(self, head: str) -> str | None:
        """Return the folder of a URI up to its last slash if it stays as it is below the base."""
        inside = f"{head}/"
        if not inside.startswith(self.base) or len(inside) > _ROOM:
            return None
        folder = inside[len(self.base) :]
        if _PLAIN_FOLDERS[self.profile].fullmatch(folder) is None:
            return None
        self._remember(head, folder)
        return folder

    def _remember(self, head: str, folder: str) -> None:
        if len(self._folders) >= _REMEMBERED:
            self._folders.clear()
        self._folders[head] = folder

    # --- any case ---

    def _place(self, uri: str, head: str) -> str:
        normal = normalise(uri)
        root, relative = self._root(normal)
        location, question, query = relative.partition("?")
        *segments, leaf = location.split("/")
        folders = list(root)
        for segment in segments:
            folders += _names(self._encode(segment), dotted="!8") if segment else ["!0"]
        folder = "".join(f"{name}/" for name in folders)
        path = folder + self._file(leaf + question + query)
        if len(path) > MAX_PATH:
            digest = sha256(normal.encode()).hexdigest()
            return "/".join((*root, _HASHED, digest[:2], digest))
        if len(folder) <= _ROOM and len(head) < MAX_URI - _PART and _is_folder(head):
            self._remember(head, folder)
        return path

    def _root(self, normal: str) -> tuple[list[str], str]:
        """Return the folders that stand for the start of a URI, and the rest of it."""
        if normal.startswith(self.base):
            return [], normal[len(self.base) :]
        scheme, _, authority, relative = normal.split("/", 3)
        # A colon outside brackets stands before a port; no host has a comma of its own.
        host, bracket, tail = authority.rpartition("]")
        name = self._encode(host + bracket + tail.replace(":", ","))
        # A host is always a folder, and only hosts stand here: it needs no suffix.
        return [_ELSEWHERE, scheme[:-1], *_names(name)], relative

    def _file(self, leaf: str) -> str:
        """Return the name of a file, or its parts, from the last segment and the query."""
        return "/".join(_names(self._encode(leaf), dotless="!9"))

    def _encode(self, text: str) -> str:
        if _UNSAFE.search(text):
            text = _UNSAFE.sub(_hex, text)
        return text if self.profile is Profile.POSIX else _UPPER.sub(_fold, text)


def _is_folder(head: str) -> bool:
    """Whether a URI up to its last slash is scheme, host and folders, so speaks for others."""
    return "://" in head and "?" not in head and "#" not in head


def _elsewhere(names: Sequence[str]) -> str:
    """Return scheme and host that the first names stand for; nonsense for nonsense."""
    scheme, host = (*names[1:3], "", "")[:2]
    name, comma, port = _decode(host).partition(",")
    return f"{scheme}://{name}{':' if comma else ''}{port}/"
