"""Which parts of an index are requested again though the index is the same."""

from datetime import UTC, datetime, timedelta

import pytest

from resourcesync.destination.lists.absence_proof import ListVersion, ReadPart, is_pinned
from resourcesync.destination.lists.resource_reader import with_parts
from resourcesync.model.entries import Part
from resourcesync.model.timestamps import to_microseconds

URI = "http://source.example/resourcelist-1.xml"
DATED = datetime(2026, 1, 5, 12, 30, 0, 500_000, tzinfo=UTC)
SENT = to_microseconds(DATED + timedelta(days=1))


@pytest.mark.parametrize(
    ("announced", "states", "is_open"),
    [
        (Part(uri=URI, lastmod=DATED), None, False),
        (Part(uri=URI, lastmod=DATED), DATED, False),
        (Part(uri=URI, lastmod=DATED), DATED - timedelta(hours=1), False),
        (Part(uri=URI, lastmod=DATED), DATED + timedelta(hours=1), True),
        (Part(uri=URI, at=DATED), DATED, False),
        (Part(uri=URI, at=DATED), DATED - timedelta(hours=1), True),
        (Part(uri=URI), DATED, True),
    ],
)
def test_a_part_that_contradicts_its_index_is_neither_pinned_nor_left_out_the_next_time(
    announced: Part, states: datetime | None, is_open: bool
) -> None:
    at = None if states is None else to_microseconds(states)
    part = ReadPart(ListVersion(uri=URI, at=at), announced, SENT)
    assert bool(with_parts(ListVersion(), [part]).parts) is is_open
    assert is_pinned(part, SENT) is not is_open


def test_a_date_of_a_part_proves_nothing_within_its_second() -> None:
    part = ReadPart(ListVersion(uri=URI), Part(uri=URI, lastmod=DATED), SENT)
    dated = to_microseconds(DATED)

    assert not is_pinned(part, dated + 499_999)
    assert is_pinned(part, dated + 500_000)
