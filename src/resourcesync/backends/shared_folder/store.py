"""The ``Store`` port on a folder, by links, renames and short locks.

The locks are byte ranges of a file (``fcntl``), among processes of one or several machines. They
belong to the open file, so threads exclude each other as well, and the kernel releases them when a
process ends in whatever way. Over NFS the server holds them, for its own processes too.
"""

import errno
import fcntl
import hashlib
import os
import secrets
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import BinaryIO, Final, TypeVar
from urllib.parse import unquote, urlsplit

from resourcesync.backends.shared_folder.locations import (
    OWN_FOLDER,
    FolderLocations,
    is_key,
    open_regular,
)
from resourcesync.durable_folders import sync_folder
from resourcesync.errors import ConfigurationError, LockedError, Remedy, StorageError, storage_error
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.stores import ObjectContent, StoredObject

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_KEYS: Final = f"{OWN_FOLDER}/keys.lock"
_HOLD: Final = f"{OWN_FOLDER}/hold.lock"
_BUSY: Final = frozenset({errno.EAGAIN, errno.EACCES})
_SHORTEST: Final = 0.001
_LONGEST: Final = 0.1
_MAX_HOLDER: Final = 400

_open: set[int] = set()


def _close_in_child() -> None:
    """Close the lock files that a forked process inherited; else it would hold the locks."""
    for file in _open:
        with suppress(OSError):
            os.close(file)
    _open.clear()


os.register_at_fork(after_in_child=_close_in_child)


class KeyLocks:
    """The locks of a store.

    Args:
        places: The folders of the store.
        patience: Seconds to wait for a process that moves or replaces the same key.
    """

    def __init__(self, places: FolderLocations, patience: float) -> None:
        self._places = places
        self._patience = patience

    @contextmanager
    def lock_keys(self, *keys: str) -> Iterator[None]:
        """Lock some keys against replacing, moving and removing.

        Raises:
            StorageError: Another process holds a lock for too long.
            ConfigurationError: The file system has no locks.
        """
        with ExitStack() as held:
            # Always in the same order, against deadlock.
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
                    f"a key of {self._places.root} has been locked for {self._patience:.0f} s",
                    evidence=(("kept", "what is there"),),
                    hint="look for a program or a machine that hangs, then try again",
                    code="store",
                )
            Event().wait(pause)
            pause = min(2 * pause, _LONGEST)

    @contextmanager
    def lock_store(self, who: str) -> Iterator[None]:
        """Lock the store while the block runs.

        Raises:
            LockedError: Another process has the lock.
            ConfigurationError: The file system has no locks.
        """
        with self._lock_file(_HOLD) as file:
            if not _acquire(file, 0):
                holder = os.pread(file, _MAX_HOLDER, 0).decode("utf-8", "replace")
                raise LockedError(
                    f"another run holds {self._places.root}",
                    evidence=(("who", holder or "unknown"),),
                    hint="wait until it ends, then try again",
                )
            os.ftruncate(file, 0)
            os.pwrite(file, who.encode("utf-8", "replace")[:_MAX_HOLDER], 0)
            os.fsync(file)  # for readers on other machines
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
            if file in _open:  # a forked process closed it already, and may have reused the number
                _open.discard(file)
                os.close(file)


