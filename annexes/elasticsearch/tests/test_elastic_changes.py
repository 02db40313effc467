"""The log of changes of an index: late, tied, half posted, erased; and what we post into it."""

import json
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.main import run
from resourcesync.errors import DiscontinuityError
from resourcesync_elasticsearch import change_log
from resourcesync_elasticsearch.change_log import (
    LogPosition,
    ReportedEntry,
    advance_position,
    decode_position,
    narrow_start,
)
from tests.support.accounts.dit_index import PREFIX, ask, rel_path
from tests.support.accounts.published_index import PublishedIndex


def test_a_change_is_held_back_until_what_it_did_is_seen(world: PublishedIndex) -> None:
    index, later = world.index, rel_path("later")
    with world.account() as account:
        start = account.position()
        index.log(later, "created")
        index.log(rel_path("03"), "deleted")
        index.put(rel_path("04"), b"new")
        index.refresh()

        (lot,) = account.changes(start, 0)
        assert [change.uri for change in lot.changes] == [PREFIX + "04"]
        ((code, reason),) = lot.warnings
        assert code == "held-back"
        assert reason.startswith("2 changes held back for up to 30 s: ")
        (again,) = account.changes(lot.position, 0)
        assert again == lot._replace(changes=[])
        position = lot.position

        index.put(later, b"here it is")
        index.refresh()
        told, position = world.told(account, position)
        assert [(change.kind, change.uri) for change in told] == [("created", PREFIX + "later")]

        world.clock.sleep(60)  # what still is there then is believed to be there
        told, position = world.told(account, position)
        assert [(change.kind, change.uri) for change in told] == [("updated", PREFIX + "03")]
        assert world.told(account, position) == ([], position)


@pytest.mark.founding(
    "DIT-ES: Mappings",
    "An index made with the printed mappings is followed",
    "`config elasticsearch`",
)
def test_the_mapping_that_config_prints_makes_an_index_that_is_followed(
    world: PublishedIndex, capsys: pytest.CaptureFixture[str]
) -> None:
    index = world.index
    assert run(["config", "elasticsearch"]) == 0
    index.drop()
    for request in capsys.readouterr().out.split("PUT ")[1:]:
        place, _, body = request.partition("\n")
        ask(f"{index.url}{place.replace('INDEX', index.name)}", "PUT", json.loads(body))

    index.refresh()
    with world.account() as account:
        start = account.position()
        index.put(rel_path("new"), b"new")
        index.refresh()
        told, _ = world.told(account, start)
        assert [change.uri for change in told] == [PREFIX + "new"]
        assert [resource.uri for resource in account.resources()] == [PREFIX + "new"]


def test_a_position_is_not_beyond_what_is_not_seen_yet(world: PublishedIndex) -> None:
    index, half = world.index, rel_path("half")
    index.log(half, "created")
    index.refresh()
    with world.account() as account:
        position = account.position()
        action = {"index": {"_index": index.resources, "_id": "half"}}
        index.write([(action, {"resource_set": "pdf", "location": half, "length": 4})])
        index.refresh()
        told, position = world.told(account, position)
        assert [(change.kind, change.uri, change.resource.length) for change in told] == [
            ("created", PREFIX + "half", 4)
        ]
        assert world.told(account, position) == ([], position)


def test_a_change_that_is_seen_late_is_told(world: PublishedIndex) -> None:
    early = f"{datetime.now(UTC) - timedelta(seconds=25):%Y-%m-%dT%H:%M:%SZ}"
    with world.account() as account:
        start = account.position()
        world.index.put(rel_path("05"), b"on time")
        world.index.refresh()
        told, position = world.told(account, start)
        assert [change.uri for change in told] == [PREFIX + "05"]

        world.index.log(rel_path("06"), "updated", timestamp=early, datetime=early)
        world.index.refresh()

        told, position = world.told(account, position)
        assert [change.uri for change in told] == [PREFIX + "06"]
        assert world.told(account, position) == ([], position)


def test_a_change_of_tomorrow_hides_none_of_today(world: PublishedIndex) -> None:
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    with world.account() as account:
        position = account.position()
        for name in ("10", "11"):
            world.index.log(rel_path(name), "updated", timestamp=tomorrow, datetime=tomorrow)
            world.index.put(rel_path("12"), name.encode())
            world.index.refresh()
            told, position = world.told(account, position)
            assert sorted(change.uri for change in told) == [PREFIX + name, PREFIX + "12"]


def test_what_was_erased_or_has_no_date_leads_to_a_whole_look(world: PublishedIndex) -> None:
    index = world.index
    with world.account() as account:
        position = account.position()
        found = ask(f"{index.url}/{index.changes}/_search?size=100")["hits"]["hits"]
        for hit in found:
            index.write([({"delete": {"_index": index.changes, "_id": hit["_id"]}}, None)])
        index.refresh()
        with pytest.raises(DiscontinuityError, match="erased"):
            list(account.changes(position, 0))

        position = account.position()
        index.log(rel_path("07"), "updated", timestamp=None, datetime=None)
        index.refresh()
        with pytest.raises(DiscontinuityError, match="no date"):
            list(account.changes(position, 0))


