"""The bytes of a document: unpacked, in UTF-8, in even blocks, under a budget.

The size of the blocks matters: before 2.6 expat scans an unfinished token again with every block,
so many small blocks would make its time quadratic. expat buffers a comment of any length until it
ends: a long one is split into short ones, which mean the same, that is nothing.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import BinaryIO, Final
from urllib.parse import urljoin

from resourcesync.documents.expat import MAX_BEFORE_DECLARATION, Limits, limit_error
from resourcesync.errors import MalformedDocumentError, NotAListError, TruncatedDocumentError
from resourcesync.model.own_names import MAX_URI
from resourcesync.model.vocabulary import SITEMAP_NS

BLOCK: Final = 65_536
_START: Final = 4_096
"""Bytes that contain the header of nearly every document, or the title of an HTML page."""
_GZIP: Final = b"\x1f\x8b"
_MAX_MEMBERS: Final = 10_000
_UTF32: Final = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


MOST_BLANK: Final = 4_096
"""Bytes of blank lines that may precede the first address of a text."""
_FIRST_ADDRESS: Final = re.compile(
    rb"[ \t\r\n]{0,%d}+https?://[^\s<>]++[ \t]*+(?:[\r\n]|\Z)" % MOST_BLANK, re.IGNORECASE
)
TEXT_HINT: Final = (
    "a text sitemap has one absolute address on each line, in UTF-8, and nothing else: ask the"
    " operator of the site, or give the address of another sitemap, or of the site"
)


def document_blocks(pieces: Iterable[bytes], *, limits: Limits, uri: str) -> Iterator[bytes]:
    """Yield the document in UTF-8, in blocks of 64 KiB or a little more; only the last is shorter.

    Long comments are split into short ones; all else keeps its place.
    """
    blocks = _even(_within(pieces, limits=limits, uri=uri))
    first = next(blocks, b"")
    if first.startswith(_GZIP):
        packed = chain((first,), blocks)
        blocks = _even(_within(_gunzip(packed, uri=uri), limits=limits, uri=uri))
        first = next(blocks, b"")
    if first.startswith(_UTF16) and not first.startswith(_UTF32):
        return _part_comments(_even(_transcode(chain((first,), blocks), uri=uri)))
    first = first.removeprefix(codecs.BOM_UTF8)
    if first.startswith(_UTF16) or b"\0" in first[:4]:  # expat would read it as UTF-16 by itself
        raise MalformedDocumentError(
            "The document is neither in UTF-8 nor in UTF-16 with a byte order mark",
            uri=uri,
            line=1,
            column=1,
            code="xml-encoding",
        )
    return _part_comments(chain(filter(None, (first,)), blocks))


_SECTION: Final = re.compile(rb"<!--|<!\[CDATA\[|<\?")
_ENDS: Final = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_LONGEST_MARK: Final = 9
_PARTED: Final = b"--><!--"
_REPLACEABLE: Final = re.compile(
    rb"(?<!-)(?:[ -,.-~]{7}|(?:[\xc2-\xdf][\x80-\xbf]|[\xe1-\xec\xee][\x80-\xbf]{2}){4,7})"
)
"""Text of a comment that may be written over: some legal characters, and none that matters."""


def _part_comments(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a document whose comments end at least once in every block, at the same length."""
    end, tail = b"", b""
    for piece in pieces:
        text, begin, at = tail + piece, 0, 0
        while True:
            if end:
                found = text.find(end, at)
                if found < 0:
                    break
                at, end = found + len(end), b""
            elif section := _SECTION.search(text, at):
                begin = at = section.end()
                end = _ENDS[section[0]]
            else:
                break
        half = len(text) // 2
        parted = piece
        if end == b"-->" and begin < half and (room := _REPLACEABLE.search(text, half)):
            first, last = room.start() - len(tail), room.end() - len(tail)
            parted = piece[:first] + _PARTED.ljust(last - first) + piece[last:]
        tail = text[max(at, len(text) - _LONGEST_MARK) :]
        yield parted


_BEFORE: Final = re.compile(rb"(?:[ \t\r\n]++|\xef\xbb\xbf|(?><!--.*?-->))+", re.DOTALL)
_DECLARATION: Final = re.compile(rb"<\?xml[ \t\r\n][^<>]*\?>")


