"""A table is published without a catalogue: what is refused, what stays, what is healed."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from resourcesync.app.publishing import inventory_publication
from resourcesync.errors import (
    ConfigurationError,
    LockedError,
    ResourceSyncError,
    StateError,
    StorageError,
)
from resourcesync.source import inventory
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_options import PublishRequest
from tests.support.accounts.published_table import BASE, PublishedTable, Row

MANY = 240


@pytest.fixture
def world(tmp_path: Path) -> PublishedTable:
    return PublishedTable(tmp_path)


def rows(*names: str, length: int = 1) -> list[Row]:
    return [(f"{BASE}{name}", None, length, "", "") for name in names]


def many(count: int = MANY) -> list[Row]:
    return [(f"{BASE}{number:04}", number, number, "", "text/plain") for number in range(count)]


@pytest.mark.parametrize(
    ("values", "chosen", "said"),
    [
        ({"uri": "page"}, {}, "no column 'page'"),
        ({"url": "uri"}, {}, "have no option 'url'"),
        ({"lastmod": "hash"}, {"sitemap": True}, "sitemap is not for tables"),
        ({"memory": "much"}, {}, "not a memory limit"),
        ({}, {"url": "https://user:secret@data.example/"}, "cannot be the address"),
    ],
)
def test_what_cannot_work_is_refused(
    world: PublishedTable, values: dict[str, str], chosen: dict[str, object], said: str
) -> None:
    world.tell(rows("a"))
    world.values = values

    with pytest.raises(ConfigurationError, match=said):
        world.publish(**chosen)

    assert world.files() == {}


def test_most_resources_do_not_go_at_once_unless_it_is_meant(world: PublishedTable) -> None:
    world.tell(many())
    world.publish()
    before = world.files()
    world.clock.advance(hours=1)

    for left, code in ((many(3), "many-gone"), ([], "empty-account")):
        world.tell(left)
        with pytest.raises(ConfigurationError) as refused:
            world.publish()
        assert refused.value.code == code
        assert world.files() == before

    world.publish(PublishRequest(allow_empty=True))
    assert world.followed() == []


def test_a_small_change_writes_a_change_list_and_no_page(world: PublishedTable) -> None:
    world.tell(many())
    world.publish(max_entries=50)
    before = world.files()
    world.clock.advance(hours=1)
    changed = [*many()[1:], (f"{BASE}new", None, 7, "", "")]
    changed[10] = (*changed[10][:2], 99, *changed[10][3:])
    world.tell(changed)

    done = world.publish()

    after = world.files()
    pages = {name for name in before if name.startswith("resourcelist")}
    assert len(pages) == 6
    assert {name: after[name] for name in pages} == {name: before[name] for name in pages}
    assert (done.publication.created, done.publication.updated, done.publication.deleted) == (
        1, 1, 1,
    )  # fmt: skip
    assert world.followed() == sorted(changed)


def test_another_type_of_the_same_bytes_comes_with_the_next_resource_list(
    world: PublishedTable,
) -> None:
    world.tell(many())
    world.publish()
    world.clock.advance(hours=1)
    typed = [(*row[:4], "text/html") for row in many()]
    world.tell(typed)

    assert world.publish().publication.written == ()
    world.publish(PublishRequest(step=PublicationStep.REBASE))

    assert world.changes() == []
    assert world.listed()[1] == typed


def test_when_most_changed_a_resource_list_is_written_too(world: PublishedTable) -> None:
    world.tell(many())
    world.publish()
    first = world.listed()[0].at
    world.clock.advance(hours=1)
    changed = [(uri, moment, 7, "", "") for uri, moment, *_ in many()]
    world.tell(changed)

    world.publish()

    header, listed = world.listed()
    assert first is not None
    assert header.at == first + timedelta(hours=1)
    assert listed == changed
    assert len(world.changes()) == MANY - 1  # one had this length already


def test_what_is_no_longer_listed_goes_after_a_day(world: PublishedTable) -> None:
    world.tell(many())
    world.publish(max_entries=50)
    old = {name for name in world.bytes() if "sha256" in name}
    world.clock.advance(hours=1)
    world.publish(PublishRequest(step=PublicationStep.REBASE))
    assert old < world.bytes().keys()

    world.clock.advance(hours=25)
    world.publish()

    assert not old & world.bytes().keys()
    assert world.followed() == many()


@pytest.mark.parametrize(
    "harm", [lambda item: item.unlink(), lambda item: item.write_bytes(b"<x/>")]
)
def test_documents_that_were_altered_are_written_again_as_they_were(
    world: PublishedTable, harm: "object"
) -> None:
    assert callable(harm)
    world.tell(many())
    world.publish(max_entries=50)
    former = world.bytes()
    world.clock.advance(hours=1)
    world.tell(many(MANY - 2))
    world.publish(PublishRequest(step=PublicationStep.REBASE))
    before = world.bytes()
    named = [name for name in before if before[name] != former.get(name)]
    assert len(named) == 8
    for name in named:
        harm(world.out / "resourcesync" / name)

    world.publish()
    assert world.followed() == many(MANY - 2)
    world.publish()

    assert world.bytes() == before


def test_a_page_of_a_table_that_is_gone_leads_to_a_new_resource_list(world: PublishedTable) -> None:
    world.tell(many())
    world.publish(max_entries=50)
    world.clock.advance(hours=1)
    world.tell(many(MANY - 1))
    world.publish()
    page = min(name for name in world.bytes() if name.startswith("resourcelist-"))
    (world.out / "resourcesync" / page).unlink()
    world.clock.advance(hours=1)

    world.publish()

    assert world.listed()[1] == many(MANY - 1)


def test_what_cannot_be_written_again_as_it_was_is_told_until_the_lists_start_over(
    world: PublishedTable,
) -> None:
    world.tell(many())
    world.publish()
    world.clock.advance(hours=1)
    world.tell(many(MANY - 1))
    world.publish()
    for path in (world.out / ".resourcesync/tables").glob("*.parquet"):
        path.write_bytes(b"nothing")
    changed = min(name for name in world.bytes() if name.startswith("changelist-"))
    (world.out / "resourcesync" / changed).write_bytes(b"<x/>")

    with pytest.raises(StorageError):
        world.publish()
    world.publish(PublishRequest(step=PublicationStep.INITIALISE))

    assert world.changes() == []
    assert world.listed()[1] == many(MANY - 1)


def test_settings_are_remembered_though_the_table_did_not_change(world: PublishedTable) -> None:
    world.tell(rows("a"))
    world.publish()
    world.publish(described_by="https://data.example/about")
    before = world.files()
    assert b"https://data.example/about" in before["capabilitylist.xml"][0]

    assert world.publish().publication.written == ()

    assert world.files() == before


def test_a_publication_that_breaks_off_is_ended_as_it_was_begun(
    world: PublishedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it stops, the next run writes the bytes that an undisturbed run would have."""
    other = PublishedTable(tmp_path / "undisturbed")
    for table_world in (world, other):
        table_world.tell(many())
        table_world.publish(max_entries=50)
        table_world.clock.advance(hours=1)
        table_world.tell(many(MANY - 60))
    former = other.bytes().keys()
    other.publish(PublishRequest(step=PublicationStep.REBASE))

    class Stop(BaseException):
        pass

    def some(write: Callable[..., object], left: list[int]) -> Callable[..., object]:
        def limited(*arguments: object, **options: object) -> object:
            if not left[0]:
                raise Stop
            left[0] -= 1
            return write(*arguments, **options)

        return limited

    for most in (0, 1, 3):
        with monkeypatch.context() as stopping:
            left = [most]
            for write in (inventory.write_pages, inventory.write_changes):
                stopping.setattr(inventory_publication, write.__name__, some(write, left))
            with pytest.raises(Stop):
                world.publish(PublishRequest(step=PublicationStep.REBASE))
        world.clock.advance(hours=1)
    lost = min(world.bytes().keys() & other.bytes().keys() - former)
    (world.out / "resourcesync" / lost).unlink()
    world.publish()

    assert world.bytes() == other.bytes()


