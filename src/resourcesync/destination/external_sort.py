"""External sorter for the entries of lists, in memory that does not grow with their number.

The specification requires no order in a list, and comparisons need one. A list that is in order
already, as most are, is only written and read back, never sorted.
"""

import marshal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from heapq import merge
from itertools import chain, islice
from operator import itemgetter, lt
from typing import Any, BinaryIO, Final, Generic, NamedTuple, Self, TypeVar

import msgspec

from resourcesync.errors import StorageError, storage_error


@contextmanager
def translate_disk_errors(what: str) -> Iterator[None]:
    """Translate errors of the system into `StorageError`."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, f"using {what}", kept="all complete copies") from error


T = TypeVar("T")
N = TypeVar("N", bound=tuple[Any, ...])
_Row = tuple[str, bytes]

_FAN_IN: Final = 64
"""Runs merged at a time: each holds one block in memory."""
_BLOCK_ROWS: Final = 64
_BLOCK_BYTES: Final = 16_384
"""Size of a block: small, so that merging needs no more memory than the waiting entries did."""
_MAX_WAITING: Final = 33_554_432
"""Largest number of bytes of entries in memory, however few they are."""
_GROUP: Final = 256
_LENGTH_BYTES: Final = 8
_TEMPORARY_FILE: Final = "a temporary file of the mirror"

_key_of: Final = itemgetter(0)
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[bytes]).decode


class SorterClosedError(ValueError):
    """Use of a closed sorter, or input after its end: an error of the caller."""


class _SortedRun(NamedTuple):
    start: int
    end: int


class ExternalSorter(Generic[T]):
    """Sorter of entries by key, readable any number of times.

    Entries of equal keys come in the order in which they were added. All entries are read in before
    the first is yielded, so a list can be checked whole before it is used.

    At most ``run_length`` entries, and 32 MiB, wait in memory. More go to one temporary file, or to
    two while runs are merged.
    """

    def __init__(
        self,
        *,
        key: Callable[[T], str],
        dump: Callable[[T], bytes],
        load: Callable[[bytes], T],
        spill: Callable[[], BinaryIO],
        run_length: int = 20_000,
    ) -> None:
        if run_length < 1:
            raise ValueError("a run has one entry at least")
        self._key = key
        self._dump = dump
        self._load = load
        self._spill = spill
        self._run_length = run_length
        # Two lists, not one of pairs: pairs would keep the garbage collector busy.
        self._keys: list[str] = []
        self._rows: list[bytes] = []
        self._weight = 0
        self._in_order = True
        self._last = ""
        self._written = 0
        self._file: BinaryIO | None = None
        self._runs: list[_SortedRun] = []
        self._run_last = ""
        self._has_ended = False
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._written + len(self._rows)

    def add(self, entry: T) -> None:
        """Add one entry."""
        self.add_all((entry,))

    def add_all(self, entries: Iterable[T]) -> None:
        """Add entries as `add` does, in groups that are small compared to a run."""
        rest = iter(entries)
        while group := list(islice(rest, min(_GROUP, self._run_length - len(self._rows)))):
            if self._has_ended:
                raise SorterClosedError("the sorter accepts no more entries")
            keys = list(map(self._key, group))
            if keys[0] < self._last or any(map(lt, keys[1:], keys)):
                self._in_order = False
            self._last = keys[-1]
            rows = list(map(self._dump, group))
            self._keys += keys
            self._rows += rows
            self._weight += sum(map(len, rows))
            if len(self._rows) >= self._run_length or self._weight >= _MAX_WAITING:
                self._write_run()

    def close_input(self) -> None:
        """End the input; the first reading does so implicitly."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._file is None:
            self._sort_waiting()
            return
        if self._rows:
            self._write_run()
        while len(self._runs) > _FAN_IN:
            self._merge_runs(self._file)
        with self._close_on_error(), translate_disk_errors(_TEMPORARY_FILE):
            self._file.flush()

    def __iter__(self) -> Iterator[T]:
        """Return the entries in order; several readings may overlap."""
        if self._is_closed:
            raise SorterClosedError("the sorter is closed")
        self.close_input()
        if self._file is None:
            return map(self._load, self._rows)
        if len(self._runs) == 1:
            return map(self._load, _read(self._file, self._runs[0]))
        entries = (map(self._load, _read(self._file, run)) for run in self._runs)
        return merge(*entries, key=self._key)

    def close(self) -> None:
        """Discard all entries and remove the temporary file; closing twice is allowed."""
        self._has_ended = self._is_closed = True
        self._keys, self._rows, self._runs, self._written = [], [], [], 0
        file, self._file = self._file, None
        if file is not None:
            _discard(file)

    def _sort_waiting(self) -> None:
        if not self._in_order:
            keys, rows = self._keys, self._rows
            order = sorted(range(len(keys)), key=keys.__getitem__)
            self._keys, self._rows = [keys[i] for i in order], [rows[i] for i in order]
            self._in_order = True

    def _write_run(self) -> None:
        self._sort_waiting()
        first, last = self._keys[0], self._keys[-1]
        with self._close_on_error(), translate_disk_errors(_TEMPORARY_FILE):
            if self._file is None:
                self._file = self._spill()
            start = end = self._runs[-1].end if self._runs else 0
            if self._runs and first >= self._run_last:
                start = self._runs.pop().start
            self._runs.append(_SortedRun(start, _write(self._file, end, self._rows)))
        self._run_last = last
        self._written += len(self._rows)
        self._keys, self._rows, self._weight, self._last = [], [], 0, ""

    def _merge_runs(self, old: BinaryIO) -> None:
        runs, self._runs = self._runs, []
        with self._close_on_error(), translate_disk_errors(_TEMPORARY_FILE), _discarding(old):
            new = self._file = self._spill()
            end = 0
            for first in range(0, len(runs), _FAN_IN):
                group = runs[first : first + _FAN_IN]
                rows = merge(*(self._keyed(old, run) for run in group), key=_key_of)
                start, end = end, _write(new, end, map(itemgetter(1), rows))
                self._runs.append(_SortedRun(start, end))

    @contextmanager
    def _close_on_error(self) -> Iterator[None]:
        """Close the sorter on any error: a part of a list must never pass for all of it."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _keyed(self, file: BinaryIO, run: _SortedRun) -> Iterator[_Row]:
        return ((self._key(self._load(row)), row) for row in _read(file, run))


class TupleSorter(ExternalSorter[N]):
    """Sorter of named tuples by a key, else by their first field, written as MessagePack."""

    def __init__(
        self, kind: type[N], spill: Callable[[], BinaryIO], key: Callable[[N], str] = _key_of
    ) -> None:
        load = msgspec.msgpack.Decoder(kind).decode
        super().__init__(key=key, dump=_encode, load=load, spill=spill)


class PairSorter(ExternalSorter[tuple[str, str]]):
    """Sorter of pairs of any texts, also of names that are not valid ones, by the first."""

    def __init__(self, spill: Callable[[], BinaryIO]) -> None:
        super().__init__(key=_key_of, dump=marshal.dumps, load=marshal.loads, spill=spill)


def _read(file: BinaryIO, run: _SortedRun) -> Iterator[bytes]:
    return chain.from_iterable(_blocks(file, run))


def _blocks(file: BinaryIO, run: _SortedRun) -> Iterator[list[bytes]]:
    at, end = run.start, run.end
    while at < end:
        with translate_disk_errors(_TEMPORARY_FILE):
            file.seek(at)
            size = int.from_bytes(file.read(_LENGTH_BYTES))
            block = file.read(size)
        if len(block) != size or not size:
            raise StorageError(
                "a temporary file of the mirror is truncated", hint="check the disk, then run again"
            )
        at += _LENGTH_BYTES + size
        rows = _decode(block)
        del block  # many runs may wait here, each with its rows
        yield rows


def _write(file: BinaryIO, at: int, rows: Iterable[bytes]) -> int:
    file.seek(at)
    block: list[bytes] = []
    weight = 0
    for row in rows:
        block.append(row)
        weight += len(row)
        if len(block) >= _BLOCK_ROWS or weight >= _BLOCK_BYTES:
            at += _write_block(file, block)
            block.clear()
            weight = 0
    return at + _write_block(file, block) if block else at


def _write_block(file: BinaryIO, rows: list[bytes]) -> int:
    data = _encode(rows)
    file.write(len(data).to_bytes(_LENGTH_BYTES))
    file.write(data)
    return _LENGTH_BYTES + len(data)


def _discard(file: BinaryIO) -> None:
    with suppress(OSError, StorageError):
        file.close()


@contextmanager
def _discarding(file: BinaryIO) -> Iterator[None]:
    try:
        yield
    finally:
        _discard(file)
