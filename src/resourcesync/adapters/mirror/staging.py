"""Staged copies, on their way from a folder to a path beside it, or to a store.

Each is hashed while it is written, and has a temporary file unless it is small.

Large copies that broke off are saved for the next run as parts: a temporary file with a note
beside it. Any other file there was left by a killed run, and is removed. Parts are not synced:
after a power cut one may hold wrong bytes. So a part is saved only for a copy whose whole a strong
digest will prove.
"""

import fcntl
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import msgspec
from msgspec import structs

from resourcesync.adapters.mirror.open_folders import CAN_ADVISE, CONSTRUCTORS, signature_of
from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest, new_hashers
from resourcesync.own_files import NEW, is_regular, open_file, open_folder, opened
from resourcesync.ports import PartialBody, is_sendable

_BLOCK: Final = 1 << 20
MIN_SAVED_BYTES: Final = 1 << 20
"""Bytes below which a part is fetched again rather than saved."""

SMALL: Final = 32 << 10
"""The most bytes that are staged in memory; more get a file."""

_CLONE: Final = 0x40049409  # FICLONE of ioctl_ficlone(2)
_TAKEN: Final = os.O_RDWR
_LAST_MOMENT: Final = (1 << 33) * 1_000_000_000
"""Nanoseconds since 1970: the last time of modification that is set."""


_new_digest: Final[Callable[[tuple[str, str]], Digest]] = partial(tuple.__new__, Digest)
"""Its own constructor is Python code."""


MAX_PARTS: Final = 64
MAX_PART_BYTES: Final = 16 << 30

PART_NOTE: Final = ".part"
"""The suffix of the note beside a part."""

_LARGEST_NOTE: Final = 32 * 1024


class _PartNote(msgspec.Struct):
    of: str
    validator: str


class SavedPart(msgspec.Struct, frozen=True):
    """A saved part of a resource."""

    name: str
    validator: str
    length: int
    written: float


