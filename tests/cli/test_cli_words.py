"""Numbers, times and names as people read them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.formatting import with_local_times
from resourcesync.model import formatting

HOSTILE = "a\x1b[31mred\x07\r\nb\u202egnp.exe\u2066\u200b\x9b\ud800\x00\u2028"


@given(st.text())
def test_an_escaped_name_is_one_printable_line(text: str) -> None:
    shown = formatting.escape(text)

    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1


def test_a_hostile_name_shows_what_it_hides() -> None:
    shown = formatting.escape(HOSTILE)

    assert shown == (r"a\x1b[31mred\x07\r\nb\u202egnp.exe\u2066\u200b\x9b\ud800\x00\u2028")


@pytest.fixture(params=["Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "UTC"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield a time zone that is the one of this process for a test."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


LOCAL = {
    "Europe/Berlin": ("2026-07-01 14:30:00 +02:00", "2026-11-21 00:04:09 +01:00"),
    "Asia/Kathmandu": ("2026-07-01 18:15:00 +05:45", "2026-11-21 04:49:09 +05:45"),
    "America/St_Johns": ("2026-07-01 10:00:00 -02:30", "2026-11-20 19:34:09 -03:30"),
    "UTC": ("2026-07-01 12:30:00Z", "2026-11-20 23:04:09Z"),
}


def test_times_become_local_with_the_offset_of_their_day(zone: str) -> None:
    summer = datetime(2026, 7, 1, 12, 30, tzinfo=UTC)
    winter = datetime(2026, 11, 20, 23, 4, 9, tzinfo=UTC)
    text = f"from {formatting.moment(summer)}, until {formatting.moment(winter)}: in sync"

    assert with_local_times(text) == (f"from {LOCAL[zone][0]}, until {LOCAL[zone][1]}: in sync")


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_only_all_is_100_percent_and_only_none_is_0(part: int, whole: int) -> None:
    part = min(part, whole)
    shown = formatting.share(part, whole)

    assert (shown == "100 %") == (part == whole)
    assert (shown == "0 %") == (part == 0)
