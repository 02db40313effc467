"""Documents that were made to hurt: X01 to X26 of the threat model."""

import gzip
import tracemalloc
from collections.abc import Iterable, Iterator

import pytest

from resourcesync.documents.reader import read
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocumentError,
    TruncatedDocumentError,
)
from tests.support.documents.text import URI, CountingStream, document, tell, url

HEAD = document().removesuffix(b"</urlset>\n")
KIB, MIB = 2**10, 2**20


def refused(data: bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        tell(data)
    return caught.value


# --- X08-X11: depth, width, length -------------------------------------------------------------


def numbered(start: bytes, piece: str) -> Iterator[bytes]:
    yield start
    for number in range(10**6):
        yield piece.format(number).encode()


HUGE = [b"x" * 4096] * 1024
COSTLY: dict[str, Iterable[bytes]] = {
    **{
        f"deep <{tag}> in {start}": [HEAD, start.encode(), f"<{tag}>".encode() * 200_000]
        for tag in ("url", "loc", "x", "rs:md", "rs:ln", "sitemap")
        for start in ("", "<url>", "<url><loc>")
    },
    **{
        f"after {start}": [HEAD + start.encode(), *HUGE]
        for start in (
            *('<url a="', '<rs:md hash="', '<o:o xmlns:o="', "<", "</", "<?pi "),
            *("<url><loc>", "<url><lastmod>", "<url><loc><![CDATA["),
        )
    },
    "many attributes": [HEAD, b"<url ", *[b'a="b" ' * 500] * 1024],
    "before the root: <?pi": [b"<?pi ", *HUGE],
    "before the root: <?xml": [b'<?xml version="1.0" ', *HUGE],
    "in the root": [b"<urlset a='", *HUGE],
    "after the root": [document(), b"<?pi ", *HUGE],
    "names": numbered(HEAD, "<a{}/>"),
    "prefixes": numbered(HEAD, '<a xmlns:p{}="urn:p"/>'),
    "links": numbered(HEAD + b"<url>", "<rs:ln/>"),
    "links of the root": numbered(HEAD, "<rs:ln/>"),
}


@pytest.mark.parametrize("pieces", COSTLY.values(), ids=COSTLY)
def test_what_would_cost_much_is_refused_before_it_does(pieces: Iterable[bytes]) -> None:
    stream = CountingStream(pieces)

    with pytest.raises(DocumentError, match=r"more than|twice") as caught:
        list(read(stream, uri=URI).entries())

    assert stream.given <= 4 * 64 * KIB
    assert caught.value.line > 0


@pytest.mark.parametrize("head", [b"", HEAD, document()])
def test_a_comment_without_end_is_a_document_that_stops_before_its_end(head: bytes) -> None:
    stream = CountingStream([head, b"<!--", *([b"x" * 4096] * 1024)])

    tracemalloc.start()
    with pytest.raises(TruncatedDocumentError):
        list(read(stream, uri=URI).entries())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 16 * 64 * KIB


LIST = document(*(url(f"http://a/{i}") for i in range(3)))


# --- X15: around the root ----------------------------------------------------------------------


@pytest.mark.parametrize("before", [b"x", b"<?pi?>", b"\n\x00", b"\xef\xbb\xbfx", b" " * 5_000])
def test_anything_but_some_blanks_or_comments_before_the_xml_declaration_is_malformed(
    before: bytes,
) -> None:
    error = refused(before + LIST)

    assert isinstance(error, MalformedDocumentError)
    assert (error.line, error.column) >= (1, 1)


def test_the_place_of_a_fault_is_told() -> None:
    error = refused(document("<url>", "  <loc>http://a/</lok>"))

    assert error.line == 5
    assert error.column in {18, 19, 20}  # versions of expat point to the tag or to its name


def many(count: int) -> Iterator[bytes]:
    yield HEAD
    for number in range(count):
        yield url(
            f"http://a/{number:08d}",
            "<lastmod>2013-01-02T13:00:00Z</lastmod>",
            f'<rs:md hash="sha-256:{number:064x}" length="{number}" type="text/html"/>',
            '<rs:ln rel="via" href="http://b/"/>' if number % 100 == 0 else "",
        ).encode()
    yield b"</urlset>"


def peak_of_reading(count: int) -> int:
    stream = CountingStream(many(count))
    tracemalloc.start()
    opened = read(stream, uri=URI)
    assert sum(1 for _ in opened.entries()) == count
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_entries() -> None:
    few, more = peak_of_reading(1_000), peak_of_reading(8_000)

    assert more < 4 * MIB
    assert more < few * 1.5


def test_reading_goes_no_further_than_it_must() -> None:
    stream = CountingStream(many(20_000))

    opened = read(stream, uri=URI)
    assert stream.given <= 64 * KIB
    next(iter(opened.entries()))

    assert stream.given <= 2 * 64 * KIB
    assert opened.header.at is not None


# --- X12-X16: packed, and in other encodings -----------------------------------------------------


def test_endless_empty_members_are_stopped() -> None:
    empty = gzip.compress(b"")
    stream = CountingStream([gzip.compress(HEAD), *([empty * 1000] * 1000)])

    with pytest.raises(DocumentLimitError):
        list(read(stream, uri=URI).entries())

    assert stream.given < MIB
