from datetime import UTC, datetime

import pytest

from resourcesync.documents.reading import Limits
from resourcesync.errors import (
    MalformedDocumentError,
    NotAListError,
    UnexpectedDocumentError,
)
from resourcesync.model.capabilities import CapabilityEntry, Part
from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import (
    RS_NS,
    SITEMAP_NS,
    Capability,
    ChangeKind,
    Dialect,
    Relation,
)
from tests.support.documents import (
    CHANGE_LIST,
    RESOURCE_LIST,
    document,
    open_document,
    tell,
    uris,
    url,
)

NINE = datetime(2013, 1, 3, 9, tzinfo=UTC)


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
            links=(
                Link(
                    rel="duplicate",
                    href="http://m.example/res1",
                    media_type="a/b",
                    length=5,
                    digests=(Digest("md5", "ab"),),
                    encoding="br",
                    modified=datetime(2013, 1, 2, 18, tzinfo=UTC),
                    path="/p",
                    priority=1,
                ),
            ),
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
            url("http://a/2", '<rs:md capability="resourcedump"/>'),
            url("http://a/3", '<rs:ln rel="describedby" href="http://a/about"/>'),
            md='<rs:md capability="capabilitylist"/>',
        )
    )

    assert told.entries == [
        CapabilityEntry(
            uri="http://a/1", capability=Capability.RESOURCE_LIST, label="ResourceList"
        ),
        CapabilityEntry(uri="http://a/2", capability=None, label="resourcedump"),
        CapabilityEntry(uri="http://a/3", links=(Link(rel="describedby", href="http://a/about"),)),
    ]


def test_a_plain_sitemap_is_read_as_resources() -> None:
    told = tell(
        document(
            url("http://a/1", "<lastmod>2013-01-02</lastmod>", "<priority>0.5</priority>"),
            url("http://a/2"),
            md="",
        )
    )

    assert told.header.capability is None
    assert told.dialect is Dialect.SITEMAP
    assert told.entries == [
        Resource(uri="http://a/1", lastmod=datetime(2013, 1, 2, tzinfo=UTC)),
        Resource(uri="http://a/2"),
    ]


def test_a_plain_sitemap_index_is_read_as_parts() -> None:
    told = tell(document("<sitemap><loc>http://a/1</loc></sitemap>", root="sitemapindex", md=""))

    assert told.header.is_index
    assert told.entries == [Part(uri="http://a/1")]


def test_an_empty_list_is_a_list() -> None:
    assert tell(document()).entries == []
    assert tell(document(md="")).entries == []


# --- what Sources write in the wild ------------------------------------------------------------


def test_prefixes_are_free_and_the_order_in_an_entry_too() -> None:
    data = (
        f'<s:urlset xmlns:s="{SITEMAP_NS}" xmlns:z="{RS_NS}"><z:ln rel="up" href="http://a/c"/>'
        '<z:md at="2013-01-03T09:00:00Z" capability="resourcelist"/><s:url>'
        '<z:md length="5"/><s:lastmod>2013</s:lastmod><s:loc>http://a/1</s:loc></s:url></s:urlset>'
    ).encode()

    told = tell(data)

    assert told.entries == [
        Resource(uri="http://a/1", length=5, lastmod=datetime(2013, 1, 1, tzinfo=UTC))
    ]


def test_blanks_around_values_mean_nothing() -> None:
    told = tell(
        document(
            url(
                "\n   http://a/1\t\n",
                "<lastmod>\n 2013-01-02T13:00:00Z </lastmod><changefreq> daily </changefreq>",
                '<rs:md length=" 5 " type=" text/html " hash="  md5:ab \n  sha-256:cd "/>',
                '<rs:ln rel=" up " href=" http://a/2 "/>',
            ),
            md='<rs:md capability=" ResourceList " at=" 2013-01-03T09:00:00Z "/>',
        )
    )

    assert told.header.at == NINE
    assert told.entries == [
        Resource(
            uri="http://a/1",
            lastmod=datetime(2013, 1, 2, 13, tzinfo=UTC),
            length=5,
            media_type="text/html",
            changefreq="daily",
            digests=(Digest("md5", "ab"), Digest("sha-256", "cd")),
            links=(Link(rel="up", href="http://a/2"),),
        )
    ]


def test_a_schema_location_and_foreign_elements_are_skipped() -> None:
    data = document(
        '<x:about xmlns:x="urn:x"><url><loc>http://no/</loc></url><x:b>text</x:b></x:about>',
        url(
            "http://a/1",
            '<i:image xmlns:i="urn:i" a="b"><i:loc>http://no/</i:loc></i:image>',
            "<rs:unknown/>",
            '<loc xmlns="">http://no/</loc>',
        ),
        "<?instruction?><!-- comment -->",
        url("http://a/2"),
    ).replace(
        b"<urlset ",
        b'<urlset xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xml:base="http://b/"'
        b' xsi:schemaLocation="a b" ',
    )

    assert uris(tell(data).entries) == ["http://a/1", "http://a/2"]


