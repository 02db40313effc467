"""What is written in each version: what stands where in each kind of document, and what may not."""

import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from resourcesync.documents.dialects import narrow_header
from resourcesync.documents.writer import closing, opening, render, write
from resourcesync.model.digests import Digest
from resourcesync.model.entries import (
    CapabilityEntry,
    Change,
    DocumentChange,
    Entry,
    Header,
    Link,
    Package,
    Part,
    Resource,
)
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect, Relation
from tests.support.documents.text import tell

NINE = datetime(2013, 1, 3, 9, tzinfo=UTC)
TEN = NINE + timedelta(hours=1)
LIST = Header(capability=Capability.RESOURCE_LIST, at=NINE)
CHANGES = Header(capability=Capability.CHANGE_LIST, from_=NINE)
DESCRIPTION = Header(capability=Capability.DESCRIPTION)
SITEMAP = Header(capability=None)
INDEX = Header(capability=Capability.RESOURCE_LIST, at=NINE, is_index=True)
MANIFEST = Header(capability=Capability.RESOURCE_DUMP_MANIFEST, at=NINE)
CHANGED = Header(capability=Capability.CHANGE_DUMP_MANIFEST, from_=NINE)
DUMP = Header(capability=Capability.RESOURCE_DUMP, at=NINE)
ARCHIVE = Header(capability=Capability.CHANGE_LIST_ARCHIVE)
NEWS = Header(capability=Capability.FRAMEWORK_NOTIFICATION)
FULL = Resource(
    uri="http://a/1?x=1&y=2",
    lastmod=NINE,
    length=5,
    digests=(Digest("md5", "ab"), Digest("sha-256", "cd")),
    media_type="text/html",
    encoding="gzip",
    changefreq="daily",
    links=(Link(rel="up", href="http://a/2", priority=1, modified=TEN, length=7, path="/p"),),
    extra=(("{urn:x}a", "1"), ("b", "2"), ("{urn:x}c", "3"), ("{urn:y}d", "4")),
)


def test_a_resource_list_is_written_in_the_order_of_the_schema() -> None:
    header = Header(
        capability=Capability.RESOURCE_LIST,
        at=NINE,
        completed=TEN,
        links=(Link(rel="up", href="http://a/c"),),
    )

    assert b"".join(write(header, [FULL])).decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        ' xmlns:rs="http://www.openarchives.org/rs/terms/">\n'
        '<rs:ln rel="up" href="http://a/c"/>\n'
        '<rs:md capability="resourcelist" at="2013-01-03T09:00:00Z"'
        ' completed="2013-01-03T10:00:00Z"/>\n'
        "<url><loc>http://a/1?x=1&amp;y=2</loc><lastmod>2013-01-03T09:00:00Z</lastmod>"
        "<changefreq>daily</changefreq>"
        '<rs:md hash="md5:ab sha-256:cd" length="5" type="text/html" encoding="gzip"'
        ' xmlns:x1="urn:x" x1:a="1" b="2" x1:c="3" xmlns:x2="urn:y" x2:d="4"/>'
        '<rs:ln rel="up" href="http://a/2" length="7" modified="2013-01-03T10:00:00Z"'
        ' path="/p" pri="1"/></url>\n'
        "</urlset>\n"
    )


def test_a_change_has_its_time_and_lastmod_only_when_it_is_known() -> None:
    change = Change(
        kind=ChangeKind.UPDATED,
        time=NINE + timedelta(microseconds=7),
        resource=Resource(uri="http://a/1", length=0),
    )

    assert render(change, CHANGES).decode() == (
        '<url><loc>http://a/1</loc><rs:md change="updated"'
        ' datetime="2013-01-03T09:00:00.000007Z" length="0"/></url>\n'
    )


def test_an_index_and_a_description_have_their_own_entries() -> None:
    log = Header(capability=Capability.CHANGE_LIST, from_=NINE, is_index=True)

    assert opening(INDEX).startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex ')
    assert closing(INDEX) == b"</sitemapindex>\n"
    assert render(Part(uri="http://a/1", lastmod=NINE, at=NINE, completed=TEN), INDEX) == (
        b"<sitemap><loc>http://a/1</loc><lastmod>2013-01-03T09:00:00Z</lastmod>"
        b'<rs:md at="2013-01-03T09:00:00Z" completed="2013-01-03T10:00:00Z"/></sitemap>\n'
    )
    assert render(Part(uri="http://a/1", from_=NINE, until=TEN), log) == (
        b'<sitemap><loc>http://a/1</loc><rs:md from="2013-01-03T09:00:00Z"'
        b' until="2013-01-03T10:00:00Z"/></sitemap>\n'
    )
    assert render(
        CapabilityEntry(uri="http://a/1", capability=Capability.CAPABILITY_LIST), DESCRIPTION
    ) == (b'<url><loc>http://a/1</loc><rs:md capability="capabilitylist"/></url>\n')


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


