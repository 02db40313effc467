"""The two Atom forms and the native one of the drafts: read, written, and as hard to fool."""

import gzip
import io
from datetime import UTC, datetime
from pyexpat import ParserCreate

import pytest

from resourcesync.documents.converter import AnyDocument, read_any
from resourcesync.documents.feeds import read_feed
from resourcesync.documents.reader import Limits
from resourcesync.documents.writer import opening, render, write
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocumentError,
    NotAListError,
    TruncatedDocumentError,
    UnexpectedDocumentError,
)
from resourcesync.model.capabilities import Entry, Header, Part, RefusedEntry
from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect

URI = "http://example.com/mychangelist.xml"
WRITTEN = datetime(2012, 10, 31, 9, tzinfo=UTC)
FEEDS = [Dialect.ATOM_LINKS, Dialect.ATOM_ENTRIES, Dialect.NATIVE]
MD5 = "1584abdf8ebdc9802ac0c6a7402c03b6"
ODD = "f4OxZX_x_DFGFDgghgdfb6rtSx-iosjf6735432nklj"

ATOM_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<feed rs:type="http://www.openarchives.org/rs/changelist"
      xmlns="http://www.w3.org/2005/Atom" xmlns:rs="http://www.openarchives.org/rs/">
  <title>A Change List</title>
  <id>urn:uuid:609db020-3ccf-11e2-a25f-0800200c9a66</id>
  <link rel="self" href="http://example.com/mychangelist.xml"/>
  <link rel="http://www.openarchives.org/rs/capabilitylist" href="http://example.com/caps.xml"/>
  <updated>2012-10-31T09:00:00Z</updated>
  <author><name>somebody</name></author>
"""
LINKS = """\
    <link rel="duplicate" href="http://mirror1.example.com/res4.png"
          modified="2012-10-29T03:00:00Z"/>
    <link rel="alternate" href="http://example.com/res4.jpg" type="image/jpeg"/>
"""


def atom_entry(day: int, told: str, links: str = "") -> str:
    return (
        f"<entry><title>t</title><id>urn:x</id><updated>2012-10-{day}T18:00:00Z</updated>"
        f"{told}<summary>info</summary>{links}</entry>"
    )


BY_LINK = (
    ATOM_HEAD
    + atom_entry(
        29,
        f'<link rel="canonical alternate" href="http://example.com/res1 " hash="md5:{MD5}"'
        ' rs:change="updated"/>',
    )
    + atom_entry(
        30, '<link rel="canonical alternate" href="http://example.com/2" rs:change="deleted"/>'
    )
    + atom_entry(
        31,
        '<link rel="canonical alternate" href="http://example.com/res4.png"'
        f' hash="sha-256:{ODD}" type="image/png" rs:change="created"/>',
        LINKS,
    )
    + "</feed>"
)
BY_CONTENT = (
    ATOM_HEAD
    + atom_entry(
        29, f'<content src="http://example.com/res1 " rs:hash="md5:{MD5}" rs:change="updated"/>'
    )
    + atom_entry(30, '<content src="http://example.com/2" rs:change="deleted"/>')
    + atom_entry(
        31,
        f'<conent src="http://example.com/res4.png" rs:hash="sha-256:{ODD}" rs:type="image/png"'
        ' rs:change="created"/>',
        LINKS,
    )
    + "</feed>"
)
NATIVE_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<resync xmlns="http://www.openarchives.org/rs/"
        rstype="http://www.openarchives.org/rs/changelist" modified="2012-10-31T09:00:00Z">
  <link rel="self" href="http://example.com/mychangelist.xml"/>
  <link rel="http://www.openarchives.org/rs/capabilitylist" href="http://example.com/caps.xml"/>
  <item change="updated" href="http://example.com/res1" hash="md5:1584abdf8ebdc9802ac0c6a7402c03b6"
        modified="2012-10-29T18:00:00Z"/>
  <item change="deleted" href="http://example.com/2" modified="2012-10-30T18:00:00Z"/>
"""
ITEM = (
    f'<item change="created" href="http://example.com/res4.png" hash="sha-256:{ODD}"'
    ' modified="2012-10-31T18:00:00Z" type="image/png"'
)
NATIVE = f"{NATIVE_HEAD}{ITEM}>{LINKS}</item></resync>"
NATIVE_AS_PRINTED = f"{NATIVE_HEAD}{ITEM}/>{LINKS}</resync>"

