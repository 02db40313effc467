"""How far each program has read a mirror's changes: a small file for each.

Not in the mirror's memory: that has one writer at a time, and a program must be able to say that
it is done while a pull goes on for hours.
"""

import json
import os
import re
import secrets
from pathlib import Path
from typing import Final

from resourcesync.adapters.mirror.staged import storage_error
from resourcesync.durable_folders import sync_folder
from resourcesync.errors import ConfigurationError, StateError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MOST: Final = 4096
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ConsumerFiles:
    """The files of ``.resourcesync/consumers``.

    Args:
        own: The mirror's folder ``.resourcesync``.
    """

    def __init__(self, own: Path) -> None:
        self._folder = own / "consumers"

    def cursor(self, name: str) -> int | None:
        """Return the number of the last change that ``name`` acknowledged, or ``None``.

        Raises:
            ConfigurationError: The name cannot be a file's.
            StateError: The file was damaged.
            StorageError: It cannot be read.
        """
        path = self._folder / f"{_checked_name(name)}.json"
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(file, "rb") as stream:
                text = stream.read(_MOST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, f"reading {path}") from error
        try:
            return int(json.loads(text)["acknowledged"])
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"{path} is damaged: nobody knows how far {name} has read",
                hint="begin anew: --restart",
            ) from error

    def acknowledge(self, name: str, cursor: int) -> None:
        """Remember durably that ``name`` has taken all changes up to ``cursor``.

        Raises:
            ConfigurationError: The name cannot be a file's.
            StorageError: It cannot be written; the old cursor stays.
        """
        leaf = f"{_checked_name(name)}.json"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            folder = os.open(self._folder, _FOLDER_FLAGS)
            try:
                _replace_file(folder, leaf, json.dumps({"acknowledged": cursor}).encode())
            finally:
                os.close(folder)
        except OSError as error:
            raise storage_error(error, f"remembering how far {name} has read") from error


def _replace_file(folder: int, leaf: str, content: bytes) -> None:
    beside = f".{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(beside, flags, 0o600, dir_fd=folder), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(beside, leaf, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(beside, dir_fd=folder)
        raise
    sync_folder(folder)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name[:100]!r} cannot be the name of a consumer",
            hint="use up to 64 letters, digits, - and _",
        )
    return name
