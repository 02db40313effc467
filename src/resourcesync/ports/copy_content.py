"""The content of a copy, and whether a file has it: the one answer to "was it changed here?"."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from resourcesync.model.digests import Digest, agree, parse_digests


class CopyReader(Protocol):
    """A reader of copies; every ``CopyInspector`` is one."""

    def digest(self, path: str, algorithms: Sequence[str]) -> tuple[int, tuple[Digest, ...]] | None:
        """Read a copy; return its length and digests, or ``None`` when there is none."""


class CopyContent(NamedTuple):
    """The content of a copy.

    Attributes:
        length: Bytes.
        digests: Digests of them, as in a ``hash`` attribute.
        signature: Stat signature of the file that was read; ``None`` if it is not known.
    """

    length: int
    digests: str
    signature: str | None = None


def has_content(look: CopyReader, path: str, content: CopyContent | None) -> bool:
    """Read a file; return whether it has the content that the mirror's state has of it.

    This alone decides whether a file is as installed. A stat signature only saves the reading: one
    that differs shows nothing, since a copied or restored file has another inode or time.

    Args:
        look: The copies.
        path: Path of the file.
        content: Length and digests in the state; ``None`` if they are not known.

    Raises:
        StorageError: The file cannot be read.
    """
    if content is None:
        return False
    known = parse_digests(content.digests)
    found = look.digest(path, [digest.algorithm for digest in known])
    return found is not None and found[0] == content.length and agree(found[1], known)
