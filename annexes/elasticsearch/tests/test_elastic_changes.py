"""The log of changes of an index: late, tied, half posted, erased; and what we post into it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from resourcesync.cli.main import run
from resourcesync.errors import DiscontinuityError
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
