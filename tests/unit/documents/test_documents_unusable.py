"""Documents that cannot be used are named for what they are."""

import pytest

from resourcesync.errors import MalformedDocumentError, NotAListError, UnexpectedDocumentError
from tests.support.documents.text import RESOURCE_LIST, document, open_document, tell, url


@pytest.mark.parametrize("capability", ["resourcedump-archives", "manifest", "other", ""])
def test_a_capability_that_is_not_known_is_named(capability: str) -> None:
    with pytest.raises(UnexpectedDocumentError) as caught:
        open_document(document(md=f'<rs:md capability="{capability}"/>'))

    assert repr(capability) in caught.value.message
    assert (caught.value.line, caught.value.column) == (3, 1)


@pytest.mark.parametrize("bare", ["?x=1&y=2", "AT&T<b/>", "a & b", "&", "&;", "&&amp;"])
def test_a_bare_ampersand_is_named_at_its_place(bare: str) -> None:
    before = document().decode().partition("</urlset>")[0]

    with pytest.raises(MalformedDocumentError, match="an & that is not written as &amp;") as caught:
        tell(f"{before}\n<url><loc>http://h/{bare}</loc></url></urlset>".encode())

    assert caught.value.line == before.count("\n") + 2
    assert caught.value.column == len("<url><loc>http://h/") + bare.index("&") + 1


@pytest.mark.conformance("G05", "G06")
@pytest.mark.parametrize(
    ("data", "code", "words", "line"),
    [
        (document(md='<rs:md at="2013"/>'), "xml-metadata", "capability", 3),
        (document(RESOURCE_LIST), "xml-metadata", "twice", 4),
        (document(url(), RESOURCE_LIST, md=""), "xml-metadata", "after the first entry", 5),
        *(
            (
                document(md=f'<rs:md capability="resourcelist" {name}="soon"/>'),
                "time-invalid",
                name,
                3,
            )
            for name in ("at", "completed", "from", "until")
        ),
    ],
)
def test_a_root_md_that_cannot_be_used_is_malformed(
    data: bytes, code: str, words: str, line: int
) -> None:
    with pytest.raises(MalformedDocumentError, match=words) as caught:
        tell(data)

    assert (caught.value.code, caught.value.line) == (code, line)


@pytest.mark.parametrize(
    ("data", "root"),
    [
        (b"<rss xmlns='urn:other'/>", "<rss>"),
        (b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>", "<RDF>"),
        (b"<urls xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>", "<urls>"),
        (b"<feed type='http://www.openarchives.org/rs/changeset'/>", "<feed>"),
        (b"<Error><Code>NoSuchKey</Code></Error>", "<Error>"),
        (b"<html><body><p>oops</body>", "<html>"),
        (b"<HTML>", "<HTML>"),
        (b"<!DOCTYPE html><html></html>", "<html>"),
        (b"<!DOCTYPE html><html><head><title>\n Not  found </title></head></html>", "<html>"),
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
    assert (("title", "Not found") in caught.value.evidence) is (b"<title>" in data)


def test_entries_are_given_once() -> None:
    opened = open_document(document(url()))
    assert len(list(opened.entries())) == 1

    with pytest.raises(RuntimeError, match="once"):
        next(opened.rows())
