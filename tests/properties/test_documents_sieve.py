"""Entries that fit a stencil are not shown to expat; nothing about a document changes by that."""

import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.documents import _octets, _sieve
from resourcesync.documents._scanning import Scanner
from resourcesync.documents.reading import Limits, read
from resourcesync.errors import DocumentError
from resourcesync.model.capabilities import RefusedEntry
from tests.support.documents import CHANGE_LIST, RESOURCE_LIST, URI, document

SHA = "sha-256:" + "ab" * 32
BLOCK = 1_000
DEFAULT = Limits()


class Told(NamedTuple):
    """All that a reading of a document tells."""

    entries: list[object]
    refusals: list[RefusedEntry]
    tolerated: list[object]
    failure: tuple[object, ...]


def tell(
    data: bytes, *, sieved: bool, as_rows: bool = False, strict: bool = False, limits: Limits
) -> Told:
    """Read a document in small blocks, with the sieve or without."""
    told = Told([], [], [], ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_octets, "BLOCK", BLOCK)
        patch.setattr(_sieve, "_MOST_HELD", BLOCK // 4)
        patch.setattr(_sieve, "_FILLING", 50)
        if not sieved:
            patch.setattr(_sieve, "_TRIES", 0)
        try:
            opened = read(
                io.BytesIO(data),
                uri=URI,
                limits=limits,
                strict=strict,
                on_refused=told.refusals.append,
                on_tolerated=told.tolerated.append,
            )
            told.entries.extend(opened.rows() if as_rows else opened.entries())
        except DocumentError as error:
            # The place of this one fault is that of the end of its block, however long that is.
            is_vague = error.message.startswith("The root's rs:md comes")
            place = (0, 0) if is_vague else (error.line, error.column)
            return told._replace(failure=(type(error), error.message, *place, error.evidence))
    return told._replace(failure=(opened.dialect, opened.refused))


def check(data: bytes, *, as_rows: bool, strict: bool = False, limits: Limits = DEFAULT) -> None:
    """Compare the two ways."""
    plain = tell(data, sieved=False, as_rows=as_rows, strict=strict, limits=limits)
    sieved = tell(data, sieved=True, as_rows=as_rows, strict=strict, limits=limits)

    assert sieved.failure == plain.failure
    if len(plain.failure) == 2:
        assert sieved == plain
    else:  # how many come before a fault is found depends on the blocks
        assert begin_alike(sieved.entries, plain.entries)
        assert begin_alike(sieved.refusals, plain.refusals)
        assert begin_alike(sieved.tolerated, plain.tolerated)


def begin_alike(some: Sequence[object], others: Sequence[object]) -> bool:
    shorter = min(len(some), len(others))
    return some[:shorter] == others[:shorter]


LAYOUTS = [
    "<url><loc>{loc}</loc></url>\n",
    "<url><loc>{loc}</loc></url>",
    "<url>\n  <loc>{loc}</loc>\n  <lastmod>2013-01-02T13:00:00Z</lastmod>\n</url>\n",
    '<url><loc>{loc}</loc><lastmod>2013</lastmod><rs:md hash="' + SHA + '" length="{n}"/></url>\n',
    '<url> <rs:md  length = "{n}"\ttype="a/b" ></rs:md> <loc>{loc}</loc> </url>\n  ',
    "<url><loc>{loc}</loc><changefreq>daily</changefreq><priority>0.5</priority></url>\r\n",
    '<url><loc>{loc}</loc><rs:md change="updated" datetime="2013-01-03T09:00:00Z"/></url>\n',
    '<url><loc>{loc}</loc><rs:ln rel="via" href="http://b/"/></url>\n',
    "<url><loc>{loc}</loc><rs:md length='{n}'/></url>\n",
    '<s:url><s:loc>{loc}</s:loc><rs:md length="{n}"/></s:url>\n',
]
ODD = [
    *("<!--", "-->", "<![CDATA[", "]]>", "]]", "<?x", "?>", "<!DOCTYPE a>", "&amp;", "&", "&#10;"),
    *("\r", "\r\n", "\n", "\t", " ", "é", "\u6c34", "\x7f", "\x0b", '"', "'", "<", ">", "="),
    *("</urlset>", "<urlset>", "<url>", "</url>", "<loc>", "</loc>", "<x:a>", "</x:a>", "<x:a/>"),
    *("<url><loc>http://a/z</loc></url>", "<rs:md/>", '<rs:ln rel="up" href="http://b/"/>'),
    *('<rs:md capability="resourcelist"/>', ' xmlns="urn:y"', ' x:y="z"', ' change="created"'),
    *("<url ", "<loc/>", "<lastmod/>", "soon", "2013-01-02T13:00:00", "../up", "\u202e", "9" * 30),
    *("x" * 300, " " * 300, "<sitemap>", "</sitemap>", "<expires>2013</expires>"),
]


@st.composite
def lists(draw: st.DrawFn) -> str:
    """Return the entries of a list: long stretches that are alike, and what comes between."""
    parts: list[str] = []
    for part in range(draw(st.integers(1, 4))):
        layout = draw(st.sampled_from(LAYOUTS))
        times = draw(st.sampled_from([1, 3, 20, 40]))
        parts += [layout.format(loc=f"http://a/{part}/{n}", n=n) for n in range(times)]
        if draw(st.booleans()):
            parts.insert(draw(st.integers(0, len(parts))), draw(st.sampled_from(ODD)))
    return "".join(parts)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Return a document, with some damage."""
    md = draw(st.sampled_from([RESOURCE_LIST, CHANGE_LIST, ""]))
    text = document(draw(lists()), md=md).decode()
    text = text.replace("<urlset ", '<urlset xmlns:x="urn:x" ', 1)
    text = text.replace(
        "<urlset ", '<urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9" '
    )
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.sampled_from([0, 0, 1, 5]))
        text = text[:at] + draw(st.sampled_from(ODD)) + text[at + cut :]
    data = text.encode("utf-8", "replace")
    return data[: draw(st.integers(0, len(data)))] if draw(st.integers(0, 5)) == 0 else data


@settings(max_examples=150, deadline=None)
@given(documents(), st.booleans(), st.booleans())
def test_the_sieve_changes_nothing_of_what_a_document_says(
    data: bytes, as_rows: bool, strict: bool
) -> None:
    check(data, as_rows=as_rows, strict=strict)


def regular(count: int, layout: str = LAYOUTS[3]) -> list[str]:
    return [layout.format(loc=f"http://a/{n}", n=n) for n in range(count)]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("layout", [LAYOUTS[1], LAYOUTS[3], LAYOUTS[5]])
def test_what_comes_between_regular_entries_means_what_it_always_means(
    odd: str, layout: str
) -> None:
    entries = regular(60, layout)
    for text in ("".join([*entries[:50], odd, *entries[50:]]), "".join(entries) + odd):
        check(document(text), as_rows=False)
        check(document(text), as_rows=True)


@pytest.mark.parametrize("odd", ODD)
def test_what_stands_inside_a_regular_entry_means_what_it_always_means(odd: str) -> None:
    entries = regular(30)
    for at in range(ODD.index(odd) % 7, len(entries[25]), 7):
        entries[25] = entries[24][:at] + odd + entries[24][at:]
        check(document(*entries), as_rows=False)


def test_a_list_that_is_cut_anywhere_is_found_to_be_cut_there() -> None:
    data = document(*regular(30))
    for length in range(len(data) - 200, len(data)):
        check(data[:length], as_rows=True)


@pytest.mark.parametrize(
    "limits",
    [Limits(entries=90), Limits(uri=9), Limits(text=30), Limits(text=80), Limits(bytes=4_000)],
)
def test_limits_hold_for_what_fits_a_stencil(limits: Limits) -> None:
    check(document(*regular(100)), as_rows=False, limits=limits)


def seen_by_expat(data: bytes) -> int:
    """Return how many bytes expat was given."""
    seen = 0
    feed = Scanner.feed

    def count(self: Scanner, block: bytes) -> None:
        nonlocal seen
        seen += len(block)
        feed(self, block)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scanner, "feed", count)
        patch.setattr(_octets, "BLOCK", BLOCK)
        for _ in read(io.BytesIO(data), uri=URI).rows():
            pass
    return seen


@pytest.mark.parametrize("layout", [LAYOUTS[i] for i in (0, 1, 2, 3, 4, 6, 9)])
def test_expat_sees_little_of_a_regular_list(layout: str) -> None:
    md = CHANGE_LIST if "change" in layout else RESOURCE_LIST
    data = document(*regular(2_000, layout), md=md)
    data = data.replace(
        b"<urlset ", b'<urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9" '
    )

    assert seen_by_expat(data) < 0.08 * len(data)


def two_kinds() -> Iterator[str]:
    for n in range(1_000):
        yield LAYOUTS[n % 2 * 3].format(loc=f"http://a/{n}", n=n)


def test_the_sieve_steps_aside_where_little_fits() -> None:
    data = document(*two_kinds())

    assert seen_by_expat(data) > 0.7 * len(data)


def test_a_list_that_changes_its_ways_is_learnt_anew() -> None:
    data = document(*regular(1_000), *regular(1_000, LAYOUTS[2]), *regular(1_000, LAYOUTS[1]))

    assert seen_by_expat(data) < 0.15 * len(data)
