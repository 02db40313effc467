"""Sets of names that outlast a process, each in a file of its own."""

import threading
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.errors import StateError, StorageError
from resourcesync.own_files import read_file, replace_file

_MOST: Final = 16 * 1024 * 1024


class StoredNames:
    """A set of names in a file, as of the folders that were pulled."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self.names = self._read()

    def _read(self) -> frozenset[str]:
        try:
            return msgspec.json.decode(read_file(self._path, _MOST), type=frozenset[str])
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise StorageError(f"cannot read {self._path}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise StateError(
                f"{self._path} is not a list of names", hint="remove it: then there are none"
            ) from error

    def add(self, name: str) -> None:
        """Add a name, durably; on any thread."""
        with self._lock:
            names = self._read() | {name}  # other processes add names, too
            try:
                text = msgspec.json.encode(sorted(names))
                replace_file(self._path, text, mode=0o666, folder_mode=0o777)
            except OSError as error:
                raise StorageError(f"cannot write {self._path}: {error.strerror}") from error
            self.names = names
