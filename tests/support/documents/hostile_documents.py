"""A document or more for each row of the threat model on XML (X01 to X26), given piece by piece."""

import codecs
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from resourcesync.documents.reader import read as read_document
from resourcesync.errors import DocumentError
from tests.support.documents.text import CHANGE_LIST, URI, CountingStream, document, url

KIB, MIB = 2**10, 2**20
HEAD: Final = document().removesuffix(b"</urlset>\n")
TAIL: Final = b"</urlset>\n"
LIST: Final = document(url("http://a/1"))
SURROGATE: Final = LIST.decode().replace("UTF-8", "UTF-16").replace("a/1", "a/\ud800")
FOREIGN: Final = b'<y xmlns="urn:y"/>' * 1000
OTHERS: Final = b'<y xmlns=""/>' * 1000
LAUGHS: Final = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9))

Pieces = Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    pieces: Pieces
    outcome: str  # the code of the error, or `read`
    entries: int = 0  # how many entries it gives when it is read
    refused: tuple[str, ...] = ()  # the codes of the entries that are refused, in order
    seconds: float = 1.0  # CPU time it may take


def with_doctype(doctype: str, *children: str) -> Pieces:
    data = document(*children).replace(b"?>\n", b"?>\n" + doctype.encode(), 1)
    return lambda: [data]


def fails(outcome: str, *pieces: bytes) -> Hostile:
    return Hostile(pieces=lambda: pieces, outcome=outcome)


def gives(data: bytes, entries: int, *refused: str) -> Hostile:
    return Hostile(pieces=lambda: [data], outcome="read", entries=entries, refused=refused)


def repeated(before: bytes, piece: bytes, count: int, after: bytes = TAIL) -> Pieces:
    def pieces() -> Iterator[bytes]:
        yield before
        for _ in range(count):
            yield piece
        yield after

    return pieces


def attributes() -> Iterator[bytes]:
    yield HEAD + b"<url "
    for number in range(200_000):
        yield f'a{number}="" '.encode()
    yield b"/>" + TAIL


def spaces() -> Iterator[bytes]:
    packer = zlib.compressobj(9, wbits=31)
    yield packer.compress(HEAD)
    for _ in range(110):
        yield packer.compress(b" " * MIB)
    yield packer.compress(TAIL) + packer.flush()


def parts() -> Iterator[bytes]:
    head = document(root="sitemapindex").removesuffix(b"</sitemapindex>\n")
    yield head
    for number in range(10_001):
        yield f"<sitemap><loc>http://a/{number}</loc></sitemap>".encode()
    yield b"</sitemapindex>"


def changes(*entries: str) -> bytes:
    return document(*entries, md=CHANGE_LIST)


def metadata(text: str) -> str:
    return url("http://a/1", f"<rs:md {text}/>")


SHA: Final = "sha-256:" + "ab" * 32
ENTITY: Final = '<!DOCTYPE urlset [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
PARAMETER: Final = '<!DOCTYPE urlset [<!ENTITY % d SYSTEM "http://127.0.0.2:9/e.dtd"> %d;]>'
QUADRATIC: Final = f'<!DOCTYPE urlset [<!ENTITY e "{"x" * 100}">]>'

BAD_CHARACTERS: Final = (
    *("&#0;", "&#11;", "&#xD800;", "&#xFFFE;", "&#x110000;", "&nbsp;", "\x0b", "\x1f", "\uffff"),
)

