"""Every kind of document: what stands in it where, and what may not."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from resourcesync.documents.writer import opening, render, write
from resourcesync.model.entries import (
    Change,
    DocumentChange,
    Entry,
    Header,
    Link,
    Package,
    Part,
    Resource,
)
from resourcesync.model.vocabulary import Capability, ChangeKind, Relation

NINE = datetime(2013, 1, 3, 9, tzinfo=UTC)
TEN = NINE + timedelta(hours=1)
LIST = Header(capability=Capability.RESOURCE_LIST, at=NINE)
CHANGES = Header(capability=Capability.CHANGE_LIST, from_=NINE)
INDEX = Header(capability=Capability.RESOURCE_LIST, at=NINE, is_index=True)
MANIFEST = Header(capability=Capability.RESOURCE_DUMP_MANIFEST, at=NINE)
CHANGED = Header(capability=Capability.CHANGE_DUMP_MANIFEST, from_=NINE)
DUMP = Header(capability=Capability.RESOURCE_DUMP, at=NINE)
ARCHIVE = Header(capability=Capability.CHANGE_LIST_ARCHIVE)
NEWS = Header(capability=Capability.FRAMEWORK_NOTIFICATION)


def test_a_package_tells_its_times_its_bytes_and_its_contents() -> None:
    package = Package(
        uri="http://a/p.zip",
        lastmod=TEN,
        at=NINE,
        completed=TEN,
        length=7,
        media_type="application/zip",
        links=(Link(rel="contents", href="http://a/m.xml", media_type="application/xml"),),
    )

    assert render(package, DUMP).decode() == (
        "<url><loc>http://a/p.zip</loc><lastmod>2013-01-03T10:00:00Z</lastmod>"
        '<rs:md at="2013-01-03T09:00:00Z" completed="2013-01-03T10:00:00Z" length="7"'
        ' type="application/zip"/>'
        '<rs:ln rel="contents" href="http://a/m.xml" type="application/xml"/></url>\n'
    )


def test_a_manifest_an_archive_and_a_notification_have_their_own_entries() -> None:
    gone = Change(kind=ChangeKind.DELETED, time=NINE, resource=Resource(uri="http://a/1"))
    change = DocumentChange(
        uri="http://a/c", kind=ChangeKind.UPDATED, time=TEN, capability=Capability.CHANGE_LIST,
        from_=NINE,
    )  # fmt: skip

    assert render(Resource(uri="http://a/1", path="/x/1"), MANIFEST) == (
        b'<url><loc>http://a/1</loc><rs:md path="/x/1"/></url>\n'
    )
    assert b"path" not in render(gone, CHANGED)
    assert render(Part(uri="http://a/1", from_=NINE, until=TEN), ARCHIVE).startswith(b"<url>")
    assert render(change, NEWS).decode() == (
        '<url><loc>http://a/c</loc><rs:md capability="changelist" change="updated"'
        ' datetime="2013-01-03T10:00:00Z" from="2013-01-03T09:00:00Z"/></url>\n'
    )


@pytest.mark.conformance("RM04", "RM09", "CM03", "CM07", "G31")
@pytest.mark.parametrize(
    ("header", "entry"),
    [
        (MANIFEST, Resource(uri="http://a/1")),
        (MANIFEST, Resource(uri="http://a/1", path="x/1")),
        (CHANGED, Change(kind=ChangeKind.CREATED, resource=Resource(uri="http://a/1"))),
        (
            CHANGED,
            Change(
                kind=ChangeKind.UPDATED,
                resource=Resource(
                    uri="http://a/1",
                    path="/1",
                    links=(Link(rel=Relation.PATCH, href="http://a/p", media_type="x/y"),),
                ),
            ),
        ),
        (LIST, Resource(uri="http://a/1", path="/1")),
        (CHANGES, Change(kind=ChangeKind.CREATED, resource=Resource(uri="http://a/", path="/1"))),
        (INDEX, Part(uri="http://a/1", path="/1")),
        (replace(MANIFEST, is_index=True), Part(uri="http://a/1", path="/1")),
        (replace(NEWS, is_index=True), Part(uri="http://a/1")),
        (ARCHIVE, Part(uri="http://a/1", at=NINE)),
        (DUMP, Package(uri="http://a/1", from_=NINE)),
        (DUMP, Resource(uri="http://a/1")),
        (
            NEWS,
            DocumentChange(
                uri="http://a/1",
                kind=ChangeKind.CREATED,
                capability=Capability.RESOURCE_LIST,
                from_=NINE,
            ),
        ),
    ],
)
def test_what_stands_in_the_wrong_place_is_a_fault_of_the_program(
    header: Header, entry: Entry
) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(write(header, [entry]))


@pytest.mark.founding(
    "0.9 §3",
    "Communities add elements of their own namespaces",
    "`documents.read`, `documents.write`",
)
def test_elements_of_other_communities_come_back_where_the_schema_wants_them() -> None:
    image = '<i:image xmlns:i="urn:i"><i:loc>x</i:loc></i:image>'
    priority = '<priority xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">0.5</priority>'
    resource = Resource(
        uri="http://a/1",
        length=1,
        foreign=(priority, image),
        links=(Link(rel="via", href="http://b/"),),
    )

    row = render(resource, LIST).decode()

    order = [row.index(text) for text in ("<loc>", "<priority", "<rs:md", "<rs:ln", "<i:image")]
    assert order == sorted(order)
    head = opening(replace(LIST, foreign=(image,))).decode()
    assert head.index("<rs:md") < head.index(image)


@pytest.mark.parametrize(
    "fragment",
    [
        "",
        "text",
        "<a",
        "<a xmlns='urn:x'>",
        "<a xmlns='urn:x'/>text",
        "<a xmlns='urn:x'/><b xmlns='urn:x'/>",
        "<a xmlns='urn:x'/></urlset>",
        "</r><r>",
        "<x:a/>",
        "<rs:tag/>",
        "<url/>",
        "<loc xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>x</loc>",
        "<md xmlns='http://www.openarchives.org/rs/terms/' capability='x'/>",
        "<!DOCTYPE a><a xmlns='urn:x'/>",
        "<?xml version='1.0'?><a xmlns='urn:x'/>",
        "<a xmlns='urn:x'>&unknown;</a>",
        "<a xmlns='urn:x'>\x01</a>",
        "<a xmlns='urn:x'>\ud800</a>",
    ],
)
def test_a_fragment_that_does_not_stand_alone_is_a_fault_of_the_program(fragment: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        render(Resource(uri="http://a/1", foreign=(fragment,)), LIST)
    with pytest.raises(ValueError, match=r"."):
        render(Part(uri="http://a/1", foreign=(fragment,)), INDEX)
    with pytest.raises(ValueError, match=r"."):
        opening(replace(LIST, foreign=(fragment,)))
