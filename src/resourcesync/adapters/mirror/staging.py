"""A folder in which bytes wait that are on their way: to a place beside it, or to a store."""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

from resourcesync.adapters.mirror.folders import FOLDER_FLAGS
from resourcesync.adapters.mirror.parts import Parts
from resourcesync.adapters.mirror.scratch import open_scratch
from resourcesync.adapters.mirror.staged import StagedFile, storage_error
from resourcesync.model.digests import Digest

SMALL: Final = 32 << 10
"""Bytes that wait in memory on their way to a store; what is larger has a file."""


class Staging:
    """A folder of temporary files.

    Args:
        folder: Its descriptor; it stays the caller's.
    """

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._parts = Parts(folder)
        self._names = 0
        self._tag = secrets.token_hex(4)

    def clear(self, oldest: float) -> None:
        """Remove what a run that was killed left half-written.

        Args:
            oldest: Large parts stay that were last written since, in seconds since 1970.
        """
        self._parts.clear(oldest)

    def stage(self, algorithms: Sequence[str], of: str = "") -> StagedFile:
        """Start a file; digests are computed while the bytes pass.

        With ``of``, go on from the part of it that an earlier run left, if there is one.
        """
        return self._resume_part(algorithms, of) or StagedFile(
            self._folder, self._name(), algorithms, self._parts, of
        )

    def stage_apart(self, algorithms: Sequence[str], of: str = "") -> StagedFile:
        """Start bytes that will be read, and put elsewhere; few of them need no file."""
        return self._resume_part(algorithms, of) or _StagedBytes(
            self._folder, self._name(), algorithms, self._parts, of
        )

    def scratch(self) -> BinaryIO:
        """Open a nameless temporary file, to read and write.

        Raises:
            StorageError: It cannot be made.
        """
        return open_scratch(self._name(), self._folder)

    def _name(self) -> str:
        self._names += 1
        return f"{self._tag}-{self._names}"

    def _resume_part(self, algorithms: Sequence[str], of: str) -> StagedFile | None:
        kept = self._parts.take(of) if of else None
        if kept is None:
            return None
        staged = StagedFile(self._folder, kept.name, algorithms, self._parts, of)
        try:
            staged.resume(kept.validator)
        except OSError:
            staged.discard()
            return None
        return staged


@contextmanager
def open_staging(folder: Path) -> Iterator[Staging]:
    """Open a folder of temporary files while the block runs.

    Raises:
        StorageError: It cannot be opened.
    """
    try:
        descriptor = os.open(folder, FOLDER_FLAGS)
    except OSError as error:
        raise storage_error(error, f"opening {folder}") from error
    try:
        yield Staging(descriptor)
    finally:
        os.close(descriptor)


class _StagedBytes(StagedFile):
    """A copy on its way that has a file only when it is not small."""

    _small: bytes = b""

    def _put(self, chunk: bytes) -> None:
        if self._file < 0 and self.length + len(chunk) <= SMALL:
            self._small += chunk
            return
        if self._small:
            small, self._small = self._small, b""
            super()._put(small)
        super()._put(chunk)

    def restart(self) -> None:
        """Forget all bytes so far."""
        super().restart()
        self._small = b""

    def seal(self) -> tuple[int, tuple[Digest, ...]]:
        """End the writing; return the length in bytes and the digests asked for."""
        return self._sealed()

    def open_sealed(self) -> BinaryIO:
        """Open the sealed bytes to read and seek; the caller closes what is returned."""
        return BytesIO(self._small) if self._file < 0 else super().open_sealed()

    def discard(self) -> None:
        """Throw the bytes away; it is no error to do so twice."""
        self._small = b""
        if self._file >= 0:
            super().discard()
