"""A folder is looked at: what its file system can do, and what dead runs left there."""

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resourcesync.adapters.mirror.parts import PART_NOTE

_COMPOSED: Final = "\u00e9"
_DECOMPOSED: Final = "e\u0301"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """What was found of a file system.

    Attributes:
        refusal: Why nothing can be written; empty when something can.
        tells_case: Whether ``a`` and ``A`` are two files; ``None``: could not be tried.
        keeps_forms: Whether the two Unicode forms of one letter are two files.
        room: Bytes that are free.
        inodes: Files that can still be made; ``None`` where that is not counted.
    """

    refusal: str = ""
    distinguishes_case: bool | None = None
    preserves_unicode_forms: bool | None = None
    room: int = 0
    inodes: int | None = None


def probe_file_system(folder: Path) -> FileSystem:
    """Try what a folder's file system can do, with empty files that are gone at the end."""
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return FileSystem(refusal=error.strerror or str(error))
    room = found.f_bavail * found.f_frsize
    inodes = found.f_favail if found.f_files else None
    name = f".doctor-{secrets.token_hex(4)}-a"
    try:
        tells_case = _are_two(folder, name, f"{name[:-1]}A")
        keeps_forms = _are_two(folder, f"{name}{_COMPOSED}", f"{name}{_DECOMPOSED}")
    except OSError as error:
        return FileSystem(refusal=error.strerror or str(error), room=room, inodes=inodes)
    return FileSystem(
        distinguishes_case=tells_case, preserves_unicode_forms=keeps_forms, room=room, inodes=inodes
    )


def _are_two(folder: Path, one: str, other: str) -> bool:
    path = folder / one
    try:
        path.touch(exist_ok=False)
        return not os.path.lexists(folder / other)
    finally:
        with suppress(OSError):
            path.unlink()


@dataclass(slots=True, kw_only=True)
class TemporaryFileCounts:
    """What lies in a mirror's folder of temporary files.

    Attributes:
        stale: Files that no run will go on with.
        stale_bytes: Their bytes.
        parts: Beginnings of resources that the next pull goes on with.
        part_bytes: Their bytes.
    """

    stale: int = 0
    stale_bytes: int = 0
    parts: int = 0
    part_bytes: int = 0


def count_temporary_files(folder: Path, before: float) -> TemporaryFileCounts:
    """Count the temporary files of a mirror that no run holds.

    Args:
        folder: Theirs; one that is not there has none.
        before: What was last written before this moment is stale; seconds since 1970.
    """
    found = TemporaryFileCounts()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                info = entry.stat(follow_symlinks=False)
                if info.st_mtime < before:
                    found.stale += 1
                    found.stale_bytes += info.st_size
                elif os.path.lexists(f"{entry.path}{PART_NOTE}"):
                    found.parts += 1
                    found.part_bytes += info.st_size
    return found