def test_attributes_of_others_are_kept() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md x:a="1" length="5" change="odd" y=" 2 " xml:lang="en"/>'),
            md='<rs:md capability="resourcelist" at="2013" modified="2012" x:b="3"/>',
        ).replace(b"<urlset ", b'<urlset xmlns:x="urn:x" ')
    )

    assert told.header.extra == (("modified", "2012"), ("{urn:x}b", "3"))
    assert told.entries == [
        Resource(
            uri="http://a/1",
            length=5,
            extra=(
                ("{urn:x}a", "1"),
                ("change", "odd"),
                ("y", " 2 "),
                ("{http://www.w3.org/XML/1998/namespace}lang", "en"),
            ),
        )
    ]


def test_attributes_with_the_resourcesync_prefix_count_as_if_they_had_none() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md rs:length="5" rs:type="a/b" type="c/d" rs:odd="e"/>'),
            md='<rs:md rs:capability="resourcelist" at="2013"/>',
        )
    )

    assert told.entries == [
        Resource(uri="http://a/1", length=5, media_type="c/d", extra=(("odd", "e"),))
    ]


def test_the_prefix_rs_bound_to_another_namespace_is_foreign() -> None:
    data = document(url("http://a/1", '<rs:md length="5"/>')).replace(RS_NS.encode(), b"urn:other")

    told = tell(data)

    assert told.header.capability is None
    assert told.entries == [Resource(uri="http://a/1")]


@pytest.mark.parametrize(
    "namespace",
    [
        "https://www.sitemaps.org/schemas/sitemap/0.9",
        "http://www.google.com/schemas/sitemap/0.84",
    ],
)
def test_other_spellings_of_the_sitemap_namespace_are_accepted(namespace: str) -> None:
    data = document(url("http://a/1"), md="").replace(SITEMAP_NS.encode(), namespace.encode())

    assert uris(tell(data).entries) == ["http://a/1"]


def test_comments_and_cdata_do_not_split_a_loc() -> None:
    told = tell(document(url("http://good/<!-- x -->@evil/<![CDATA[?a&b]]>&amp;c&#x26;d")))

    assert uris(told.entries) == ["http://good/@evil/?a&b&c&d"]


def test_a_relative_loc_is_left_as_written() -> None:
    data = document(url("../res1")).replace(b"<urlset ", b'<urlset xml:base="http://b/" ')

    assert uris(tell(data).entries) == ["../res1"]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("created", ChangeKind.CREATED),
        ("create", ChangeKind.CREATED),
        (" Updated ", ChangeKind.UPDATED),
        ("update", ChangeKind.UPDATED),
        ("DELETED", ChangeKind.DELETED),
        ("Delete", ChangeKind.DELETED),
    ],
)
def test_the_change_may_be_spelled_in_other_ways(word: str, kind: ChangeKind) -> None:
    told = tell(document(url("http://a/1", f'<rs:md change="{word}"/>'), md=CHANGE_LIST))

    assert [entry.kind for entry in told.entries if isinstance(entry, Change)] == [kind]


def test_header_times_may_be_missing() -> None:
    assert tell(document(md='<rs:md capability="resourcelist"/>')).header.at is None
    assert tell(document(md='<rs:md capability="changelist"/>')).header.from_ is None


def test_links_that_lead_nowhere_are_left_out_and_bad_hints_with_them() -> None:
    told = tell(
        document(
            '<rs:ln rel="up"/><rs:ln href="http://a/b"/><rs:ln rel="index" href=""/>',
            f'<rs:ln rel="index" href="http://a/{"x" * 3000}"/>',
            url(
                "http://a/1",
                '<rs:ln rel="via" href="http://a/2" length="-1" modified="soon" pri="0"'
                ' hash="md5:aa md5:bb" x="y"/>',
            ),
        )
    )

    assert told.header.links == ()
    assert told.entries == [
        Resource(
            uri="http://a/1",
            links=(
                Link(
                    rel="via",
                    href="http://a/2",
                    digests=(Digest("md5", "aa"), Digest("md5", "bb")),
                    extra=(("x", "y"),),
                ),
            ),
        )
    ]


# --- entries that cannot be used ---------------------------------------------------------------

MD5 = ("1584abdf8ebdc9802ac0c6a7402c03b6", "00000000000000000000000000000000")