HEADER = Header(
    capability=Capability.CHANGE_LIST,
    modified=WRITTEN,
    links=(
        Link(rel="self", href="http://example.com/mychangelist.xml"),
        Link(rel="up", href="http://example.com/caps.xml"),
    ),
)


def change(kind: ChangeKind, day: int, **told: object) -> Change:
    time = datetime(2012, 10, day, 18, tzinfo=UTC)
    return Change(kind=kind, time=time, resource=Resource(lastmod=time, **told))  # type: ignore[arg-type]  # the fields of Resource


CHANGES: list[Entry] = [
    change(ChangeKind.UPDATED, 29, uri="http://example.com/res1", digests=(Digest("md5", MD5),)),
    change(ChangeKind.DELETED, 30, uri="http://example.com/2"),
    change(
        ChangeKind.CREATED,
        31,
        uri="http://example.com/res4.png",
        digests=(Digest("sha-256", ODD),),
        media_type="image/png",
        links=(
            Link(
                rel="duplicate",
                href="http://mirror1.example.com/res4.png",
                modified=datetime(2012, 10, 29, 3, tzinfo=UTC),
            ),
            Link(rel="alternate", href="http://example.com/res4.jpg", media_type="image/jpeg"),
        ),
    ),
]


def open_text(text: str | bytes, **told: object) -> AnyDocument:
    data = text.encode() if isinstance(text, str) else text
    return read_any(io.BytesIO(data), uri=URI, **told)  # type: ignore[arg-type]  # limits, on_refused


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (BY_LINK, Dialect.ATOM_LINKS),
        (BY_CONTENT, Dialect.ATOM_ENTRIES),
        (NATIVE, Dialect.NATIVE),
        (NATIVE_AS_PRINTED, Dialect.NATIVE),
    ],
)
def test_a_sample_of_the_paper_is_read_into_the_same_values(text: str, dialect: Dialect) -> None:
    for data in (text.encode(), gzip.compress(text.encode())):
        opened = open_text(data)

        assert list(opened.entries()) == CHANGES
        assert opened.header == HEADER
        assert opened.dialect is dialect
        assert opened.refused == 0


@pytest.mark.parametrize("dialect", FEEDS)
def test_what_is_written_in_a_form_is_read_again(dialect: Dialect) -> None:
    data = b"".join(write(HEADER, CHANGES, dialect))

    opened = open_text(data)
    assert opened.header == HEADER
    assert list(opened.entries()) == CHANGES
    assert opened.dialect is dialect
    assert data == b"".join(write(HEADER, CHANGES, dialect))
    ParserCreate().Parse(data, True)


@pytest.mark.parametrize("dialect", FEEDS)
def test_changes_that_come_newest_first_are_turned_round(dialect: Dialect) -> None:
    data = b"".join(write(HEADER, CHANGES[::-1], dialect))

    assert list(open_text(data).entries()) == CHANGES


@pytest.mark.parametrize("days", [(29, 29, 29), (29, 31, 30), (31, 29, 30)])
def test_changes_in_any_other_order_stay_in_it(days: tuple[int, ...]) -> None:
    changes = [
        change(ChangeKind.UPDATED, day, uri=f"http://example.com/{number}")
        for number, day in enumerate(days)
    ]
    data = b"".join(write(HEADER, changes, Dialect.NATIVE))

    assert list(open_text(data).entries()) == changes


