"""A folder of mirrors, one for each set of a Source: which sets, in which folders (ADR 0022)."""

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import msgspec

from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.adapters.mirror.folders import FOLDER_FLAGS
from resourcesync.adapters.mirror.staged import storage_error
from resourcesync.durable_folders import make_folder, sync_folder
from resourcesync.errors import StateError

SETS_FILE: Final = "sets.json"
MAX_SETS: Final = 1_000
_MOST: Final = 16 * 1024 * 1024
_FOLDER: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_Sets = Annotated[tuple["FollowedSet", ...], msgspec.Meta(max_length=MAX_SETS)]


class FollowedSet(msgspec.Struct, frozen=True, kw_only=True):
    """One set, and where its mirror is.

    Attributes:
        uri: What tells it from the Source's other sets: its Capability List.
        folder: The name of its mirror's folder.
    """

    uri: str
    folder: str


class FollowedSets(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder of mirrors follows.

    Attributes:
        source: The Source's address, as it was given.
        every: Whether new sets of the Source are followed too.
        looked: When the Source was last asked which sets it has, microseconds since 1970.
        sets: The sets.
        version: The form of the file.
    """

    source: str
    every: bool
    looked: int
    sets: _Sets = ()
    version: int = 1


def read_sets(root: Path) -> FollowedSets | None:
    """Return what a folder of mirrors follows; ``None`` when it is none that we may look into.

    Raises:
        StateError: Its file was damaged, or is from a newer version.
        StorageError: It cannot be read.
    """
    path = root / OWN_FOLDER / SETS_FILE
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as stream:
            text = stream.read(_MOST)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        raise storage_error(error, f"reading {path}") from error
    try:
        found = msgspec.json.decode(text, type=FollowedSets)
        _check(found)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateError(
            f"{path} is damaged or of a newer version: {error}",
            evidence=(("kept", "the mirrors below it; each can be pulled by its own name"),),
            hint=f"move {path} away, then run the first command again",
        ) from error
    return found


def _check(found: FollowedSets) -> None:
    """Check that every mirror is a folder of its own right below.

    Raises:
        ValueError: One is not.
    """
    if found.version != 1:
        raise ValueError(f"version {found.version}")
    names = [one.folder for one in found.sets]
    if len({name.lower() for name in names}) != len(names):
        raise ValueError("two sets in one folder")
    for name in names:
        if not _FOLDER.fullmatch(name):
            raise ValueError(f"{name[:100]!r} is no folder of a set")


def write_sets(root: Path, sets: FollowedSets) -> None:
    """Remember durably what a folder of mirrors follows.

    Raises:
        StorageError: It cannot be written; what was known before stays.
    """
    _check(sets)
    beside = f".{secrets.token_hex(8)}"
    try:
        make_folder(root / OWN_FOLDER, 0o700)
        folder = os.open(root / OWN_FOLDER, FOLDER_FLAGS)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(beside, flags, 0o600, dir_fd=folder), "wb") as stream:
                stream.write(msgspec.json.format(msgspec.json.encode(sets)))
                stream.flush()
                os.fsync(stream.fileno())
            os.rename(beside, SETS_FILE, src_dir_fd=folder, dst_dir_fd=folder)
            sync_folder(folder)
        except OSError:
            with suppress(OSError):
                os.unlink(beside, dir_fd=folder)
            raise
        finally:
            os.close(folder)
    except OSError as error:
        raise storage_error(error, f"remembering the sets of {root}") from error


def delete_sets(root: Path) -> None:
    """Take away what `write_sets` made, as far as nothing else is there."""
    with suppress(OSError):
        (root / OWN_FOLDER / SETS_FILE).unlink()
    with suppress(OSError):
        (root / OWN_FOLDER).rmdir()
