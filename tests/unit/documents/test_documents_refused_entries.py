"""Entries that cannot be used cost themselves alone."""

import pytest

from resourcesync.model.digests import Digest
from resourcesync.model.entries import Resource
from tests.support.documents.text import document, tell, uris, url


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


def test_the_longest_loc_is_accepted_and_a_longer_one_is_refused() -> None:
    base = "http://a/"
    fits, over = (base + "x" * (size - len(base)) for size in (2048, 2049))

    told = tell(document(url(fits), url(over), url(f" {fits} ")))

    assert uris(told.entries) == [fits, fits]
    assert [(r.code, r.uri) for r in told.refusals] == [("uri-too-long", over[:2048])]


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