@pytest.mark.conformance("G37", "G38", "G39", "G40", "SD12")
@pytest.mark.parametrize(
    "header",
    [
        Header(capability=Capability.RESOURCE_LIST),
        Header(capability=Capability.RESOURCE_LIST, is_index=True),
        Header(capability=Capability.CHANGE_LIST),
        Header(capability=Capability.CHANGE_LIST, until=NINE),
        Header(capability=Capability.CHANGE_LIST, from_=NINE, at=NINE),
        Header(capability=Capability.CHANGE_LIST, from_=NINE, completed=NINE),
        Header(capability=Capability.CHANGE_LIST, from_=TEN, until=NINE),
        Header(capability=Capability.RESOURCE_LIST, at=TEN, completed=NINE),
        Header(capability=Capability.RESOURCE_LIST, at=NINE, from_=NINE),
        Header(capability=Capability.RESOURCE_LIST, at=NINE, until=NINE),
        Header(capability=Capability.RESOURCE_LIST, at=NINE.replace(tzinfo=None)),
        Header(capability=Capability.DESCRIPTION, at=NINE),
        Header(capability=Capability.CAPABILITY_LIST, from_=NINE),
        Header(capability=None, at=NINE),
        Header(capability=None, extra=(("a", "b"),)),
        Header(capability=Capability.DESCRIPTION, extra=(("at", "b"),)),
        Header(capability=Capability.DESCRIPTION, links=(Link(rel="", href="http://a/"),)),
        Header(capability=Capability.DESCRIPTION, links=(Link(rel="up", href=""),)),
        replace(MANIFEST, is_index=True),
        replace(NEWS, is_index=True),
    ],
)
def test_a_header_that_breaks_the_rules_is_a_fault_of_the_program(header: Header) -> None:
    with pytest.raises(ValueError, match=r"."):
        opening(header)
    with pytest.raises(ValueError, match=r"."):
        list(write(header, []))


def link(**told: object) -> Resource:
    return Resource(uri="http://a/1", links=(Link(rel="up", href="http://a/2", **told),))  # type: ignore[arg-type]  # one wrong value each


def extra(*names: str) -> Resource:
    return Resource(uri="http://a/1", extra=tuple((name, "v") for name in names))