@pytest.mark.parametrize("dialect", FEEDS)
def test_a_manifest_says_where_its_bytes_are(dialect: Dialect) -> None:
    header = Header(capability=Capability.RESOURCE_DUMP_MANIFEST, at=WRITTEN, modified=WRITTEN)
    resource = Resource(
        uri="http://a/1?x&y", lastmod=WRITTEN, length=7, encoding="gzip", path="/a<b>",
        links=(Link(rel="duplicate", href="http://b/", priority=2, path="/p", encoding="br"),),
    )  # fmt: skip

    opened = open_text(b"".join(write(header, [resource], dialect)))

    assert opened.header == header
    assert list(opened.entries()) == [resource]


def test_a_document_that_is_a_sitemap_is_read_as_one() -> None:
    header = Header(capability=Capability.RESOURCE_LIST, at=WRITTEN)

    opened = open_text(b"".join(write(header, [Resource(uri="http://a/")])))

    assert opened.header == header
    assert [entry.uri for entry in opened.entries()] == ["http://a/"]
    assert opened.dialect is Dialect.V1_1


@pytest.mark.parametrize("dialect", FEEDS)
def test_a_form_says_lists_and_manifests_alone(dialect: Dialect) -> None:
    for capability in (Capability.CAPABILITY_LIST, Capability.CHANGE_LIST_ARCHIVE):
        with pytest.raises(ValueError, match="cannot say"):
            opening(Header(capability=capability, modified=WRITTEN), dialect)
    index = Header(capability=Capability.RESOURCE_LIST, at=WRITTEN, is_index=True)
    with pytest.raises(ValueError, match="cannot say"):
        render(Part(uri="http://a/"), index, dialect)


def test_atom_needs_a_time_of_each_entry_and_a_link_needs_a_target() -> None:
    header = Header(capability=Capability.RESOURCE_LIST, at=WRITTEN)
    for dialect in (Dialect.ATOM_LINKS, Dialect.ATOM_ENTRIES):
        with pytest.raises(ValueError, match="needs the time of each entry"):
            render(Resource(uri="http://a/"), header, dialect)
    assert render(Resource(uri="http://a/"), header, Dialect.NATIVE) == (
        b'<item href="http://a/"/>\n'
    )
    with pytest.raises(ValueError, match="needs rel and href"):
        render(Resource(uri="u", links=(Link(rel="a", href=""),)), header, Dialect.NATIVE)


@pytest.mark.parametrize("text", [BY_LINK, BY_CONTENT, NATIVE])
def test_a_form_cut_anywhere_is_an_error(text: str) -> None:
    data = text.encode()

    for size in range(0, len(data), 7):
        with pytest.raises(TruncatedDocumentError):
            list(read_feed(io.BytesIO(data[:size]), uri=URI).entries())


def entry_of(told: str, time: str = "2012-10-29T18:00:00Z") -> str:
    return f"{ATOM_HEAD}<entry><updated>{time}</updated>{told}</entry></feed>"


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("", "neither a content"),
        ('<link rel="alternate" href="http://a/" rs:change="created"/>', "neither a content"),
        ('<content src="" rs:change="created"/>', "no address"),
        (f'<content src="{"x" * 2049}" rs:change="created"/>', "more than 2,048"),
        ('<content src="a&#10;b" rs:change="created"/>', "control characters"),
        ('<content src="http://a/" rs:length="-1" rs:change="created"/>', "not a number of bytes"),
    ],
)
def test_an_entry_that_cannot_be_used_costs_that_entry_alone(told: str, reason: str) -> None:
    refused: list[RefusedEntry] = []

    opened = open_text(entry_of(told), on_refused=refused.append)

    assert list(opened.entries()) == []
    assert opened.refused == 1
    assert [reason in entry.reason and entry.line > 0 for entry in refused] == [True]


