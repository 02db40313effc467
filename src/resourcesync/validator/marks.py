"""Marks of entries, for rules between documents, in memory that does not grow with them.

A mark is 64 bits of an entry. Those of a document are buffered in memory until a block is full and
then go to one temporary file that all documents of a Source share; places in it remain.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import BinaryIO, Final

from resourcesync.errors import StorageError

BLOCK_MARKS: Final = 4_096
"""Marks that are written to the store together."""
_BYTES: Final = 8
SMALL_TAIL: Final = 64
"""Most marks of one document that stay in memory and out of the file."""
AT_ONCE: Final = 500_000
"""Marks that are compared at a time: some 50 MB of them."""


class MarkStore:
    """A store of the marks of many documents: one temporary file, made for the first full block."""

    def __init__(self, spill: Callable[[], BinaryIO]) -> None:
        self._spill = spill
        self._file: BinaryIO | None = None
        self._end = 0

    def write(self, block: "array[int]") -> int:
        """Store a block; return its place."""
        try:
            if self._file is None:
                self._file = self._spill()
            self._file.seek(self._end)
            self._file.write(block.tobytes())
        except OSError as error:
            raise _failed(error) from error
        place, self._end = self._end, self._end + len(block) * _BYTES
        return place

    def read(self, place: int, count: int) -> "array[int]":
        """Return a block again."""
        assert self._file is not None, "nothing was stored"
        block = array("q")
        try:
            self._file.seek(place)
            block.frombytes(self._file.read(count * _BYTES))
        except OSError as error:
            raise _failed(error) from error
        return block

    def close(self) -> None:
        """Forget all marks."""
        if self._file is not None:
            self._file.close()


def _failed(error: OSError) -> StorageError:
    return StorageError(f"marks of entries cannot be stored: {error.strerror}")


class Marks:
    """The marks of one document, in its order."""

    __slots__ = ("_count", "_places", "_store", "_tail")
    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self, store: MarkStore | None = None) -> None:
        self._store = store
        self._places = array("q")
        self._tail = array("q")
        self._count = 0

    def append(self, mark: int) -> None:
        """Append the next one."""
        self._tail.append(mark)
        self._count += 1
        if self._store is not None and len(self._tail) == BLOCK_MARKS:
            self._places.append(self._store.write(self._tail))
            self._tail = array("q")

    def flush(self) -> None:
        """Put the rest away: no more will come."""
        if self._store is not None and len(self._tail) > SMALL_TAIL:
            self._places.append(self._store.write(self._tail))
            self._tail = array("q")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._blocks())

    def _blocks(self) -> Iterator["array[int]"]:
        left = self._count - len(self._tail)
        for place in self._places:
            assert self._store is not None, "they are in memory"
            count = min(left, BLOCK_MARKS)
            yield self._store.read(place, count)
            left -= count
        yield self._tail

    def __eq__(self, other: object) -> bool:
        """True if two documents have the same marks in the same order."""
        return (
            isinstance(other, Marks)
            and len(self) == len(other)
            and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        )


def count_repeated(parts: Sequence[Marks]) -> list[int]:
    """Return how many different marks of each part are in the parts before it too."""
    passes = _passes(parts)
    repeated = [0] * len(parts)
    for number in range(passes):
        seen: set[int] = set()
        for index, marks in enumerate(parts):
            here = set(_share(marks, number, passes))
            repeated[index] += len(here & seen)
            seen |= here
    return repeated


def count_missing(wanted: Sequence[Marks], among: Sequence[Marks]) -> list[int]:
    """Return how many marks of each of the wanted are in none of the others."""
    passes = _passes(among)
    found = [0] * len(wanted)
    for number in range(passes):
        held = set[int]().union(*(_share(marks, number, passes) for marks in among))
        for index, marks in enumerate(wanted):
            found[index] += sum(1 for mark in _share(marks, number, passes) if mark not in held)
    return found


def _passes(parts: Sequence[Marks]) -> int:
    return sum(map(len, parts)) // AT_ONCE + 1


def _share(marks: Marks, number: int, passes: int) -> Iterator[int]:
    if passes == 1:
        return iter(marks)
    return (mark for mark in marks if mark % passes == number)
