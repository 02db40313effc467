"""Publishing at another base than the last time."""

import pytest

from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from resourcesync.source.publisher import ListPublisher, Publication
from resourcesync.source.scan import scan
from tests.support.in_memory import MemoryOriginals
from tests.support.sources.publishing import SMALL, Source, content_of, header_of, names_of


@pytest.mark.parametrize("limits", [PageLimits(), SMALL])
def test_another_base_starts_anew_and_lists_nothing_of_the_old_origin(limits: PageLimits) -> None:
    source = Source(limits=limits)
    source.put("a")
    source.publish()
    source.put("b", "c", "d", "e")
    source.publish()
    closed = [name for name in source.documents.names() if naming.change_list_number(name)]
    moved = MemoryOriginals(source.clock)
    for name in ("a", "b"):
        moved.put(f"https://new.example/{name}", b"here")
    source.clock.advance(hours=1)
    scan(moved, source.catalogue, source.clock.now())

    def publish() -> Publication:
        return ListPublisher(
            source.catalogue,
            source.documents,
            base_uri="https://new.example/",
            clock=source.clock,
            limits=limits,
        ).publish()

    publication = publish()

    heads = {naming.RESOURCE_LIST, naming.CHANGE_LIST, naming.CAPABILITY_LIST, naming.DESCRIPTION}
    assert set(names_of(publication)) == heads
    assert (publication.created, publication.updated, publication.deleted) == (0, 0, 0)
    assert all(b"h.example" not in content_of(source.documents, name) for name in heads)
    listed = header_of(source, naming.CHANGE_LIST)
    at = header_of(source, naming.RESOURCE_LIST).at
    assert listed.from_ == at is not None
    assert at >= source.clock.now()
    assert not listed.is_index

    source.clock.advance(hours=1)
    for name in ("c", "d", "e", "f"):
        moved.put(f"https://new.example/{name}", b"here")
    scan(moved, source.catalogue, source.clock.now())
    publication = publish()

    assert publication.created == 4
    assert not set(names_of(publication)) & set(closed)  # numbers go on
    later = [name for name in names_of(publication) if name.startswith("resourcesync/change")]
    assert all(b"h.example" not in content_of(source.documents, name) for name in later)
