"""When lists are closed, dropped, archived and written anew; the steps that DSpace had."""

from datetime import UTC, datetime, timedelta

import pytest

from resourcesync.errors import ConfigurationError
from resourcesync.model.vocabulary import Capability, Dialect
from resourcesync.source import naming, plan
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import ChangeLists, Offer, Policy, PublicationStep
from resourcesync.source.publisher import Publication
from tests.support.in_memory import ManualClock
from tests.support.sources.publishing import (
    BASE,
    DOCUMENTS,
    DyingDocuments,
    Killed,
    Reader,
    Source,
    content_of,
    files_of,
    header_of,
    names_of,
    offered,
    parts_of,
    view,
)

HOUR = 3_600_000_000

# --- DSpace, 2013 -------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [Dialect.V1_1, Dialect.V0_6])
@pytest.mark.parametrize(
    ("shape", "head"),
    [(ChangeLists.ARCHIVE, "changelistarchive.xml"), (ChangeLists.PER_RUN, "changelist.xml")],
)
def test_the_steps_of_dspace_leave_the_files_of_dspace(
    shape: ChangeLists, head: str, dialect: Dialect
) -> None:
    clock = ManualClock(datetime(2013, 5, 22, 17, 0, 0, tzinfo=UTC))
    source = Source(clock=clock, policy=Policy(change_lists=shape, dialect=dialect))
    source.put("item/1", "item/2")
    lists = {
        ChangeLists.ARCHIVE: Capability.CHANGE_LIST_ARCHIVE,
        ChangeLists.PER_RUN: Capability.CHANGE_LIST,
    }

    source.publish(step=PublicationStep.INITIALISE)

    assert files_of(source) == ["capabilitylist.xml", "resourcelist.xml"]
    assert offered(source) == [Capability.RESOURCE_LIST]
    first = content_of(source.documents, naming.RESOURCE_LIST)

    clock.set(datetime(2013, 5, 22, 17, 20, 39, tzinfo=UTC))
    source.put("item/3")
    source.publish(step=PublicationStep.UPDATE)

    assert files_of(source) == sorted(
        ["capabilitylist.xml", "resourcelist.xml", head, "changelist_2013-05-22T172139.000001Z.xml"]
    )
    assert offered(source) == [Capability.RESOURCE_LIST, lists[shape]]
    assert content_of(source.documents, naming.RESOURCE_LIST) == first

    clock.set(datetime(2013, 5, 22, 17, 37, 37, tzinfo=UTC))
    source.remove("item/1")
    source.publish(step=PublicationStep.REBASE)

    assert files_of(source) == sorted(
        [
            "capabilitylist.xml",
            "resourcelist.xml",
            head,
            "changelist_2013-05-22T172139.000001Z.xml",
            "changelist_2013-05-22T173837.000001Z.xml",
        ]
    )
    assert content_of(source.documents, naming.RESOURCE_LIST) != first
    assert [part.uri for part in parts_of(source, f"resourcesync/{head}")] == [
        f"{DOCUMENTS}changelist_2013-05-22T172139.000001Z.xml",
        f"{DOCUMENTS}changelist_2013-05-22T173837.000001Z.xml",
    ]


def test_a_run_that_was_killed_in_the_first_publication_begins_no_list() -> None:
    source = Source(policy=Policy(change_lists=ChangeLists.PER_RUN))
    source.put("a")
    with pytest.raises(Killed):
        source.publish(DyingDocuments(source.documents, 4))

    source.publish()

    assert not [name for name in files_of(source) if name.startswith("changelist")]


def test_starting_over_lists_no_change_and_uses_no_name_again() -> None:
    source = Source(limits=PageLimits(max_entries=2))
    source.put("a")
    source.publish()
    source.put(*"bcdef")
    source.publish()
    before = set(files_of(source))

    publication = source.publish(step=PublicationStep.INITIALISE)

    assert (publication.created, publication.first) == (0, False)
    found = Reader(source.documents).view()
    assert found.changes == []
    assert found.at == found.start == source.clock.now()
    source.put(*"ghijk")
    source.publish()
    fresh = {name for name in files_of(source) if name.startswith("changelist-")} - before
    assert len(fresh) == 3
    assert view(source) == source.truth()


