"""Mapping ``tree``: from a URI to its path in a mirror; and the text of a rule. Pure.

Files have the names in their URIs: below the base a URI loses scheme and host, ``%XX`` is decoded,
and a URI that ends in ``/`` becomes ``index.html`` in its folder. So a mirror can be served,
searched and compared as the tree that it is a copy of. The exceptions:

- What cannot be a name stays escaped, in its segment: ``%XX`` that is not readable text, a slash, a
  control character, a query, a name over 255 bytes; at any depth, a name that some file system
  takes for a mirror's own folder; and, on a file system without case, what such systems refuse. A
  path over 900 bytes becomes a digest. All of that is as in ``EscapedMapping``.
- With ``pages``, a URI whose last name has no ending is read as if it ended in ``/``.
- Where two URIs cannot both have their names, one of them is relocated (see ``path_assignment``):
  its name gets ``!9`` at its end, and a digest where several could get the same.

No name has ``!`` before a digit except in these escapes.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, cached_property, partial
from hashlib import sha256
from typing import Final
from urllib.parse import quote

import msgspec

from resourcesync.destination import mapping
from resourcesync.destination.mapping import (
    FOREIGN_FOLDER,
    MAX_PATH,
    PAGES,
    TREE,
    FileSystemProfile,
    PathMapping,
    check_base,
)
from resourcesync.discovery.uris import has_ending, normalise
from resourcesync.errors import ConfigurationError, OutOfScopeError, quoted
from resourcesync.model.own_names import LIKE_OWN, MAX_URI, has_own_name

INDEX: Final = "index.html"
"""File of a URI that ends in a slash."""
RELOCATED: Final = "!9"
"""Suffix of the name of a relocated URI."""

ARROW: Final = "=>"
"""Mark of a rule, between its pattern and its template."""
_MAX_NAME: Final = 255
_DIGEST: Final = 16
_CACHE_SIZE: Final = 4_096
_TRIPLETS: Final = re.compile(r"(?:%[0-9A-F]{2})+")
# Where letters are escaped with !, no name has it before a letter either.
_BANG: Final = {
    FileSystemProfile.POSIX: re.compile(r"!(?=[0-9])"),
    FileSystemProfile.PORTABLE: re.compile(r"!(?=[0-9A-Za-z])"),
}
_PERCENT: Final = "\0"  # a decoded % until its right neighbour is known
_LIKE_TRIPLET: Final = re.compile("\0(?=[0-9A-Fa-f]{2})")
# Characters that are invisible, or that change the display of others.
_INVISIBLE: Final = (
    "\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff"
    "\ud800-\udfff\U000e0000-\U000effff"
)
_UNSAFE: Final = {
    FileSystemProfile.POSIX: rf"[{_INVISIBLE}/\\]",
    FileSystemProfile.PORTABLE: rf'[{_INVISIBLE}/\\:*?"<>|]',
}
_REFUSED: Final = re.compile(r"[:*]|~(?=[0-9])")
_DEVICE: Final = re.compile(
    r"(?i:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\.|\Z)"
)
_LEGAL: Final = "-A-Za-z0-9._~!$&'()*+,;=:@"
_TO_URI: Final = re.compile(rf"(%[0-9A-F]{{2}})|!([2-7][0-9a-f])|([^{_LEGAL}%]+|%)")

# Paths equal to their URI's tail. Classes are spelled out, and ASCII; both take linear time.
_SAFE: Final = {
    FileSystemProfile.POSIX: "A-Za-z0-9._~$&'()*+,;=:@-",
    FileSystemProfile.PORTABLE: "A-Za-z0-9._$&'()+,;=@-",
}
_NO_DEVICE: Final = {
    FileSystemProfile.POSIX: "",
    FileSystemProfile.PORTABLE: rf"(?!{_DEVICE.pattern})",
}
_NO_END: Final = {FileSystemProfile.POSIX: "", FileSystemProfile.PORTABLE: r"(?<!\.)"}


@cache
def _plain_name(profile: FileSystemProfile) -> re.Pattern[str]:
    safe = _SAFE[profile]
    return re.compile(
        rf"(?!\.\.?\Z)(?!{LIKE_OWN}){_NO_DEVICE[profile]}[{safe}]{{1,200}}{_NO_END[profile]}",
        re.ASCII,
    )


class NameMapping(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Mapping from URIs to paths in one mirror; ``relocated`` URIs cannot have their names."""

    base: str
    profile: FileSystemProfile
    relocated: frozenset[str] = frozenset()
    pages: bool = False

    def __post_init__(self) -> None:
        check_base(self.base)

    @cached_property
    def _folders(self) -> dict[str, str]:
        return {}

    @cached_property
    def _heads(self) -> frozenset[str]:
        return frozenset(uri.rpartition("/")[0] for uri in self.relocated)

    def path(self, uri: str) -> str:
        """Return the path of a URI in the mirror: relative, with ``/``."""
        head, _, leaf = uri.rpartition("/")
        if head in self._heads and (normal := normalise(uri)) in self.relocated:
            return self.relocated_path(normal)
        return self._plain(head, leaf) or self._path(normalise(uri))

    def preferred_path(self, uri: str) -> str:
        """Return the path of a URI unless it is relocated."""
        head, _, leaf = uri.rpartition("/")
        return self._plain(head, leaf) or self._natural_path(normalise(uri))

    def _plain(self, head: str, leaf: str) -> str:
        folder = self._folders.get(head)
        if folder is None:
            folder = self._folder_of(head)
        is_plain = folder is not None and _plain_name(self.profile).fullmatch(leaf)
        return f"{folder}{leaf}" if is_plain and not (self.pages and self._is_page(leaf)) else ""

    def _is_page(self, leaf: str) -> bool:
        return self.pages and leaf != "" and not has_ending(leaf)

    def _path(self, normal: str) -> str:
        return (
            self.relocated_path(normal) if normal in self.relocated else self._natural_path(normal)
        )

    def plain_folder(self, head: str) -> str | None:
        """Return the folder of the URIs with this head, up to the last slash, if it is plain.

        Then each URI that continues with a ``plain_name`` is below the base and in normal form; its
        path is the folder and that name.
        """
        return None if self.pages or head in self._heads else self._folder_of(head)

    @property
    def plain_name(self) -> re.Pattern[str]:
        """Pattern of a whole plain name."""
        return _plain_name(self.profile)

    def _folder_of(self, head: str) -> str | None:
        inside = f"{head}/"
        if not inside.startswith(self.base) or len(inside) > MAX_PATH - _MAX_NAME:
            return None
        folder = inside[len(self.base) :]
        if not all(map(_plain_name(self.profile).fullmatch, folder[:-1].split("/"))) and folder:
            return None
        if len(self._folders) >= _CACHE_SIZE:
            self._folders.clear()
        self._folders[head] = folder
        return folder

    def _natural_path(self, normal: str) -> str:
        root, relative = mapping.escapes.root_of(normal, self.base, self.profile)
        location, question, query = relative.partition("?")
        *segments, leaf = location.split("/")
        if not question and self._is_page(leaf):
            segments, leaf = [*segments, leaf], ""
        names = list(root)
        for segment in segments:
            names += self._names(segment) if segment else ["!0"]
        if question:
            names += mapping.escapes.safe_names(leaf + question + query, self.profile)
        else:
            names += self._names(leaf) if leaf else [INDEX]
        path = "/".join(names)
        return path if len(path.encode()) <= MAX_PATH else mapping.escapes.hashed_path(root, normal)

    def _names(self, segment: str) -> list[str]:
        name = self._name(segment)
        if len(name) * 4 > _MAX_NAME and len(name.encode()) > _MAX_NAME:
            return mapping.escapes.safe_names(segment, self.profile)
        return [name]

    def _name(self, segment: str) -> str:
        name = segment
        if "%" in name:
            unsafe = re.compile(_UNSAFE[self.profile])
            name = _TRIPLETS.sub(partial(_readable, unsafe=unsafe), name)
        if "!" in name:
            name = _BANG[self.profile].sub("!21", name)
        if _PERCENT in name:
            name = _LIKE_TRIPLET.sub("%25", name).replace(_PERCENT, "%")
        if self.profile is FileSystemProfile.PORTABLE:
            name = _escape_for_portable(name)
        return _escape_first(name) if has_own_name(name) else name

    def key(self, path: str) -> str:
        """Return the key of a path: equal for paths that the file system does not distinguish."""
        if self.profile is FileSystemProfile.POSIX:
            return path
        if path.isascii():
            return path.lower()
        return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())

    def relocated_path(self, uri: str) -> str:
        """Return the path of a relocated URI: no other URI ever has it."""
        normal = normalise(uri)
        path = self._natural_path(normal)
        root, _ = mapping.escapes.root_of(normal, self.base, self.profile)
        is_plain = self.key(path) == path and normal in self._exact_uris(path)
        is_plain = is_plain and not self._is_page(normal.rpartition("/")[2])
        mark = RELOCATED if is_plain else RELOCATED + sha256(normal.encode()).hexdigest()[:_DIGEST]
        folder, slash, name = path.rpartition("/")
        name = f"{'' if normal.endswith('/') else name}{mark}"
        path = f"{folder}{slash}{name}"
        if len(name.encode()) > _MAX_NAME or len(path.encode()) > MAX_PATH:
            return mapping.escapes.hashed_path(root, normal)
        return path

    def uris(self, path: str) -> list[str]:
        """Return the candidates for the URI of a path, most likely first.

        Several URIs may have the same name, and some paths are digests: the mirror's state has the
        URI.
        """
        found = [*self._exact_uris(path)]
        if path.endswith(RELOCATED):
            rest = path.removesuffix(RELOCATED)
            found += self._exact_uris(f"{rest}{INDEX}" if rest.endswith("/") or not rest else rest)
        return [uri for uri in found if self.path(uri) == path]

    def uri(self, path: str) -> str | None:
        """Return the most likely URI of a path; ``None`` if there is none."""
        return next(iter(self.uris(path)), None)

    def _exact_uris(self, path: str) -> Iterable[str]:
        root, names = self.base, path.split("/")
        if names[0] == FOREIGN_FOLDER:
            whole = mapping.escapes.join_parts(names)
            root, names = mapping.escapes.foreign_root(whole), whole[3:]
        names = mapping.escapes.join_parts(names)
        if not names or len(path) > MAX_PATH:
            return
        folders = "".join("/" if name == "!0" else f"{_segment(name)}/" for name in names[:-1])
        location, question, query = names[-1].partition(mapping.escapes.QUERY)
        if question:
            leaves = ["?".join(map(mapping.escapes.decode_name, (location, query)))]
        else:
            leaves = [_segment(names[-1])] + [""] * (names[-1] == INDEX)
        uris = [f"{root}{folders}{leaf}" for leaf in leaves]
        if self.pages and names[-1] == INDEX:
            uris.insert(0, uris[-1].removesuffix("/"))
        for uri in uris:
            try:
                is_normal = len(uri) <= MAX_URI and normalise(uri) == uri
                if is_normal and self._natural_path(uri) == path:
                    yield uri
            except OutOfScopeError:
                continue


