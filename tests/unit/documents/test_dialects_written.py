"""What each dialect's XML looks like: the differences between the versions, one by one."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from resourcesync.documents.dialects import narrow_entry, narrow_header
from resourcesync.documents.writer import closing, opening, render, write
from resourcesync.model.capabilities import CapabilityEntry, Header, Part
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect

NINE = datetime(2013, 1, 3, 9, tzinfo=UTC)
TEN = NINE + timedelta(hours=1)
UP = Link(rel="up", href="http://a/up")
INDEX = Link(rel="index", href="http://a/index")
LIST = Header(capability=Capability.RESOURCE_LIST, at=NINE, completed=TEN, links=(UP, INDEX))
CHANGES = Header(capability=Capability.CHANGE_LIST, from_=NINE, until=TEN)
CHANGE = Change(kind=ChangeKind.UPDATED, time=TEN, resource=Resource(uri="http://a/1"))
WRITTEN = [Dialect.V0_5, Dialect.V0_6, Dialect.V0_9, Dialect.V0_9_1, Dialect.V1_0, Dialect.V1_1]
AFTER_0_9 = [Dialect.V0_9_1, Dialect.V1_0, Dialect.V1_1]
OLD = [Dialect.V0_5, Dialect.V0_6]
N = "2013-01-03T09:00:00Z"
T = "2013-01-03T10:00:00Z"


def root(header: Header, dialect: Dialect) -> str:
    """Return the lines of the root after its start tag, without line feeds."""
    return "".join(opening(header, dialect).decode().split("\n")[2:])


@pytest.mark.parametrize("dialect", AFTER_0_9)
def test_since_0_9_1_a_list_has_at_and_completed_up_and_index(dialect: Dialect) -> None:
    assert root(LIST, dialect) == (
        '<rs:ln rel="up" href="http://a/up"/><rs:ln rel="index" href="http://a/index"/>'
        f'<rs:md capability="resourcelist" at="{N}" completed="{T}"/>'
    )


def test_in_0_9_a_list_has_from_and_other_words_for_its_links() -> None:
    assert root(LIST, Dialect.V0_9) == (
        '<rs:ln rel="resourcesync" href="http://a/up"/><rs:ln rel="up" href="http://a/index"/>'
        f'<rs:md capability="resourcelist" from="{N}"/>'
    )


@pytest.mark.parametrize("dialect", OLD)
def test_before_0_9_a_list_has_modified(dialect: Dialect) -> None:
    assert root(LIST, dialect) == (
        '<rs:ln rel="resourcesync" href="http://a/up"/><rs:ln rel="up" href="http://a/index"/>'
        f'<rs:md capability="resourcelist" modified="{N}"/>'
    )


def test_a_change_document_tells_its_interval_since_0_9_and_its_last_update_before() -> None:
    for dialect in [Dialect.V0_9, *AFTER_0_9]:
        assert root(CHANGES, dialect) == f'<rs:md capability="changelist" from="{N}" until="{T}"/>'
    for dialect in OLD:
        assert root(CHANGES, dialect) == f'<rs:md capability="changelist" modified="{T}"/>'


@pytest.mark.parametrize("dialect", [*OLD, Dialect.V0_9])
def test_before_0_9_1_an_open_list_needs_to_tell_when_it_was_written(dialect: Dialect) -> None:
    still_open = replace(CHANGES, until=None)

    with pytest.raises(ValueError, match="needs a time"):
        opening(still_open, dialect)
    told = narrow_header(replace(still_open, modified=TEN), dialect)

    assert TEN in (told.until, told.modified)


@pytest.mark.parametrize("dialect", WRITTEN)
def test_the_time_of_a_change_is_datetime_in_1_1_and_lastmod_before(dialect: Dialect) -> None:
    row = render(CHANGE, replace(CHANGES, modified=TEN), dialect).decode()

    if dialect is Dialect.V1_1:
        assert row == (
            f'<url><loc>http://a/1</loc><rs:md change="updated" datetime="{T}"/></url>\n'
        )
    else:
        assert row == (
            f'<url><loc>http://a/1</loc><lastmod>{T}</lastmod><rs:md change="updated"/></url>\n'
        )


def test_before_1_1_a_change_without_a_time_cannot_be_said() -> None:
    with pytest.raises(ValueError, match="needs the time of each change"):
        render(replace(CHANGE, time=None), CHANGES, Dialect.V1_0)


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (Dialect.V0_5, f"<lastmod>{T}</lastmod>"),
        (Dialect.V0_6, f"<lastmod>{T}</lastmod>"),
        (Dialect.V0_9, f"<lastmod>{T}</lastmod>"),
        (Dialect.V0_9_1, f'<rs:md from="{N}" until="{T}"/>'),
        (Dialect.V1_0, f'<rs:md from="{N}" until="{T}"/>'),
        (Dialect.V1_1, f'<rs:md from="{N}" until="{T}"/>'),
    ],
)
def test_an_entry_of_an_index_has_times_of_its_own_since_0_9_1(
    dialect: Dialect, expected: str
) -> None:
    index = replace(CHANGES, is_index=True)
    part = Part(uri="http://a/1", from_=NINE, until=TEN)

    assert render(part, index, dialect).decode() == (
        f"<sitemap><loc>http://a/1</loc>{expected}</sitemap>\n"
    )


@pytest.mark.parametrize("relation", ["contents", "timemap", "profile", "archives", "collection"])
def test_links_that_a_version_does_not_know_are_left_out(relation: str) -> None:
    resource = Resource(
        uri="http://a/1",
        links=(Link(rel=relation, href="http://a/2"), Link(rel=f"x {relation}", href="http://a/3")),
    )
    since = Dialect.V0_6 if relation == "collection" else Dialect.V0_9_1

    for dialect in WRITTEN:
        told = narrow_entry(resource, LIST, dialect)
        row = render(resource, LIST, dialect).decode()
        if WRITTEN.index(dialect) >= WRITTEN.index(since):
            assert told is resource
            assert relation in row
        else:
            assert isinstance(told, Resource)
            assert told.links == (Link(rel="x", href="http://a/3"),)
            assert relation not in row


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


def test_manifests_are_indexes_in_0_5_alone() -> None:
    header = Header(capability=Capability.RESOURCE_DUMP_MANIFEST, at=NINE, is_index=True)
    part = Part(uri="http://a/m.xml", path="/m.xml")

    assert render(part, header, Dialect.V0_5) == (
        b'<sitemap><loc>http://a/m.xml</loc><rs:md path="/m.xml"/></sitemap>\n'
    )
    assert opening(header, Dialect.V0_5).endswith(
        f'<rs:md capability="resourcedump-manifest" modified="{N}"/>\n'.encode()
    )
    for dialect in WRITTEN[1:]:
        with pytest.raises(ValueError, match="there is no Resource Dump Manifest Index"):
            opening(header, dialect)


@pytest.mark.parametrize("dialect", WRITTEN)
def test_notifications_exist_since_1_0(dialect: Dialect) -> None:
    header = Header(capability=Capability.CHANGE_NOTIFICATION, from_=NINE, until=TEN)

    if dialect in {Dialect.V1_0, Dialect.V1_1}:
        assert 'capability="change-notification"' in root(header, dialect)
    else:
        with pytest.raises(ValueError, match="has no Change Notification"):
            opening(header, dialect)


def test_a_plain_sitemap_says_where_and_when_and_how_often() -> None:
    resource = Resource(
        uri="http://a/1", lastmod=NINE, changefreq="daily", length=5, links=(UP,), path=""
    )

    assert b"".join(write(LIST, [resource], Dialect.SITEMAP)).decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"<url><loc>http://a/1</loc><lastmod>{N}</lastmod><changefreq>daily</changefreq></url>\n"
        "</urlset>\n"
    )
    with pytest.raises(ValueError, match="a plain sitemap cannot say"):
        opening(CHANGES, Dialect.SITEMAP)
    index = replace(LIST, is_index=True)
    assert render(Part(uri="http://a/1", at=NINE), index, Dialect.SITEMAP) == (
        b"<sitemap><loc>http://a/1</loc></sitemap>\n"
    )