# --- rotation -----------------------------------------------------------------------------------


def test_an_open_list_is_closed_at_its_age_and_an_empty_one_never() -> None:
    source = Source(policy=Policy(rotate=6 * HOUR))
    source.put("a")
    source.publish()
    source.clock.advance(hours=48)
    assert source.publish() == Publication()  # nothing to close
    source.put("b")
    source.publish()
    changed = source.clock.now()
    assert not header_of(source, naming.CHANGE_LIST).is_index

    source.put("c")
    publication = source.publish()

    assert names_of(publication) == [
        "resourcesync/changelist-000001.xml",
        "resourcesync/changelist-000002.xml",
        naming.CHANGE_LIST,
    ]
    assert header_of(source, "resourcesync/changelist-000001.xml").until == changed
    assert header_of(source, "resourcesync/changelist-000002.xml").from_ == changed
    assert view(source) == source.truth()


def test_a_clock_that_steps_back_over_a_rotation_dates_no_change_before_the_list() -> None:
    source = Source(policy=Policy(rotate=HOUR, change_lists=ChangeLists.APPEND))
    source.put("a")
    source.publish()
    for hours in (2, -30, 2, 40, -1):
        source.clock.set(source.clock.now() + timedelta(hours=hours))
        source.put("a", content=str(hours))
        source.put("b", content=str(hours))
        source.publish()
        assert view(source) == source.truth()


# --- retention ----------------------------------------------------------------------------------


def test_old_lists_are_dropped_once_nobody_can_need_them_and_removed_a_day_later() -> None:
    source = Source(policy=Policy(rotate=HOUR, keep=3 * HOUR))
    source.put("a")
    source.publish()
    for number in range(8):
        source.clock.advance(hours=2)
        source.put("a", content=str(number))
        source.publish()
    listed = parts_of(source, naming.CHANGE_LIST)
    assert len(listed) == 8  # the Resource List is as old as they are

    source.publish(step=PublicationStep.REBASE)
    assert len(parts_of(source, naming.CHANGE_LIST)) == 9  # somebody may just have read the old one

    source.clock.advance(hours=25)
    source.publish()
    left = parts_of(source, naming.CHANGE_LIST)
    assert len(left) == 2  # one that is closed, and the open one
    assert "changelist-000001.xml" in files_of(source)

    source.clock.advance(hours=25)
    source.publish()
    assert [name for name in files_of(source) if name.startswith("changelist-")] == [
        part.uri.removeprefix(DOCUMENTS) for part in left
    ]
    assert view(source) == source.truth()


def test_a_dump_that_is_offered_keeps_the_lists_that_lead_on_from_it() -> None:
    source = Source(policy=Policy(rotate=HOUR, keep=HOUR, rebase=HOUR))
    source.put("a")
    source.publish()
    at = Reader(source.documents).view().at
    dump = Offer(
        capability=Capability.RESOURCE_DUMP,
        name="resourcesync/resourcedump.xml",
        documents=("resourcesync/changelist_2000-01-01T000000Z.xml",),
        at=int(at.timestamp() * 1_000_000),
        base_uri=BASE,
    )
    source.documents.write(dump.name, [b"?"])
    source.documents.write(dump.documents[0], [b"?"])
    plan.write_offers(source.catalogue, [dump])

    for number in range(6):
        source.clock.advance(hours=30)
        source.put("a", content=str(number))
        source.publish()

    assert parts_of(source, naming.CHANGE_LIST)[0].from_ == at
    assert offered(source) == [
        Capability.RESOURCE_LIST,
        Capability.RESOURCE_DUMP,
        Capability.CHANGE_LIST,
    ]
    assert set(source.documents.names()) >= {dump.name, *dump.documents}

    plan.write_offers(source.catalogue, [])
    source.publish()
    assert parts_of(source, naming.CHANGE_LIST)[0].from_ != at
    assert Capability.RESOURCE_DUMP not in offered(source)


