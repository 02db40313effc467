"""Some rows of a file of ours, as resources or changes: what one unit needs."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from resourcesync.adapters.inventory.engine import check_installed
from resourcesync.errors import StateError, StorageError
from resourcesync.model.resources import ResourceRun
from resourcesync.model.timestamps import from_microseconds

_SOME: Final = 1_000
_COLUMNS: Final = ("uri", "lastmod", "length", "hash", "type")


def read_resources(file: Path, start: int, stop: int) -> Iterator[ResourceRun]:
    """Yield the resources of a table from a row up to before another, some hundred at a time.

    Raises:
        ConfigurationError: What reads tables is not installed.
        StateError: The file is damaged, or has fewer rows.
        StorageError: It cannot be read.
    """
    for piece in _pieces(file, start, stop, _COLUMNS):
        yield _run(piece)


def read_changes(file: Path, start: int, stop: int) -> Iterator[tuple[Sequence[str], ResourceRun]]:
    """Yield the same of changes: what kind each is of, and the resources after them.

    Raises:
        ConfigurationError: What reads tables is not installed.
        StateError: The file is damaged, or has fewer rows.
        StorageError: It cannot be read.
    """
    for piece in _pieces(file, start, stop, ("kind", *_COLUMNS)):
        yield piece.column("kind").to_pylist(), _run(piece)


def _run(piece: Any) -> ResourceRun:
    return ResourceRun(
        uris=piece.column("uri").to_pylist(),
        lastmods=[_moment(it) for it in piece.column("lastmod").to_pylist()],
        lengths=piece.column("length").to_pylist(),
        hashes=piece.column("hash").to_pylist(),
        media_types=piece.column("type").to_pylist(),
    )


def _moment(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def _pieces(file: Path, start: int, stop: int, columns: Sequence[str]) -> Iterator[Any]:
    check_installed()
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed
    from pyarrow import parquet  # noqa: PLC0415 - the same

    read = start
    try:
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
    except pyarrow.ArrowException as error:
        raise StateError(f"{file.name} is damaged: {error!s:.300}") from error
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error!s:.300}") from error
    if read < stop:
        raise StateError(f"{file.name} has {read:,} rows where {stop:,} were written")
