"""What Sources write in the wild is read as they meant it."""

import pytest

from resourcesync.errors import MalformedDocumentError, NotAListError
from resourcesync.model.vocabulary import SITEMAP_NS
from tests.support.documents.text import document, rows, tell, tell_strictly, uris, url


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
    data = document(*[url(f"http://a/{n}") for n in range(1500)], "<url/>")

    told = tell(blanks.encode() + data)

    assert (len(told.entries), told.codes) == (1500, ["declaration-late"])
    [refusal] = tell(data).refusals
    assert [refusal.line for refusal in told.refusals] == [refusal.line + blanks.count("\n")]
    with pytest.raises(MalformedDocumentError):
        tell_strictly(blanks.encode() + document(url()))
    with pytest.raises(MalformedDocumentError):
        tell(blanks.encode() + data.replace(b"UTF-8", b"ISO-8859-1"))


@pytest.mark.parametrize("loc", ["//[a", "http:" + "x" * 2050, "x" * 2040])
def test_a_relative_loc_that_leads_nowhere_is_refused(loc: str) -> None:
    told = tell(document(url(loc)))

    assert told.entries == []
    assert told.refusals[0].code in {"uri-illegal", "uri-too-long"}
