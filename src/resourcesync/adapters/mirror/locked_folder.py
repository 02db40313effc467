"""A mirror's root folder: its lock and identity, and its file system."""

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from resourcesync import own_files
from resourcesync.adapters.mirror import own_folder
from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from resourcesync.adapters.mirror.own_folder import LOCK_FILE, STATE_FILE, mirror_error
from resourcesync.errors import DiskFullError, LockedError, MirrorChangedError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import format_w3c
from resourcesync.ports import Clock

_SUBFOLDERS: Final = ("tmp", "trash", "quarantine")
_MARKER: Final = "marker"
_MARKER_NOTE: Final = "marker"
_MARKER_BYTES: Final = 64
_LOOK_SECONDS: Final = 0.05
"""Longer than the lock of a reader of the status lasts, in seconds."""

_PART_SECONDS: Final = 7 * 86_400.0


class MirrorFolder:
    """An open mirror: locked, with its state and its files."""

    state: SqliteMirrorState
    copies: FileTreeCopies

    def __init__(
        self,
        root: Path,
        clock: Clock,
        open_state: Callable[[Path], SqliteMirrorState] = SqliteMirrorState,
    ) -> None:
        self.root = root
        self._open_state = open_state
        self._held = ExitStack()
        try:
            self._prepare(clock)
        except BaseException:
            self.close()
            raise

    def _prepare(self, clock: Clock) -> None:
        try:
            own_files.make_folder(self.root)
            root = self._register(os.open(self.root, own_files.ROOT))
            self._own = self._register(own_files.open_below(root, [OWN_FOLDER], 0o700))
            for name in _SUBFOLDERS:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=self._own)
            self._lock(clock)
            self.copies = FileTreeCopies(root, self._own, clock.monotonic)
            self._held.callback(self.copies.close)
            oldest_part = clock.now().timestamp() - _PART_SECONDS
            self._held.callback(self.copies.clear_temporary, oldest_part)
            self.copies.clear_temporary(oldest_part)
            is_unfinished = own_folder.is_unfinished(self.root)
        except OSError as error:
            raise mirror_error(error, f"opening the mirror {self.root}") from error
        self.state = self._open_state(self.root / OWN_FOLDER / STATE_FILE)
        self._held.callback(self.state.close)
        if is_unfinished:
            self.state.check()
        self.check_marker()

    def _register(self, descriptor: int) -> int:
        self._held.callback(os.close, descriptor)
        return descriptor

    def _lock(self, clock: Clock) -> None:
        lock = self._register(own_files.open_file(LOCK_FILE, self._own, own_files.LOCK))
        since = format_w3c(clock.now())
        if own_files.lock_file(lock, since):
            return
        clock.sleep(_LOOK_SECONDS)  # it may be somebody who looks whether a run has it
        if not own_files.lock_file(lock, since):
            raise LockedError(
                f"another run holds {self.root}",
                evidence=(("who", own_files.holder_of(lock)),),
                hint="wait until it ends, then try again",
            )

    def check_marker(self) -> None:
        """Check that the folder is still the one of the state.

        An unmounted disk looks like an empty mirror; without this check everything would be fetched
        again, and everything that is not listed any more would seem to be gone.
        """
        expected = self.state.note(_MARKER_NOTE)
        found = self._read_marker()
        if expected is None:
            self.state.remember(_MARKER_NOTE, found or self._write_marker())
        elif found != expected:
            raise MirrorChangedError(
                f"{self.root} is not the folder of this mirror's state",
                evidence=(
                    ("here", found or f"no {OWN_FOLDER}/{_MARKER}"),
                    ("known", expected),
                    ("kept", "nothing was changed"),
                ),
                hint="mount the disk or restore the folder, then try again",
            )

    def _read_marker(self) -> str:
        try:
            with os.fdopen(own_files.open_file(_MARKER, self._own), "rb") as stream:
                return stream.read(_MARKER_BYTES).decode("ascii", "replace").strip()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise mirror_error(error, "reading the mirror's marker") from error

    def _write_marker(self) -> str:
        marker = os.urandom(16).hex()
        try:
            own_files.replace_in(self._own, _MARKER, marker.encode())
        except OSError as error:
            raise mirror_error(error, "writing the mirror's marker") from error
        return marker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self.close()
        if isinstance(error, DiskFullError):  # most name a file alone, not its disk
            error.evidence = ("folder", str(self.root)), *error.evidence

    def close(self) -> None:
        """Close files and state, and release the lock."""
        self._held.close()


_COMPOSED: Final = "\u00e9"
_DECOMPOSED: Final = "e\u0301"


class FileSystem(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a file system; ``None`` for what could not be tried."""

    distinguishes_case: bool | None = None
    preserves_unicode_forms: bool | None = None


def probe_file_system(folder: Path) -> FileSystem:
    """Probe the file system of a folder, with empty files that are removed at the end."""
    name = f".doctor-{os.urandom(4).hex()}-a"
    try:
        with own_files.opened(own_files.open_folder(folder)) as descriptor:
            return FileSystem(
                distinguishes_case=_are_two(descriptor, name, f"{name[:-1]}A"),
                preserves_unicode_forms=_are_two(
                    descriptor, f"{name}{_COMPOSED}", f"{name}{_DECOMPOSED}"
                ),
            )
    except OSError:
        return FileSystem()


def _are_two(folder: int, name: str, other: str) -> bool:
    os.close(own_files.open_file(name, folder, own_files.NEW))
    try:
        return not os.access(other, os.F_OK, dir_fd=folder, follow_symlinks=False)
    finally:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def writing_fault(folder: Path) -> str:
    """Return why no file can be written and synced in a folder; empty if one can."""
    try:
        with own_files.opened(own_files.open_folder(folder)) as descriptor:
            name = f".doctor-{os.urandom(4).hex()}"
            with own_files.opened(own_files.open_file(name, descriptor, own_files.NEW)) as file:
                os.write(file, b"doctor\n")
                os.fsync(file)
                os.unlink(name, dir_fd=descriptor)
            own_files.sync_folder(descriptor)
    except OSError as error:
        return error.strerror or str(error)
    return ""
