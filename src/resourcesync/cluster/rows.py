"""Files of rows that coordinator and workers exchange: one JSON text on each line."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec

from resourcesync.destination.planner import Fetch
from resourcesync.errors import StateError
from resourcesync.ports.mirror import Copy, Pending


class DoneRow(NamedTuple):
    """The outcome of one fetch.

    Attributes:
        uri: The URI.
        copy: The present copy; ``None`` for none.
        pending: The pending task; ``None`` for none.
    """

    uri: str
    copy: Copy | None
    pending: Pending | None


_T = TypeVar("_T", Fetch, DoneRow)
_ENCODER: Final = msgspec.json.Encoder()
_FETCHES: Final = msgspec.json.Decoder(Fetch)
_DONE: Final = msgspec.json.Decoder(DoneRow)


def write_rows(file: str, rows: Iterable[Fetch] | Iterable[DoneRow]) -> int:
    """Write a file of rows; return their number."""
    count = 0
    with open(file, "wb") as stream:  # noqa: PTH123 - paths are plain text here
        for row in rows:
            stream.write(_ENCODER.encode(row) + b"\n")
            count += 1
    return count


def read_fetches(file: str) -> Iterator[Fetch]:
    """Yield the rows of a slice.

    Raises:
        StateError: It is damaged.
    """
    return _read(file, _FETCHES)


def read_done(file: str) -> Iterator[DoneRow]:
    """Yield the outcomes of the rows of a slice.

    Raises:
        StateError: It is damaged.
    """
    return _read(file, _DONE)


def _read(file: str, decoder: msgspec.json.Decoder[_T]) -> Iterator[_T]:
    with open(file, "rb") as stream:  # noqa: PTH123 - paths are plain text here
        for line in stream:
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise StateError(f"a file of workers is damaged: {error}") from error