@pytest.mark.conformance("G25", "G26", "G31", "RM04", "RM09", "CM03", "CM07")
@pytest.mark.parametrize(
    ("header", "entry"),
    [
        (LIST, Change(kind=ChangeKind.CREATED, resource=FULL)),
        (LIST, Part(uri="http://a/1")),
        (CHANGES, FULL),
        (INDEX, FULL),
        (DESCRIPTION, FULL),
        (SITEMAP, CapabilityEntry(uri="http://a/1")),
        (INDEX, Part(uri="http://a/1", from_=NINE)),
        (INDEX, Part(uri="http://a/1", at=TEN, completed=NINE)),
        (INDEX, Part(uri="")),
        (DESCRIPTION, CapabilityEntry(uri="")),
        (
            DESCRIPTION,
            CapabilityEntry(uri="http://a/", capability=Capability.CHANGE_LIST, label="odd"),
        ),
        (DESCRIPTION, CapabilityEntry(uri="http://a/", label="changelist")),
        (LIST, Resource(uri="")),
        (LIST, Resource(uri="http://a/\x00")),
        (LIST, Resource(uri="http://a/\x0b")),
        (LIST, Resource(uri="http://a/\ud800")),
        (LIST, Resource(uri="http://a/\ufffe")),
        (LIST, Resource(uri="http://a/", media_type="\x01")),
        (LIST, Resource(uri="http://a/", digests=(Digest("md5", "\x01"),))),
        (LIST, Resource(uri="http://a/", length=-1)),
        (LIST, Resource(uri="http://a/", length=10**19)),
        (LIST, Resource(uri="http://a/", lastmod=NINE.replace(tzinfo=None))),
        (LIST, link(length=-1)),
        (LIST, link(priority=0)),
        (LIST, link(priority=1_000_000)),
        (LIST, link(path="\x02")),
        (LIST, link(extra=(("href", "x"),))),
        (LIST, extra("hash")),
        (LIST, extra("xmlns")),
        (LIST, extra("a", "a")),
        (LIST, extra("a b")),
        (LIST, extra("a:b")),
        (LIST, extra("")),
        (LIST, extra("1a")),
        (LIST, extra("{urn:x}")),
        (LIST, extra("{}a")),
        (LIST, extra("{urn:xa")),
        (LIST, extra("{http://www.openarchives.org/rs/terms/}a")),
        (LIST, extra("{http://www.w3.org/2000/xmlns/}a")),
        (LIST, extra("{urn:\x01}a")),
        (CHANGES, Change(kind=ChangeKind.CREATED, resource=extra("change"))),
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
def test_an_entry_that_breaks_the_rules_is_a_fault_of_the_program(
    header: Header, entry: Entry
) -> None:
    with pytest.raises(ValueError, match=r"."):
        render(entry, header)
    with pytest.raises(ValueError, match=r"."):
        list(write(header, [entry]))


def test_a_name_beyond_ascii_is_written_where_xml_knows_it() -> None:
    resource = extra("{urn:x}\u00e9l\u00e9ment", "na\u00efve")

    assert tell(b"".join(write(LIST, [resource]))).entries == [resource]
    with pytest.raises(ValueError, match="extra"):
        render(extra("a\u00d7"), LIST)


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


def many(count: int) -> Iterator[Resource]:
    for number in range(count):
        yield Resource(
            uri=f"http://a/{number}",
            lastmod=NINE,
            length=number,
            digests=(Digest("sha-256", f"{number:064x}"),),
        )


def test_memory_does_not_grow_with_what_is_written() -> None:
    tracemalloc.start()
    assert sum(map(len, write(LIST, many(10_000)))) > 10**6
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 2**20


UP = Link(rel="up", href="http://a/up")
TO_INDEX = Link(rel="index", href="http://a/index")
LINKED = Header(capability=Capability.RESOURCE_LIST, at=NINE, completed=TEN, links=(UP, TO_INDEX))
CLOSED = Header(capability=Capability.CHANGE_LIST, from_=NINE, until=TEN)
CHANGE = Change(kind=ChangeKind.UPDATED, time=TEN, resource=Resource(uri="http://a/1"))
AFTER_0_9 = [Dialect.V0_9_1, Dialect.V1_0, Dialect.V1_1]
OLD = [Dialect.V0_5, Dialect.V0_6]
N = "2013-01-03T09:00:00Z"


def root(header: Header, dialect: Dialect) -> str:
    return "".join(opening(header, dialect).decode().split("\n")[2:])


@pytest.mark.parametrize("dialect", [*OLD, Dialect.V0_9])
def test_before_0_9_1_an_open_list_and_before_1_1_a_change_needs_its_time(dialect: Dialect) -> None:
    still_open = replace(CLOSED, until=None)

    with pytest.raises(ValueError, match="needs a time"):
        opening(still_open, dialect)
    told = narrow_header(replace(still_open, modified=TEN), dialect)

    assert TEN in (told.until, told.modified)
    with pytest.raises(ValueError, match="needs the time of each change"):
        render(replace(CHANGE, time=None), CLOSED, Dialect.V1_0)


def test_a_source_description_has_other_words_and_before_0_9_is_an_index() -> None:
    header = Header(capability=Capability.DESCRIPTION, modified=NINE)
    entry = CapabilityEntry(uri="http://a/c", capability=Capability.CAPABILITY_LIST)

    for dialect in AFTER_0_9:
        assert root(header, dialect) == '<rs:md capability="description"/>'
    assert root(header, Dialect.V0_9) == '<rs:md capability="resourcesync"/>'
    for dialect in OLD:
        assert root(header, dialect) == f'<rs:md capability="capabilitylist" modified="{N}"/>'
        assert closing(header, dialect) == b"</sitemapindex>\n"
        assert render(entry, header, dialect) == b"<sitemap><loc>http://a/c</loc></sitemap>\n"
        with pytest.raises(ValueError, match="has no Source Description Index"):
            opening(replace(header, is_index=True), dialect)


def test_a_plain_sitemap_says_where_and_when_and_how_often() -> None:
    resource = Resource(
        uri="http://a/1", lastmod=NINE, changefreq="daily", length=5, links=(UP,), path=""
    )

    assert b"".join(write(LINKED, [resource], Dialect.SITEMAP)).decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"<url><loc>http://a/1</loc><lastmod>{N}</lastmod><changefreq>daily</changefreq></url>\n"
        "</urlset>\n"
    )
    with pytest.raises(ValueError, match="a plain sitemap cannot say"):
        opening(CLOSED, Dialect.SITEMAP)
    index = replace(LINKED, is_index=True)
    assert render(Part(uri="http://a/1", at=NINE), index, Dialect.SITEMAP) == (
        b"<sitemap><loc>http://a/1</loc></sitemap>\n"
    )
