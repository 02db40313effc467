"""Documents that were made to hurt: X01 to X26 of the threat model."""

import gzip
import io
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest

from resourcesync.documents.reading import Limits, read
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocumentError,
    TruncatedDocumentError,
)
from resourcesync.model.resources import Resource
from tests.support.documents import (
    CHANGE_LIST,
    URI,
    CountingStream,
    document,
    rows,
    tell,
    uris,
    url,
)

HEAD = document().removesuffix(b"</urlset>\n")
KIB, MIB = 2**10, 2**20


def refused(data: bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        tell(data)
    return caught.value


# --- X01-X05: document types -------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9))


@pytest.mark.conformance("G01")
@pytest.mark.parametrize(
    "doctype",
    [
        f'<!DOCTYPE urlset [<!ENTITY a0 "lol">{LAUGHS}]>',
        f'<!DOCTYPE urlset [<!ENTITY a9 "{"x" * 50_000}">]>',
        '<!DOCTYPE urlset [<!ENTITY a9 SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE urlset [<!ENTITY % d SYSTEM "http://127.0.0.2:9/evil.dtd"> %d;]>',
        '<!DOCTYPE urlset SYSTEM "http://127.0.0.2:9/evil.dtd">',
        '<!DOCTYPE urlset PUBLIC "a" "http://127.0.0.2:9/evil.dtd">',
        "<!DOCTYPE urlset>",
    ],
)
def test_any_doctype_is_refused_before_it_means_anything(doctype: str) -> None:
    data = document(url("&a9;" * 20)).replace(b"?>\n", b"?>\n" + doctype.encode(), 1)

    error = refused(data)

    assert isinstance(error, MalformedDocumentError)
    assert (error.code, error.line) == ("xml-dtd", 2)
    assert error.column > 1


def test_an_entity_that_nobody_declared_is_malformed() -> None:
    assert isinstance(refused(document(url("&nbsp;"))), MalformedDocumentError)


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
        (b"<!--", b"x" * 4096),
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


@pytest.mark.parametrize("start", [b"<!--", b"<?pi ", b'<?xml version="1.0" ', b"<urlset a='"])
def test_a_huge_token_before_the_root_is_refused_as_well(start: bytes) -> None:
    stream = CountingStream([start, *([b"x" * 4096] * 1024)])

    with pytest.raises(DocumentError):
        read(stream, uri=URI)

    assert stream.given <= 4 * 64 * KIB


def test_a_huge_token_after_the_root_is_refused_as_well() -> None:
    stream = CountingStream([document(), b"<!--", *([b"x" * 4096] * 1024)])

    with pytest.raises(DocumentLimitError):
        list(read(stream, uri=URI).entries())

    assert stream.given <= 4 * 64 * KIB


def test_two_hundred_thousand_attributes_are_refused_soon() -> None:
    attributes = (f'a{i}="" '.encode() for i in range(200_000))
    stream = CountingStream([HEAD, b"<url ", *attributes])

    with pytest.raises(DocumentLimitError):
        list(read(stream, uri=URI).entries())

    assert stream.given <= 4 * 64 * KIB


def test_many_comments_and_instructions_are_nothing() -> None:
    told = tell(document("<!-- c --><?p i?>" * 100_000, url("http://a/1"), "<!---->" * 100_000))

    assert uris(told.entries) == ["http://a/1"]


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


# --- X12, X13: gzip ----------------------------------------------------------------------------

LIST = document(*(url(f"http://a/{i}") for i in range(3)))


def test_gzip_is_told_by_its_first_bytes() -> None:
    assert tell(gzip.compress(LIST)) == tell(LIST)


def test_gzip_members_one_after_the_other_are_one_document() -> None:
    data = b"".join(gzip.compress(LIST[at : at + 7]) for at in range(0, len(LIST), 7))

    assert tell(data) == tell(LIST)


def test_gzip_in_gzip_is_not_unpacked_twice() -> None:
    assert isinstance(refused(gzip.compress(gzip.compress(LIST))), MalformedDocumentError)


@pytest.mark.parametrize("garbage", [b"garbage", b"\0" * 512, b"\x1f\x8b\x08nothing", b"<"])
def test_what_follows_gzip_and_is_no_gzip_is_refused(garbage: bytes) -> None:
    refused(gzip.compress(LIST) + garbage)


def test_damaged_gzip_is_malformed() -> None:
    packed = bytearray(gzip.compress(LIST))
    packed[-6] ^= 0xFF  # in the checksum

    error = refused(bytes(packed))

    assert isinstance(error, MalformedDocumentError)
    assert error.code == "gzip"


def test_gzip_cut_at_any_byte_is_truncated() -> None:
    packed = gzip.compress(LIST)
    for size in range(2, len(packed)):
        assert isinstance(refused(packed[:size]), TruncatedDocumentError), size


def test_a_bomb_is_stopped_at_the_limit_in_little_memory() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = packer.compress(HEAD)
    for _ in range(24):
        bomb += packer.compress(b" " * MIB)
    bomb += packer.flush()
    assert len(bomb) < 30 * KIB

    tracemalloc.start()
    with pytest.raises(DocumentLimitError) as caught:
        list(read(io.BytesIO(bomb), uri=URI, limits=Limits(bytes=4 * MIB)).entries())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert dict(caught.value.evidence)["limit"] == "4,194,304 bytes"
    assert peak < 2 * MIB


def test_endless_empty_members_are_stopped() -> None:
    empty = gzip.compress(b"")
    stream = CountingStream([gzip.compress(HEAD), *([empty * 1000] * 1000)])

    with pytest.raises(DocumentLimitError):
        list(read(stream, uri=URI).entries())

    assert stream.given < MIB


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


def test_a_document_cut_at_any_byte_is_never_a_shorter_list() -> None:
    whole = CHANGES.rstrip()
    assert len(tell(whole).entries) == 2

    for size in range(len(whole)):
        error = refused(whole[:size])
        assert isinstance(error, TruncatedDocumentError), (size, error)
        assert error.transient
        assert error.line >= 1
        assert error.column >= 1


def test_utf_16_cut_at_any_byte_is_never_a_shorter_list() -> None:
    whole = CHANGES.decode().replace("UTF-8", "UTF-16").rstrip().encode("utf-16")
    assert len(tell(whole).entries) == 2

    for size in range(2, len(whole)):
        assert isinstance(refused(whole[:size]), TruncatedDocumentError), size


def test_a_long_document_cut_in_its_middle_is_never_a_shorter_list() -> None:
    whole = document(*(url(f"http://a/{i}", "<lastmod>2013</lastmod>") for i in range(3000)))
    for size in range(100_000, 100_010):
        assert isinstance(refused(whole[:size]), TruncatedDocumentError)


# --- X15: around the root ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "junk", [b"junk", b"<urlset/>", b"&amp;", b"\0", b"</urlset>", b"<!DOCTYPE a>"]
)
def test_what_follows_the_root_is_malformed(junk: bytes) -> None:
    assert isinstance(refused(LIST + junk), MalformedDocumentError)


