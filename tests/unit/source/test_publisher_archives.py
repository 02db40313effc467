"""What is superseded is kept for its time, and listed in archives."""

import pytest

from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import (
    PublicationPlan,
    PublicationStep,
    Span,
    SupersededList,
)
from resourcesync.source.publication_settings import Policy
from resourcesync.source.rotation import supersede
from tests.support.sources.publishing import (
    BASE,
    DOCUMENTS,
    Reader,
    Source,
    content_of,
    header_of,
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
