"""Copies: the files of a Destination, to be staged, installed, removed and inspected."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Final, NamedTuple, Protocol

import msgspec

from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest, agree, parse_digests
from resourcesync.model.own_names import has_own_name
from resourcesync.ports.fetcher import PartialBody

_NO_NAMES: Final = frozenset({"", ".", ".."})


def is_copy_path(path: str) -> bool:
    """True if a path leads to a place for a copy: below the root, by names, none like our own.

    Paths from lists are checked long before (``destination.scope``); code that puts, moves
    or reads copies checks again, so that a mistake there never causes a write outside the mirror.
    """
    return "\0" not in path and _NO_NAMES.isdisjoint(path.split("/")) and not has_own_name(path)


class StagedCopy(Protocol):
    """A staged copy: bytes beside the mirror, hashed as they arrive. It is also a ``Sink``."""

    @property
    def part(self) -> PartialBody | None:
        """The part that an earlier run left, from the first byte on; ``None`` once restarted."""

    def record_validator(self, validator: str) -> None:
        """Record the validator that later proves that the rest belongs to these bytes."""

    def write(self, chunk: bytes) -> None:
        """Write the next bytes."""

    def restart(self) -> None:
        """Forget all bytes so far."""

    def seal(self) -> tuple[int, tuple[Digest, ...]]:
        """End the writing; return the length in bytes and the requested digests."""

    def open_sealed(self) -> BinaryIO:
        """Open the sealed bytes to read and seek; the caller closes the stream."""

    def suspend(self) -> None:
        """Discard the copy; a usable part stays for a later run."""

    def discard(self) -> None:
        """Throw the bytes away; it is no error to do so twice."""


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


class CopyInstallation(msgspec.Struct):
    """One staged copy and its path.

    Attributes:
        staged: The sealed bytes.
        path: The copy's path in the mirror, relative, with ``/``.
        lastmod: Modification time to give the copy, microseconds; ``None`` leaves it.
        replaces: Stat signature of the present file in the mirror's state, or ``None`` for no file.
        content: Its content there; ``None``: not known. A file that differs in both is moved to
            quarantine, not lost.
    """

    staged: StagedCopy
    path: str
    lastmod: int | None = None
    replaces: str | None = None
    content: CopyContent | None = None


class CopyRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """One copy to remove.

    Attributes:
        path: The copy's path in the mirror.
        signature: Stat signature of the file in the mirror's state.
        content: Its content in the mirror's state; ``None`` if it is not known.
        is_altered: True if the file was found altered: if it is, it goes to the quarantine.
    """

    path: str
    signature: str
    content: CopyContent | None = None
    is_altered: bool = False


class CopyMove(msgspec.Struct, frozen=True, kw_only=True):
    """One copy that gets another path.

    Attributes:
        path: Its present path.
        to: Its new path.
        signature: Stat signature of the file in the mirror's state.
        digests: Digests of its bytes in the state: they identify a copy that was moved before.
    """

    path: str
    to: str
    signature: str
    digests: tuple[Digest, ...] = ()


class CopyInspector(Protocol):
    """A read-only view of the copies."""

    def signature(self, path: str) -> str | None:
        """Return the stat signature of the copy at ``path``, or ``None`` when there is none."""

    def digest(self, path: str, algorithms: Sequence[str]) -> tuple[int, tuple[Digest, ...]] | None:
        """Read a copy; return its length and digests, or ``None`` when there is none."""

    def digest_all(
        self, wanted: Sequence[tuple[str, Sequence[str]]]
    ) -> Iterator[CopyContent | StorageError | None]:
        """Read a few dozen copies, the next ones ahead; yield the content of each in order.

        Args:
            wanted: Path and algorithms of each.

        Yields:
            Its content; ``None`` when there is none; or the error when it cannot be read.

        Raises:
            StorageError: No copy can be read.
        """


def has_content(look: CopyInspector, path: str, content: CopyContent | None) -> bool:
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


class Copies(CopyInspector, Protocol):
    """The resources as the Destination stores them: bytes at paths, nothing outside one root."""

    def stage(self, algorithms: Sequence[str], of: str = "") -> StagedCopy:
        """Start a copy beside the mirror; digests are computed while the bytes pass.

        Args:
            algorithms: Digests to compute.
            of: Identity of the bytes. With it, the part that an earlier run left is continued, and
                an unfinished part is stored for a later run.
        """

    def stage_copy(self, path: str, algorithms: Sequence[str]) -> StagedCopy | None:
        """Start a copy with the bytes of another one; ``None`` when they cannot be read.

        The digests show whether the bytes are unchanged.
        """

    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        """Put a batch in place durably; return for each its stat signature or its error.

        When it returns, the new bytes and their names survive a power cut.
        """

    def newly_quarantined(self) -> list[tuple[str, str]]:
        """Return the files moved to the quarantine since the last call: paths and names."""

    def remove(self, batch: Sequence[CopyRemoval], reason: str) -> list[str | StorageError]:
        """Move a batch to the trash durably; return the place of each (empty: no file).

        A file with another signature and another content is left alone and reported as an error.
        """

    def move(self, batch: Sequence[CopyMove]) -> list[str | StorageError]:
        """Move copies to other paths durably, one after the other; nothing is overwritten.

        A file moves whatever it is, so an edited one is not lost. What is not ours at the new path
        goes to the quarantine. Where no file is to be moved any more, nothing is done.

        Returns:
            For each the signature to remember, or its error; then it is where it was. It is the
            one that was known where what is there is edited, gone, or not surely ours.
        """

    def inspect(self) -> AbstractContextManager[CopyInspector]:
        """Inspect many copies at once, which is quicker; results may be buffered."""

    def stage_trashed(self, place: str, algorithms: Sequence[str]) -> StagedCopy | None:
        """Start a copy with the bytes of one in the trash; ``None`` when they cannot be read.

        They stay in the trash.

        Raises:
            StateError: ``place`` is no name in the trash: it leads out of it.
        """

    def trashed(self) -> Iterator[str]:
        """Yield the names in the trash."""

    def quarantined(self, path: str) -> Sequence[str]:
        """Return the names in the quarantine of files from ``path``, newest last."""

    def paths(self) -> Iterator[str]:
        """Yield the path of every file in the mirror, in no order, its own folder left out."""
