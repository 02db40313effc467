"""Files of our own rows: written once, whole, in groups that are read one at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

GROUP: Final = 50_000
"""Rows of one group: about as many as a list has."""
_BUFFERED_ROWS: Final = 4 * GROUP


class RowGroupWriter:
    """Writes rows in groups of one size, whatever pieces they come in.

    Args:
        stream: Where the Parquet file goes.
        schema: The columns.
    """

    def __init__(self, stream: Any, schema: Any) -> None:
        from pyarrow import parquet  # noqa: PLC0415 - an extra, and seldom needed

        self._writer = parquet.ParquetWriter(stream, schema, compression="zstd")
        self._waiting: list[Any] = []
        self._buffered = 0

    def add(self, rows: Any) -> None:
        """Add some rows."""
        self._waiting.append(rows)
        self._buffered += rows.num_rows
        if self._buffered >= _BUFFERED_ROWS:
            self._flush(self._buffered - self._buffered % GROUP)

    def close(self) -> None:
        """Write what is left, and end the file."""
        self._flush(self._buffered)
        self._writer.close()

    def _flush(self, count: int) -> None:
        if not count:
            return
        import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

        table = pyarrow.Table.from_batches(self._waiting)
        self._writer.write_table(table.slice(0, count), row_group_size=GROUP)
        self._waiting = table.slice(count).to_batches()
        self._buffered -= count


@contextmanager
def atomic_write(path: Path) -> Iterator[Any]:
    """Open a file that takes its place, durably and whole, when the block ends without an error."""
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
