"""Ranges of bytes, or the whole."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resourcesync.server.representations import select_range


@given(size=st.integers(0, 300), first=st.integers(0, 320), more=st.none() | st.integers(0, 320))
def test_a_range_selects_what_slicing_selects(size: int, first: int, more: int | None) -> None:
    whole = bytes(index % 251 for index in range(size))
    last = None if more is None else first + more
    expected = whole[first:] if last is None else whole[first : last + 1]

    part = select_range(f"bytes={first}-{'' if last is None else last}", size)

    if first < size:
        assert isinstance(part, range)
        assert whole[part.start : part.stop] == expected
        assert len(part) == len(expected) > 0
    else:
        assert part == "unsatisfiable"


@given(size=st.integers(1, 300), length=st.integers(1, 320))
def test_a_suffix_selects_what_slicing_from_the_end_selects(size: int, length: int) -> None:
    part = select_range(f"bytes=-{length}", size)

    assert part == range(max(0, size - length), size)


@given(field=st.text(max_size=60) | st.text("bytes=-, 0159", max_size=40).map("bytes=".__add__))
@example(field="bytes=\u0663-\u0665")
@example(field="bytes=-\u00b2")
def test_any_field_selects_a_true_part_or_none(field: str) -> None:
    part = select_range(field, 100)

    if isinstance(part, range):
        assert 0 <= part.start < part.stop <= 100
        assert field.isascii()
    else:
        assert part in {"whole", "unsatisfiable"}


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
        "bytes=0-1,3-4",
        "bytes=-1,3-4",
    ],
)
def test_what_is_no_range_is_answered_with_the_whole(field: str) -> None:
    assert select_range(field, 100) == "whole"


@pytest.mark.parametrize("field", ["Bytes=1-2", " bytes = 1-2", "bytes=,1-2,", "bytes=\t1-2 "])
def test_a_single_range_is_found_in_all_its_spellings(field: str) -> None:
    assert select_range(field, 100) == range(1, 3)


@pytest.mark.parametrize("field", ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=9999-99999"])
def test_a_range_past_the_end_cannot_be_satisfied(field: str) -> None:
    assert select_range(field, 100) == "unsatisfiable"


@pytest.mark.parametrize("piece", ["0-0,", " ", "-", "0", "\t,", "0-,-"])
def test_a_hostile_range_takes_no_time(piece: str) -> None:
    field = "bytes=" + piece * 100_000
    started = time.process_time()

    select_range(field, 100)

    assert time.process_time() - started < 0.5
