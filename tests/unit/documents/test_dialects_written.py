"""What each dialect's XML looks like: the differences between the versions, one by one."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from resourcesync.documents.dialects import narrow_header
from resourcesync.documents.writer import closing, opening, render, write
from resourcesync.model.entries import CapabilityEntry, Change, Header, Link, Part, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect

NINE = datetime(2013, 1, 3, 9, tzinfo=UTC)
TEN = NINE + timedelta(hours=1)
UP = Link(rel="up", href="http://a/up")
INDEX = Link(rel="index", href="http://a/index")
LIST = Header(capability=Capability.RESOURCE_LIST, at=NINE, completed=TEN, links=(UP, INDEX))
CHANGES = Header(capability=Capability.CHANGE_LIST, from_=NINE, until=TEN)
CHANGE = Change(kind=ChangeKind.UPDATED, time=TEN, resource=Resource(uri="http://a/1"))
AFTER_0_9 = [Dialect.V0_9_1, Dialect.V1_0, Dialect.V1_1]
OLD = [Dialect.V0_5, Dialect.V0_6]
N = "2013-01-03T09:00:00Z"


def root(header: Header, dialect: Dialect) -> str:
    """Return the lines of the root after its start tag, without line feeds."""
    return "".join(opening(header, dialect).decode().split("\n")[2:])


@pytest.mark.parametrize("dialect", [*OLD, Dialect.V0_9])
def test_before_0_9_1_an_open_list_and_before_1_1_a_change_needs_its_time(dialect: Dialect) -> None:
    still_open = replace(CHANGES, until=None)

    with pytest.raises(ValueError, match="needs a time"):
        opening(still_open, dialect)
    told = narrow_header(replace(still_open, modified=TEN), dialect)

    assert TEN in (told.until, told.modified)
    with pytest.raises(ValueError, match="needs the time of each change"):
        render(replace(CHANGE, time=None), CHANGES, Dialect.V1_0)


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
