"""Entries that are written by the hundred are what they are when they are written one by one."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents import writer
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Header, Link, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
LIST = Header(capability=Capability.RESOURCE_LIST, at=MOMENT)
CHANGES = Header(capability=Capability.CHANGE_LIST, from_=MOMENT)
ONE, OTHER = Digest("sha-256", "0a" * 32), Digest("md5", "%s{}&")

resources = st.builds(
    Resource,
    uri=st.sampled_from(["http://h/a", "http://h/%20?a&b={}", "http://h/ü"]),
    lastmod=st.none()
    | st.integers(0, 10**9).map(lambda number: MOMENT + timedelta(microseconds=number)),
    length=st.none() | st.integers(0, 3),
    digests=st.sampled_from([(), (ONE,), (ONE, OTHER)]),
    media_type=st.sampled_from(["", "text/plain", '"%d"']),
    encoding=st.sampled_from(["", "gzip"]),
    changefreq=st.sampled_from(["", "daily"]),
    links=st.sampled_from([(), (Link(rel="via", href="http://h/%s"),)]),
    extra=st.sampled_from([(), (("{http://e/}x", "%s"),)]),
    foreign=st.sampled_from([(), ("<x xmlns='http://f/'>%</x>",)]),
)
alike = st.builds(lambda item, count: [item] * count, resources, st.integers(1, 3))


@given(st.lists(resources, max_size=6) | alike)
def test_resources_and_changes_in_a_batch(batch: list[Resource]) -> None:
    alone = [writer.render(resource, LIST) for resource in batch]
    changes = [
        Change(kind=ChangeKind.UPDATED, time=MOMENT, resource=resource) for resource in batch
    ]

    assert writer.rows(batch, LIST) == alone
    assert writer.body(batch, LIST) == b"".join(alone)
    assert writer.rows(changes, CHANGES) == [writer.render(change, CHANGES) for change in changes]


def test_what_says_nothing_has_no_metadata_whatever_its_neighbours_say() -> None:
    bare, told = Resource(uri="http://h/a"), Resource(uri="http://h/b", length=0)

    assert writer.body([bare], LIST) == b"<url><loc>http://h/a</loc></url>\n"
    assert writer.rows([bare, told], LIST) == [
        b"<url><loc>http://h/a</loc></url>\n",
        b'<url><loc>http://h/b</loc><rs:md length="0"/></url>\n',
    ]
