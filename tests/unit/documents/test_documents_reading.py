from datetime import UTC, datetime

import pytest

from resourcesync.model.capabilities import CapabilityEntry, Part
from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import (
    Capability,
    ChangeKind,
    Dialect,
    Relation,
)
from tests.support.documents.text import (
    CHANGE_LIST,
    document,
    tell,
    url,
)

NINE = datetime(2013, 1, 3, 9, tzinfo=UTC)
MIRROR = Link(
    rel="duplicate",
    href="http://m.example/res1",
    media_type="a/b",
    length=5,
    digests=(Digest("md5", "ab"),),
    encoding="br",
    modified=datetime(2013, 1, 2, 18, tzinfo=UTC),
    path="/p",
    priority=1,
)


def test_a_resource_list_gives_its_header_and_its_resources() -> None:
    told = tell(
        document(
            '<rs:ln rel="up" href="http://example.com/capabilitylist.xml"/>',
            url(
                "http://example.com/res1",
                "<lastmod>2013-01-02T13:00:00Z</lastmod><changefreq>daily</changefreq>",
                '<rs:md hash="md5:1584abdf8ebdc9802ac0c6a7402c03b6" length="8876"'
                ' type="text/html" encoding="gzip"/>',
                '<rs:ln rel="duplicate" href="http://m.example/res1" pri="1" length="5"'
                ' modified="2013-01-02T18:00:00Z" hash="md5:ab" type="a/b" path="/p"'
                ' encoding="br"/>',
            ),
        )
    )

    assert told.header.capability is Capability.RESOURCE_LIST
    assert told.header.at == NINE
    assert told.header.link(Relation.UP) == "http://example.com/capabilitylist.xml"
    assert told.entries == [
        Resource(
            uri="http://example.com/res1",
            lastmod=datetime(2013, 1, 2, 13, tzinfo=UTC),
            length=8876,
            digests=(Digest("md5", "1584abdf8ebdc9802ac0c6a7402c03b6"),),
            media_type="text/html",
            encoding="gzip",
            changefreq="daily",
            links=(MIRROR,),
        )
    ]


def test_a_change_list_gives_changes_with_their_times() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md change="created" datetime="2013-01-03T11:00:00Z"/>'),
            url(
                "http://a/2", "<lastmod>2013-01-03T12:00:00Z</lastmod>", '<rs:md change="updated"/>'
            ),
            url("http://a/3", '<rs:md change="deleted"/>'),
            md=CHANGE_LIST,
        )
    )

    noon = datetime(2013, 1, 3, 12, tzinfo=UTC)
    assert told.entries == [
        Change(
            kind=ChangeKind.CREATED,
            time=datetime(2013, 1, 3, 11, tzinfo=UTC),
            resource=Resource(uri="http://a/1"),
        ),
        Change(
            kind=ChangeKind.UPDATED, time=noon, resource=Resource(uri="http://a/2", lastmod=noon)
        ),
        Change(kind=ChangeKind.DELETED, time=None, resource=Resource(uri="http://a/3")),
    ]
    assert told.dialect is Dialect.V1_1
    assert told.header.is_open


@pytest.mark.parametrize(
    ("children", "dialect"),
    [
        (["<lastmod>2013-01-03T12:00:00Z</lastmod><rs:md change='updated'/>"], Dialect.V1_0),
        (["<rs:md change='updated' datetime='2013-01-03T12:00:00Z'/>"], Dialect.V1_1),
        (["<rs:md change='updated'/>"], Dialect.V1_1),
        ([], Dialect.V1_1),
    ],
)
def test_only_the_times_of_changes_tell_1_0_from_1_1(children: list[str], dialect: Dialect) -> None:
    assert tell(document(*(url("http://a/1", c) for c in children), md=CHANGE_LIST)).dialect is (
        dialect
    )


def test_an_index_gives_parts_with_their_own_times() -> None:
    told = tell(
        document(
            "<sitemap><loc>http://a/1</loc><lastmod>2013</lastmod>"
            '<rs:md from="2013-01-01T00:00:00Z" until="2013-01-02T00:00:00Z"/></sitemap>',
            '<sitemap><loc>http://a/2</loc><rs:md at="2013-01-03T09:00:00Z" completed="2014"/>'
            "</sitemap>",
            root="sitemapindex",
            md=CHANGE_LIST,
        )
    )

    assert told.header.phrase == "Change List Index"
    assert told.entries == [
        Part(
            uri="http://a/1",
            lastmod=datetime(2013, 1, 1, tzinfo=UTC),
            from_=datetime(2013, 1, 1, tzinfo=UTC),
            until=datetime(2013, 1, 2, tzinfo=UTC),
        ),
        Part(uri="http://a/2", at=NINE, completed=datetime(2014, 1, 1, tzinfo=UTC)),
    ]


def test_a_capability_list_keeps_capabilities_that_are_not_known() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md capability=" ResourceList "/>'),
            url("http://a/2", '<rs:md capability="resourcedrum"/>'),
            url("http://a/3", '<rs:ln rel="describedby" href="http://a/about"/>'),
            md='<rs:md capability="capabilitylist"/>',
        )
    )

    assert told.entries == [
        CapabilityEntry(
            uri="http://a/1", capability=Capability.RESOURCE_LIST, label="ResourceList"
        ),
        CapabilityEntry(uri="http://a/2", capability=None, label="resourcedrum"),
        CapabilityEntry(uri="http://a/3", links=(Link(rel="describedby", href="http://a/about"),)),
    ]