@pytest.mark.parametrize(
    ("entry", "code", "uri"),
    [
        ("<url/>", "entry-invalid", ""),
        ("<url><lastmod>2013</lastmod></url>", "entry-invalid", ""),
        ("<url><loc/></url>", "entry-invalid", ""),
        ("<url><loc>  </loc></url>", "entry-invalid", ""),
        ("<url><loc>http://a/1</loc><loc>http://a/2</loc></url>", "entry-invalid", "http://a/1"),
        ("<url><loc><b/>http://a/1</loc></url>", "entry-invalid", "http://a/1"),
        ("<url><loc>http://a/1<loc>2</loc></loc></url>", "entry-invalid", None),
        ("<url><loc>http://a/1</loc><url><loc>2</loc></url></url>", "entry-invalid", None),
        (url("http://a/1", "<rs:md/><rs:md/>"), "entry-invalid", "http://a/1"),
        (url("http://a/1", "<lastmod>2013</lastmod>" * 2), "entry-invalid", "http://a/1"),
        (url("http://a/1", "<lastmod>soon</lastmod>"), "time-invalid", "http://a/1"),
        (url("http://a/\u202ex"), "uri-illegal", "http://a/\u202ex"),
        (url("http://a/\u200bx"), "uri-illegal", "http://a/\u200bx"),
        (url("http://a/\ufeffx"), "uri-illegal", "http://a/\ufeffx"),
        (url("http://a/\x7fx"), "uri-illegal", "http://a/\x7fx"),
        (url("http://a/\nx"), "uri-illegal", "http://a/\nx"),
        (
            url("http://a/1", f'<rs:md hash="md5:{MD5[0]} md5:{MD5[1]}"/>'),
            "hash-disagrees",
            "http://a/1",
        ),
        ("<sitemap><loc>http://a/1</loc></sitemap>", "entry-misplaced", "http://a/1"),
        *(
            (url("http://a/1", f'<rs:md length="{bad}"/>'), "length-invalid", "http://a/1")
            for bad in ("-1", "+1", "1e9", "\u0663", "0x10", "1" + "0" * 30, "", "1_0", "5 6")
        ),
    ],
)
def test_a_faulty_entry_is_refused_and_spoils_nothing_else(
    entry: str, code: str, uri: str | None
) -> None:
    told = tell(document(url("http://a/before"), entry, url("http://a/after")))

    assert uris(told.entries) == ["http://a/before", "http://a/after"]
    [refusal] = told.refusals
    assert (refusal.code, refusal.line) == (code, 5)
    assert refusal.reason
    if uri is not None:
        assert refusal.uri == uri


def test_the_longest_loc_is_accepted_and_a_longer_one_is_refused() -> None:
    base = "http://a/"
    fits, over = (base + "x" * (size - len(base)) for size in (2048, 2049))

    told = tell(document(url(fits), url(over), url(f" {fits} ")))

    assert uris(told.entries) == [fits, fits]
    assert [(r.code, r.uri) for r in told.refusals] == [("uri-too-long", over[:2048])]


def test_a_bad_datetime_of_a_change_is_refused() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md change="updated" datetime=""/>'),
            url("http://a/2", '<rs:md change="updated" datetime="yesterday"/>'),
            url("http://a/3", '<rs:md change="updated"/>'),
            md=CHANGE_LIST,
        )
    )

    assert uris(told.entries) == ["http://a/3"]
    assert [refusal.code for refusal in told.refusals] == ["time-invalid"] * 2


def test_unusable_digests_are_kept_and_only_sixteen_count() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md hash="sha-256:f4OxZX_x_DFGFDgghg crc32:1 SHA256:AB odd"/>'),
            url("http://a/2", f'<rs:md hash="{" ".join(f"x{i}:{i}" for i in range(500))}"/>'),
        )
    )

    first, second = told.entries
    assert isinstance(first, Resource)
    assert isinstance(second, Resource)
    assert [digest.is_usable for digest in first.digests] == [False] * 4
    assert first.digests[1] == Digest("crc32", "1")
    assert len(second.digests) == 16


def test_an_empty_lastmod_says_nothing() -> None:
    told = tell(
        document(url("http://a/1", "<lastmod/>"), url("http://a/2", "<lastmod> </lastmod>"))
    )

    assert told.entries == [Resource(uri="http://a/1"), Resource(uri="http://a/2")]


# --- documents that cannot be used -------------------------------------------------------------


@pytest.mark.parametrize("md", ["<rs:md change='odd'/>", "<rs:md/>", "", "<rs:md change=''/>"])
def test_a_change_that_is_not_told_stops_the_document(md: str) -> None:
    good = url("http://a/1", '<rs:md change="updated"/>')
    opened = open_document(document(good, url("http://a/2", md), good, md=CHANGE_LIST))
    entries = opened.entries()

    assert next(entries).uri == "http://a/1"
    with pytest.raises(MalformedDocumentError) as caught:
        next(entries)

    assert caught.value.code == "change-unknown"
    assert (caught.value.line, caught.value.column) == (5, 1)
    assert caught.value.uri == opened.uri


