"""Plain sitemaps are read in every form in which sites write them, and each departure is told."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.documents.reader import Document, Limits, read
from resourcesync.errors import DocumentError, DocumentLimitError, MalformedDocumentError
from resourcesync.model.leniencies import LENIENCIES, Leniency
from resourcesync.validator.examination import Examination
from tests.support.documents.sitemap_forms import FORMS, PAGES, URI, WrittenSitemap, atom, rss

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sitemap-forms.md"
ROW = re.compile(
    r"\| (?P<name>[^|]+) \| (?P<read>[^|]+) \| (?P<codes>[^|]+) \| (?P<rules>[^|]+) \|"
)


def opened(data: bytes, uri: str = URI, limits: Limits | None = None) -> Document:
    return read(io.BytesIO(data), uri=uri, limits=limits or Limits())


def entries(data: bytes) -> list[str]:
    return [entry.uri for entry in opened(data).entries()]


def error_of(data: bytes, limits: Limits | None = None) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        list(opened(data, limits=limits).entries())
    return caught.value


def rows() -> Iterator[tuple[str, set[str], set[str]]]:
    table = PAGE.read_text("utf-8").partition("## Forms")[2].partition("\n## ")[0]
    for found in ROW.finditer(table):
        if not found["name"].startswith(("Form", "-")):
            codes, rules = (set(re.findall("`([^`]+)`", found[key])) for key in ("codes", "rules"))
            yield found["name"].strip(), codes, rules


@pytest.mark.parametrize(("name", "codes", "rules"), list(rows()))
def test_the_page_says_what_is_told_and_what_validate_says(
    name: str, codes: set[str], rules: set[str]
) -> None:
    form = {form.name: form for form in FORMS}[name]
    document = opened(form.data, form.uri)
    list(document.entries())
    findings = Examination([form.data], uri=form.uri, profile="sitemap")

    assert {str(code) for code in document.tolerated_counts} == codes
    assert {finding.rule.code for finding in findings} == rules


def test_the_page_has_every_form_and_every_leniency_towards_plain_sitemaps() -> None:
    text = PAGE.read_text("utf-8")

    assert [name for name, _, _ in rows()] == [form.name for form in FORMS]
    new = [code for code in Leniency if f"`{code}`" not in text]
    assert set(new).isdisjoint({Leniency.HOST_TWIN, Leniency.TLS_TWIN, Leniency.INDEX_LISTS_ITSELF})
    assert set(LENIENCIES) == set(Leniency)


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_strict_reading_forgives_none_of_them(form: WrittenSitemap) -> None:
    document = opened(form.data, form.uri)
    list(document.entries())
    rules = [LENIENCIES[code][0] for code in document.tolerated_counts]

    if any(rules):
        with pytest.raises(MalformedDocumentError):
            list(read(io.BytesIO(form.data), uri=form.uri, strict=True).entries())


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


def test_an_entry_of_atom_has_its_alternate_link_and_its_base() -> None:
    data = atom(
        f'<link rel="self" href="/self"/><link rel="alternate" href="{PAGES[0]}"/>',
        '<link xml:base="https://site.example/" href="b.html"/>',
    )
    document = opened(data, "https://site.example/feeds/atom.xml")

    assert [entry.uri for entry in document.entries()] == list(PAGES)
    assert Leniency.URI_RELATIVE not in document.tolerated_counts


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