def test_a_time_that_is_none_costs_its_entry_and_a_bad_link_only_itself() -> None:
    opened = open_text(entry_of('<content src="http://a/" rs:change="created"/>', "yesterday"))
    assert list(opened.entries()) == []
    assert opened.refused == 1

    links = '<link rel="via"/><link href="http://b/"/><link rel="via" href="http://b/" pri="0"/>'
    opened = open_text(entry_of(f'<content src="http://a/" rs:change="created"/>{links}'))
    [entry] = opened.entries()
    assert isinstance(entry, Change)
    assert entry.resource.links == (Link(rel="via", href="http://b/"),)


@pytest.mark.parametrize("attribute", ["", ' rs:change="moved"'])
def test_a_change_of_an_unknown_kind_costs_its_entry(attribute: str) -> None:
    opened = open_text(entry_of(f'<content src="http://a/"{attribute}/>'))

    assert list(opened.entries()) == []
    assert opened.refused == 1


FEED = '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:rs="http://www.openarchives.org/rs/"'
MANY_ATTRIBUTES = " ".join(f'b{n}=""' for n in range(65))
MANY_PREFIXES = "".join(f'<a xmlns:p{n}="u"/>' for n in range(101))
TYPED = f'{FEED} rs:type="http://www.openarchives.org/rs/resourcelist">'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<html/>", NotAListError),
        ("<feed/>", NotAListError),
        (f"{FEED}/>", UnexpectedDocumentError),
        (f'{FEED} rs:type="http://www.openarchives.org/rs/changedump"/>', UnexpectedDocumentError),
        (f"<!DOCTYPE feed []>{TYPED}</feed>", MalformedDocumentError),
        (f'<?xml version="1.0" encoding="latin-1"?>{TYPED}</feed>', MalformedDocumentError),
        (f"{TYPED}<updated>now</updated></feed>", MalformedDocumentError),
        (f"{TYPED}</fed>", MalformedDocumentError),
        (f"{TYPED}</feed><a/>", MalformedDocumentError),
        (TYPED + "<a>" * 20, DocumentLimitError),
        (f"{TYPED}<a>{'x' * 9000}</a></feed>", DocumentLimitError),
        (f"{TYPED}{'<link/>' * 1001}</feed>", DocumentLimitError),
        (f"{TYPED}<a {MANY_ATTRIBUTES}/></feed>", DocumentLimitError),
        (f"{TYPED}{''.join(f'<x{n}/>' for n in range(1001))}</feed>", DocumentLimitError),
        (f"{TYPED}{MANY_PREFIXES}</feed>", DocumentLimitError),
        (f"{TYPED}<a xmlns:p='{'u' * 9000}'/></feed>", DocumentLimitError),
        (f"{TYPED}<!--{'x' * 200_000}", TruncatedDocumentError),
    ],
)
def test_what_is_no_such_document_is_refused(text: str, error: type[DocumentError]) -> None:
    with pytest.raises(error) as caught:
        list(read_feed(io.BytesIO(text.encode()), uri=URI).entries())
    assert caught.value.uri == URI


def test_entries_and_bytes_are_limited() -> None:
    with pytest.raises(DocumentLimitError, match="2 entries"):
        list(open_text(BY_LINK, limits=Limits(entries=2)).entries())
    with pytest.raises(DocumentLimitError, match="500 bytes"):
        list(open_text(BY_LINK, limits=Limits(bytes=500)).entries())


def test_entries_are_read_once_and_as_they_are_asked_for() -> None:
    opened = open_text(BY_LINK)

    assert next(opened.entries()) == CHANGES[0]
    with pytest.raises(RuntimeError, match="once"):
        next(opened.entries())


def test_a_list_without_entries_is_read() -> None:
    opened = open_text(f"{TYPED}<updated>2012-10-31T09:00:00Z</updated></feed>")

    assert opened.header.at == opened.header.modified == WRITTEN
    assert list(opened.entries()) == []


def test_a_root_that_comes_late_is_not_looked_for_twice() -> None:
    comments = "<!-- x -->" * 200_000

    with pytest.raises(NotAListError):
        open_text(BY_LINK.replace("<feed", f"{comments}<feed", 1))
