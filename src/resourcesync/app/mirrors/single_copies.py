"""Copies of single resources in a folder that is no mirror: fetched, verified, put in place.

Such a folder has no state. Who uses it decides what to fetch; here nothing is written outside it,
no byte is kept that is not as listed, and what is removed goes to the folder's trash.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from resourcesync.adapters.mirror.copies import FileTreeCopies
from resourcesync.adapters.mirror.own_folder import is_mirror, mirror_error
from resourcesync.app import machine
from resourcesync.durable_folders import make_folder
from resourcesync.errors import (
    ConfigurationError,
    DigestMismatchError,
    LengthMismatchError,
    LockedError,
    Remedy,
)
from resourcesync.model.digests import Digest, agree, disagree, format_digests, usable
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import known_microseconds
from resourcesync.own_files import (
    FOLDER,
    ROOT,
)
from resourcesync.ports import (
    CopyInstallation,
    CopyRemoval,
    Fetcher,
    FetchFailure,
    FetchRequest,
    StagedCopy,
)

_SUBFOLDERS: Final = ("tmp", "trash", "quarantine")
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK: Final = 1 << 20


class SingleCopies:
    """The copies of a folder without a state.

    Args:
        copies: The files of the folder.
    """

    def __init__(self, copies: FileTreeCopies) -> None:
        self._copies = copies

    def fetch(self, listed: Resource, path: str, fetcher: Fetcher) -> int:
        """Fetch a resource to a path below the folder; return its bytes.

        Args:
            listed: The resource as it is listed; length and digests are checked.
            path: Its path, relative, with ``/``.
            fetcher: The network.

        Raises:
            SourceError: It cannot be fetched.
            VerificationError: The bytes are not those that are listed; the present copy stays.
            StorageError: It cannot be written, or the path is not safe.
        """
        staged = self._copies.stage(_algorithms(listed))
        try:
            [outcome] = fetcher.fetch([FetchRequest(uri=listed.uri, sink=staged)])
            if isinstance(outcome, FetchFailure):
                raise outcome.error
            return self._install(listed, path, staged)
        finally:
            staged.discard()

    def store(self, listed: Resource, path: str, source: BinaryIO) -> int:
        """Write the bytes of a local file to a path below the folder, as `fetch` does."""
        staged = self._copies.stage(_algorithms(listed))
        try:
            while chunk := source.read(_BLOCK):
                staged.write(chunk)
            return self._install(listed, path, staged)
        finally:
            staged.discard()

    def _install(self, listed: Resource, path: str, staged: StagedCopy) -> int:
        length, digests = staged.seal()
        _verify(listed, length, digests)
        installation = CopyInstallation(
            staged=staged,
            path=path,
            lastmod=known_microseconds(listed.lastmod),
            replaces=self._copies.signature(path),
        )
        [result] = self._copies.install([installation])
        if not isinstance(result, str):
            raise result
        return length

    def remove(self, path: str) -> bool:
        """Move a copy to the trash; return whether there was one.

        Raises:
            StorageError: It cannot be moved.
        """
        signature = self._copies.signature(path)
        if signature is None:
            return False
        [place] = self._copies.remove([CopyRemoval(path=path, signature=signature)], "removed")
        if not isinstance(place, str):
            raise place
        return bool(place)


def _algorithms(listed: Resource) -> list[str]:
    found = [digest.algorithm for digest in usable(listed.digests)]
    return list(dict.fromkeys(found)) or ["sha-256"]


def _verify(listed: Resource, length: int, digests: tuple[Digest, ...]) -> None:
    """Compare bytes with what is listed.

    Raises:
        LengthMismatchError: Their number is another one.
        DigestMismatchError: A digest is another one.
    """
    if listed.length is not None and listed.length != length:
        message = f"the list says {listed.length} bytes, the Source served {length}"
        raise LengthMismatchError(
            message, uri=listed.uri, expected=str(listed.length), actual=str(length)
        )
    claims = usable(listed.digests)
    if claims and (disagree(digests, claims) or not agree(digests, claims)):
        expected, actual = format_digests(claims), format_digests(digests)
        raise DigestMismatchError(
            f"the list says {expected}, the Source served {actual}",
            uri=listed.uri,
            expected=expected,
            actual=actual,
        )


@contextmanager
def open_single_copies(folder: Path) -> Iterator[SingleCopies]:
    """Open the copies of a folder, made if it is missing, and lock it.

    Raises:
        ConfigurationError: The folder is a mirror, which knows its own copies.
        LockedError: Another run uses the folder.
        StorageError: The folder cannot be used.
    """
    if is_mirror(folder):
        raise ConfigurationError(
            f"{folder} is a mirror: only a pull may write there",
            hint="name another folder, or pull the mirror",
            remedy=Remedy("pull", target=str(folder)),
        )
    with ExitStack() as opened:
        try:
            copies = _open(folder, opened)
        except OSError as error:
            raise mirror_error(error, f"opening {folder}") from error
        yield SingleCopies(copies)


def _open(folder: Path, opened: ExitStack) -> FileTreeCopies:
    make_folder(folder)
    root = os.open(folder, ROOT)
    opened.callback(os.close, root)
    with suppress(FileExistsError):
        os.mkdir(OWN_FOLDER, 0o700, dir_fd=root)
    own = os.open(OWN_FOLDER, FOLDER, dir_fd=root)
    opened.callback(os.close, own)
    for name in _SUBFOLDERS:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=own)
    lock = os.open("lock", _LOCK, 0o600, dir_fd=own)
    opened.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LockedError(f"another run holds {folder}", hint="wait until it ends") from error
    copies = FileTreeCopies(root, own, machine.system_clock().monotonic)
    opened.callback(copies.close)
    copies.clear_temporary()
    return copies
