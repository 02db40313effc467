"""Entries that cannot be used cost themselves alone."""

import pytest

from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Resource
from tests.support.documents.text import (
    CHANGE_LIST,
    document,
    tell,
    uris,
    url,
)

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
        (url("http://a/\u202ex"), "uri-illegal", "http://a/\u202ex"),
        (url("http://a/\u200bx"), "uri-illegal", "http://a/\u200bx"),
        (url("http://a/\ufeffx"), "uri-illegal", "http://a/\ufeffx"),
        (url("http://a/\x7fx"), "uri-illegal", "http://a/\x7fx"),
        (url("http://a/\nx"), "uri-illegal", "http://a/\nx"),
        ("<sitemap><loc>http://a/1</loc></sitemap>", "entry-misplaced", "http://a/1"),
        ("<Url><loc>http://a/1</loc></Url>", "entry-unknown", None),
        ('<url xmlns=""><loc>http://a/1</loc></url>', "entry-unknown", None),
        ("<urls><url><loc>http://a/1</loc></url></urls>", "entry-unknown", None),
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


def test_an_unknown_element_among_changes_is_refused_and_no_change_that_says_nothing() -> None:
    change = '<rs:md change="updated" datetime="2013-01-03T11:00:00Z"/>'
    changes = (url("http://a/1", change), "<Url><loc>http://a/2</loc></Url>")

    told = tell(document(*changes, md='<rs:md capability="changelist"/>'))

    assert [refusal.code for refusal in told.refusals] == ["entry-unknown"]
    assert len(told.entries) == 1


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ("<lastmod>soon</lastmod>", "time-invalid"),
        (f'<rs:md hash="md5:{MD5[0]} md5:{MD5[1]}"/>', "hash-disagrees"),
        *(
            (f'<rs:md length="{bad}"/>', "length-invalid")
            for bad in (
                "-1", "+1", "1e9", "\u0663", "0x10", "1" + "0" * 30, "", "1_0", "5 6", str(2**63)
            )
        ),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_read_counts_as_not_said(inside: str, code: str) -> None:
    told = tell(document(url("http://a/before"), url("http://a/1", inside), url("http://a/after")))

    assert told.entries[1] == Resource(uri="http://a/1")
    assert (uris(told.entries)[::2], told.refusals) == (["http://a/before", "http://a/after"], [])
    assert [(tolerated.code, tolerated.line) for tolerated in told.tolerated] == [(code, 5)]


def test_the_longest_loc_is_accepted_and_a_longer_one_is_refused() -> None:
    base = "http://a/"
    fits, over = (base + "x" * (size - len(base)) for size in (2048, 2049))

    told = tell(document(url(fits), url(over), url(f" {fits} ")))

    assert uris(told.entries) == [fits, fits]
    assert [(r.code, r.uri) for r in told.refusals] == [("uri-too-long", over[:2048])]


def test_a_change_whose_datetime_cannot_be_read_has_no_time() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md change="updated" datetime=""/>'),
            url("http://a/2", '<rs:md change="updated" datetime="yesterday"/>'),
            url("http://a/3", "<lastmod>2013</lastmod>", '<rs:md change="updated" datetime="x"/>'),
            md=CHANGE_LIST,
        )
    )

    assert uris(told.entries) == ["http://a/1", "http://a/2", "http://a/3"]
    assert [entry.time for entry in told.entries if isinstance(entry, Change)] == [None] * 3
    assert (told.refusals, told.codes) == ([], ["time-invalid"])


def test_digests_of_unknown_algorithms_are_kept_and_only_sixteen_count() -> None:
    told = tell(
        document(
            url("http://a/1", '<rs:md hash="sha-256:f4OxZX_x_DFGFDgghg crc32:1 SHA256:AB odd"/>'),
            url("http://a/2", f'<rs:md hash="{" ".join(f"x{i}:{i}" for i in range(500))}"/>'),
        )
    )

    first, second = told.entries
    assert isinstance(first, Resource)
    assert isinstance(second, Resource)
    assert first.digests == (Digest("crc32", "1"),)
    assert len(second.digests) == 16
    assert told.codes == ["hash-invalid"]


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