def test_comments_and_blanks_may_follow_the_root() -> None:
    assert tell(LIST + b"\n <!-- bye --> <?pi?>\n") == tell(LIST)


@pytest.mark.parametrize("blank", [b"\n", b" ", b"\xef\xbb\xbf\n"])
def test_a_blank_before_the_xml_declaration_is_malformed(blank: bytes) -> None:
    error = refused(blank + LIST)

    assert isinstance(error, MalformedDocumentError)
    assert (error.line, error.column) >= (1, 1)


def test_a_byte_order_mark_is_accepted() -> None:
    assert tell(b"\xef\xbb\xbf" + LIST) == tell(LIST)


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


# --- X16: encodings ----------------------------------------------------------------------------

ACCENTED = document(url("http://a/\u00e9\u6c34\U0001f600")).decode()


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-8"])
def test_utf_8_and_utf_16_are_read(codec: str) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(codec, b"")
    name = codec.split("-le", maxsplit=1)[0].split("-be", maxsplit=1)[0]
    data = mark + ACCENTED.replace("UTF-8", name).encode(codec)

    assert uris(tell(data).entries) == ["http://a/\u00e9\u6c34\U0001f600"]


@pytest.mark.parametrize(
    "name", ["ISO-8859-1", "us-ascii", "UTF-7", "UTF-32", "windows-1252", "EBCDIC-CP-US", "x"]
)
def test_other_encodings_are_refused_by_their_name(name: str) -> None:
    error = refused(LIST.replace(b"UTF-8", name.encode()))

    assert isinstance(error, MalformedDocumentError)
    assert error.code == "xml-encoding"
    assert name in error.message
    assert (error.line, error.column) == (1, 1)


