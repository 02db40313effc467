"""A small Resource List is written again with each change, and leads to its Change List."""

import contextlib
from datetime import datetime
from io import BytesIO

import pytest

from resourcesync.documents import reader
from resourcesync.model.capabilities import CapabilityEntry
from resourcesync.model.links import Link
from resourcesync.model.timestamps import parse_w3c
from resourcesync.model.vocabulary import VALID_FROM, Capability, Relation
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import ChangeLists, Policy, PublicationStep, read_plan
from tests.support.sources.publishing import (
    BASE,
    DOCUMENTS,
    DyingDocuments,
    Killed,
    Reader,
    Source,
    content_of,
    names_of,
    parts_of,
    view,
)

HOUR = 3_600_000_000
SMALL = Policy(rebase_up_to=3)


def published(policy: Policy, *names: str, most: int = 50_000) -> Source:
    source = Source(policy=policy, limits=PageLimits(max_entries=most))
    source.put(*names)
    source.publish()
    return source


def listed(source: Source) -> set[str]:
    """The resources of the Resource List alone."""
    return set(Reader(source.documents).view().resources)


def monitor_link(source: Source) -> Link | None:
    """The link from the Resource List's entry in the Capability List."""
    body = BytesIO(content_of(source.documents, naming.CAPABILITY_LIST))
    for entry in reader.read_stream(body, uri=DOCUMENTS).entries():
        assert isinstance(entry, CapabilityEntry)
        if entry.capability is Capability.RESOURCE_LIST:
            return entry.link_to(Relation.MONITOR)
    raise AssertionError("it offers no Resource List")


def monitor_of(source: Source) -> str | None:
    """The document that this link leads to."""
    link = monitor_link(source)
    return None if link is None else link.href


def monitored_since(source: Source) -> datetime:
    """The moment from which this link holds."""
    link = monitor_link(source)
    assert link is not None
    return parse_w3c(dict(link.extra)[VALID_FROM])


@pytest.mark.parametrize("shape", [ChangeLists.APPEND, ChangeLists.PER_RUN])
def test_a_small_list_is_written_again_after_the_changes_that_lead_up_to_it(
    shape: ChangeLists,
) -> None:
    source = published(Policy(rebase_up_to=3, change_lists=shape), "a", "b")
    source.remove("a")
    source.put("b", content="two")

    written = names_of(source.publish())

    assert written[-1] in {naming.RESOURCE_LIST, naming.CAPABILITY_LIST}
    assert naming.CHANGE_LIST in written[: written.index(naming.RESOURCE_LIST)]
    found = Reader(source.documents).view()
    newest = found.changes[-1].time
    assert newest is not None
    assert {uri: item.digests[0].value for uri, item in found.resources.items()} == source.truth()
    assert found.at == newest or shape is ChangeLists.PER_RUN
    assert found.start < newest <= found.at


def test_the_promise_holds_from_the_last_list_that_was_written_for_another_reason() -> None:
    source = published(SMALL, "a")
    began = Reader(source.documents).view().at
    for number in range(3):
        source.put("a", content=str(number))
        source.publish()
    assert monitored_since(source) == began

    source.publish(step=PublicationStep.REBASE)
    assert monitored_since(source) == Reader(source.documents).view().at > began

    source.put("a", content="later")
    source.publish()
    rebased = monitored_since(source)
    source.documents.delete(naming.RESOURCE_LIST)
    source.clock.advance(seconds=60)
    source.publish()
    assert monitored_since(source) == Reader(source.documents).view().at > rebased


def test_a_list_that_grew_too_long_stays_and_promises_no_more() -> None:
    source = published(SMALL, "a", "b", "c")
    assert monitor_of(source) == BASE + naming.CHANGE_LIST
    source.put("d")

    assert names_of(source.publish()) == [naming.CHANGE_LIST, naming.CAPABILITY_LIST]
    assert len(listed(source)) == 3
    assert monitor_of(source) is None
    assert view(source) == source.truth()

    source.remove("a", "d")
    source.publish()
    assert len(listed(source)) == 2
    assert monitor_of(source) == BASE + naming.CHANGE_LIST


@pytest.mark.parametrize(
    ("policy", "most"),
    [
        (Policy(), 50_000),
        (Policy(rebase_up_to=3, archive=HOUR), 50_000),
        (Policy(rebase_up_to=3), 2),
    ],
    ids=["off", "archives", "parts"],
)
def test_the_list_stays_where_it_is_not_to_be_written_again(policy: Policy, most: int) -> None:
    source = published(policy, "a", "b", "c", most=most)
    source.put("a", content="two")

    assert naming.RESOURCE_LIST not in names_of(source.publish())
    assert monitor_of(source) is None
    assert view(source) == source.truth()


def test_a_day_of_lists_needs_few_lines_in_the_plan_and_keeps_what_leads_on() -> None:
    source = published(Policy(rebase_up_to=3, rotate=HOUR, keep=2 * HOUR), "a")
    firsts = {}
    for minute in range(30 * 60):
        source.put("a", content=str(minute))
        if minute % 60 == 0:
            firsts[minute // 60] = Reader(source.documents).view().at
        source.publish()
        plan = read_plan(source.catalogue)
        assert plan is not None
        assert len(plan.superseded) <= 26

    start = Reader(source.documents).view().start
    assert start <= firsts[29 - 23], "who began a day ago must be able to go on"
    assert start > firsts[3], "old lists are dropped"
    assert len(parts_of(source, naming.CHANGE_LIST)) <= 29


@pytest.mark.parametrize("steps", range(12))
def test_a_list_with_each_change_survives_every_death_of_the_publisher(steps: int) -> None:
    source = published(SMALL, "a", "b")
    before = source.truth()
    source.put("a", content="two")
    source.remove("b")
    with contextlib.suppress(Killed):
        source.publish(DyingDocuments(source.documents, steps))
    assert view(source) in (before, source.truth())

    source.publish()

    assert view(source) == source.truth()
    assert listed(source) == set(source.truth())