def _start(key: str) -> int:
    """Return the byte of a key's lock; two keys with one byte wait without need."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 2


def _acquire(file: int, start: int) -> bool:
    try:
        _set_lock(file, fcntl.F_WRLCK, start)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise ConfigurationError(
            f"the file system does not support locks: {os.strerror(error.errno or 0)}",
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


PATIENCE: Final = 60.0
"""Seconds to wait for a process that replaces or moves the same key."""
_TEMPORARY: Final = f"{OWN_FOLDER}/on-its-way"
ABANDONED_NANOSECONDS: Final = 24 * 3_600 * 10**9
"""Age of a temporary file, in nanoseconds, at which no process can still write it."""
_IN_FLIGHT: Final = 16
_TRIES: Final = 100
_BLOCK: Final = 1 << 20
_SECOND: Final = 10**9
_LAST_SECOND: Final = 1 << 31
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EISDIR})
_MIRRORS: Final = (".resourcesync/state.db", ".resourcesync/store")

_Result = TypeVar("_Result")


class FolderStore:
    """A store of bytes by keys below a folder, each an ordinary file that anybody may read.

    A version is the length and the date of a file; the date's fraction of a second is random for
    each ``put``.

    Args:
        root: The folder; created by the first write, in an existing folder.
        patience: Seconds to wait for a process that replaces the same key.
    """

    max_in_flight: int = _IN_FLIGHT
    """Number of concurrent calls, from several threads."""

    def __init__(self, root: Path, patience: float = PATIENCE) -> None:
        self.root = root
        self.folder = str(root)
        self._places = FolderLocations(root)
        self._locks = KeyLocks(self._places, patience)

    def stat(self, key: str) -> StoredObject | None:
        """Return the object at a key now; ``None`` if there is no ordinary file."""
        return self._at(key, _stored)

    def open(self, key: str) -> BinaryIO | None:
        """Open the bytes at a key, of one version to the end; ``None`` for none."""
        return self._at(key, lambda file: os.fdopen(os.dup(file), "rb"))

    def _at(self, key: str, do: Callable[[int], _Result]) -> _Result | None:
        if not is_key(key):
            return None
        try:
            with self._places.parent(key, create=False) as (folder, name):
                return _with_file(folder, name, do)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in _IN_THE_WAY:
                return None
            raise

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield all keys with a prefix: those of ordinary files, except the store's own."""
        return self._places.keys(prefix)

    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        """Store bytes, if the key still has the version to replace.

        Raises:
            StorageError: Something that is no ordinary file is there, the file system failed, or
                the bytes do not match the digests.
            ConfigurationError: The parent of the root does not exist, or the file system has no
                locks.
        """
        with _guard_store(f"putting {key}"):
            _check(key)
            there = self.stat(key)
            if replaces != (None if there is None else there.version):
                return None  # do not write a large file in vain
            with self._staged(key, content) as (folder, name, version):
                if replaces is None:
                    put = self._link(folder, name, version, key)
                else:
                    put = self._rename(folder, name, version, key, replaces)
            return version if put else None

    @contextmanager
    def _staged(self, key: str, content: ObjectContent) -> Iterator[tuple[int, str, str]]:
        """Write bytes durably to a temporary file, which exists while the block runs."""
        name = secrets.token_hex(16)
        with self._places.parent(f"{_TEMPORARY}/{name}", create=True) as (folder, _):
            file = os.open(name, _NEW_FILE, 0o666, dir_fd=folder)
            try:
                try:
                    _write(file, key, content)
                    _set_date(file, content.lastmod)
                    os.fsync(file)
                    version = _stored(file).version
                finally:
                    os.close(file)
                yield folder, name, version
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)

    def _link(self, source: int, name: str, version: str, key: str) -> bool:
        """Link a file to a free name; false if an ordinary file has it."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError), self._places.parent(key, create=True) as (folder, to):
                try:
                    os.link(name, to, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
                except FileExistsError:
                    there = _with_file(folder, to, _stored)
                    if there is None:
                        _clear(folder, to, key)
                        continue
                    if there.version != version:  # else a lost answer: repeated call
                        return False
                sync_folder(folder)
                return True
        raise StorageError(
            f"the folders above {key} are created and removed all the time", code="store"
        )

    @contextmanager
    def _open_parent(self, key: str) -> Iterator[tuple[int | None, str]]:
        """Open the folder of a key; ``None`` if it was removed with its last file."""
        with ExitStack() as opened:
            try:
                found = opened.enter_context(self._places.parent(key, create=False))
            except FileNotFoundError:
                yield None, ""
                return
            yield found

    def _rename(self, source: int, name: str, version: str, key: str, replaces: str) -> bool:
        with self._locks.lock_keys(key), self._open_parent(key) as (folder, to):
            there = None if folder is None else _with_file(folder, to, _stored)
            if folder is None or there is None or there.version != replaces:
                return False
            try:
                os.rename(name, to, src_dir_fd=source, dst_dir_fd=folder)
            except FileNotFoundError:
                there = _with_file(folder, to, _stored)
                if there is None or there.version != version:
                    raise
            sync_folder(folder)
            return True

    def move(self, key: str, to: str, version: str) -> bool:
        """Move a version to a free key; false if it is not at ``key`` any more.

        Raises:
            StorageError: ``to`` is occupied, or the file system failed.
        """
        with _guard_store(f"moving {key}"):
            _check(key)
            _check(to)
            there = self.stat(key)
            if there is None or there.version != version:
                return False
            with self._locks.lock_keys(key, to), self._open_parent(key) as (folder, name):
                there = None if folder is None else _with_file(folder, name, _stored)
                if folder is None or there is None or there.version != version:
                    return False
                if not self._link(folder, name, version, to):
                    raise StorageError(f"{to} exists already: nothing was moved", code="store")
                os.unlink(name, dir_fd=folder)
                sync_folder(folder)
            self._places.drop_empty(key)
            return True

    def remove(self, key: str) -> None:
        """Delete the file at a key; it is no error if there is none."""
        with _guard_store(f"removing {key}"):
            if self.stat(key) is None:
                return
            with self._locks.lock_keys(key), self._open_parent(key) as (folder, name):
                if folder is not None and _with_file(folder, name, _stored) is not None:
                    os.unlink(name, dir_fd=folder)
                    sync_folder(folder)
            self._places.drop_empty(key)

    @contextmanager
    def lock(self, who: str) -> Iterator[None]:
        """Lock the store while the block runs; the end of the process releases it too.

        Temporary files older than a day are removed.

        Raises:
            LockedError: Another process has the lock.
            ConfigurationError: The folder is that of a mirror, or the file system has no locks.
        """
        found = [name for name in _MIRRORS if (self.root / name).exists()]
        if found:
            raise ConfigurationError(
                f"{self.root} is the folder of a mirror, with its state in it",
                evidence=(("found", found[0]), ("kept", "nothing was changed")),
                hint="name another folder for the copies, or for the state",
                remedy=Remedy("state-elsewhere"),
            )
        with self._locks.lock_store(who):
            self._clear_temporary()
            yield

    def _clear_temporary(self) -> None:
        """Remove old temporary files by the dates of the file system itself, without a clock."""
        asked = secrets.token_hex(16)
        with self._places.parent(f"{_TEMPORARY}/{asked}", create=True) as (folder, _):
            os.close(os.open(asked, _NEW_FILE, 0o666, dir_fd=folder))
            oldest = os.stat(asked, dir_fd=folder).st_ctime_ns - ABANDONED_NANOSECONDS
            os.unlink(asked, dir_fd=folder)
            with os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(OSError):  # one that cannot be removed stays
                        if entry.stat(follow_symlinks=False).st_ctime_ns < oldest:
                            os.unlink(entry.name, dir_fd=folder)


def _check(key: str) -> None:
    if not is_key(key):
        raise StorageError(
            f"{key!r:.1100} is not a valid key of a copy",
            evidence=(("kept", "nothing was changed there"),),
            code="path-in-the-way",
        )


def _with_file(folder: int, name: str, do: Callable[[int], _Result]) -> _Result | None:
    file = open_regular(folder, name)
    if file is None:
        return None
    try:
        return do(file)
    finally:
        os.close(file)


def _stored(file: int) -> StoredObject:
    info = os.fstat(file)
    return StoredObject(f"{info.st_size}:{info.st_mtime_ns}", info.st_size)


def _write(file: int, key: str, content: ObjectContent) -> None:
    usable = sorted(
        (digest for digest in content.digests if digest.is_usable),
        key=lambda digest: len(digest.value),
    )
    named = [(digest, hashlib.new(digest.algorithm.replace("-", ""))) for digest in usable[-1:]]
    left = content.length
    while block := content.stream.read(min(_BLOCK, left + 1)):
        left -= len(block)
        for _, hasher in named:
            hasher.update(block)
        rest = memoryview(block)
        while rest:
            rest = rest[os.write(file, rest) :]
    if left or any(digest.value != hasher.hexdigest() for digest, hasher in named):
        raise StorageError(
            f"the bytes of {key} changed since they were fetched",
            evidence=(("kept", "what was stored before"),),
            hint="check this machine's disk and memory",
        )


def _set_date(file: int, lastmod: datetime | None) -> None:
    """Set a date that no other version at the key has; its seconds are the Source's."""
    lot = secrets.randbelow(_SECOND)
    if lastmod is None:
        second = os.fstat(file).st_mtime_ns // _SECOND
    else:
        second = max(0, min(to_microseconds(lastmod) // 1_000_000, _LAST_SECOND - 1))
    moment = second * _SECOND + lot
    os.utime(file, ns=(moment, moment))
    if os.fstat(file).st_mtime_ns != moment:  # no fractions of a second: make all random
        moment = secrets.randbelow(_LAST_SECOND) * _SECOND + lot
        os.utime(file, ns=(moment, moment))


def _clear(folder: int, name: str, key: str) -> None:
    """Remove an empty folder at the path of a copy.

    Raises:
        StorageError: It is no empty folder.
    """
    try:
        os.rmdir(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _in_the_way(key) from error


def _in_the_way(key: str) -> StorageError:
    return StorageError(
        f"something other than a file is in the way of a copy: {key:.1000}",
        evidence=(("kept", "it is unchanged"),),
        hint="move it away, then try again",
        code="path-in-the-way",
    )


@contextmanager
def _guard_store(doing: str) -> Iterator[None]:
    """Translate failures of the file system."""
    try:
        yield
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            raise _in_the_way(doing.partition(" ")[2]) from error
        raise storage_error(
            error, doing, kept="all complete copies", code="store", trash=True
        ) from error


def open_store(address: str) -> FolderStore:
    """Open the store at ``file:///FOLDER``, percent-encoded; nothing is written yet.

    Raises:
        ConfigurationError: The address is invalid.
    """
    parts = urlsplit(address)
    try:
        path = unquote(parts.path, errors="strict")
    except UnicodeDecodeError:
        path = ""
    if not address.startswith("file:///") or parts.query or parts.fragment or "\0" in path:
        path = ""
    if not path.strip("/"):
        raise ConfigurationError(
            f"{address[:200]!r} is not the address of a folder",
            hint="write file:///path/to/folder; blanks and other signs percent-encoded",
        )
    return FolderStore(Path(path))
