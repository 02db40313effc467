"""What Sources write in the wild is read as they meant it."""

from datetime import UTC, datetime

import pytest

from resourcesync.errors import MalformedDocumentError, NotAListError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Link, Resource
from resourcesync.model.vocabulary import (
    RS_NS,
    SITEMAP_NS,
    ChangeKind,
)
from tests.support.documents.text import (
    CHANGE_LIST,
    document,
    rows,
    tell,
    tell_strictly,
    uris,
    url,
)

NINE = datetime(2013, 1, 3, 9, tzinfo=UTC)


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
                f'<rs:md length=" 5 " type=" text/html " hash="  md5:{"ab" * 16} \n  crc32:cd "/>',
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
            digests=(Digest("md5", "ab" * 16), Digest("crc32", "cd")),
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
            md='<rs:md capability="resourcelist" at="2013" y="2012" x:b="3"/>',
        ).replace(b"<urlset ", b'<urlset xmlns:x="urn:x" ')
    )

    assert told.header.extra == (("y", "2012"), ("{urn:x}b", "3"))
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
    assert told.entries == [
        Resource(uri="http://a/1", foreign=('<md xmlns="urn:other" length="5"/>',))
    ]


@pytest.mark.parametrize(
    "namespace",
    [
        "https://www.sitemaps.org/schemas/sitemap/0.9",
        "http://www.google.com/schemas/sitemap/0.84",
        "http://www.google.com/schemas/sitemap/0.9",
        "http://www.google.com/schemas/sitemap/0.90",
        "http://www.sitemaps.org/schemas/sitemap/0.9/",
        "https://www.sitemaps.org/schemas/sitemap/0.9/",
        "http://sitemaps.org/schemas/sitemap/0.9",
        "http://www.sitemaps.org/schemas/sitemap/0.90",
        "",
    ],
)
def test_other_spellings_of_the_sitemap_namespace_are_accepted(namespace: str) -> None:
    entries = [url(f"http://a/{n}", "<lastmod>2013</lastmod>") for n in range(1500)]
    foreign = url("http://a/x", '<x xmlns="urn:x">loc</x><priority>0.5</priority><odd/>')
    right = document(*entries, foreign, *entries, md="")
    told = tell(right.replace(SITEMAP_NS.encode(), namespace.encode()))

    assert uris(told.entries) == uris(tell(right).entries)
    assert (told.codes, told.refusals) == (["sitemap-namespace"], [])
    assert len(set(told.entries[:1500])) == 1500
    assert len(rows(right.replace(SITEMAP_NS.encode(), namespace.encode()))) == 3001


@pytest.mark.parametrize("namespace", ["urn:other", "http://www.sitemaps.org/schemas/sitemap/1"])
def test_a_list_of_resourcesync_in_another_namespace_is_none_and_the_message_names_it(
    namespace: str,
) -> None:
    data = document(url()).replace(SITEMAP_NS.encode(), namespace.encode())

    with pytest.raises(NotAListError) as caught:
        tell(data)

    assert caught.value.message.endswith(f"its root is <urlset> in the namespace {namespace}")


@pytest.mark.parametrize("text", ["loc", "url", "urlset"])
def test_a_text_that_is_a_name_of_an_element_ends_none(text: str) -> None:
    data = document(url(text, "<lastmod>2013</lastmod>"), url("http://a/2"), md="")

    told = tell(data.replace(SITEMAP_NS.encode(), b""))

    assert uris(told.entries) == [f"https://source.example/{text}", "http://a/2"]


@pytest.mark.parametrize("blanks", ["\n", " ", "\r\n\r\n", "\t\n "])
def test_blanks_before_the_declaration_are_passed_over(blanks: str) -> None:
    entries = [url(f"http://a/{n}") for n in range(1500)]
    data = document(*entries, "<url/>")

    told = tell(blanks.encode() + data)

    assert (len(told.entries), told.codes) == (1500, ["declaration-late"])
    [refusal] = tell(data).refusals
    assert [refusal.line for refusal in told.refusals] == [refusal.line + blanks.count("\n")]
    with pytest.raises(MalformedDocumentError):
        tell_strictly(blanks.encode() + document(url()))
    with pytest.raises(MalformedDocumentError):
        tell(blanks.encode() + data.replace(b"UTF-8", b"ISO-8859-1"))


def test_comments_and_cdata_do_not_split_a_loc() -> None:
    told = tell(document(url("http://good/<!-- x -->@evil/<![CDATA[?a&b]]>&amp;c&#x26;d")))

    assert uris(told.entries) == ["http://good/@evil/?a&b&c&d"]


@pytest.mark.parametrize(
    ("loc", "expected"),
    [
        ("../res1", "https://source.example/res1"),
        ("/a/b", "https://source.example/a/b"),
        ("//other.example/c", "https://other.example/c"),
        ("?q", "https://source.example/list.xml?q"),
        ("a b", "https://source.example/a b"),
    ],
)
@pytest.mark.parametrize("times", [1, 1500])
def test_a_relative_loc_is_resolved_against_the_address_of_the_document(
    loc: str, expected: str, times: int
) -> None:
    # xml:base is not of the Sitemap protocol: what it says does not count.
    data = document(*[url(loc)] * times).replace(b"<urlset ", b'<urlset xml:base="http://b/" ')

    assert uris(tell(data).entries) == [expected] * times
    assert [row.uri for row in rows(data)] == [expected] * times


@pytest.mark.parametrize("loc", ["//[a", "http:" + "x" * 2050, "x" * 2040])
def test_a_relative_loc_that_leads_nowhere_is_refused(loc: str) -> None:
    told = tell(document(url(loc)))

    assert told.entries == []
    assert told.refusals[0].code in {"uri-illegal", "uri-too-long"}


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
