"""One range of bytes, or the whole."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resourcesync.server.ranges import Span, select


@given(size=st.integers(0, 300), first=st.integers(0, 320), more=st.none() | st.integers(0, 320))
def test_a_range_selects_what_slicing_selects(size: int, first: int, more: int | None) -> None:
    whole = bytes(index % 251 for index in range(size))
    last = None if more is None else first + more
    expected = whole[first:] if last is None else whole[first : last + 1]

    part = select(f"bytes={first}-{'' if last is None else last}", size)

    if first < size:
        assert isinstance(part, Span)
        assert whole[part.start : part.stop] == expected
        assert part.length == len(expected) > 0
    else:
        assert part == "unsatisfiable"


@given(size=st.integers(1, 300), length=st.integers(1, 320))
def test_a_suffix_selects_what_slicing_from_the_end_selects(size: int, length: int) -> None:
    part = select(f"bytes=-{length}", size)

    assert part == Span(start=max(0, size - length), stop=size)


@given(field=st.text(max_size=60) | st.text("bytes=-, 0159", max_size=40).map("bytes=".__add__))
@example(field="bytes=\u0663-\u0665")
@example(field="bytes=-\u00b2")
def test_any_field_selects_a_true_part_or_none(field: str) -> None:
    part = select(field, 100)

    if isinstance(part, Span):
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
        "bytes=0-1,3-4,x",
        "bytes=-0,0-1",
    ],
)
def test_what_is_no_single_range_is_answered_with_the_whole(field: str) -> None:
    assert select(field, 100) == "whole"


@pytest.mark.parametrize("field", ["Bytes=1-2", " bytes = 1-2", "bytes=,1-2,", "bytes=\t1-2 "])
def test_a_single_range_is_found_in_all_its_spellings(field: str) -> None:
    assert select(field, 100) == Span(start=1, stop=3)


@pytest.mark.parametrize("field", ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=9999-99999"])
def test_a_range_past_the_end_cannot_be_satisfied(field: str) -> None:
    assert select(field, 100) == "unsatisfiable"


def test_an_empty_file_has_no_first_byte_but_a_whole() -> None:
    assert select("bytes=0-", 0) == "unsatisfiable"
    assert select("bytes=-5", 0) == "whole"


def test_numbers_of_any_length_are_read() -> None:
    assert select("bytes=0-" + "9" * 9000, 100) == Span(start=0, stop=100)
    assert select("bytes=" + "9" * 9000 + "-", 100) == "unsatisfiable"
    assert select("bytes=-" + "9" * 9000, 100) == Span(start=0, stop=100)
    assert select("bytes=" + "0" * 9000 + "1-2", 100) == Span(start=1, stop=3)


def test_seventeen_ranges_are_not_even_looked_at() -> None:
    assert select("bytes=" + "," * 15 + "1-2", 100) == Span(start=1, stop=3)
    assert select("bytes=" + "," * 16 + "1-2", 100) == "whole"


@pytest.mark.parametrize("piece", ["0-0,", " ", "-", "0", "\t,", "0-,-"])
def test_a_hostile_range_takes_no_time(piece: str) -> None:
    field = "bytes=" + piece * 100_000
    started = time.process_time()

    select(field, 100)

    assert time.process_time() - started < 0.5
