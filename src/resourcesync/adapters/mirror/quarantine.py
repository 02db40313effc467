"""What was set aside because it is not what we put there, and the notes that tell where it was."""

import os
import secrets
from contextlib import suppress
from typing import Final

from resourcesync.durable_folders import sync_folder

_LEAF: Final = 100
_NOTE: Final = ".note"
_ORIGINAL_PATH: Final = "was at: "
_MOST_NOTES: Final = 100_000
_MOST_BYTES: Final = 1 << 16
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def move_to_quarantine(folder: int, leaf: str, path: str, quarantine: int) -> str:
    """Move a file to the quarantine, with a note of where it was; return its name there.

    Args:
        folder: Descriptor of the folder that it is in.
        leaf: Its name there.
        path: Its path in the mirror.
        quarantine: Descriptor of the quarantine.

    Raises:
        OSError: It could not be moved; it is where it was.
    """
    place = f"{secrets.token_hex(8)}-{leaf[:_LEAF]}"
    note = os.open(f"{place}{_NOTE}", _WRITE, 0o600, dir_fd=quarantine)
    with os.fdopen(note, "w", encoding="utf-8") as stream:
        stream.write(f"{_ORIGINAL_PATH}{path}\nbecause: not what resourcesync put there\n")
    os.rename(leaf, place, src_dir_fd=folder, dst_dir_fd=quarantine)
    sync_folder(quarantine)
    return place


def quarantined_from(quarantine: int, path: str) -> list[str]:
    """Return the names in the quarantine of what was set aside from a path, the newest last."""
    found: list[tuple[int, str]] = []
    with suppress(OSError), os.scandir(quarantine) as entries:
        for number, entry in enumerate(entries):
            if number >= _MOST_NOTES:
                break
            if entry.name.endswith(_NOTE) and _names_path(quarantine, entry.name, path):
                moment = entry.stat(follow_symlinks=False).st_mtime_ns
                found.append((moment, entry.name.removesuffix(_NOTE)))
    return [name for _, name in sorted(found)]


def _names_path(quarantine: int, note: str, path: str) -> bool:
    try:
        file = os.open(note, _READ, dir_fd=quarantine)
    except OSError:
        return False
    try:
        text = os.read(file, _MOST_BYTES)
    except OSError:
        return False
    finally:
        os.close(file)
    return text.startswith(f"{_ORIGINAL_PATH}{path}\n".encode())
