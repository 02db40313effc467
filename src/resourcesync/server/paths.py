"""Conversion of request paths to names in a tree, by bytes: paths are never joined."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote_to_bytes

Names = tuple[bytes, ...]
"""The names from a folder down to a file, decoded, none of them special."""

_AUTHORITY: Final = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_REFUSED: Final = re.compile(rb"[/\x00]")


def read_path(raw: bytes) -> Names | None:
    """Return the names in the raw path of a request; ``None`` when it is invalid.

    Each part is percent-decoded once, after the split, so an encoded slash never makes a new part.
    Refused are empty and dot parts, encoded slashes, NUL, and invalid escapes. A backslash is an
    ordinary character in a name that is never joined to a path, and such files are listed. A target
    in absolute form loses its scheme and host: they are ignored.

    Args:
        raw: ``raw_path`` of the ASGI scope, without the query.

    Returns:
        The names; the empty tuple is ``/`` itself.
    """
    if not raw.startswith(b"/"):
        raw = without_authority(raw)
    if raw == b"/":
        return ()
    if not raw.startswith(b"/"):
        return None
    names = tuple(raw[1:].split(b"/"))
    if b"%" in raw:
        if _BAD_ESCAPE.search(raw) is not None:
            return None
        names = tuple(map(unquote_to_bytes, names))
    return names if all(map(is_plain, names)) else None


def without_authority(target: bytes) -> bytes:
    """Return the path of a target in absolute form (RFC 9112 §3.2.2); another one as it is."""
    authority = _AUTHORITY.match(target)
    return target if authority is None else target[authority.end() :] or b"/"


def is_plain(name: bytes) -> bool:
    """True if ``name`` is the name of an entry, and no way to another folder."""
    return name not in {b"", b".", b".."} and _REFUSED.search(name) is None


def is_hidden(names: Names) -> bool:
    """True if a name is never published: a dot file or folder, or a ``~`` backup."""
    return any(name.startswith(b".") or name.endswith(b"~") for name in names)


def follow_link(names: Names, target: bytes, roots: Iterable[bytes]) -> Names | None:
    """Return the target of a symbolic link at ``names``; ``None`` when it is outside the tree.

    Args:
        names: The link's place; every folder above it is a real one.
        target: The content of the link.
        roots: The absolute paths of the tree's folder, for links that are absolute.
    """
    stack = list(names[:-1])
    if target.startswith(b"/"):
        inside = [root for root in roots if target.startswith(root.rstrip(b"/") + b"/")]
        if not inside:
            return None
        stack = []
        target = target[len(inside[0].rstrip(b"/")) + 1 :]
    for part in target.split(b"/"):
        if part == b"..":
            if not stack:
                return None
            stack.pop()
        elif part not in {b"", b"."}:
            stack.append(part)
    return tuple(stack) or None
