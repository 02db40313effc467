"""The records of a WARC file (WARC/1.1, ISO 28500:2017).

What a mirror stores are bytes without HTTP headers. They are ``resource`` records, whose block is
the content itself; a ``response`` record would need a status line and headers that nobody saw.
"""

import hashlib
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote
from uuid import NAMESPACE_URL, UUID, uuid5

import msgspec

from resourcesync import __version__
from resourcesync.documents.packages.zip_directory import FULL32
from resourcesync.documents.packages.zip_writer import Deflater
from resourcesync.model.digests import Digest
from resourcesync.model.timestamps import format_w3c, from_microseconds

PROGRAM: Final = f"resourcesync {__version__}"
SUFFIXES: Final = (".warc", ".warc.gz")
"""Endings of the names of WARC files: not compressed, and one gzip member for each record."""
UNKNOWN_TYPE: Final = "application/octet-stream"

_VERSION: Final = "WARC/1.1"
_STANDARD: Final = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_FIELDS: Final = "application/warc-fields"
_SAME_BYTES: Final = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_END: Final = b"\r\n\r\n"
_GZIP_HEAD: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # deflate; no name, no time
_SAFE: Final = "!#$%&'()*+,/:;=?@[]~"
_HTML: Final = rb"(?is)\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b"
_SIGNS: Final = (
    (re.compile(_HTML), "text/html"),
    (re.compile(rb"<\?xml\s"), "application/xml"),
    (re.compile(rb"%PDF-"), "application/pdf"),
)
_SIGN_SIZE: Final = 1_024


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes that a resource had at one moment, as a record describes them.

    Attributes:
        uri: The resource.
        moment: Time when the bytes were retrieved or stored, microseconds.
        length: Their number.
        media_type: Their media type, as far as known.
    """

    uri: str
    moment: int
    length: int
    digest: Digest
    media_type: str = UNKNOWN_TYPE

    @property
    def date(self) -> str:
        """``WARC-Date`` (§5.4)."""
        return format_w3c(from_microseconds(self.moment))

    @property
    def digest_text(self) -> str:
        """The digest as in ``WARC-Payload-Digest`` (§5.8), in hexadecimal like those of a WACZ."""
        return f"{self.digest.algorithm.replace('-', '')}:{self.digest.value}"

    def record_id(self, kind: str) -> str:
        """Return ``WARC-Record-ID`` (§5.2)."""
        return f"<{self.name(kind).urn}>"

    def name(self, kind: str) -> UUID:
        """Return the unique name of what describes the capture; the same in each export."""
        return uuid5(NAMESPACE_URL, f"{kind} {self.date} {self.digest} {self.uri}")


def target_uri(uri: str) -> str:
    """Return a URI as ``WARC-Target-URI`` has it: what is not ASCII, or no URI, is encoded."""
    return quote(uri, safe=_SAFE)


def detect_type(named: str, start: bytes) -> str:
    """Return the media type of content: by its address, or by its first bytes if that says nothing.

    Args:
        named: The media type by its address.
        start: The first bytes.
    """
    if named != UNKNOWN_TYPE:
        return named
    text = start[:_SIGN_SIZE].removeprefix(BOM_UTF8)
    found = (media_type for sign, media_type in _SIGNS if sign.match(text))
    return next(found, UNKNOWN_TYPE)


def info_record(name: str, moment: str, facts: Iterable[tuple[str, str]]) -> Iterator[bytes]:
    """Yield the record ``warcinfo`` (§6.2), which describes the file it begins.

    Args:
        name: The name of the file.
        moment: Time of its writing.
        facts: More fields; those without a value are left out.
    """
    fields = (("software", PROGRAM), ("format", "WARC File Format 1.1"), ("conformsTo", _STANDARD))
    lines = (f"{key}: {' '.join(value.split())}\r\n" for key, value in (*fields, *facts) if value)
    block = "".join(lines).encode()
    yield _head(
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", f"<{uuid5(NAMESPACE_URL, f'{moment} {name} {block!r}').urn}>"),
        ("WARC-Date", moment),
        ("WARC-Filename", " ".join(name.split())),
        ("WARC-Block-Digest", f"sha256:{hashlib.sha256(block).hexdigest()}"),
        ("Content-Type", _FIELDS),
        ("Content-Length", str(len(block))),
    )
    yield block
    yield _END


def resource_record(capture: Capture, content: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a record ``resource`` (§6.4): the bytes themselves, without HTTP headers.

    Args:
        capture: What they are; the caller answers for length and digest.
        content: The bytes.
    """
    yield _head(
        *_common(capture, "resource"),
        ("WARC-Block-Digest", capture.digest_text),
        ("WARC-Payload-Digest", capture.digest_text),
        ("Content-Type", capture.media_type),
        ("Content-Length", str(capture.length)),
    )
    yield from content
    yield _END


def revisit_record(capture: Capture, original: Capture) -> Iterator[bytes]:
    """Yield a record ``revisit`` (§6.7): the resource had the bytes of an earlier capture again."""
    yield _head(
        *_common(capture, "revisit"),
        ("WARC-Profile", _SAME_BYTES),
        ("WARC-Payload-Digest", original.digest_text),
        ("WARC-Refers-To", original.record_id("resource")),
        ("WARC-Refers-To-Target-URI", target_uri(original.uri)),
        ("WARC-Refers-To-Date", original.date),
        ("Content-Type", capture.media_type),
        ("Content-Length", "0"),
    )
    yield _END


def gzip_member(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a record as a gzip member of its own, so that it can be read alone (annex D).

    Content that looks compressed is not compressed again (RFC 1952; ADR 0045).
    """
    deflater = Deflater(compact=False)
    crc = size = 0
    yield _GZIP_HEAD
    for piece in pieces:
        crc, size = zlib.crc32(piece, crc), size + len(piece)
        if packed := deflater.compress(piece):
            yield packed
    yield deflater.flush()
    yield crc.to_bytes(4, "little") + (size & FULL32).to_bytes(4, "little")


def _common(capture: Capture, kind: str) -> tuple[tuple[str, str], ...]:
    return (
        ("WARC-Type", kind),
        ("WARC-Record-ID", capture.record_id(kind)),
        ("WARC-Date", capture.date),
        ("WARC-Target-URI", target_uri(capture.uri)),
    )


def _head(*fields: tuple[str, str]) -> bytes:
    lines = (f"{name}: {value}\r\n" for name, value in fields)
    return f"{_VERSION}\r\n{''.join(lines)}\r\n".encode()
