"""The folder of a published table: its state, and Parquet files of rows.

A file of rows is written once, whole, in groups that are read one at a time: a unit of work reads
the rows that it needs as resources or changes.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

from resourcesync.adapters.inventory.duckdb_engine import check_installed
from resourcesync.errors import StateError, StorageError, storage_error
from resourcesync.model.resources import ResourceRun
from resourcesync.model.timestamps import from_microseconds

GROUP: Final = 50_000
"""Rows of one group: about as many as in one list."""
BUFFERED_ROWS: Final = GROUP
"""Rows in memory at which a group is written."""


class RowGroupWriter:
    """A writer of rows in groups of one size, for batches of any size.

    Args:
        stream: The file to write.
        schema: The columns.
    """

    def __init__(self, stream: Any, schema: Any) -> None:
        from pyarrow import parquet  # noqa: PLC0415 - an extra, and seldom needed

        self._writer = parquet.ParquetWriter(stream, schema, compression="zstd")
        self._waiting: list[Any] = []
        self._buffered = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the file; after an error without the buffered rows."""
        if kind is None:
            self._flush(self._buffered)
        self._writer.close()

    def add(self, rows: Any) -> None:
        """Add some rows."""
        self._waiting.append(rows)
        self._buffered += rows.num_rows
        if self._buffered >= BUFFERED_ROWS:
            self._flush(self._buffered - self._buffered % GROUP)

    def _flush(self, count: int) -> None:
        if not count:
            return
        import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

        table = pyarrow.Table.from_batches(self._waiting)
        self._writer.write_table(table.slice(0, count), row_group_size=GROUP)
        self._waiting = table.slice(count).to_batches()
        self._buffered -= count
        pyarrow.default_memory_pool().release_unused()  # it would retain what a group needed


@contextmanager
def atomic_write(path: Path) -> Iterator[Any]:
    """Open a temporary file that replaces ``path`` durably if the block ends without an error."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


_STATE_FILE: Final = "inventory.json"
_RUNS: Final = "runs"
_SPILL: Final = "spill"
_ROWS: Final = "*.parquet"


class InventoryFolder:
    """The state of a published table; for its owner alone.

    Args:
        root: The folder; created by the first write.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def spill(self) -> Path:
        """The folder for data that does not fit into memory."""
        return self._root / _SPILL

    def rows(self, name: str) -> Path:
        """Return the path of a file of rows."""
        return self._root / name

    def outcome(self, task: str, unit: str) -> Path:
        """Return the path of the outcome of a unit of a task."""
        return self._root / _RUNS / task / f"{unit}.json"

    def read(self) -> bytes | None:
        """Return the stored state; ``None`` for none.

        Raises:
            StorageError: It cannot be read.
        """
        return read_file(self._root / _STATE_FILE)

    def write(self, content: bytes) -> None:
        """Replace the stored state durably: all of it or none.

        Raises:
            DiskFullError: No space is left.
            StorageError: It cannot be written.
        """
        write_file(self._root / _STATE_FILE, content)

    def make(self, task: str = "") -> None:
        """Create the folder, and that of a task's units.

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

    def clear(self, wanted: frozenset[str]) -> None:
        """Remove files that are not needed: old tables, and those of a killed run.

        Args:
            wanted: The names of the files of rows to retain.
        """
        shutil.rmtree(self.spill, ignore_errors=True)
        for path in self._root.glob(f"{_ROWS}*"):
            if path.name not in wanted:
                with suppress(OSError):
                    path.unlink()
        for path in (self._root / _RUNS).glob("*"):
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
        raise storage_error(error, f"writing {path}", kept="what was stored before") from error


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


_SOME: Final = 1_000
_COLUMNS: Final = ("uri", "lastmod", "length", "hash", "type")


def read_resources(file: Path, start: int, stop: int) -> Iterator[ResourceRun]:
    """Yield the resources of a table from a row up to before another, some hundred at a time.

    Raises:
        ConfigurationError: The packages that read tables are not installed.
        StateError: The file is damaged, or has fewer rows.
        StorageError: It cannot be read.
    """
    for piece in _pieces(file, start, stop, _COLUMNS):
        yield _run(piece)


def read_changes(file: Path, start: int, stop: int) -> Iterator[tuple[Sequence[str], ResourceRun]]:
    """Yield the same of changes: their kinds, and the resources after them.

    Raises:
        ConfigurationError: The packages that read tables are not installed.
        StateError: The file is damaged, or has fewer rows.
        StorageError: It cannot be read.
    """
    for piece in _pieces(file, start, stop, ("kind", *_COLUMNS)):
        yield piece.column("kind").to_pylist(), _run(piece)


def read_batches(file: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a table, group by group.

    Raises:
        ConfigurationError: The packages that read tables are not installed.
        StateError: The file is damaged.
        StorageError: It cannot be read.
    """
    with _guard_reading(file):
        from pyarrow import parquet  # noqa: PLC0415 - an extra, and seldom needed

        with parquet.ParquetFile(file, pre_buffer=False) as table:
            for group in range(table.num_row_groups):  # read ahead, all would stay in memory
                rows = table.read_row_group(group, columns=list(columns))
                for batch in rows.replace_schema_metadata(None).to_batches():
                    if batch.num_rows:
                        yield batch


@contextmanager
def _guard_reading(file: Path) -> Iterator[None]:
    check_installed()
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

    try:
        yield
    except pyarrow.ArrowException as error:
        raise StateError(f"{file.name} is damaged: {error!s:.300}") from error
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error!s:.300}") from error


def _run(piece: Any) -> ResourceRun:
    return ResourceRun(
        uris=piece.column("uri").to_pylist(),
        lastmods=[_moment(item) for item in piece.column("lastmod").to_pylist()],
        lengths=piece.column("length").to_pylist(),
        hashes=piece.column("hash").to_pylist(),
        media_types=piece.column("type").to_pylist(),
    )


def _moment(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def _pieces(file: Path, start: int, stop: int, columns: Sequence[str]) -> Iterator[Any]:
    read = start
    with _guard_reading(file):
        from pyarrow import parquet  # noqa: PLC0415 - an extra, and seldom needed

        with parquet.ParquetFile(file) as table:
            begins = 0
            for group in range(table.num_row_groups):
                ends = begins + table.metadata.row_group(group).num_rows
                if begins < stop and ends > start:
                    first, last = max(start, begins), min(stop, ends)
                    found = table.read_row_group(group, columns=list(columns))
                    for at in range(first, last, _SOME):
                        yield found.slice(at - begins, min(_SOME, last - at))
                    read = last
                begins = ends
    if read < stop:
        raise StateError(f"{file.name} has {read:,} rows where {stop:,} were written")