@pytest.mark.parametrize(
    "capability",
    ["resourcedump", "changedump-manifest", "resourcelist-archive", "other", ""],
)
def test_a_capability_that_is_not_read_is_named(capability: str) -> None:
    with pytest.raises(UnexpectedDocumentError) as caught:
        open_document(document(md=f'<rs:md capability="{capability}"/>'))

    assert repr(capability) in caught.value.message
    assert (caught.value.line, caught.value.column) == (3, 1)


@pytest.mark.conformance("G06")
def test_a_root_md_without_capability_is_malformed() -> None:
    with pytest.raises(MalformedDocumentError) as caught:
        open_document(document(md='<rs:md at="2013"/>'))

    assert (caught.value.code, caught.value.line) == ("xml-metadata", 3)


@pytest.mark.parametrize("name", ["at", "completed", "from", "until"])
def test_a_header_time_that_is_none_is_malformed(name: str) -> None:
    with pytest.raises(MalformedDocumentError) as caught:
        open_document(document(md=f'<rs:md capability="resourcelist" {name}="soon"/>'))

    assert (caught.value.code, caught.value.line) == ("time-invalid", 3)
    assert name in caught.value.message


@pytest.mark.conformance("G05")
def test_two_root_mds_are_malformed() -> None:
    with pytest.raises(MalformedDocumentError, match="twice") as caught:
        open_document(document(RESOURCE_LIST))

    assert (caught.value.line, caught.value.column) == (4, 1)


def test_a_root_md_after_the_entries_is_malformed() -> None:
    with pytest.raises(MalformedDocumentError, match="after the first entry") as caught:
        tell(document(url(), RESOURCE_LIST, md=""))

    assert caught.value.line > 0


def test_a_root_link_after_the_entries_is_tolerated() -> None:
    late = '<rs:ln rel="up" href="http://a/c"/>'

    told = tell(document(url("http://a/1"), late, url("http://a/2")))

    assert uris(told.entries) == ["http://a/1", "http://a/2"]


@pytest.mark.parametrize(
    ("data", "root"),
    [
        (b"<rss version='2.0'/>", "<rss>"),
        (b"<urlset><url><loc>http://a/1</loc></url></urlset>", "<urlset>"),
        (b"<urlset xmlns='urn:other'/>", "<urlset>"),
        (b"<feed xmlns='http://www.w3.org/2005/Atom'/>", "<feed>"),
        (b"<Error><Code>NoSuchKey</Code></Error>", "<Error>"),
        (b"<html><body><p>oops</body>", "<html>"),
        (b"<HTML>", "<HTML>"),
        (b"<!DOCTYPE html><html></html>", "<html>"),
        (b"\n<!doctype HTML>\n<html lang=en><meta charset=utf-8>", "<html>"),
        (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "a" "b"><html/>', "<html>"),
    ],
)
def test_what_is_no_list_is_said_to_be_none_and_its_root_is_named(data: bytes, root: str) -> None:
    with pytest.raises(NotAListError) as caught:
        open_document(data)

    assert ("root", root) in caught.value.evidence
    assert root in caught.value.message
    assert caught.value.line >= 1
    assert caught.value.column >= 1


def test_an_html_page_is_known_by_its_title() -> None:
    page = b"<!DOCTYPE html><html><head><title>\n Not  found </title></head></html>"

    with pytest.raises(NotAListError) as caught:
        open_document(page)

    assert ("title", "Not found") in caught.value.evidence


def test_entries_are_given_once() -> None:
    opened = open_document(document(url()))
    assert len(list(opened.entries())) == 1

    with pytest.raises(RuntimeError, match="once"):
        next(opened.rows())


def test_a_uri_longer_than_the_text_limit_is_still_a_limit_of_the_document() -> None:
    limits = Limits(text=100, uri=2048)

    assert uris(tell(document(url("x" * 100)), limits).entries) == ["x" * 100]


@pytest.mark.parametrize(
    "entry",
    [
        "<url><loc></loc></url>",
        url("http://a/1", "<changefreq/><changefreq>daily</changefreq>"),
        url("http://a/1", "<changefreq>a</changefreq><changefreq>b</changefreq>"),
        url("http://a/1", "<lastmod></lastmod>"),
        url("http://a/1", "<priority/>"),
        url("http://a/1", '<rs:md rs:length="1"/>'),
        url("http://a/<![CDATA[1]]>", "<rs:md/>"),
        "<url><rs:md>hash</rs:md><loc>http://a/1</loc></url>",
        "<url>text<loc>http://a/1</loc>text</url>text",
    ],
)
def test_an_odd_entry_repeated_many_times_is_read_as_the_first_one_was(entry: str) -> None:
    once, often = tell(document(entry)), tell(document(*[entry] * 3000))

    assert often.entries == once.entries * 3000
    assert [r.reason for r in often.refusals] == [r.reason for r in once.refusals] * 3000