def test_change_lists_go_on_without_a_gap_over_new_resource_lists(world: PublishedTable) -> None:
    world.tell(rows("a"))
    world.publish()
    for names in ("ab", "ab", "abc", "abc", "abcd"):
        world.clock.advance(hours=25)
        world.tell(rows(*names))
        world.publish(PublishRequest(step=PublicationStep.REBASE))

    assert [change.uri.removeprefix(BASE) for change in world.changes()] == ["b", "c", "d"]
    assert world.followed() == rows(*"abcd")


def test_two_runs_at_a_time_are_refused(world: PublishedTable) -> None:
    world.tell(rows("a"))
    source_taken: list[type[ResourceSyncError]] = []

    class Clock(type(world.clock)):  # type: ignore[misc]
        def now(self) -> datetime:
            if not source_taken:
                source_taken.append(LockedError)
                PublishedTable(world.root).publish()
            moment: datetime = super().now()
            return moment

    world.clock = Clock()
    with pytest.raises(LockedError):
        world.publish()


def test_a_clock_that_is_far_behind_is_not_believed(world: PublishedTable) -> None:
    world.tell(rows("a"))
    world.clock.advance(hours=50)
    world.publish()
    world.clock.set(world.clock.now() - timedelta(hours=49))
    world.tell(rows("a", "b"))

    with pytest.raises(StateError) as refused:
        world.publish()
    assert refused.value.code == "clock-behind"

    world.publish(PublishRequest(step=PublicationStep.INITIALISE))
    header, listed = world.listed()
    assert header.at == world.clock.now()
    assert listed == rows("a", "b")


def test_times_rise_though_the_clock_steps_back(world: PublishedTable) -> None:
    world.tell(rows("a"))
    world.publish()
    first = world.listed()[0].at
    assert first is not None
    world.clock.set(world.clock.now() - timedelta(hours=1))

    world.publish(PublishRequest(step=PublicationStep.REBASE))
    second = world.listed()[0].at
    assert second == first + timedelta(microseconds=1)
    world.tell(rows("a", "b", "c"))
    world.publish(PublishRequest(step=PublicationStep.UPDATE))

    assert [change.time for change in world.changes()] == [
        second + timedelta(microseconds=number) for number in (1, 2)
    ]
    assert world.followed() == rows("a", "b", "c")


def test_another_address_starts_the_lists_over(world: PublishedTable) -> None:
    world.tell(rows("a", "b"))
    world.publish()
    world.clock.advance(hours=1)
    world.tell(rows("a"))
    world.publish(PublishRequest(step=PublicationStep.UPDATE))
    assert len(world.changes()) == 1
    world.clock.advance(hours=1)

    world.publish(url="https://other.example/")

    assert world.changes() == []
    assert b"https://data.example/resourcesync" not in b"".join(
        content for name, content in world.bytes().items() if "sha256" not in name
    )
    assert world.listed()[1] == rows("a")
