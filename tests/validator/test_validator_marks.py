"""Marks of entries: the same answers wherever they are kept, in memory that does not grow."""

import io
import tracemalloc
from array import array
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import StorageError
from resourcesync.validator import marks as module
from resourcesync.validator.marks import Marks, MarkStore, count_missing, count_repeated

NUMBERS = st.lists(st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1), max_size=30)
PARTS = st.lists(NUMBERS, max_size=6)
SMALL = 3


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_MARKS", SMALL)
    monkeypatch.setattr(module, "SMALL_TAIL", 1)
    monkeypatch.setattr(module, "AT_ONCE", SMALL)


def kept(numbers: Iterable[int], store: MarkStore | None) -> Marks:
    marks = Marks(store)
    for number in numbers:
        marks.append(number)
    marks.flush()
    return marks


@given(NUMBERS, NUMBERS, st.booleans())
def test_two_are_compared_wherever_they_are_kept(
    item: list[int], other: list[int], is_kept: bool
) -> None:
    left, right = (
        kept(item, MarkStore(io.BytesIO)),
        kept(other, MarkStore(io.BytesIO) if is_kept else None),
    )

    assert (left == right) is (item == other)
    assert left != array("q", item)


@given(PARTS)
def test_what_is_in_an_earlier_part_too_is_counted(parts: list[list[int]]) -> None:
    store = MarkStore(io.BytesIO)
    earlier: set[int] = set()
    expected = []
    for part in parts:
        expected.append(len(set(part) & earlier))
        earlier |= set(part)

    assert count_repeated([kept(part, store) for part in parts]) == expected


@given(PARTS, PARTS)
def test_what_is_in_no_other_one_is_counted(
    wanted: list[list[int]], among: list[list[int]]
) -> None:
    store = MarkStore(io.BytesIO)
    held = {number for part in among for number in part}
    expected = [sum(number not in held for number in part) for part in wanted]

    found = count_missing(
        [kept(part, store) for part in wanted], [kept(part, store) for part in among]
    )

    assert found == expected


class Broken(io.BytesIO):
    """A file on a disk without room, of which nothing can be read either."""

    def write(self, data: object, /) -> int:
        raise OSError(28, "No space left on device")

    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_disk_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="No space left"):
        kept(range(SMALL), MarkStore(Broken))

    monkeypatch.delattr(Broken, "write")
    with pytest.raises(StorageError, match="Input/output error"):
        list(kept(range(SMALL), MarkStore(Broken)))


def test_memory_does_not_grow_with_the_marks(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.undo()
    path = tmp_path_factory.mktemp("marks") / "file"
    peaks = []
    for count in (10, 40):
        with path.open("w+b") as file:
            store = MarkStore(lambda file=file: file)  # type: ignore[misc]  # bound at once
            tracemalloc.start()
            parts = [kept(range(n * 2_000, n * 2_000 + 2_000), store) for n in range(count)]
            monkeypatch.setattr(module, "AT_ONCE", 10_000)
            assert count_repeated(parts) == [0] * count
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    assert peaks[1] < peaks[0] * 1.3