def test_an_index_never_holds_more_lists_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MOST_LISTS", 5)
    source = Source(policy=Policy(change_lists=ChangeLists.PER_RUN))
    source.put("a")
    source.publish()
    rebased = 0
    for number in range(40):
        source.clock.advance(hours=5)
        source.put("a", content=str(number))
        rebased += naming.RESOURCE_LIST in names_of(source.publish())
        assert view(source) == source.truth()
        assert len(parts_of(source, naming.CHANGE_LIST)) <= 5 + 6  # those of a day that is over
    assert 2 < rebased < 20


# --- the policy changes -------------------------------------------------------------------------


def test_every_policy_goes_on_from_every_other() -> None:
    source = Source(limits=PageLimits(max_entries=3))
    source.put(*"abcd")
    source.publish()
    shapes = [ChangeLists.PER_RUN, ChangeLists.APPEND, ChangeLists.ARCHIVE, ChangeLists.APPEND]
    for number, shape in enumerate((*shapes, ChangeLists.ARCHIVE, ChangeLists.PER_RUN)):
        source.policy = Policy(change_lists=shape)
        for again in range(2):
            source.put("a", "z", content=f"{number} {again}")
            source.publish()
            assert view(source) == source.truth()
    with source.catalogue.snapshot() as snapshot:
        log = [change for _, change in snapshot.changes()]
    assert Reader(source.documents).view().changes == log


def test_another_dialect_writes_everything_anew_in_it() -> None:
    source = Source(policy=Policy(rotate=HOUR))
    source.put("a")
    source.publish()
    source.put("b")
    source.publish()
    source.policy = Policy(rotate=HOUR, dialect=Dialect.V1_0)

    publication = source.publish()

    assert naming.CHANGE_LIST in names_of(publication)
    assert b"datetime=" not in content_of(source.documents, naming.CHANGE_LIST)
    source.policy = Policy(rotate=HOUR)
    source.publish()
    assert b"datetime=" in content_of(source.documents, naming.CHANGE_LIST)
    assert view(source) == source.truth()


@pytest.mark.parametrize(
    "choice",
    [
        {"rotate": -1}, {"dialect": Dialect.P1}, {"dialect": Dialect.SITEMAP},
        {"dialect": Dialect.V0_9},
        {"dialect": Dialect.V0_5, "change_lists": ChangeLists.PER_RUN, "archive": 1},
    ],
)  # fmt: skip
def test_a_policy_that_cannot_be_is_refused(choice: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Policy(**choice)  # type: ignore[arg-type]  # what a caller may get wrong


# --- a head that is offered no more ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "step", "gone"),
    [
        (ChangeLists.APPEND, ChangeLists.ARCHIVE, PublicationStep.DUE, naming.CHANGE_LIST),
        (ChangeLists.PER_RUN, ChangeLists.ARCHIVE, PublicationStep.DUE, naming.CHANGE_LIST),
        (ChangeLists.PER_RUN, ChangeLists.PER_RUN, PublicationStep.INITIALISE, naming.CHANGE_LIST),
        (
            ChangeLists.ARCHIVE,
            ChangeLists.PER_RUN,
            PublicationStep.DUE,
            naming.ARCHIVES[Capability.CHANGE_LIST_ARCHIVE],
        ),
    ],
)
def test_a_head_that_is_offered_no_more_goes_at_once_and_what_stood_below_it_stays_a_day(
    before: ChangeLists, after: ChangeLists, step: PublicationStep, gone: str
) -> None:
    source = Source(policy=Policy(change_lists=before))
    source.put("a")
    source.publish()
    source.put("b")
    source.publish()
    below = [name for name in source.documents.names() if naming.is_replaceable(name)]
    assert gone in source.documents.names()

    source.policy = Policy(change_lists=after)
    source.publish(step=step)

    assert gone not in source.documents.names()
    assert not {*below} - {*source.documents.names()}
    source.put("c")
    source.publish()
    assert sorted(view(source)) == [f"{BASE}{name}" for name in "abc"]
