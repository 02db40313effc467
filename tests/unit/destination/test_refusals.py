"""Refused entries: each counts once, and is taken back in whichever form it was refused."""

from resourcesync.destination.lists.selection import MAX_REFUSED, Refusals
from resourcesync.model.entries import RefusedEntry

BASE = "http://source.example/"
THERE = "http://elsewhere.example/"


def refusals(*known: str) -> Refusals:
    return Refusals(lambda _: None, known)


def test_what_is_refused_again_counts_once_until_it_is_taken_back() -> None:
    found = refusals()
    for _ in range(2):
        for number in range(MAX_REFUSED + 50):
            found.add(f"{BASE}{number}", "foreign", "of another host")

    assert (found.count, found.new_count, len(found.stored)) == (MAX_REFUSED + 50,) * 2 + (
        MAX_REFUSED,
    )

    found.withdraw(f"{BASE}{MAX_REFUSED + 1}")  # though it is not remembered
    found.withdraw(f"{BASE}{MAX_REFUSED + 1}")
    found.withdraw(f"{BASE}never")

    assert found.count == MAX_REFUSED + 49


def test_what_was_refused_since_a_mark_may_be_refused_again() -> None:
    found = refusals()
    found.add(BASE, "foreign", "of another host")
    mark = found.mark()
    found.add(THERE, "foreign", "of another host")
    found.restore(mark)
    assert found.count == 1

    found.add(THERE, "foreign", "of another host")

    assert found.count == 2


def test_entries_without_a_name_count_each() -> None:
    found = refusals()
    for _ in range(3):
        found.add_entry(RefusedEntry(line=7, code="no-loc", reason="it has no loc"))

    assert found.count == 3