def test_what_was_written_long_ago_is_not_new_whatever_it_says_of_the_event(
    world: PublishedIndex,
) -> None:
    past, future = (
        f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (-1, 1)
    )
    world.index.log(rel_path("13"), "updated", timestamp=past, datetime=future)
    world.index.refresh()
    with world.account() as account:
        position = account.position()
        assert world.told(account, position) == ([], position)


def test_who_reads_the_log_in_another_way_reads_all(world: PublishedIndex) -> None:
    with world.account() as account:
        position = account.position()
    for other in (
        world.account(resource_set="metadata"),
        world.account(url_prefix="https://o.example/"),
    ):
        with other as account, pytest.raises(DiscontinuityError):
            list(account.changes(position, 0))
    with world.account(window="60") as account:
        assert world.told(account, position) == ([], position)


@pytest.mark.founding(
    "DIT-ES: change",
    "`created`, `updated`, `deleted`, with their time",
    "`publish elasticsearch:URL`",
)
def test_the_last_change_of_each_is_told_oldest_first(world: PublishedIndex) -> None:
    times = [f"2026-01-02T03:04:0{second}Z" for second in range(4)]
    with world.account() as account:
        position = account.position()
        for name, moment in zip(("14", "15", "16", "14"), times, strict=True):
            world.index.log(rel_path(name), "updated", datetime=moment)
        world.index.refresh()
        told, _ = world.told(account, position)
    assert [change.uri.removeprefix(PREFIX) for change in told] == ["15", "16", "14"]


def test_a_change_is_dated_by_when_it_was_written_else_by_when_it_happened(
    world: PublishedIndex,
) -> None:
    moment = datetime.now(UTC).replace(microsecond=0)
    with world.account() as account:
        start = account.position()
        world.index.log(rel_path("08"), "updated", timestamp=None)
        world.index.put(rel_path("09"), b"x")
        world.index.refresh()
        told, _ = world.told(account, start)
    assert {change.uri for change in told} == {PREFIX + "08", PREFIX + "09"}
    assert all(
        change.time is not None and change.time - moment < timedelta(minutes=1) for change in told
    )


WINDOW = 50


class Event(NamedTuple):
    """A change: its time by the writer's clock, and when it can be seen."""

    at: int
    visible: int


EVENTS = st.lists(
    st.builds(lambda at, lag: Event(at, at + lag), st.integers(0, 400), st.integers(0, WINDOW)),
    max_size=30,
)


def poll(
    position: LogPosition, events: list[Event], now: int, skew: int
) -> tuple[LogPosition, set[str]]:
    """Read the log as `IndexChangeLog` does; the writer's clock is behind ours by ``skew``."""
    entries = [
        ReportedEntry(str(number), event.at)
        for number, event in enumerate(events)
        if event.visible <= now and event.at >= position.start
    ]
    newest = max((entry.logged for entry in entries), default=position.start)
    fresh = {entry.name for entry in entries} - position.seen
    boundary = min(newest, now + skew) - WINDOW
    return advance_position(position, entries, boundary=boundary, held=None), fresh


@given(EVENTS, st.lists(st.integers(0, 500), max_size=12), st.integers(0, 1000))
def test_each_change_is_told_once_however_late_it_is_seen(
    events: list[Event], polls: list[int], skew: int
) -> None:
    position, told = LogPosition(log="a"), list[str]()
    for now in [*sorted(polls), 1000]:
        position, fresh = poll(decode_position(position.encode()), events, now, skew)
        told += fresh

    assert sorted(told) == sorted(map(str, range(len(events))))


@given(EVENTS, st.integers(0, 400), st.integers(0, 400))
def test_what_is_held_back_is_seen_again(events: list[Event], start: int, held: int) -> None:
    told = [ReportedEntry(str(number), event.at) for number, event in enumerate(events)]
    after = advance_position(
        LogPosition(log="a", start=start), told, boundary=450, held=max(start, held)
    )

    assert after.start <= max(start, held)
    assert after.seen == {entry.name for entry in told if entry.logged >= after.start}


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(0, 20))
def test_no_more_are_remembered_than_there_is_room_for(times: list[int], start: int) -> None:
    known = [ReportedEntry(str(number), at) for number, at in enumerate(times)]
    most, positions_most = 10, change_log.MAX_REMEMBERED
    try:
        setattr(change_log, "MAX_REMEMBERED", most)  # noqa: B010 - it is final elsewhere
        moment = narrow_start(known, start)
    finally:
        setattr(change_log, "MAX_REMEMBERED", positions_most)  # noqa: B010 - it is final elsewhere

    assert sum(entry.logged >= moment for entry in known) <= most
    assert moment == start or sum(entry.logged >= start for entry in known) > most


@pytest.mark.parametrize("text", ["", "17", "{}", "[]", '{"log": "a", "version": 2}', "\x00"])
def test_a_position_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(DiscontinuityError):
        decode_position(text)