ROWS: Final[dict[str, tuple[Hostile, ...]]] = {
    "X01": (
        Hostile(
            pieces=with_doctype(f'<!DOCTYPE u [<!ENTITY a0 "l">{LAUGHS}]>', url("&a9;")),
            outcome="xml-dtd",
        ),
    ),
    "X02": (Hostile(pieces=with_doctype(QUADRATIC, url("&e;" * 20_000)), outcome="xml-dtd"),),
    "X03": (Hostile(pieces=with_doctype(ENTITY, url("&e;")), outcome="xml-dtd"),),
    "X04": (Hostile(pieces=with_doctype(PARAMETER), outcome="xml-dtd"),),
    "X05": (
        Hostile(pieces=with_doctype("<!DOCTYPE urlset>"), outcome="xml-dtd"),
        Hostile(
            pieces=with_doctype('<!DOCTYPE urlset SYSTEM "http://127.0.0.2:9/">'), outcome="xml-dtd"
        ),
    ),
    "X06": (fails("not-a-list", b"<!DOCTYPE html><html><title>404</title></html>"),),
    "X07": (
        fails("not-a-list", b"<opml version='2.0'><body/></opml>"),
        gives(b"<rss version='2.0'><channel/></rss>", 0),
        gives(b"<urlset><url><loc>http://a/1</loc></url></urlset>", 1),
        gives(
            b"<urlset xmlns='http://www.google.com/schemas/sitemap/0.84'>"
            b"<url><loc>http://a/1</loc></url></urlset>",
            1,
        ),
    ),
    "X08": (
        Hostile(pieces=repeated(HEAD, b"<x>" * 1000, 200), outcome="document-limit"),
        Hostile(pieces=repeated(HEAD, b"<url>" * 1000, 200), outcome="document-limit"),
    ),
    "X09": (
        Hostile(pieces=attributes, outcome="document-limit"),
        Hostile(
            pieces=repeated(HEAD + b'<url a="', b"x" * 64 * KIB, 176), outcome="document-limit"
        ),
        Hostile(
            pieces=repeated(HEAD + b"<url><loc>", b"x" * 64 * KIB, 176), outcome="document-limit"
        ),
        # Elements of others are kept up to a limit; those beyond it must cost nothing.
        Hostile(
            pieces=repeated(HEAD + b"<url><loc>1</loc>", OTHERS, 20, b"</url>" + TAIL),
            outcome="read",
            entries=1,
            seconds=3.0,
        ),
        Hostile(pieces=repeated(HEAD, FOREIGN, 20), outcome="read", seconds=3.0),
        Hostile(
            pieces=repeated(HEAD, OTHERS, 20),
            outcome="read",
            refused=("entry-unknown",) * 100,
            seconds=3.0,
        ),
    ),
    "X10": (
        Hostile(
            pieces=repeated(HEAD + b'<url a="', b"x" * 4 * KIB, 1024),
            outcome="document-limit",
            seconds=0.2,
        ),
    ),
    "X11": (
        Hostile(pieces=repeated(HEAD, b"<!-- c -->" * 500, 200), outcome="read"),
        Hostile(pieces=repeated(HEAD, b"<?p i?>" * 500, 200), outcome="read"),
    ),
    "X12": (
        Hostile(pieces=lambda: [zlib.compress(LIST, wbits=31)], outcome="read", entries=1),
        Hostile(pieces=lambda: [zlib.compress(LIST, wbits=31)[:-9]], outcome="xml-cut-short"),
        fails("xml", zlib.compress(LIST)),
        fails("xml-encoding", zlib.compress(zlib.compress(LIST, wbits=31), wbits=31)),
        fails("gzip", zlib.compress(LIST, wbits=31), b"garbage"),
        fails("gzip", zlib.compress(LIST, wbits=31)[:-8], b"wrong sum"),
    ),
    "X13": (Hostile(pieces=spaces, outcome="document-limit", seconds=2.0),),
    "X14": (fails("xml-cut-short", LIST[:-12]), fails("xml-cut-short", LIST[:200])),
    "X15": (
        fails("xml", LIST, b"junk"),
        fails("xml", LIST, LIST.split(b"?>\n")[1]),
        gives(b"\xef\xbb\xbf" + LIST, 1),
        gives(b"\n" + LIST, 1),
        fails("xml", b"x" + LIST),
        fails("xml", LIST, b"\0"),
    ),
    "X16": (
        gives(LIST.decode().replace("UTF-8", "UTF-16").encode("utf-16"), 1),
        gives(b"\xfe\xff" + LIST.decode().replace("UTF-8", "UTF-16").encode("utf-16-be"), 1),
        *(
            fails("xml-encoding", mark + LIST.decode().encode(codec))
            for mark, codec in (
                *((b"", "utf-16-le"), (b"", "utf-32"), (b"\0\0\xfe\xff", "utf-32-be")),
                *((codecs.BOM_UTF8, "utf-16"), (codecs.BOM_UTF8, "utf-16-le")),
            )
        ),
        fails("xml-encoding", LIST.replace(b"UTF-8", b"UTF-7")),
        fails("xml-encoding", LIST.replace(b"UTF-8", b"us-ascii").replace(b"a/1", b"a/\xe9")),
        fails("xml", LIST.decode().encode("cp500")),
        fails("xml", LIST.replace(b"a/1", b"\xc0\xaf")),
        fails("xml-encoding", SURROGATE.encode("utf-16", "surrogatepass")),
    ),
    "X17": (
        *(fails("xml", document(url(bad))) for bad in BAD_CHARACTERS),
        *(
            gives(document(url(f"http://a/{bad}")), 0, "uri-illegal")
            for bad in "\u202e\u200b\ufeff"
        ),
    ),
    "X18": (
        gives(document(url("http://good/<!-- x -->@evil/")), 1),
        gives(document(url("http://<![CDATA[go]]>od<![CDATA[/]]>")), 1),
        gives(document(url("<b/>http://a/")), 0, "entry-invalid"),
    ),
    "X19": (
        gives(document("<url/>", url("1", "<loc>2</loc>")), 0, "entry-invalid", "entry-invalid"),
        gives(document(url("1", "<rs:md/><rs:md/>")), 0, "entry-invalid"),
        fails("xml-metadata", document(url(), CHANGE_LIST)),
        gives(document(url(), md=""), 1),
    ),
    "X20": (
        gives(document(metadata('rs:hash="x"')), 1),
        gives(document(url("1", '<rs:md xmlns:rs="urn:other" length="-1"/>')), 1),
    ),
    "X21": (
        *(gives(changes(metadata(bad)), 0, "change-unknown") for bad in ("change='odd'", "x='y'")),
        gives(changes(metadata("change='UPDATED'")), 1),
    ),
    "X22": (
        *(
            gives(document(url("1", f"<lastmod>{bad}</lastmod>")), 1)
            for bad in ("2013-W05-7", "2013-01-03T24:00:00Z", "2013-01-03T09:00:00." + "1" * 1000)
        ),
        gives(document(url("1", "<lastmod>2013</lastmod>")), 1),
    ),
    "X23": tuple(
        gives(document(metadata(f'length="{bad}"')), 1)
        for bad in ("-1", "1e9", "\u0663", "0x10", "1" + "0" * 30, "")
    ),
    "X24": (
        gives(document(metadata('hash="crc32:1 md5: sha-256:f4OxZX_x"')), 1),
        gives(document(metadata(f'hash="{SHA} SHA-256:{"cd" * 32}"')), 1),
        gives(document(metadata(f'hash="{SHA.upper()}"')), 1),
        gives(document(metadata(f'hash="{"md5:1 " * 10_000}"')), 1),
    ),
    "X25": (Hostile(pieces=parts, outcome="read", entries=10_001, seconds=3.0),),
    "X26": (
        gives(
            document(
                '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/>'
                '<?xml-stylesheet href="http://127.0.0.2:9/x"?>',
                url("res1"),
            ).replace(b"<urlset ", b'<urlset xml:base="http://127.0.0.2:9/" '),
            1,
        ),
    ),
}
"""What stands in each row of the threat model."""


def read(hostile: Hostile) -> tuple[str, int, list[str]]:
    refused: list[str] = []
    entries = 0
    stream = CountingStream(hostile.pieces())
    try:
        for _ in read_document(
            stream, uri=URI, on_refused=lambda entry: refused.append(entry.code)
        ).entries():
            entries += 1
    except DocumentError as error:
        return error.code, 0, refused
    return "read", entries, refused
