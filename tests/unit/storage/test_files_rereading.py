"""Files that change though nothing shows it: they are read again, a bounded part each time."""

import pytest

from resourcesync.adapters.files import RereadSchedule

DAY = 24 * 3_600 * 1_000_000


@pytest.mark.parametrize("note", [None, "", "nonsense", '{"at":1}', "[]"])
def test_what_is_not_remembered_begins_a_round(note: str | None) -> None:
    due = RereadSchedule.since(note, 9 * DAY)
    assert not due.due(range(100), [9 * DAY * 1_000 - 1] * 100)
    assert RereadSchedule.since(due.note(), 10 * DAY).width > 0
