"""Two visits of a live Source: what changed in between must be in a Change List."""

from collections.abc import Iterator

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.model.vocabulary import Capability
from resourcesync.validator.events import Judged, ValidationEvent
from resourcesync.validator.rule import AppliedRules, RuleFinding
from resourcesync.validator.sample import SampleSize
from resourcesync.validator.second_visit import MOST_ENTRIES, VisitedEntries
from resourcesync.validator.summaries import DocumentPlace, DocumentSummary, ListedResource
from tests.conformance.scripted_site import ScriptedAnswer, ScriptedSite, SiteServer
from tests.conformance.scripted_source import CHANGES, RESOURCES, ScriptedSource
from tests.support.rules.judged import LONG, judged

ALL = SampleSize(percent=100)


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


def visited(server: SiteServer, *sites: ScriptedSite) -> list[ValidationEvent]:
    """Judge a Source that serves the first site, and after each wait the next one."""
    following = iter(sites)
    server.serve(next(following))

    def go_on() -> None:
        site = next(following, None)
        if site is not None:
            server.serve(site)

    return judged(server.base, act=go_on, again=LONG, sample=ALL)


def untold(server: SiteServer, events: list[ValidationEvent]) -> list[str]:
    found = [
        event for event in events if isinstance(event, RuleFinding) and event.rule.id == "CH14"
    ]
    return sorted(event.message.split()[0].removeprefix(server.base) for event in found)


def is_tested(events: list[ValidationEvent]) -> bool:
    return any(isinstance(event, AppliedRules) and "CH14" in event.rules for event in events)


def begun(server: SiteServer) -> ScriptedSource:
    source = ScriptedSource(server.base, SystemClock().now())
    source.put("a.txt", "b.txt", "c.txt")
    source.list_resources()
    source.forget_changes()
    return source


def change(source: ScriptedSource) -> None:
    source.put("a.txt", text="second")
    source.put("d.txt")
    source.remove("b.txt")


def without_changes(source: ScriptedSource, before: ScriptedSite) -> ScriptedSite:
    """Return the site of now with the Change List of before."""
    name = "resourcesync/changelist.xml"
    return source.site().with_answers({name: before.answers[name]})


@pytest.mark.parametrize("is_listed", [True, False])
def test_changes_that_are_told_are_no_finding(server: SiteServer, is_listed: bool) -> None:
    source = begun(server)
    before = source.site()
    change(source)
    if is_listed:
        source.list_resources()

    events = visited(server, before, source.site())

    assert untold(server, events) == []
    assert is_tested(events)


def test_changes_of_the_resource_list_that_no_change_list_has_are_named(
    server: SiteServer,
) -> None:
    source = begun(server)
    before = source.site()
    change(source)
    source.list_resources()

    events = visited(server, before, without_changes(source, before))

    assert untold(server, events) == ["a.txt", "b.txt", "d.txt"]


def test_bytes_that_changed_and_are_in_no_list_are_named(server: SiteServer) -> None:
    site = begun(server).site()
    other = site.with_answers({"c.txt": ScriptedAnswer(body=b"other content")})

    events = visited(server, site, other)

    assert untold(server, events) == ["c.txt"]


def test_bytes_that_changed_after_a_change_that_was_listed_are_named(server: SiteServer) -> None:
    source = begun(server)
    source.put("a.txt", text="second")
    site = source.site()
    other = site.with_answers({"a.txt": ScriptedAnswer(body=b"third content")})

    events = visited(server, site, other)

    assert untold(server, events) == ["a.txt"]


def test_change_lists_are_read_last_to_have_the_latest_changes(server: SiteServer) -> None:
    source = begun(server)
    parts = source.site_of_parts(1).answers
    lists = {name: parts[name] for name in parts if "resourcelist" in name}
    server.serve(source.site().with_answers(lists))

    events = judged(server.base, live=True)

    read = [event.place.removeprefix(server.base) for event in events if isinstance(event, Judged)]
    assert [name for name in read if "list" in name][-1] == CHANGES
    assert sum("resourcelist-" in name for name in read) == 3


def test_changes_that_are_published_a_while_later_are_no_finding(server: SiteServer) -> None:
    source = begun(server)
    before = source.site()
    change(source)
    after = source.site()
    late = after.with_answers(
        {name: before.answers[name] for name in before.answers if name.endswith(".xml")}
    )

    events = visited(server, before, late, after)

    assert untold(server, events) == []
    assert is_tested(events)


def test_changes_before_a_change_list_that_begins_anew_are_not_judged(server: SiteServer) -> None:
    source = begun(server)
    before = source.site()
    change(source)
    source.list_resources()
    source.forget_changes()

    events = visited(server, before, source.site())

    assert untold(server, events) == []
    assert not is_tested(events)


def test_a_resource_list_older_than_that_of_the_first_visit_is_not_judged(
    server: SiteServer,
) -> None:
    source = begun(server)
    before = source.site()
    change(source)
    source.list_resources()
    after = source.site()

    events = visited(server, after, after.with_answers({RESOURCES: before.answers[RESOURCES]}))

    assert untold(server, events) == []


def test_of_a_large_source_a_bounded_share_is_compared() -> None:
    entries = VisitedEntries()
    document = DocumentSummary(uri="l", capability=Capability.RESOURCE_LIST)
    for number in range(3 * MOST_ENTRIES):
        uri = f"http://e.example/{number}"
        entries.add(ListedResource(uri=uri, document="l", place=DocumentPlace()), document)

    assert MOST_ENTRIES // 4 < len(entries.resources) <= MOST_ENTRIES
    assert all(hash(uri) % entries.stride == 0 for uri in entries.resources)