@pytest.mark.parametrize(
    "data",
    [
        LIST.decode().encode("utf-32"),
        b"\0\0\xfe\xff" + LIST.decode().encode("utf-32-be"),
        LIST.decode().encode("utf-16-le"),
        LIST.decode().encode("utf-16-be"),
        b"\xef\xbb\xbf" + LIST.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + LIST.decode().encode("utf-16-le"),
        LIST.decode().encode("cp500"),
        LIST.replace(b"<", b"+ADw-"),
    ],
)
def test_bytes_in_other_encodings_are_malformed(data: bytes) -> None:
    error = refused(data)

    assert isinstance(error, MalformedDocumentError)
    assert error.line == 1


@pytest.mark.parametrize(
    "bad", [b"\xc0\xaf", b"\xff", b"\xed\xa0\x80", b"\xe9", b"\xf8\x88\x80\x80"]
)
def test_bytes_that_are_no_utf_8_are_malformed(bad: bytes) -> None:
    assert isinstance(refused(document(url("@")).replace(b"@", bad)), MalformedDocumentError)


def test_a_lone_surrogate_in_utf_16_is_malformed() -> None:
    data = b"\xff\xfe" + LIST.decode().replace("a/1", "a/\ud800").encode(
        "utf-16-le", "surrogatepass"
    )

    assert isinstance(refused(data), MalformedDocumentError)


# --- X17: characters ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", ["&#0;", "&#11;", "&#xD800;", "&#xFFFE;", "&#x110000;", "\x01", "\x0b", "\x1f", "\uffff"]
)
def test_characters_that_xml_cannot_carry_are_malformed(bad: str) -> None:
    assert isinstance(refused(document(url(f"http://a/{bad}"))), MalformedDocumentError)


# --- X26 and text that plays tag ---------------------------------------------------------------


def test_nothing_is_included_and_no_base_is_used() -> None:
    told = tell(
        document(
            '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/hostname"'
            ' parse="text"/>',
            url("res1"),
        )
        .replace(b"?>\n", b'?><?xml-stylesheet href="http://127.0.0.2:9/x"?>', 1)
        .replace(b"<urlset ", b'<urlset xml:base="http://127.0.0.2:9/" ')
    )

    assert told.entries == [Resource(uri="res1")]


def test_text_that_looks_like_a_name_is_text() -> None:
    name = "http://www.sitemaps.org/schemas/sitemap/0.9loc"
    told = tell(document(url(name, "http://www.sitemaps.org/schemas/sitemap/0.9url"), "url", "loc"))

    assert told.entries == [Resource(uri=name)]


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


def test_rows_find_the_same_faults() -> None:
    data = document(url("http://a/1"), "<url/>", url("http://a/\u202e"), url(" http://a/2 "))

    assert [row.uri for row in rows(data)] == ["http://a/1", "http://a/2"]