def declaration_first(pieces: Iterator[bytes], on_late: Callable[[], None]) -> Iterator[bytes]:
    """Yield a document that begins with its declaration, though blanks or comments precede it.

    They come behind it then, so that all lines keep their numbers; byte order marks among them
    become blanks. More of them than `MAX_BEFORE_DECLARATION` is left to the parser, as an error.
    """
    for first in pieces:
        before = _BEFORE.match(first)
        if before is None or len(before[0]) > MAX_BEFORE_DECLARATION:
            yield first
            break
        found = _DECLARATION.match(first, before.end())
        if found is None and codecs.BOM_UTF8 not in before[0]:
            yield first
            break
        on_late()
        moved = before[0].replace(codecs.BOM_UTF8, b"   ")
        if found is None:
            yield moved + first[before.end() :]
        else:
            yield found[0] + moved + first[found.end() :]
        break
    yield from pieces


def is_text_sitemap(start: bytes) -> bool:
    """True if a document begins as a text sitemap does: with a line that is an address."""
    return _FIRST_ADDRESS.match(start) is not None


_WEB: Final = ("http://", "https://")
_MAX_ROBOTS: Final = 500 * 1024
_MAX_NAMED: Final = 1_000
_NAMED: Final = re.compile(r"[ \t]*sitemap[ \t]*:[ \t]*([^\s#]+)", re.IGNORECASE)


def is_robots(uri: str) -> bool:
    """True if an address is that of a ``robots.txt``."""
    return uri.endswith("/robots.txt")


def robots_index(pieces: Iterator[bytes], uri: str) -> Iterator[bytes]:
    """Yield the index of the sitemaps that a ``robots.txt`` names; a page as it is.

    What is no address of the web is passed over, as all other lines are.
    """
    text = b"".join(pieces)[:_MAX_ROBOTS].decode("utf-8", "replace")  # RFC 9309 §2.5
    if text.lstrip().startswith("<"):
        yield text.encode()
        return
    named: dict[str, None] = {}
    for line in re.split(r"[\r\n]+", text):
        if found := _NAMED.match(line):
            with suppress(ValueError):
                named[urljoin(uri, found[1])] = None
    usable = [
        each
        for each in named
        if each.isprintable() and each.startswith(_WEB) and len(each) <= MAX_URI
    ]
    if not usable:
        raise NotAListError("robots.txt names no sitemap", uri=uri)
    if len(usable) > _MAX_NAMED:
        raise limit_error(_MAX_NAMED, "sitemaps in robots.txt", uri=uri)
    from resourcesync.documents._xml_output import escape  # noqa: PLC0415 - seldom

    entries = "".join(f"<sitemap><loc>{escape(each)}</loc></sitemap>" for each in usable)
    yield f'<sitemapindex xmlns="{SITEMAP_NS}">{entries}</sitemapindex>'.encode()


def is_markup(start: bytes) -> bool:
    """True if a document may be XML: it begins with a tag, an instruction or a comment."""
    before = _BEFORE.match(start)
    rest = start if before is None else start[before.end() :]
    return not rest or rest.startswith(b"<")


def header_first(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the start of a document by itself: before the header is known nothing is quick."""
    for first in pieces:
        cut = first.rfind(b">", 0, _START) + 1  # not within a character
        yield from filter(None, (first[:cut], first[cut:]))
        break
    yield from pieces


def pieces_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of a file from here on."""
    while piece := stream.read(BLOCK):
        yield piece


def _even(pieces: Iterable[bytes]) -> Iterator[bytes]:
    held = bytearray()
    for piece in pieces:
        if len(piece) >= BLOCK and not held:
            yield piece
            continue
        held += piece
        if len(held) >= BLOCK:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _within(pieces: Iterable[bytes], *, limits: Limits, uri: str) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > limits.bytes:
            raise limit_error(limits.bytes, "bytes", uri=uri)
        yield piece


def _gunzip(pieces: Iterable[bytes], *, uri: str) -> Iterator[bytes]:
    from resourcesync.model.content_codings import GZIP, CodingError, Decoder  # noqa: PLC0415 - rarely

    decoder = Decoder(GZIP)
    try:
        for piece in pieces:
            yield from decoder.feed(piece)
            if decoder.members > _MAX_MEMBERS:
                raise limit_error(_MAX_MEMBERS, "gzip members", uri=uri)
    except CodingError as error:
        raise MalformedDocumentError(
            f"The gzip data is damaged: {error}", uri=uri, code="gzip"
        ) from error
    if not decoder.complete:
        raise TruncatedDocumentError("The gzip data stops before its end", uri=uri)


def _transcode(pieces: Iterable[bytes], *, uri: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-16")("strict")
    try:
        for piece in pieces:
            yield decoder.decode(piece).encode("utf-8")
    except UnicodeError as error:
        raise MalformedDocumentError(
            "The document is not valid UTF-16", uri=uri, code="xml-encoding"
        ) from error
    try:
        decoder.decode(b"", final=True)
    except UnicodeError as error:
        raise TruncatedDocumentError("The UTF-16 text stops in a character", uri=uri) from error
