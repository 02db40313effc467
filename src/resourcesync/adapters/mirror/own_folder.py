"""A mirror's own folder: its files, and the sets of a folder of mirrors.

A folder of mirrors has one mirror for each set of a Source (ADR 0022).
"""

import fcntl
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import structs

from resourcesync import own_files
from resourcesync.errors import StateError, StorageError, storage_error
from resourcesync.model.own_names import OWN_FOLDER

STATE_FILE: Final = "state.db"
LOCK_FILE: Final = "lock"
_SETTLED_NANOSECONDS: Final = 2_000_000_000


def is_mirror(folder: Path) -> bool:
    """True if ``folder`` is a mirror: it has a state, even one that nobody should open."""
    return os.path.lexists(folder / OWN_FOLDER / STATE_FILE)  # not in an unreadable folder


def lock_holder(folder: Path) -> str:
    """Return the run that has locked the mirror in a folder at this moment; empty for none."""
    try:
        with own_files.opened(own_files.open_path(folder / OWN_FOLDER / LOCK_FILE)) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return own_files.holder_of(lock)
    except FileNotFoundError:
        pass
    return ""


def is_unfinished(folder: Path) -> bool:
    """True if a run was killed, or goes on; who only reads the state leaves an empty log."""
    try:
        return (folder / OWN_FOLDER / f"{STATE_FILE}-wal").lstat().st_size > 0
    except FileNotFoundError:
        return False


class StateVersion(NamedTuple):
    """The version of a mirror's state: as long as it is the same, the state is the same.

    Each is inode, size and time.
    """

    file: tuple[int, int, int]
    log: tuple[int, int, int]


def state_version(folder: Path) -> StateVersion | None:
    """Return the version of a mirror's state; ``None`` if it was written within two seconds.

    A later write could have the same time as an earlier one: clocks of file systems are coarse.
    """
    found = latest_version(folder)
    age = time.time_ns() - max(found.file[2], found.log[2]) if found else 0
    return found if age > _SETTLED_NANOSECONDS else None


def latest_version(folder: Path) -> StateVersion | None:
    """Return the version of a mirror's state even if it was written just now."""
    path = f"{folder}/{OWN_FOLDER}/{STATE_FILE}"
    try:
        file = _file_version(path)
        log = _file_version(f"{path}-wal", missing=(0, 0, 0))
    except OSError:
        return None
    return StateVersion(file, log)


def _file_version(path: str, missing: tuple[int, int, int] | None = None) -> tuple[int, int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path costs as much as the call
    except FileNotFoundError:
        if missing is None:
            raise
        return missing
    return found.st_ino, found.st_size, found.st_mtime_ns


def mirror_error(error: OSError, doing: str) -> StorageError:
    """Return the error for a failure of the file system of a mirror."""
    return storage_error(error, doing, kept="all complete copies")


SETS_FILE: Final = "sets.json"
MAX_SETS: Final = 1_000
_MOST: Final = 16 * 1024 * 1024
_FOLDER: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_Sets = Annotated[tuple["FollowedSet", ...], msgspec.Meta(max_length=MAX_SETS)]


class FollowedSet(msgspec.Struct, frozen=True, kw_only=True):
    """A set, and the folder of its mirror.

    ``uri`` is that of its Capability List. ``pulled``: its mirror was there. ``withdrawn``: the
    Source offers it no longer.
    """

    uri: str
    folder: str
    pulled: bool = False
    withdrawn: bool = False


class FollowedSets(msgspec.Struct, frozen=True, kw_only=True):
    """The sets that a folder of mirrors follows.

    ``every``: new sets of the Source are followed too. ``looked`` is the time of the last request
    for them, microseconds.
    """

    source: str
    every: bool
    looked: int
    sets: _Sets = ()
    version: int = 1


def read_sets(root: Path) -> FollowedSets | None:
    """Return the sets of a folder of mirrors; ``None`` if it is none, or unreadable."""
    path = root / OWN_FOLDER / SETS_FILE
    try:
        text = own_files.read_file(path, _MOST)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        raise mirror_error(error, f"reading {path}") from error
    try:
        found = msgspec.json.decode(text, type=FollowedSets)
        _check(found)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateError(
            f"{path} is damaged or of another version: {error}",
            evidence=(("kept", "the mirrors below it; each can be pulled by its own name"),),
            hint=f"move {path} away, then run the first command again",
        ) from error
    there = (each for each in found.sets if not each.withdrawn or is_mirror(root / each.folder))
    return structs.replace(found, sets=tuple(there))


def _check(found: FollowedSets) -> None:
    if found.version != 1:
        raise ValueError(f"version {found.version}")
    names = [followed_set.folder for followed_set in found.sets]
    if len({name.lower() for name in names}) != len(names):
        raise ValueError("two sets in one folder")
    for name in names:
        if not _FOLDER.fullmatch(name):
            raise ValueError(f"{name[:100]!r} is not a folder of a set")


def write_sets(root: Path, sets: FollowedSets) -> None:
    """Store durably the sets that a folder of mirrors follows."""
    _check(sets)
    text = msgspec.json.format(msgspec.json.encode(sets))
    try:
        own_files.replace_file(root / OWN_FOLDER / SETS_FILE, text, folder_mode=0o700)
    except OSError as error:
        raise mirror_error(error, f"storing the sets of {root}") from error


def delete_sets(root: Path) -> None:
    """Remove what `write_sets` created, as far as nothing else is there."""
    with suppress(OSError):
        own_files.remove_file(root / OWN_FOLDER / SETS_FILE)
    with suppress(OSError):
        (root / OWN_FOLDER).rmdir()
