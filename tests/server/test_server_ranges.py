"""Ranges of bytes, or the whole."""

import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resourcesync.server.representations import select_ranges


@given(size=st.integers(0, 300), first=st.integers(0, 320), more=st.none() | st.integers(0, 320))
def test_a_range_selects_what_slicing_selects(size: int, first: int, more: int | None) -> None:
    whole = bytes(index % 251 for index in range(size))
    last = None if more is None else first + more
    expected = whole[first:] if last is None else whole[first : last + 1]

    part = select_ranges(f"bytes={first}-{'' if last is None else last}", size)

    if first < size:
        assert isinstance(part, tuple)
        [span] = part
        assert whole[span.start : span.stop] == expected
        assert len(span) == len(expected) > 0
    else:
        assert part == "unsatisfiable"


@given(size=st.integers(1, 300), length=st.integers(1, 320))
def test_a_suffix_selects_what_slicing_from_the_end_selects(size: int, length: int) -> None:
    part = select_ranges(f"bytes=-{length}", size)

    assert part == (range(max(0, size - length), size),)


@given(field=st.text(max_size=60) | st.text("bytes=-, 0159", max_size=40).map("bytes=".__add__))
@example(field="bytes=\u0663-\u0665")
@example(field="bytes=-\u00b2")
def test_any_field_selects_a_true_part_or_none(field: str) -> None:
    part = select_ranges(field, 100)

    if isinstance(part, tuple):
        assert part
        assert all(0 <= byte_range.start < byte_range.stop <= 100 for byte_range in part)
        assert field.isascii()
    else:
        assert part in {"whole", "unsatisfiable"}


RANGE = st.tuples(st.integers(0, 2_000), st.none() | st.integers(0, 400)) | st.integers(0, 2_000)


def written(item: tuple[int, int | None] | int) -> str:
    if isinstance(item, int):
        return f"-{item}"
    first, more = item
    return f"{first}-{'' if more is None else first + more}"


def chosen(item: tuple[int, int | None] | int, size: int) -> range:
    if isinstance(item, int):
        return range(max(size - item, 0), size)
    first, more = item
    return range(first, size if more is None else min(first + more + 1, size))


@given(st.integers(1, 1_000), st.lists(RANGE, min_size=1, max_size=16))
def test_several_ranges_select_every_byte_that_was_asked_for_once_and_in_order(
    size: int, asked: list[tuple[int, int | None] | int]
) -> None:
    wanted = {place for item in asked for place in chosen(item, size)}

    part = select_ranges("bytes=" + ",".join(map(written, asked)), size)

    if not wanted:
        assert part == "unsatisfiable"
        return
    assert isinstance(part, tuple)
    places = [place for span in part for place in range(span.start, span.stop)]
    assert places == sorted(set(places))
    assert wanted <= set(places)
    assert {span.start for span in part} <= wanted
    for before, after in pairwise(part):
        assert after.start - before.stop > 80


def test_ranges_that_lie_near_each_other_are_one() -> None:
    assert select_ranges("bytes=200-,0-9,5-12,13-14", 300) == (
        range(15),
        range(200, 300),
    )
    assert select_ranges("bytes=0-9,90-99", 300) == (range(100),)
    assert len(select_ranges("bytes=0-9,91-99", 300)) == 2


@pytest.mark.parametrize(
    "field",
    [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=1",
        "bytes=5-4",
        "bytes=+1-2",
        "bytes=1--2",
        "bytes= 1 - 2",
        "items=0-1",
        "bytes 0-1",
        "bytes=0-1,3-4,x",
        "bytes=0-1,5-4",
    ],
)
def test_what_is_no_range_is_answered_with_the_whole(field: str) -> None:
    assert select_ranges(field, 100) == "whole"


@pytest.mark.parametrize("field", ["Bytes=1-2", " bytes = 1-2", "bytes=,1-2,", "bytes=\t1-2 "])
def test_a_single_range_is_found_in_all_its_spellings(field: str) -> None:
    assert select_ranges(field, 100) == (range(1, 3),)


@pytest.mark.parametrize("field", ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=9999-99999"])
def test_a_range_past_the_end_cannot_be_satisfied(field: str) -> None:
    assert select_ranges(field, 100) == "unsatisfiable"


def test_seventeen_ranges_are_not_even_looked_at() -> None:
    assert select_ranges("bytes=-0," + "0-1," * 15, 100) == "whole"
    assert select_ranges("bytes=" + "," * 15 + "1-2", 100) == (range(1, 3),)
    assert select_ranges("bytes=" + "," * 16 + "1-2", 100) == "whole"


@pytest.mark.parametrize("piece", ["0-0,", " ", "-", "0", "\t,", "0-,-"])
def test_a_hostile_range_takes_no_time(piece: str) -> None:
    field = "bytes=" + piece * 100_000
    started = time.process_time()

    select_ranges(field, 100)

    assert time.process_time() - started < 0.5