def _readable(match: re.Match[str], *, unsafe: re.Pattern[str]) -> str:
    text = bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "surrogateescape")
    return unsafe.sub(_triplets, text.replace("%", _PERCENT)) if _PERCENT not in text else match[0]


def _triplets(match: re.Match[str]) -> str:
    character = match[0]
    if character == _PERCENT:
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def _escape_for_portable(name: str) -> str:
    name = _REFUSED.sub(lambda found: f"!{ord(found[0]):02x}", name)
    if _DEVICE.match(name):
        name = _escape_first(name)
    if name.endswith((".", " ")):
        name = name[:-1] + {".": "!2e", " ": "%20"}[name[-1]]
    return name


def _escape_first(name: str) -> str:
    first = f"!{ord(name[0]):02x}" if name[0].isascii() else quote(name[0])
    return first + name[1:]


def _segment(name: str) -> str:
    return _TO_URI.sub(_encode_match, name)


def _encode_match(match: re.Match[str]) -> str:
    triplet, code, other = match.groups()
    if triplet:
        return str(triplet)
    return chr(int(code, 16)) if code else quote(other, safe="")


def uris_at(paths: PathMapping, path: str) -> list[str]:
    """Return the candidates for the URI of a path, most likely first."""
    if isinstance(paths, NameMapping):
        return paths.uris(path)
    uri = paths.uri(path)
    return [] if uri is None else [uri]


def check_mapper(asked: str, known: str) -> None:
    """Refuse a mapping other than the mirror's: its copies would lose their paths."""
    if asked not in ("", known):
        raise ConfigurationError(
            f"the mirror's paths come from the mapping {known!r}, not from {asked!r}",
            evidence=(("kept", "nothing was changed"),),
            hint=f"pull into another folder, or with the mapping {known!r}: "
            f"-o map={quoted(known, 'MAPPING')}",
            code="other-mapper",
        )


def normalise_rule(text: str) -> str:
    """Return a mapping as stored; a rule is independent of its blanks."""
    if text in ("", TREE, PAGES):
        return text
    pattern, _, template = text.partition(ARROW)
    return f"{pattern.strip().removeprefix('/')} {ARROW} {template.strip().removeprefix('/')}"


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