class Parts:
    """The parts in a folder of temporary files, at most 64 of them and 16 GiB."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._saved: dict[str, SavedPart] = {}
        self._noted: set[str] = set()

    def clear(self, oldest: float) -> None:
        """Remove all temporary files except the parts written since ``oldest``."""
        found: list[tuple[str, SavedPart]] = []
        with os.scandir(self._folder) as entries:
            names = {entry.name for entry in entries}
        for name in names:
            part = self._read(name) if name.endswith(PART_NOTE) else None
            if part is not None and part[1].written >= oldest:
                found.append(part)
        self._saved = self._choose(found)
        good = {part.name for part in self._saved.values()}
        for name in names:
            if name.removesuffix(PART_NOTE) not in good:
                self._unlink(name)
        self._noted = good

    def _choose(self, found: list[tuple[str, SavedPart]]) -> dict[str, SavedPart]:
        chosen: dict[str, SavedPart] = {}
        room = MAX_PART_BYTES
        for of, part in sorted(found, key=lambda pair: pair[1].written, reverse=True):
            if of not in chosen and part.length <= room and len(chosen) < MAX_PARTS:
                chosen[of] = part
                room -= part.length
        return chosen

    def _read(self, note: str) -> tuple[str, SavedPart] | None:
        try:
            with os.fdopen(open_file(note, self._folder), "rb") as stream:
                text = stream.read(_LARGEST_NOTE)
            of, validator = structs.astuple(msgspec.json.decode(text, type=_PartNote))
            name = note.removesuffix(PART_NOTE)
            info = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except (OSError, msgspec.MsgspecError, RecursionError):
            return None
        if not is_regular(info) or info.st_size < MIN_SAVED_BYTES or not is_sendable(validator):
            return None
        return of, SavedPart(name, validator, info.st_size, info.st_mtime)

    def take(self, of: str) -> SavedPart | None:
        """Hand the part of a resource over to the caller; ``None`` for none."""
        return self._saved.pop(of, None)

    def note(self, name: str, of: str, validator: str) -> bool:
        """Write the note of a part; return whether that succeeded."""
        if len(self._noted) >= MAX_PARTS or not is_sendable(validator):
            return False
        text = msgspec.json.encode(_PartNote(of, validator))
        if len(text) >= _LARGEST_NOTE:
            return False
        try:
            file = open_file(f"{name}{PART_NOTE}", self._folder, NEW)
            with os.fdopen(file, "wb") as stream:
                stream.write(text)
        except OSError:
            self.forget(name)
            return False  # the copy continues without a note
        self._noted.add(name)
        return True

    def forget(self, name: str) -> None:
        """Delete the note of a part."""
        self._noted.discard(name)
        self._unlink(f"{name}{PART_NOTE}")

    def _unlink(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(name, dir_fd=self._folder)


class StagedFile:
    """A staged copy: few bytes in memory until they are synced, more in a temporary file.

    ``is_noted``: there is a note of this part.
    """

    def __init__(
        self,
        folder: int,
        name: str,
        algorithms: Sequence[str],
        notes: Parts | None = None,
        of: str = "",
    ) -> None:
        self._folder = folder
        self._notes = notes if of else None
        self._of = of
        self._validator = ""
        self._small = b""
        self.is_noted = self._exists = False
        self.part: PartialBody | None = None
        self.name = name
        self.algorithms = algorithms
        self._hashers: dict[str, Any] = {}
        self._file = -1
        self._is_taken = False
        self.length = 0
        self.digests: tuple[Digest, ...] = ()

    def _open(self) -> int:
        if self._file < 0:
            try:
                self._file = open_file(self.name, self._folder, _TAKEN if self._is_taken else NEW)
            except OSError as error:
                raise mirror_error(error, "making a temporary file") from error
            self._exists = True
            if self._small:
                self._write_all(self._small)
        return self._file

    def write(self, chunk: bytes) -> None:
        """Write the next bytes."""
        self.length += len(chunk)
        if self._file < 0:
            if self.length <= SMALL:
                self._small += chunk
                return
            self._begin_file()
        self._write_all(chunk)
        for hasher in self._hashers.values():
            hasher.update(chunk)
        if self._validator and self.length >= MIN_SAVED_BYTES:
            self._note()

    def _begin_file(self) -> None:
        self._open()
        self._hashers = new_hashers(self.algorithms)
        for hasher in self._hashers.values():
            hasher.update(self._small)
        self._small = b""

    def _write_all(self, chunk: bytes) -> None:
        try:
            while chunk:
                chunk = chunk[os.write(self._file, chunk) :]
        except OSError as error:
            raise mirror_error(error, "writing a temporary file") from error

    def _note(self) -> None:
        if self._notes is not None:
            self.is_noted = self._notes.note(self.name, self._of, self._validator)
        self._validator = ""

    def record_validator(self, validator: str) -> None:
        """Record the validator for the rest of these bytes."""
        self._validator = validator if self._notes is not None else ""

    def resume(self, validator: str) -> None:
        """Resume a part that an earlier run left in the file."""
        self._exists = True
        self._file = open_file(self.name, self._folder, os.O_RDWR)
        self.is_noted = True
        self._read_on(self._file)
        self.part = PartialBody(length=self.length, validator=validator)

    def fill(self, source: int) -> None:
        """Write all bytes of an open file; if the file system can, without copying them."""
        file = self._open()
        try:
            fcntl.ioctl(file, _CLONE, source)
        except OSError:  # another file system, or one that cannot share
            self._hashers = new_hashers(self.algorithms)
            offset = 0
            while chunk := os.pread(source, _BLOCK, offset):
                self.write(chunk)
                offset += len(chunk)
            return
        self._read_on(file)

    def _read_on(self, file: int) -> None:
        self._hashers = new_hashers(self.algorithms)
        while chunk := os.read(file, _BLOCK):
            self.length += len(chunk)
            for hasher in self._hashers.values():
                hasher.update(chunk)

    def forget(self) -> None:
        """Delete the note of this part: it is complete, or its bytes are gone."""
        if self.is_noted and self._notes is not None:
            self._notes.forget(self.name)
        self.is_noted = False

    def restart(self) -> None:
        """Discard all bytes so far."""
        self.forget()
        self.part, self._validator, self._small = None, "", b""
        if self._file >= 0:
            try:
                os.ftruncate(self._file, 0)
                os.lseek(self._file, 0, os.SEEK_SET)
            except OSError as error:
                raise mirror_error(error, "emptying a temporary file") from error
            self._hashers = new_hashers(self.algorithms)
        self.length = 0

    def take(self, place: str, length: int, digests: tuple[Digest, ...]) -> None:
        """Take over a file of the folder that a worker staged and synced."""
        self.discard()
        self.part, self.length, self.digests = None, length, digests
        if "/" in place:
            raise _not_staged(place, "it is in another folder")
        try:
            # Opened, not only inspected: an NFS client then asks its server.
            file = open_file(place, self._folder, _TAKEN)
        except OSError as error:
            raise _not_staged(place, error.strerror or "") from error
        found = os.fstat(file).st_size
        os.close(file)  # hundreds of them may wait for their group
        self.name, self._exists, self._is_taken = place, True, True
        if found != length:
            raise _not_staged(place, f"it has {found:,} bytes, not {length:,}")

    def seal(self) -> tuple[int, tuple[Digest, ...]]:
        """Finish writing; return the length in bytes and the requested digests."""
        if self._is_taken:
            return self.length, self.digests
        digests = []
        for name in self.algorithms:
            if name in self._hashers:
                hasher = self._hashers[name]
            else:
                hasher = CONSTRUCTORS[name](self._small, usedforsecurity=False)
            digests.append(_new_digest((name, hasher.hexdigest())))
        self.digests = tuple(digests)
        return self.length, self.digests

    def open_sealed(self) -> BinaryIO:
        """Open the sealed bytes to read and seek; the caller closes what is returned."""
        if self._file < 0 and not self._is_taken:
            return io.BytesIO(self._small)
        try:
            return os.fdopen(os.dup(self._open()), "rb")
        except OSError as error:
            raise mirror_error(error, "reading a temporary file") from error

    def complete(self, lastmod: int | None, *, start: bool) -> None:
        """Write the rest of the file, with its mode and its time in microseconds.

        With ``start``, the disk begins to write it before it is synced: a file system with a
        journal then makes many files durable at once.
        """
        file = self._open()
        os.fchmod(file, 0o644)
        if lastmod is not None:
            moment = lastmod * 1_000
            if not 0 <= moment <= _LAST_MOMENT:
                moment = 0 if moment < 0 else _LAST_MOMENT
            os.utime(file, ns=(moment, moment))
        if start and CAN_ADVISE:
            try:  # noqa: SIM105 - once for each file
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            except OSError:
                pass  # it is advice: not every file system takes it

    def close_durable(self, *, sync: bool) -> str:
        """Make the bytes durable if they are not, and close the file; return the stat signature."""
        if sync:
            os.fsync(self._file)
        info = os.fstat(self._file)
        os.close(self._file)
        self._file, self._small = -1, b""
        return signature_of(info)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def suspend(self) -> None:
        """Stop before the end; a large part is saved for a later run."""
        if self.is_noted:
            self._close()
        else:
            self.discard()

    def discard(self) -> None:
        """Discard the bytes; may be called twice."""
        self._close()
        self._small = b""
        self.forget()
        if self._exists:
            with suppress(OSError):
                os.unlink(self.name, dir_fd=self._folder)


def _not_staged(place: str, why: str) -> StorageError:
    return StorageError(
        f"a worker staged {place}, which is not in the mirror's folder: {why}",
        evidence=(("kept", "all complete copies"),),
        hint="check that every worker reaches the mirror's folder at the path that it has here",
    )


_BUFFER: Final = 64 * 1024


class _ScratchFile(io.FileIO):
    def readinto(self, buffer: Any) -> int | None:
        with _guard_scratch("reading"):
            return super().readinto(buffer)

    def readall(self) -> bytes | None:  # type: ignore[override]  # as its own documentation says
        with _guard_scratch("reading"):
            return super().readall()

    def write(self, data: Any) -> int | None:  # type: ignore[override]  # the same
        with _guard_scratch("writing"):
            return super().write(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        with _guard_scratch("reading"):
            return super().seek(offset, whence)

    def truncate(self, size: int | None = None) -> int:
        with _guard_scratch("writing"):
            return super().truncate(size)


@contextmanager
def _guard_scratch(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise mirror_error(error, f"{doing} a temporary file") from error


def open_scratch(name: str, folder: int) -> BinaryIO:
    """Open an unlinked temporary file to write and read."""
    try:
        file = open_file(name, folder, NEW)
        try:
            os.unlink(name, dir_fd=folder)
            raw = _ScratchFile(file, "r+b")
        except BaseException:
            os.close(file)
            raise
    except OSError as error:
        raise mirror_error(error, "making a temporary file") from error
    return cast("BinaryIO", io.BufferedRandom(raw, _BUFFER))


class Staging:
    """A folder of temporary files."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._parts = Parts(folder)
        self._names = 0
        self._tag = os.urandom(8).hex()

    def clear(self, oldest: float = 0.0) -> None:
        """Remove temporary files of killed runs; large parts since ``oldest`` stay."""
        self._parts.clear(oldest)

    def stage(self, algorithms: Sequence[str], of: str = "") -> StagedFile:
        """Start a staged file; digests are computed while the bytes are written."""
        if of and (part := self._resume_part(algorithms, of)) is not None:
            return part
        self._names += 1
        return StagedFile(self._folder, f"{self._tag}-{self._names}", algorithms, self._parts, of)

    def scratch(self) -> BinaryIO:
        """Open a nameless temporary file, to read and write."""
        self._names += 1
        return open_scratch(f"{self._tag}-{self._names}", self._folder)

    def _resume_part(self, algorithms: Sequence[str], of: str) -> StagedFile | None:
        kept = self._parts.take(of)
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
    """Open a folder of temporary files while the block runs."""
    try:
        descriptor = open_folder(folder)
    except OSError as error:
        raise mirror_error(error, f"opening {folder}") from error
    with opened(descriptor):
        yield Staging(descriptor)
