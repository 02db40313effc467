"""Locks among the processes of one machine or of several: byte ranges of a file (``fcntl``).

They belong to the open file, so threads keep each other out as well, and the kernel frees them
when a process ends in whatever way. Over NFS the server keeps them, for its own processes too.
"""

import errno
import fcntl
import hashlib
import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event
from typing import Final

from resourcesync.adapters.shared_folder.places import OWN_FOLDER, FolderLocations
from resourcesync.errors import ConfigurationError, LockedError, StorageError

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_KEYS: Final = f"{OWN_FOLDER}/keys.lock"
_HOLD: Final = f"{OWN_FOLDER}/hold.lock"
_BUSY: Final = frozenset({errno.EAGAIN, errno.EACCES})
_SHORTEST: Final = 0.001
_LONGEST: Final = 0.1
_MAX_HOLDER: Final = 400

_open: set[int] = set()


def _close_in_child() -> None:
    """Close what a forked process got of its parent's locks; they would live as long as it."""
    for file in _open:
        with suppress(OSError):
            os.close(file)
    _open.clear()


os.register_at_fork(after_in_child=_close_in_child)


class KeyLocks:
    """The locks of a store.

    Args:
        places: The store's folders.
        patience: Seconds to wait for somebody who moves or replaces the same key.
    """

    def __init__(self, places: FolderLocations, patience: float) -> None:
        self._places = places
        self._patience = patience

    @contextmanager
    def lock_keys(self, *keys: str) -> Iterator[None]:
        """Keep all others from replacing, moving or removing what is at some keys.

        Raises:
            StorageError: Somebody does so for too long.
            ConfigurationError: The file system has no locks.
        """
        with ExitStack() as held:
            # Always in the same order: so no two wait for each other.
            for start in sorted({_start(key) for key in keys}):
                file = held.enter_context(self._lock_file(_KEYS))
                self._wait_for(file, start)
                held.callback(_release, file, start)
            yield

    def _wait_for(self, file: int, start: int) -> None:
        pause, until = _SHORTEST, time.monotonic() + self._patience
        while not _acquire(file, start):
            if time.monotonic() >= until:
                raise StorageError(
                    f"somebody has kept a key of {self._places.root} for {self._patience:.0f} s",
                    evidence=(("kept", "what is there"),),
                    hint="look for a program or a machine that hangs, then run the same command",
                    code="store",
                )
            Event().wait(pause)
            pause = min(2 * pause, _LONGEST)

    @contextmanager
    def lock_store(self, who: str) -> Iterator[None]:
        """Keep every other holder out while the block runs.

        Raises:
            LockedError: Somebody holds it.
            ConfigurationError: The file system has no locks.
        """
        with self._lock_file(_HOLD) as file:
            if not _acquire(file, 0):
                holder = os.pread(file, _MAX_HOLDER, 0).decode("utf-8", "replace")
                raise LockedError(
                    f"another run holds {self._places.root}",
                    evidence=(("who", holder or "unknown"),),
                    hint="wait until it ends, then run the same command",
                )
            os.ftruncate(file, 0)
            os.pwrite(file, who.encode("utf-8", "replace")[:_MAX_HOLDER], 0)
            os.fsync(file)  # so that other machines can read it
            try:
                yield
            finally:
                _release(file, 0)

    @contextmanager
    def _lock_file(self, path: str) -> Iterator[int]:
        with self._places.parent(path, create=True) as (folder, name):
            file = os.open(name, _FLAGS, 0o666, dir_fd=folder)
        _open.add(file)
        try:
            yield file
        finally:
            if file in _open:  # in a forked process it is closed already, and may be another's
                _open.discard(file)
                os.close(file)


def _start(key: str) -> int:
    """Return the byte that stands for a key; two keys with one byte wait without need."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 2


def _acquire(file: int, start: int) -> bool:
    try:
        _set_lock(file, fcntl.F_WRLCK, start)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise ConfigurationError(
            f"the file system keeps no locks: {os.strerror(error.errno or 0)}",
            evidence=(("kept", "what is there"),),
            hint="mount it with locks; without them only one process may put copies there",
        ) from error
    return True


def _release(file: int, start: int) -> None:
    if file in _open:
        _set_lock(file, fcntl.F_UNLCK, start)


def _set_lock(file: int, what: int, start: int) -> None:
    if sys.platform != "linux":
        raise ConfigurationError("a shared folder needs locks of open files, as Linux has them")
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", what, os.SEEK_SET, start, 1, 0))
