"""The folder of a published table: what is remembered, and the files of rows."""

import errno
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from resourcesync.adapters.inventory.files import atomic_write
from resourcesync.errors import DiskFullError, StorageError

_STATE_FILE: Final = "inventory.json"
_RUNS: Final = "runs"
_SPILL: Final = "spill"
_ROWS: Final = "*.parquet"


class InventoryFolder:
    """What is kept of a published table; for its owner alone.

    Args:
        root: The folder; it is made when something is written.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def spill(self) -> Path:
        """A folder for what does not fit into memory."""
        return self._root / _SPILL

    def rows(self, name: str) -> Path:
        """Return where a file of rows is."""
        return self._root / name

    def outcome(self, task: str, unit: str) -> Path:
        """Return where a unit of a task says what it did."""
        return self._root / _RUNS / task / f"{unit}.json"

    def read(self) -> bytes | None:
        """Return what is remembered; ``None`` when nothing is.

        Raises:
            StorageError: It cannot be read.
        """
        return read_file(self._root / _STATE_FILE)

    def write(self, content: bytes) -> None:
        """Remember something else, durably: all of it or none.

        Raises:
            DiskFullError: No space is left.
            StorageError: It cannot be written.
        """
        write_file(self._root / _STATE_FILE, content)

    def make(self, task: str = "") -> None:
        """Make the folder, and that of a task's units.

        Raises:
            StorageError: It cannot be made.
        """
        try:
            self._root.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._root.mkdir(exist_ok=True, mode=0o700)
            if task:
                (self._root / _RUNS / task).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot make {self._root}: {error.strerror}") from error

    def clear(self, wanted: frozenset[str], task: str = "") -> None:
        """Remove the files that are not wanted: what a run that was killed left, and old tables.

        Args:
            wanted: The names of the files of rows to keep.
            task: The task whose units' outcomes are to be kept; empty for none.
        """
        shutil.rmtree(self.spill, ignore_errors=True)
        for path in self._root.glob(f"{_ROWS}*"):
            if path.name not in wanted:
                with suppress(OSError):
                    path.unlink()
        for path in (self._root / _RUNS).glob("*"):
            if path.name != task:
                shutil.rmtree(path, ignore_errors=True)


def write_file(path: Path, content: bytes) -> None:
    """Write a file, durably: all of it or nothing.

    Raises:
        DiskFullError: No space is left.
        StorageError: It cannot be written.
    """
    try:
        with atomic_write(path) as stream:
            stream.write(content)
    except OSError as error:
        kind = DiskFullError if error.errno == errno.ENOSPC else StorageError
        raise kind(f"cannot write {path}: {error.strerror}") from error


def read_file(path: Path) -> bytes | None:
    """Return a file's bytes; ``None`` when it is not there.

    Raises:
        StorageError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
