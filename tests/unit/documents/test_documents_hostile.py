"""Documents that were made to hurt: X01 to X26 of the threat model."""

import gzip
import tracemalloc
from collections.abc import Iterator

import pytest

from resourcesync.documents.reader import read
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocumentError,
    TruncatedDocumentError,
)
from tests.support.documents.text import CHANGE_LIST, URI, CountingStream, document, tell, url

HEAD = document().removesuffix(b"</urlset>\n")
KIB, MIB = 2**10, 2**20


def refused(data: bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        tell(data)
    return caught.value


# --- X08-X11: depth, width, length -------------------------------------------------------------


@pytest.mark.parametrize("tag", ["url", "loc", "x", "rs:md", "rs:ln", "sitemap"])
@pytest.mark.parametrize("start", ["", "<url>", "<url><loc>"])
def test_a_deep_document_is_refused_soon(tag: str, start: str) -> None:
    stream = CountingStream([HEAD, start.encode(), f"<{tag}>".encode() * 200_000])

    with pytest.raises(DocumentError, match=r"levels|twice") as caught:
        list(read(stream, uri=URI).entries())

    assert stream.given <= 4 * 64 * KIB
    assert caught.value.line > 0


def endless(start: bytes, piece: bytes, pieces: int) -> CountingStream:
    def give() -> Iterator[bytes]:
        yield HEAD + start
        for _ in range(pieces):
            yield piece

    return CountingStream(give())


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b'<url a="', b"x" * 4096),
        (b'<rs:md hash="', b"x" * 4096),
        (b'<o:o xmlns:o="', b"x" * 4096),
        (b"<url ", b'a="b" ' * 500),
        (b"<", b"u" * 4096),
        (b"</", b"u" * 4096),
        (b"<?pi ", b"x" * 4096),
        (b"<url><loc>", b"x" * 4096),
        (b"<url><lastmod>", b"x" * 4096),
        (b"<url><loc><![CDATA[", b"x" * 4096),
    ],
)
def test_a_huge_token_is_refused_before_it_costs_anything(start: bytes, piece: bytes) -> None:
    stream = endless(start, piece, 1024)

    with pytest.raises(DocumentError) as caught:
        list(read(stream, uri=URI).entries())

    assert isinstance(caught.value, DocumentLimitError)
    assert stream.given <= 4 * 64 * KIB
    assert caught.value.line > 0


@pytest.mark.parametrize("start", [b"<?pi ", b'<?xml version="1.0" ', b"<urlset a='"])
def test_a_huge_token_before_the_root_is_refused_as_well(start: bytes) -> None:
    stream = CountingStream([start, *([b"x" * 4096] * 1024)])

    with pytest.raises(DocumentError):
        read(stream, uri=URI)

    assert stream.given <= 4 * 64 * KIB


def test_a_huge_token_after_the_root_is_refused_as_well() -> None:
    stream = CountingStream([document(), b"<?pi ", *([b"x" * 4096] * 1024)])

    with pytest.raises(DocumentLimitError):
        list(read(stream, uri=URI).entries())

    assert stream.given <= 4 * 64 * KIB


@pytest.mark.parametrize("head", [b"", HEAD, document()])
def test_a_comment_without_end_is_a_document_that_stops_before_its_end(head: bytes) -> None:
    stream = CountingStream([head, b"<!--", *([b"x" * 4096] * 1024)])

    tracemalloc.start()
    with pytest.raises(TruncatedDocumentError):
        list(read(stream, uri=URI).entries())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 16 * 64 * KIB


def names() -> Iterator[bytes]:
    yield HEAD
    for number in range(10**6):
        yield f"<a{number}/>".encode()


def prefixes() -> Iterator[bytes]:
    yield HEAD
    for number in range(10**6):
        yield f'<a xmlns:p{number}="urn:p"/>'.encode()


def links() -> Iterator[bytes]:
    yield HEAD + b"<url>"
    for _ in range(10**6):
        yield b"<rs:ln/>"


def root_links() -> Iterator[bytes]:
    yield HEAD
    for _ in range(10**6):
        yield b"<rs:ln/>"


@pytest.mark.parametrize("pieces", [names, prefixes, links, root_links])
def test_what_would_pile_up_in_memory_is_limited(pieces: object) -> None:
    assert callable(pieces)
    stream = CountingStream(pieces())

    with pytest.raises(DocumentLimitError):
        list(read(stream, uri=URI).entries())

    assert stream.given <= 4 * 64 * KIB


LIST = document(*(url(f"http://a/{i}") for i in range(3)))

# --- X14: cut short ----------------------------------------------------------------------------

CHANGES = document(
    '<rs:ln rel="up" href="http://a/c"/>',
    url("http://a/1?x=1&amp;y=2", '<rs:md change="created" datetime="2013-01-03T11:00:00Z"/>'),
    "<!-- comment --><?pi?>",
    url(
        "<![CDATA[http://a/2]]>", '<x:y xmlns:x="urn:x"><x:z/>\u00e9</x:y><rs:md change="deleted"/>'
    ),
    md=CHANGE_LIST,
)


def test_utf_16_cut_at_any_byte_is_never_a_shorter_list() -> None:
    whole = CHANGES.decode().replace("UTF-8", "UTF-16").rstrip().encode("utf-16")
    assert len(tell(whole).entries) == 2

    for size in range(2, len(whole)):
        assert isinstance(refused(whole[:size]), TruncatedDocumentError), size


# --- X15: around the root ----------------------------------------------------------------------


@pytest.mark.parametrize("before", [b"x", b"<?pi?>", b"\n\x00", b"\xef\xbb\xbfx", b" " * 5_000])
def test_anything_but_some_blanks_or_comments_before_the_xml_declaration_is_malformed(
    before: bytes,
) -> None:
    error = refused(before + LIST)

    assert isinstance(error, MalformedDocumentError)
    assert (error.line, error.column) >= (1, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"Not found",
        b"{}",
        b"\x89PNG\r\n",
        b"<urlset",
        b"\0\0\0\0",
        HEAD + b"<url></loc></urlset>",
        HEAD + b"<url a='1' a='2'/></urlset>",
        HEAD + b"<q:url/></urlset>",
        HEAD + b"<url>a & b</url></urlset>",
    ],
)
def test_what_is_no_xml_is_an_error(data: bytes) -> None:
    error = refused(data)

    assert error.line >= 1
    assert error.column >= 1
    assert error.uri == URI


def test_the_place_of_a_fault_is_told() -> None:
    error = refused(document("<url>", "  <loc>http://a/</lok>"))

    assert error.line == 5
    assert error.column in {18, 19, 20}  # versions of expat point to the tag or to its name


# --- memory ------------------------------------------------------------------------------------


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


def test_damaged_gzip_is_malformed() -> None:
    packed = bytearray(gzip.compress(LIST))
    packed[-6] ^= 0xFF  # in the checksum

    error = refused(bytes(packed))

    assert isinstance(error, MalformedDocumentError)
    assert error.code == "gzip"


def test_endless_empty_members_are_stopped() -> None:
    empty = gzip.compress(b"")
    stream = CountingStream([gzip.compress(HEAD), *([empty * 1000] * 1000)])

    with pytest.raises(DocumentLimitError):
        list(read(stream, uri=URI).entries())

    assert stream.given < MIB


def test_a_lone_surrogate_in_utf_16_is_malformed() -> None:
    data = b"\xff\xfe" + LIST.decode().replace("a/1", "a/\ud800").encode(
        "utf-16-le", "surrogatepass"
    )

    assert isinstance(refused(data), MalformedDocumentError)
