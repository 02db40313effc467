"""Plain sitemaps are read in every form in which sites write them, and each departure is told."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.documents.reader import Document, Limits, read_stream
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocumentError,
    NotAListError,
)
from resourcesync.model.capabilities import RefusedEntry
from resourcesync.model.leniencies import LENIENCIES, Leniency
from resourcesync.model.resources import Resource
from resourcesync.model.vocabulary import RS_NS
from resourcesync.validator.examination import validate_document
from resourcesync.validator.rule import RuleProfile
from tests.support.documents.sitemap_forms import (
    BOTH,
    CANONICAL,
    DAY,
    FORMS,
    PAGES,
    TEXT,
    URI,
    WrittenSitemap,
    atom,
    rss,
    urlset,
)

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sitemap-forms.md"
ROW = re.compile(
    r"\| (?P<name>[^|]+) \| (?P<read>[^|]+) \| (?P<codes>[^|]+) \| (?P<rules>[^|]+) \|"
)


def opened(data: bytes, uri: str = URI, limits: Limits | None = None) -> Document:
    return read_stream(io.BytesIO(data), uri=uri, limits=limits or Limits())


def entries(data: bytes) -> list[str]:
    return [entry.uri for entry in opened(data).entries()]


def error_of(data: bytes, limits: Limits | None = None) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        list(opened(data, limits=limits).entries())
    return caught.value


def rows() -> Iterator[tuple[str, set[str], set[str]]]:
    """Yield the forms that the page names, with their codes and rules."""
    table = PAGE.read_text("utf-8").partition("## Forms")[2].partition("\n## ")[0]
    for found in ROW.finditer(table):
        if not found["name"].startswith(("Form", "-")):
            codes, rules = (set(re.findall("`([^`]+)`", found[key])) for key in ("codes", "rules"))
            yield found["name"].strip(), codes, rules


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_a_form_lists_the_same_pages_as_the_protocol(form: WrittenSitemap) -> None:
    refused: list[RefusedEntry] = []
    document = read_stream(io.BytesIO(form.data), uri=form.uri, on_refused=refused.append)

    found = list(document.entries())

    canonical = list(opened(CANONICAL).entries())
    assert refused == []
    assert [entry.uri for entry in found] == list(PAGES)
    for entry, expected in zip(found, canonical, strict=True):
        assert isinstance(entry, Resource)
        assert isinstance(expected, Resource)
        assert entry.lastmod == (expected.lastmod if form.has_times else None)
        assert (entry.digests, entry.length) == ((), None)


@pytest.mark.parametrize(("name", "codes", "rules"), list(rows()))
def test_the_page_says_what_is_told_and_what_validate_says(
    name: str, codes: set[str], rules: set[str]
) -> None:
    form = {form.name: form for form in FORMS}[name]
    document = opened(form.data, form.uri)
    list(document.entries())
    findings = validate_document([form.data], uri=form.uri, profile=RuleProfile.SITEMAP)

    assert {str(code) for code in document.tolerated_counts} == codes
    assert {finding.rule.id for finding in findings} == rules


def test_the_page_has_every_form_and_every_leniency_towards_plain_sitemaps() -> None:
    text = PAGE.read_text("utf-8")

    assert [name for name, _, _ in rows()] == [form.name for form in FORMS]
    new = [code for code in Leniency if f"`{code}`" not in text]
    assert set(new).isdisjoint({Leniency.HOST_TWIN, Leniency.TLS_TWIN, Leniency.INDEX_LISTS_ITSELF})
    assert set(LENIENCIES) == set(Leniency)


@pytest.mark.parametrize("is_late", [False, True])
def test_times_without_a_zone_are_counted_in_columns_too(is_late: bool) -> None:
    zone = "Z" if is_late else ""
    first = f"<url><loc>https://h/0</loc><lastmod>2024-05-06T01:02:03{zone}</lastmod></url>\n"
    more = "".join(
        f"<url><loc>https://h/{n}</loc><lastmod>2024-05-06T01:02:03</lastmod></url>\n"
        for n in range(5_000)
    )
    document = opened(urlset(first, more))

    assert sum(len(list(batch)) for batch in document.batches()) == 5_001
    assert document.tolerated_counts == {Leniency.TIME_ZONE: 5_000 if is_late else 5_001}


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_what_lists_recent_pages_or_may_be_cut_proves_no_absence(form: WrittenSitemap) -> None:
    document = opened(form.data)
    list(document.entries())

    assert document.lists_all is not (
        form.name.startswith(("RSS", "Atom")) or form.name.endswith("last line end")
    )


def test_a_text_with_the_error_of_a_program_that_failed_in_the_middle_proves_no_absence() -> None:
    document = opened(b"https://a/1\nhttps://a/2\n<br />\n<b>Fatal error</b>: out of memory\n")
    list(document.entries())

    assert not document.lists_all


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_strict_reading_forgives_none_of_them(form: WrittenSitemap) -> None:
    document = opened(form.data, form.uri)
    list(document.entries())
    rules = [LENIENCIES[code][0] for code in document.tolerated_counts]

    if any(rules):
        with pytest.raises(MalformedDocumentError):
            list(read_stream(io.BytesIO(form.data), uri=form.uri, strict=True).entries())


@pytest.mark.parametrize("namespace", ["", "urn:any"])
def test_a_list_of_resourcesync_needs_its_namespace(namespace: str) -> None:
    list_md = f'<rs:md xmlns:rs="{RS_NS}" capability="resourcelist" at="{DAY}"/>'
    data = urlset(list_md, *BOTH, attributes=f' xmlns="{namespace}"' if namespace else "")

    if namespace:
        assert isinstance(error_of(data), NotAListError)
    else:  # as before
        assert entries(data) == list(PAGES)


@pytest.mark.parametrize("before", [b" " * 4_097, b"<!--" + b"x" * 4_090 + b"-->"])
def test_more_than_a_page_before_the_declaration_is_an_error_that_names_the_next_step(
    before: bytes,
) -> None:
    error = error_of(before + CANONICAL)

    assert error.code == Leniency.DECLARATION_LATE
    assert "4,096" in error.message
    assert error.hint
    assert entries(before[:4_000].replace(b"<!--", b"    ").replace(b"x", b" ") + CANONICAL)


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block", [1, 7, 65_536])
def test_a_text_has_an_address_on_each_line_whatever_ends_it(end: str, block: int) -> None:
    text = f"{end}  {TEXT}{end}{end}\thttps://site.example/é x \n".replace("\n", end)

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(block, size or block))

    document = read_stream(Slow(text.encode()), uri=URI)

    assert [entry.uri for entry in document.entries()] == [*PAGES, "https://site.example/é x"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"/relative", "entry-invalid"),
        (b"ftp://site.example/", "entry-invalid"),
        (b"# a comment", "entry-invalid"),
        (b"https://h/\x01", "uri-illegal"),
        ("https://h/\u202e".encode(), "uri-illegal"),
        (b"https://h/" + b"x" * 3_000, "uri-too-long"),
    ],
)
def test_a_line_that_is_no_address_costs_itself(line: bytes, code: str) -> None:
    refused: list[RefusedEntry] = []
    data = PAGES[0].encode() + b"\n" + line + b"\n" + PAGES[1].encode() + b"\n"
    document = read_stream(io.BytesIO(data), uri=URI, on_refused=refused.append)

    assert [entry.uri for entry in document.entries()] == list(PAGES)
    assert [(entry.code, entry.line) for entry in refused] == [(code, 2)]


@pytest.mark.parametrize("data", [b"https://h/\n\xff", b"https://h/\n\xc3"])
def test_a_text_in_another_encoding_is_an_error_that_names_the_next_step(data: bytes) -> None:
    error = error_of(data)

    assert (error.code, error.line) == ("xml-encoding", 2)
    assert "UTF-8" in error.hint


def test_a_text_has_the_limits_of_every_list() -> None:
    many = b"".join(b"https://h/%d\n" % number for number in range(11))

    assert isinstance(error_of(many, Limits(entries=10)), DocumentLimitError)
    assert isinstance(error_of(many, Limits(bytes=100)), DocumentLimitError)
    assert isinstance(error_of(b"https://h/\n" + b"x" * 200_000), DocumentLimitError)


@pytest.mark.parametrize(
    "data",
    [b"hello\nhttps://h/\n", b"see https://h/", b"h.example/\n", b" " * 5_000 + b"https://h/"],
)
def test_what_does_not_begin_with_an_address_is_no_text_sitemap(data: bytes) -> None:
    assert isinstance(error_of(data), MalformedDocumentError)


# --- feeds ---------------------------------------------------------------------------------------


def test_an_item_without_a_link_has_a_permanent_guid_or_is_no_page() -> None:
    data = rss(
        f"<guid>{PAGES[0]}</guid>",
        '<guid isPermaLink="false">https://site.example/no</guid>',
        f"<guid>https://site.example/other</guid><link>{PAGES[1]}</link>",
        "<description>nothing</description>",
    )
    document = opened(data)

    assert [entry.uri for entry in document.entries()] == list(PAGES)
    assert document.refused == 0
    assert document.tolerated_counts[Leniency.FEED_UNLINKED] == 2


def test_an_entry_of_atom_that_leads_to_itself_alone_is_no_page() -> None:
    alone = '<link rel="self" href="/self"/><content>all that there is</content>'
    document = opened(atom(alone, f'<link href="{PAGES[0]}"/>'))

    assert [entry.uri for entry in document.entries()] == [PAGES[0]]
    assert document.refused == 0
    assert document.tolerated_counts[Leniency.FEED_UNLINKED] == 1


def test_an_entry_of_atom_has_its_alternate_link_and_its_base() -> None:
    data = atom(
        f'<link rel="self" href="/self"/><link rel="alternate" href="{PAGES[0]}"/>',
        '<link xml:base="https://site.example/" href="b.html"/>',
    )
    document = opened(data, "https://site.example/feeds/atom.xml")

    assert [entry.uri for entry in document.entries()] == list(PAGES)
    assert Leniency.URI_RELATIVE not in document.tolerated_counts


def test_a_time_of_a_feed_that_is_none_costs_itself() -> None:
    document = opened(rss(f"<link>{PAGES[0]}</link><pubDate>yesterday</pubDate>"))

    [entry] = document.entries()

    assert isinstance(entry, Resource)
    assert entry.lastmod is None
    assert document.tolerated_counts[Leniency.TIME_INVALID] == 1


def test_a_feed_that_is_cut_is_broken() -> None:
    data = rss(*(f"<link>https://h/{number}</link>" for number in range(9)))

    assert error_of(data[:-20]).transient


@pytest.mark.parametrize(
    "data",
    [
        rss("<x>" * 300 + "</x>" * 300),
        rss("<link>" + "x" * 70_000 + "</link>"),
        rss(f"<{'x' * 9_000}/>"),
        atom("<link " + " ".join(f'a{number}="1"' for number in range(70)) + "/>"),
    ],
)
def test_a_feed_has_limits(data: bytes) -> None:
    assert isinstance(error_of(data), DocumentLimitError)


def test_the_draft_forms_in_atom_are_no_sitemaps() -> None:
    data = b'<feed xmlns="http://www.w3.org/2005/Atom" type="http://www.openarchives.org/rs/x"/>'

    assert isinstance(error_of(data), NotAListError)
