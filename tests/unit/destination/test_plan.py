"""What is to be done, decided from values alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination import planner
from resourcesync.destination.changes.last_change import last_changes
from resourcesync.destination.pending_tasks import next_try, pending_fetch
from resourcesync.destination.planner import (
    FILTERED,
    UNREADABLE,
    Decision,
    Delete,
    Fetch,
    ListedEntry,
    Match,
    Postponed,
    Retain,
    UpToDate,
    algorithms_for,
    count_decisions,
    match_copy,
    may_delete,
)
from resourcesync.destination.reports import Mode
from resourcesync.destination.transfers.verification import verify_bytes
from resourcesync.mirror_state.rows import Copy, Fixity
from resourcesync.model.settings import Limit

SHA = "sha-256:" + "a" * 64
OTHER = "sha-256:" + "b" * 64
MD5 = "md5:" + "c" * 32


def copy(uri: str = "u", **more: Any) -> Copy:
    base = Copy(uri, uri, 3, SHA, SHA, 10, '"e"', "then", "sig", "verified", 0)
    return base._replace(**more)


def listed(uri: str = "u", **more: Any) -> ListedEntry:
    return ListedEntry(uri, uri, uri, "", None, None, "")._replace(**more)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (listed(hash=SHA, length=3), Match.SAME),
        (listed(hash=SHA, lastmod=99), Match.SAME),
        (listed(hash=OTHER, length=3, lastmod=10), Match.DIFFERENT),
        (listed(hash=SHA, length=4), Match.DIFFERENT),
        (listed(hash=MD5, length=3, lastmod=10), Match.DIFFERENT),
        (listed(hash="blake9:00", length=3, lastmod=10), Match.SAME),
        (listed(hash="sha-256:zz", lastmod=11), Match.DIFFERENT),
        (listed(length=3, lastmod=10), Match.SAME),
        (listed(length=3, lastmod=11), Match.DIFFERENT),
        (listed(length=3), Match.UNKNOWN),
        (listed(), Match.UNKNOWN),
    ],
)
def test_a_copy_is_compared_by_hash_then_length_and_lastmod(
    told: ListedEntry, expected: Match
) -> None:
    assert match_copy(copy(), told) is expected
    assert match_copy(copy(digests=OTHER, listed=""), listed(hash=SHA)) is Match.DIFFERENT


def test_the_plan_counts_what_was_decided() -> None:
    decisions: list[Decision] = [
        UpToDate(copy()),
        Retain(copy()),
        Retain(copy(), listed=True),
        Retain(copy(), listed=True),
        Postponed(pending_fetch(listed(hash=SHA), known=None, now=0, at=0, generation=1), None),
        Delete(copy(), "gone"),
        Fetch(listed(hash=SHA, length=5), None),
        Fetch(listed(lastmod=1), copy()),
    ]

    plan, *counts = count_decisions(decisions, Mode.BASELINE, lambda _: False)

    assert (plan.same, plan.create, plan.update, plan.delete) == (1, 1, 1, 1)
    assert (plan.size, plan.unsized, counts) == (5, 1, [1, 2, 1, 0, False, 0])
    assert count_decisions([Fetch(listed(), None)], Mode.BASELINE, lambda _: False).unsure


uris, hashes = st.sampled_from(["a", "b"]), st.sampled_from(["", SHA, OTHER])
kinds = st.sampled_from(["created", "updated", "deleted", FILTERED])


@given(
    st.lists(st.builds(listed, uris, hash=hashes), max_size=2, unique_by=lambda row: row.uri),
    st.lists(st.builds(listed, uris, hash=hashes, change=kinds), max_size=8),
)
def test_the_last_change_of_a_uri_wins_over_its_entry_in_the_list(
    entries: list[ListedEntry], changes: list[ListedEntry]
) -> None:
    rows = sorted([*entries, *changes], key=lambda row: row.uri)

    assert list(last_changes(rows)) == list({row.uri: row for row in rows}.values())


@given(st.lists(st.builds(listed, uris, change=st.just(UNREADABLE)), max_size=3), st.data())
def test_a_change_that_cannot_be_read_is_none_and_takes_back_a_deletion(
    unreadable: list[ListedEntry], data: st.DataObject
) -> None:
    changes = data.draw(st.lists(st.builds(listed, uris, change=kinds), max_size=5))
    rows = data.draw(st.permutations([*changes, *unreadable]))
    rows = sorted(rows, key=lambda row: row.uri)

    settled = {row.uri: row.change for row in last_changes(rows)}

    readable = {row.uri: row.change for row in rows if row.change != UNREADABLE}
    last = {row.uri: row.change for row in rows}
    is_open = {uri for uri in readable if (readable[uri], last[uri]) == ("deleted", UNREADABLE)}
    assert settled == readable | dict.fromkeys(is_open, FILTERED)


def test_bytes_are_judged_by_everything_the_list_says() -> None:
    assert verify_bytes(listed(hash=SHA, length=3), 3, SHA) == (Fixity.VERIFIED, None)
    assert verify_bytes(listed(hash=MD5), 3, f"{SHA} {MD5}") == (Fixity.WEAK, None)
    assert verify_bytes(listed(length=3), 3, SHA) == (Fixity.WEAK, None)
    assert verify_bytes(listed(hash="odd:1"), 3, SHA) == (Fixity.UNVERIFIED, None)
    assert verify_bytes(listed(hash=f"{MD5} {SHA}"), 3, f"{OTHER} {MD5}")[1] == (
        "hash-mismatch",
        SHA,
        OTHER,
    )
    assert verify_bytes(listed(hash=SHA, length=4), 3, SHA)[1] == ("length-mismatch", "4 B", "3 B")


def test_every_algorithm_the_source_lets_us_check_is_computed_and_our_own() -> None:
    assert algorithms_for(listed(hash=SHA), "sha-256") == ("sha-256",)
    assert algorithms_for(listed(hash=f"{MD5} odd:1"), "sha-256") == ("sha-256", "md5")
    assert algorithms_for(listed(), "sha-256") == ("sha-256",)


@pytest.mark.parametrize(
    ("limit", "deleted", "here", "untold", "allowed"),
    [
        # a few are always allowed, and many never
        *((Limit(percent=10), 25, 50, 25, True), (Limit(percent=10), 26, 100, 26, False)),
        *(
            (Limit(percent=10), 1_000, 10_000, 1_000, True),
            (Limit(percent=10), 1_001, 10_000, 0, False),
        ),
        # of what no Change List tells, more than half is never a few
        *((Limit(percent=10), 1, 2, 1, True), (Limit(percent=10), 1, 1, 1, False)),
        *((Limit(percent=10), 1, 1, 0, True), (Limit(percent=10), 25, 49, 25, False)),
        *((Limit(percent=10), 25, 26, 13, True), (Limit(percent=100), 20, 20, 20, True)),
        # a number is exact
        *((Limit(number=0), 1, 10_000, 0, False), (Limit(number=5), 5, 5, 5, True)),
    ],
)
def test_deletions_are_allowed_up_to_a_limit(
    limit: Limit, deleted: int, here: int, untold: int, allowed: bool
) -> None:
    assert may_delete(limit, deleted, here, untold=untold) is allowed


def test_a_resource_that_fails_is_tried_with_each_run_then_more_and_more_seldom() -> None:
    first = pending_fetch(listed(), known=None, now=0, at=0, generation=1, code="x")
    again = pending_fetch(listed(), known=first, now=0, at=0, generation=1, code="x")
    task = pending_fetch(listed(), known=None, now=0, at=0, generation=1, failed=False)
    minute = 60_000_000
    waits = [next_try(tries, 0) for tries in range(30)]

    assert (first.tries, again.tries, task.tries) == (1, 2, 0)
    assert waits[:5] == [0, 0, 0, 0, 0]
    assert waits[5:8] == [minute, 2 * minute, 4 * minute]
    assert max(waits) == 24 * 60 * minute
    assert waits == sorted(waits)


def test_the_reasons_that_states_store_and_runs_compare_are_never_reworded() -> None:
    stored = (planner.ABSENT, planner.MISSED, planner.SEEN_LATER, planner.OUT_OF_SCOPE)
    assert stored == (
        "no longer listed",
        "not in the last reading of a list whose parts are of several moments",
        "not in a list that is older than its last answer",
        "no longer matches the filters",
    )
