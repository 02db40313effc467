"""Names of members: from ``path`` attributes, for new members, and clashes between them.

``path`` starts with a slash and is relative to the root of the package; the name of the member is
the rest (§11.2). New members are called ``/resources/NN/NNNNN-tail``: ``NNNNN`` is the position of
the entry in its manifest, ``NN`` the thousands of it, and ``tail`` what is safe of the end of the
URI. So a path is safe ASCII on every system, no two are alike even where case does not count, and
each version of a resource in a Change Dump has its own.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Final
from urllib.parse import unquote

import msgspec

from resourcesync.documents.expat import Limits
from resourcesync.errors import PackageError

MANIFEST: Final = "manifest.xml"
"""The manifest of every package, at its root, in exactly this case (§11.2, §13.2)."""

MAX_PATH: Final = 4096
_MAX_TAIL: Final = 64
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_plain: Final = re.compile(
    r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)+[A-Za-z0-9_-][A-Za-z0-9._-]*"
).fullmatch
_ends_plainly: Final = re.compile(r"[^?#]*/(\w[\w.-]{0,62}\w)", re.ASCII).fullmatch


def member_name(path: str) -> str:
    """Return the name of the member that a ``path`` means (§11.2).

    One leading slash is removed. A path without it is accepted, for the dumps of ``resync`` have
    none.
    """
    name = path.removeprefix("/")
    if _plain(name) and len(path) <= MAX_PATH:  # nearly every path
        return name
    if not name or len(path) > MAX_PATH:
        raise ValueError("the path is empty or too long")
    if _RESERVED.search(name) is not None:
        raise ValueError("the path has a backslash or a control character")
    if not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise ValueError("the path has an empty or a dotted segment")
    if name_key(name) == MANIFEST:
        raise ValueError("the path means the manifest itself")
    return name


def name_key(name: str) -> str:
    """Return the key of a name: equal for names that some file system treats as one."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def find_clash(names: Sequence[str]) -> tuple[str, str] | None:
    """Return two names of files that clash, or ``None``.

    Such are equal names, names that differ by case or Unicode form, and ``a`` with ``a/b``.
    """
    # With the slash first of all characters, whatever lies in "a" follows "a" at once.
    keyed = sorted((name_key(name).replace("/", "\0"), name) for name in names)
    for (key, name), (after, other) in pairwise(keyed):
        if after == key or after.startswith(key + "\0"):
            return name, other
    return None


def new_path(index: int, uri: str) -> str:
    """Return the path for the entry at ``index`` (from 0) of a manifest."""
    plain = _ends_plainly(uri)
    if plain:  # nearly every file
        return f"/resources/{index // 1000:02}/{index:05}-{plain[1]}"
    way = uri.partition("#")[0].partition("?")[0].rstrip("/")
    tail = unquote(way.rpartition("/")[2], errors="replace")
    tail = _UNSAFE.sub("-", tail)[-_MAX_TAIL:].strip(".-")
    return f"/resources/{index // 1000:02}/{index:05}" + (f"-{tail}" if tail else "")


class PackageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one package; they bound memory, time and bytes for any input.

    Unpacked bytes may be ``free`` plus ``ratio`` times the size of the package, and never
    more than ``unpacked``. This applies to what the package declares, and for what is read from it
    in one pass, so listing one member many times gains nothing.
    """

    members: int = 100_000  # members of one package, the manifest and folders included
    directory: int = 32 * 2**20  # bytes of the central directory of a ZIP
    name: int = 4096  # bytes of one member's name
    unpacked: int = 2**40  # bytes of all members together, unpacked
    free: int = 128 * 2**20  # bytes that may be unpacked however small the package is
    ratio: int = 200  # unpacked bytes per byte of the package, beyond ``free``
    decoder: int = 128 * 2**20  # bytes of memory for unpacking xz
    rewinds: int = 16  # restarts of a compressed tar whose members are not in the manifest's order
    manifest: Limits = msgspec.field(default_factory=Limits)  # bounds of the manifest as a document

    def budget(self, size: int) -> int:
        """Return how many bytes a package of ``size`` bytes may unpack to."""
        return min(self.unpacked, self.free + self.ratio * size)


DEFAULT_LIMITS: Final = PackageLimits()


def over_budget(budget: int, *, code: str, uri: str = "") -> PackageError:
    """Return the error for a package that would unpack to more than ``budget`` bytes."""
    return PackageError(
        "The package unpacks to more than its size can justify",
        uri=uri,
        evidence=(("limit", f"{budget:,} bytes unpacked"),),
        code=code,
    )
