"""What Sources write in the wild is read as they meant it."""

from datetime import UTC, datetime

import pytest

from resourcesync.errors import MalformedDocumentError, NotAListError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Link, Resource
from resourcesync.model.vocabulary import SITEMAP_NS
from tests.support.documents.text import document, rows, tell, tell_strictly, uris, url

NINE = datetime(2013, 1, 3, 9, tzinfo=UTC)


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
