"""Links to files: followed by hand, name by name, so that none leads out of the tree."""

import errno
import os
from typing import Final

from resourcesync.adapters.files.folders import GONE, open_below

_MAX_HOPS: Final = 8


class LinkNotFollowedError(Exception):
    """A link that is not published; its message is the reason."""


def resolve_link(root: int, real_root: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names, from the root, of what a link in the tree leads to at last.

    Args:
        root: Descriptor of the tree's root.
        real_root: The root's own path, free of links; absolute targets must lie below it.
        names: The link's own place.

    Raises:
        LinkNotFollowedError: It leads out of the tree, through a link to a folder, or nowhere.
        OSError: Something on the way cannot be read.
    """
    for _ in range(_MAX_HOPS):
        target = _read_link(root, names)
        if target is None:
            return names
        further = _join_link(names[:-1], target, real_root)
        if not further:
            raise LinkNotFollowedError("a link that leads out of the tree")
        names = further
    raise LinkNotFollowedError(f"a link over more than {_MAX_HOPS} other links")


def _read_link(root: int, names: tuple[str, ...]) -> str | None:
    """Return where a link leads, or ``None`` for anything that is no link."""
    try:
        folder = open_below(root, names[:-1])
    except OSError as error:
        if error.errno not in GONE:
            raise
        raise LinkNotFollowedError("a link that leads nowhere, or through another link") from error
    try:
        return os.readlink(names[-1], dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        if error.errno not in GONE:
            raise
        raise LinkNotFollowedError("a link that leads nowhere") from error
    finally:
        os.close(folder)


def _join_link(folder: tuple[str, ...], target: str, real_root: str) -> tuple[str, ...]:
    """Return the names that ``target`` means in ``folder``; none when it is not in the tree."""
    if target.startswith("/"):
        inside = real_root.rstrip("/") + "/"
        if not target.startswith(inside):
            return ()
        folder, target = (), target[len(inside) :]
    down = False
    for name in target.split("/"):
        if name in {"", "."}:
            continue
        if name != "..":
            folder, down = (*folder, name), True
        elif folder and not down:
            folder = folder[:-1]
        else:  # above the root; or back from a folder that may itself be a link
            return ()
    return folder
