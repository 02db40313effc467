"""A stream of IIIF Change Discovery, what its activities mean, and how it is followed."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from resourcesync.errors import (
    DiscontinuityError,
    StateError,
)
from resourcesync.model.resources import Change
from resourcesync.model.vocabulary import ChangeKind
from tests.support.accounts.activity_stream import (
    ALL,
    HOME,
    ActivityStream,
    activity,
    manifest,
    moment,
    uri_of,
)
from tests.support.accounts.followed_stream import (
    changed,
    listed,
    opened,
    plain,
    position_of,
    reference,
    stream_of,
)

LONG_AGO = "2026-02-01T00:00:00Z"


# --- what activities mean ---


@pytest.mark.parametrize(
    ("activities", "found"),
    [
        (["Create a", "Update b"], ["a", "b"]),
        (["Create a", "Delete a", "Create b"], ["b"]),
        (["Create a", "Delete a", "Create a"], ["a"]),
        (["Delete a", "Update b", "Delete b", "Update b", "Update b"], ["b"]),
        (["Create a", "Like a", "Create b", "Announce c"], ["a", "b"]),
        (["Add a", "Create b", "Remove b"], ["a"]),
    ],
)
def test_the_newest_activity_of_an_object_decides(activities: list[str], found: list[str]) -> None:
    assert listed(plain(*activities)) == found


def test_a_move_ends_one_object_and_begins_another() -> None:
    stream = plain("Create a", "Create b")
    start = position_of(stream)
    stream.add("Move", "a", target=manifest("c"))
    stream.add("Update", "b")
    assert listed(stream) == ["b", "c"]
    assert changed(stream, start) == [("-", "a"), ("+", "c"), ("+", "b")]
    stream.add("Move", "c", target=manifest("a"))
    assert listed(stream) == ["a", "b"]
    stream.add("Move", "a", target=manifest("a"))
    assert listed(stream) == ["a", "b"]


def test_what_is_added_to_or_removed_from_another_stream_does_not_count() -> None:
    ours, other = reference(ALL), reference("https://other.example/all")
    stream = stream_of(
        activity("Add", "a", moment(0), target=ours),
        activity("Add", "b", moment(1), target=other),
        activity("Create", "c", moment(2)),
        activity("Create", "d", moment(3)),
        activity("Remove", "c", moment(4), origin=ours),
        activity("Remove", "d", moment(5), origin=other),
    )
    assert listed(stream) == ["a", "d"]


def test_an_old_refresh_ends_the_walk_and_a_new_one_does_not() -> None:
    stream = plain("Create a", "Create b", "Create c", "Create d")
    refresh = {"type": "Refresh", "startTime": moment(4)}
    stream.activities += [refresh, activity("Update", "a", moment(5))]
    assert listed(stream) == ["a", "b", "c", "d"]  # it may be under way
    shift_to(stream, datetime(2026, 1, 1, tzinfo=UTC))
    asked = stream.fetcher.requests
    assert listed(stream) == ["a"]
    assert stream.fetcher.requests - asked == 2 + 2  # the last page, and the end again


def shift_to(stream: ActivityStream, start: datetime) -> None:
    """Date all activities from another start."""
    for number, item in enumerate(stream.activities):
        name = "startTime" if item["type"] == "Refresh" else "endTime"
        item[name] = f"{start + timedelta(minutes=number):%Y-%m-%dT%H:%M:%SZ}"


def test_before_an_old_refresh_only_deletions_count_in_the_changes() -> None:
    stream = plain("Create a", "Create b", "Create c", "Create d")
    shift_to(stream, datetime(2026, 1, 1, tzinfo=UTC))
    start = position_of(stream)
    stream.add("Delete", "a")
    stream.add("Update", "b")
    stream.add("Move", "c", target=manifest("e"))
    stream.activities.append({"type": "Refresh"})
    stream.add("Update", "d")
    shift_to(stream, datetime(2026, 1, 1, tzinfo=UTC))
    assert changed(stream, start) == [("-", "a"), ("-", "c"), ("+", "d")]


def test_objects_of_other_types_are_ignored_where_types_are_given() -> None:
    stream = plain("Create a", "Create b", "Create c")
    stream.activities[0]["object"]["type"] = "Collection"
    stream.activities[1]["object"]["type"] = "sc:Manifest"
    assert listed(stream) == ["a", "b", "c"]
    assert listed(stream, types="Manifest, Collection") == ["a", "c"]


def test_an_object_is_published_with_its_time_type_descriptions_and_canonical_uri() -> None:
    described = {"id": "https://x.example/1.json", "type": "Dataset", "format": "application/json"}
    thing = manifest("a") | {
        "seeAlso": [described, {"id": 7}, "https://x.example/2.xml"],
        "canonical": "https://x.example/1",
        "format": 'application/ld+json;profile="http://iiif.io/api/presentation/3/context.json"',
    }
    stream = stream_of({"type": "Create", "object": thing, "endTime": "2026-03-01T10:00:00.5Z"})
    with opened(stream) as account:
        (found,) = account.resources()
    assert found.lastmod == datetime(2026, 3, 1, 10, microsecond=500_000, tzinfo=UTC)
    assert found.media_type == thing["format"]
    assert [(link.rel, link.href, link.media_type) for link in found.links] == [
        ("describedby", "https://x.example/1.json", "application/json"),
        ("describedby", "https://x.example/2.xml", ""),
        ("canonical", "https://x.example/1", ""),
    ]


# --- following ---


def test_a_run_without_news_asks_for_the_collection_and_the_last_page_alone() -> None:
    stream = plain(*(f"Create {number}" for number in range(100)))
    start = position_of(stream)
    stream.fetcher.asked.clear()
    assert changed(stream, start) == []
    assert stream.fetcher.asked == [ALL, f"{HOME}activity/page-33"]


def test_a_run_asks_only_for_the_pages_with_news() -> None:
    stream = plain(*(f"Create {number}" for number in range(100)))
    start = position_of(stream)
    for name in "abcd":
        stream.add("Create", name)
    stream.fetcher.asked.clear()
    assert changed(stream, start) == [("+", name) for name in "abcd"]
    assert len(stream.fetcher.asked) == 3


def test_new_activities_in_disorder_are_followed_from_a_page_that_did_not_change() -> None:
    stream = plain(*(f"Create {number}" for number in range(9)))
    start = position_of(stream)
    times = [moment(20), moment(30), moment(25), moment(28)]
    kinds = ["Update", "Delete", "Update", "Create"]
    stream.activities += [
        activity(kind, name, time) for kind, name, time in zip(kinds, "xyyz", times, strict=True)
    ]
    assert changed(stream, start) == [("+", "x"), ("-", "y"), ("+", "z")]


def test_a_refresh_without_a_time_and_other_types_do_not_end_the_log() -> None:
    stream = plain("Create a", "Create b")
    stream.activities += [{"type": "Refresh"}, {"type": "View", "object": manifest("a")}]
    start = position_of(stream)
    assert changed(stream, start) == []
    stream.add("Delete", "a")
    assert changed(stream, start) == [("-", "a")]


def test_activities_of_one_moment_are_not_told_twice() -> None:
    stream = stream_of(*(activity("Create", f"{n}", LONG_AGO) for n in range(50)))
    start = position_of(stream)
    assert changed(stream, start) == []
    stream.activities.append(activity("Create", "new", LONG_AGO))
    assert changed(stream, start) == [("+", "new")]


def test_pages_that_move_are_followed_by_their_times() -> None:
    """Publishers that have each object once move its activity to the end: all pages change."""
    stream = plain(*(f"Create {number}" for number in range(30)))
    start = position_of(stream)
    first = stream.activities.pop(0)
    stream.activities.append(first | {"type": "Update", "endTime": moment(40)})
    assert changed(stream, start) == [("+", "29"), ("+", "0")]  # 29 is of the last known moment


@pytest.mark.parametrize("case", ["trimmed", "restarted", "set back", "undated", "in disorder"])
def test_a_stream_that_does_not_reach_the_position_is_a_gap(case: str) -> None:
    stream = plain(*(f"Create {number}" for number in range(9)))
    start = position_of(stream)
    match case:
        case "trimmed":
            for number in range(9):
                stream.add("Create", f"new{number}")
            stream.dropped = 3
        case "restarted":
            stream.activities = [activity("Create", "x", moment(60))]
        case "set back":
            del stream.activities[4:]
        case "undated":
            stream.activities[7:] = [activity("Create", "x", None) for _ in range(9)]
        case _:
            stream.activities[7:] = [activity("Create", "x", moment(n)) for n in (90, 70, 50)]
    with pytest.raises(DiscontinuityError, match="does not continue"):
        changed(stream, start)


def test_a_position_that_is_none_is_told() -> None:
    with opened(plain("Create a")) as account, pytest.raises(StateError, match="invalid"):
        list(account.changes("here", 0))


def test_many_changes_come_in_batches_and_each_position_continues_after_its_batch() -> None:
    stream = plain("Create x", size=1_000)
    start = position_of(stream)
    stream.add("Create", "one")  # a batch would end between the halves of a move
    for number in range(6_000):
        stream.add("Move", f"old{number}", target=manifest(f"new{number}"))
    with opened(stream) as account:
        batches = list(account.changes(start, 0))
        assert [len(batch.changes) for batch in batches] == [5_001, 5_000, 2_000]
        whole = state_of(change for batch in batches for change in batch.changes)
        for number, batch in enumerate(batches):
            before = [change for earlier in batches[: number + 1] for change in earlier.changes]
            after = [c for rest in account.changes(batch.position, 0) for c in rest.changes]
            assert state_of(iter([*before, *after])) == whole
            assert len(before) + len(after) == 12_001


def state_of(changes: Iterator[Change]) -> dict[str, bool]:
    return {change.uri: change.kind is ChangeKind.UPDATED for change in changes}


@pytest.mark.parametrize("style", ["whole", "latest", "batch"])
@pytest.mark.parametrize("seed", range(6))
def test_a_follower_has_what_the_publisher_has_whatever_happens(seed: int, style: str) -> None:
    dice = random.Random(f"{seed} {style}")
    stream = ActivityStream(dice.choice([1, 3, 7]))
    there: set[str] = set()
    copy: dict[str, bool] = {}
    position, number = "", 0
    for _ in range(60):
        for _ in range(dice.randrange(6)):
            name, number = dice.choice("abcdefghij"), number + 1
            kind = dice.choice(["Update", "Update", "Delete", "Move", "Add", "Remove"])
            other = dice.choice("klmnop")
            when = moment(number // 4 if style == "batch" else number)
            more = {"target": manifest(other)} if kind == "Move" else {}
            if style == "latest":
                drop(stream, name, other if kind == "Move" else name)
            stream.activities.append(activity(kind, name, when, **more))
            there.discard(name)
            there |= {"Move": {other}, "Delete": set(), "Remove": set()}.get(kind, {name})
        with opened(stream) as account:
            is_whole = not position or dice.random() < 0.1
            try:
                for batch in () if is_whole else account.changes(position, 0):
                    copy |= state_of(iter(batch.changes))
                    position = batch.position
            except DiscontinuityError:
                is_whole = True
            if is_whole:
                position = account.position()
                copy = {resource.uri: True for resource in account.resources()}
        assert {uri for uri, is_there in copy.items() if is_there} == set(map(uri_of, there))


def drop(stream: ActivityStream, *dropped: str) -> None:
    """Remove what an object's next activity replaces; moves stay, for their other object."""
    stream.activities = [
        item
        for item in stream.activities
        if item["type"] == "Move" or item["object"]["id"] not in map(uri_of, dropped)
    ]
