"""The spool: foreign lists put in order, in constant memory, on a disk that may fail."""

import errno
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from operator import itemgetter
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.external_sort import ExternalSorter, SorterClosedError
from resourcesync.errors import DiskFullError, StorageError

Pair = tuple[str, int]


class Disk:
    """Makes temporary files and knows which are open; full after ``room`` bytes."""

    def __init__(self, room: int | None = None, *, error: int = errno.ENOSPC) -> None:
        self.room = room
        self.error = error
        self.files: list[BytesIO] = []
        self.most_open = 0

    def open(self) -> BinaryIO:
        disk = self

        class File(BytesIO):
            def write(self, data: bytes) -> int:  # type: ignore[override]
                if disk.room is not None:
                    disk.room -= len(data)
                    if disk.room < 0:
                        raise OSError(disk.error, "the disk says no")
                return super().write(data)

        self.files.append(File())
        self.most_open = max(self.most_open, len(self.still_open))
        return self.files[-1]

    @property
    def still_open(self) -> list[BytesIO]:
        return [file for file in self.files if not file.closed]


def dump(pair: Pair) -> bytes:
    return f"{pair[0]}={pair[1]}".encode()


def load(data: bytes) -> Pair:
    key, _, number = data.decode().rpartition("=")
    return key, int(number)


def spool_on(disk: Disk, run_length: int = 4) -> ExternalSorter[Pair]:
    return ExternalSorter(
        key=itemgetter(0), dump=dump, load=load, spill=disk.open, run_length=run_length
    )


def shuffled(count: int) -> list[Pair]:
    return [(f"{number * 7919 % 1009:04d}", number) for number in range(count)]


def fill(spool: ExternalSorter[Pair], pairs: Iterable[Pair]) -> None:
    for pair in pairs:
        spool.add(pair)


KEYS = st.text("ab", max_size=3) | st.text(max_size=3).filter(lambda text: text.isascii())
PAIRS = st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=60)


@given(PAIRS, st.integers(1, 70), st.sampled_from([sorted, list, lambda pairs: pairs[::-1]]))
def test_a_spool_sorts_as_python_does(
    pairs: list[Pair], run_length: int, arrange: Callable[[list[Pair]], list[Pair]]
) -> None:
    given_pairs, half = arrange(pairs), len(pairs) // 2
    with spool_on(Disk(), run_length) as ordered:
        for pair in given_pairs[:half]:
            ordered.add(pair)
        ordered.add_all(iter(given_pairs[half:]))

        first, second, size = list(ordered), list(ordered), len(ordered)

    assert size == len(pairs)
    assert first == sorted(given_pairs, key=itemgetter(0))
    assert second == first


@given(st.lists(st.tuples(st.text("ab", max_size=2), st.integers(0, 3)), min_size=65, max_size=150))
def test_runs_of_one_entry_are_merged_in_passes_and_ties_keep_their_order(
    pairs: list[Pair],
) -> None:
    with spool_on(Disk(), 1) as ordered:
        for pair in pairs:
            ordered.add(pair)

        assert list(ordered) == sorted(pairs, key=itemgetter(0))


def test_large_entries_go_to_the_file_before_they_are_many() -> None:
    disk = Disk()
    with spool_on(disk, 1_000_000) as spool:
        for number in range(40):
            spool.add((f"{40 - number:02d}" + "x" * 1_048_576, number))

        assert len(disk.files) == 1
        assert [pair[1] for pair in spool] == list(range(39, -1, -1))


def test_a_spool_takes_nothing_after_its_end_and_gives_nothing_when_closed() -> None:
    spool = spool_on(Disk())
    spool.add(("a", 1))
    assert list(spool) == [("a", 1)]

    with pytest.raises(SorterClosedError):
        spool.add(("b", 2))
    assert list(spool) == [("a", 1)]
    spool.close()
    with pytest.raises(SorterClosedError):
        iter(spool)
    with pytest.raises(SorterClosedError):
        spool.add(("b", 2))


@pytest.mark.parametrize(
    ("number", "kind", "room", "is_merging"),
    [
        (errno.ENOSPC, DiskFullError, 100, False),
        (errno.EDQUOT, DiskFullError, 100, False),
        (errno.EIO, StorageError, 100, False),
        (errno.ENOSPC, DiskFullError, 0, True),
        (errno.ENOSPC, DiskFullError, 1_500, True),
    ],
)
def test_a_disk_that_fails_while_writing_or_merging_ends_the_spool(
    number: int, kind: type[StorageError], room: int, *, is_merging: bool
) -> None:
    disk = Disk(error=number) if is_merging else Disk(room=room, error=number)
    spool = spool_on(disk)
    if is_merging:
        fill(spool, shuffled(4 * 70))
        disk.room = room

    with pytest.raises(StorageError) as raised:
        spool.close_input() if is_merging else fill(spool, shuffled(1_000))

    assert type(raised.value) is kind
    assert len(disk.files) == 1 + is_merging
    assert disk.still_open == []
    with pytest.raises(SorterClosedError):
        iter(spool)


def test_a_disk_that_gives_no_file_ends_the_spool() -> None:
    def refuse() -> BinaryIO:
        raise OSError(errno.EMFILE, "Too many open files")

    spool = ExternalSorter[Pair](
        key=itemgetter(0), dump=dump, load=load, spill=refuse, run_length=1
    )

    with pytest.raises(StorageError, match="Too many open files"):
        spool.add(("a", 1))
    with pytest.raises(SorterClosedError):
        iter(spool)


@pytest.mark.parametrize("missing", [1, 5, 20, 30, 5_000])
def test_a_file_that_was_cut_short_is_never_a_shorter_list(missing: int) -> None:
    disk = Disk()
    spool = spool_on(disk)
    fill(spool, shuffled(1_000))
    spool.close_input()
    file = disk.still_open[0]
    file.truncate(len(file.getvalue()) - missing)

    with pytest.raises(StorageError, match="is truncated"):
        list(spool)


def pairs(count: int) -> Iterator[Pair]:
    for number in range(count):
        yield f"https://museum.example/objects/{number * 7919 % count:06d}.html", number


def peak(count: int) -> int:
    spool: ExternalSorter[Pair] = ExternalSorter(
        key=itemgetter(0), dump=dump, load=load, spill=tempfile.TemporaryFile, run_length=2_000
    )
    tracemalloc.start()
    try:
        with spool:
            for pair in pairs(count):
                spool.add(pair)
            assert sum(1 for _ in spool) == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_three_times_the_entries_take_no_more_memory() -> None:
    assert peak(30_000) < 1.3 * peak(10_000)
