"""When lists are closed, dropped, kept in archives and written anew."""

import pytest

from resourcesync.errors import ConfigurationError
from resourcesync.model.vocabulary import Capability, Dialect, Relation
from resourcesync.source import naming, rotation
from resourcesync.source.paging import PageLimits
from resourcesync.source.publication_settings import ChangeLists, Policy
from resourcesync.source.publisher import Publication
from resourcesync.source.rotation import supersede
from resourcesync.source.stored_plan import PublicationPlan, PublicationStep, Span, SupersededList
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


@pytest.mark.founding("D-Lib §2", "A Source keeps its former lists in archives", "`-o archive=30d`")
@pytest.mark.parametrize("count", [2, 9])
def test_what_is_superseded_goes_into_archives_for_its_time(count: int) -> None:
    source = Source(
        limits=PageLimits(max_entries=4),
        policy=Policy(rotate=3_600, keep=30 * 3_600, rebase_every=20 * 3_600, archive=5 * 86_400),
    )
    source.put(*"abcdefghi"[:count])
    source.publish()
    first = content_of(source.documents, naming.RESOURCE_LIST)
    at = Reader(source.documents).view().at
    assert offered(source) == [Capability.RESOURCE_LIST, Capability.CHANGE_LIST]
    source.clock.advance(hours=21)
    source.put("a", content="1")
    source.publish()

    assert Capability.RESOURCE_LIST_ARCHIVE in offered(source)
    archive = naming.ARCHIVES[Capability.RESOURCE_LIST_ARCHIVE]
    (part,) = parts_of(source, archive)
    assert part.at == at
    assert content_of(source.documents, "resourcesync/" + part.uri.removeprefix(DOCUMENTS)) == first
    link = header_of(source, naming.RESOURCE_LIST).link(Relation.ARCHIVES)
    assert link == DOCUMENTS + "resourcelistarchive.xml"

    for number in range(5):
        source.clock.advance(hours=21)
        source.put("a", content=f"more {number}")
        source.publish()
        Reader(source.documents).view()
    past = parts_of(source, naming.ARCHIVES[Capability.CHANGE_LIST_ARCHIVE])
    assert past[0].from_ == at
    assert past[-1].until == parts_of(source, naming.CHANGE_LIST)[0].from_
    index = header_of(source, naming.CHANGE_LIST)
    assert index.link(Relation.ARCHIVES) == DOCUMENTS + "changelistarchive.xml"
    assert next(part.at for part in parts_of(source, archive)) == at

    source.clock.advance(hours=5 * 24)
    source.publish()
    assert at not in [part.at for part in parts_of(source, archive)]
    Reader(source.documents).view()


def test_what_is_lost_of_the_archive_is_written_again_or_no_longer_listed() -> None:
    source = Source(
        policy=Policy(rotate=3_600, keep=3_600, rebase_every=2 * 3_600, archive=90 * 86_400)
    )
    source.put("a")
    source.publish()
    for number in range(5):
        source.clock.advance(hours=26)
        source.put("a", content=str(number))
        source.publish()
    past = parts_of(source, naming.ARCHIVES[Capability.CHANGE_LIST_ARCHIVE])
    lists = naming.ARCHIVES[Capability.RESOURCE_LIST_ARCHIVE]
    former = parts_of(source, lists)
    lost = "resourcesync/" + past[0].uri.removeprefix(DOCUMENTS)
    before = content_of(source.documents, lost)
    source.documents.delete(lost)
    source.documents.write("resourcesync/" + former[0].uri.removeprefix(DOCUMENTS), [b"?"])

    source.publish()

    assert content_of(source.documents, lost) == before
    assert parts_of(source, lists) == former[1:]
    Reader(source.documents).view()


def test_a_resource_list_that_was_lost_before_it_was_kept_is_not_in_the_archive() -> None:
    source = Source(policy=Policy(archive=86_400))
    source.put("a")
    source.publish()
    source.documents.delete(naming.RESOURCE_LIST)

    source.publish(step=PublicationStep.REBASE)

    assert offered(source) == [Capability.RESOURCE_LIST, Capability.CHANGE_LIST]
    assert view(source) == source.truth()


PLAN = PublicationPlan(
    base_uri=BASE,
    documents_uri=BASE,
    at=20,
    monitored_since=20,
    number=1,
    closed=(),
    open=Span(after=0, last=0, start=0, reached=0),
    superseded=(SupersededList(at=5, since=10), SupersededList(at=10, since=20, name="kept.xml")),
)
FORMER = SupersededList(at=20, since=90, name="own.xml")


def test_a_list_that_was_forgotten_and_still_stands_is_held_again() -> None:
    assert supersede(PLAN, 20, FORMER, 7).superseded[-1] == SupersededList(at=7, since=90)


def test_a_run_that_was_killed_in_the_first_publication_begins_no_list() -> None:
    source = Source(policy=Policy(change_lists=ChangeLists.PER_RUN))
    source.put("a")
    with pytest.raises(Killed):
        source.publish(DyingDocuments(source.documents, 4))

    source.publish()

    assert not [name for name in files_of(source) if name.startswith("changelist")]


@pytest.mark.founding("WWW §4", "arXiv: one Change List a day", "`-o rotate=1d`")
def test_an_open_list_is_closed_at_its_age_and_an_empty_one_never() -> None:
    source = Source(policy=Policy(rotate=6 * 3_600))
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


def test_a_small_resource_list_is_written_again_with_each_change() -> None:
    source = Source(policy=Policy(rebase_up_to=3))
    source.put(*"abcd")
    source.publish()
    source.put("a", content="two")
    source.remove("b")

    source.publish()

    assert set(Reader(source.documents).view().resources) == set(source.truth())


def test_an_index_never_holds_more_lists_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "MOST_LISTS", 5)
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
