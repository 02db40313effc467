"""Content codings of HTTP (RFC 9110 §8.4.1), and the one decoder of gzip, zlib and raw deflate.

Tokens that are no registered coding (``UTF-8``, ``none``, ``aws-chunked``) name none: servers put
them there by mistake, and the bytes are as they would be without.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

_REGISTERED: Final = frozenset(
    {
        "aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip",
        "x-compress", "x-gzip", "zstd",
    }
)  # fmt: skip
_GZIP: Final = frozenset({"gzip", "x-gzip"})
GZIP: Final = zlib.MAX_WBITS | 16
ZLIB: Final = zlib.MAX_WBITS
RAW: Final = -zlib.MAX_WBITS
_STEP: Final = 65_536
_FREE_BYTES: Final = 16 << 20
_MAX_RATIO: Final = 200


class CodingError(ValueError):
    """Bytes that are not in their coding, that end early, or that decode to too many."""


class ExcessBytesError(CodingError):
    """Bytes after the end of what they are coded in."""


def content_codings(field: str) -> tuple[str, ...]:
    """Return the codings that a ``Content-Encoding`` names, in lower case, as they were applied."""
    tokens = (token.strip().lower() for token in field.split(","))
    return tuple(token for token in tokens if token in _REGISTERED)


def is_decodable(codings: tuple[str, ...]) -> bool:
    """True if ``new_decoder`` knows the codings: one layer of gzip or deflate."""
    return len(codings) == 1 and (codings[0] in _GZIP or codings[0] == "deflate")


def is_named_after_coding(uri: str, codings: tuple[str, ...]) -> bool:
    """True if the name of a file says that it is in the coding itself, as ``.tar.gz`` does."""
    path = uri.partition("#")[0].partition("?")[0].lower()
    return bool(codings) and codings[-1] in _GZIP and path.endswith("gz")


class Decoder:
    """A decoder of one coding; no step yields more than 64 KiB, so the caller can stop it."""

    def __init__(self, form: int | None) -> None:
        self._form = form
        self._member: zlib._Decompress | None = None
        self._start = b""
        self.members = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decoded content of the next bytes."""
        chunk, self._start = self._start + chunk, b""
        if self._form == GZIP and self._member is not None and self._member.eof:
            chunk = chunk.lstrip(b"\0")
        is_step_full = False
        while chunk or is_step_full:  # all input may be used, and its output not fit into the step
            member = self._member_for(chunk)
            if member is None:
                return
            try:
                piece = member.decompress(chunk, _STEP)
            except zlib.error as error:
                raise CodingError(str(error)) from error
            if piece:
                yield piece
            is_step_full = len(piece) == _STEP and not member.eof
            chunk = member.unused_data if member.eof else member.unconsumed_tail
            if self._form == GZIP and member.eof:  # programs that write blocks fill the last one up
                chunk = chunk.lstrip(b"\0")

    def _member_for(self, chunk: bytes) -> "zlib._Decompress | None":
        if self._member is not None and not self._member.eof:
            return self._member
        if self._member is not None and self._form != GZIP:
            raise ExcessBytesError("bytes after the end")
        if self._form is None and len(chunk) == 1:
            self._start = chunk
            return None
        # A deflate stream is that of RFC 1950; some servers send what is in it alone.
        is_zlib = chunk[0] & 15 == zlib.DEFLATED and int.from_bytes(chunk[:2], "big") % 31 == 0
        form = self._form or (ZLIB if is_zlib else RAW)
        self._member = zlib.decompressobj(form)
        self.members += 1
        return self._member

    @property
    def complete(self) -> bool:
        """True if the bytes ended where a stream ends; no bytes are complete."""
        return not self._start and (self._member is None or self._member.eof)


def new_decoder(codings: tuple[str, ...]) -> Decoder:
    """Return a decoder; the codings are those of ``is_decodable``."""
    return Decoder(None if codings[0] == "deflate" else GZIP)


def decoded_limit(coded: int) -> int:
    """Return how many bytes ``coded`` bytes may decode to: 16 MiB, and 200 for each of them."""
    return _FREE_BYTES + _MAX_RATIO * coded


def coded_limit(limit: int) -> int:
    """Return how many bytes ``limit`` bytes may have in a coding: some become a little longer."""
    return limit + limit // 100 + 1024


def decode(chunks: Iterable[bytes], codings: tuple[str, ...], limit: int) -> Iterator[bytes]:
    """Yield the content of a whole coded body."""
    if not is_decodable(codings):
        raise CodingError("a coding that cannot be removed")
    decoder, coded, size = new_decoder(codings), 0, 0
    for chunk in chunks:
        coded += len(chunk)
        for piece in decoder.feed(chunk):
            size += len(piece)
            if size > min(limit, decoded_limit(coded)):
                raise CodingError(f"more than {size - 1} bytes of content")
            yield piece
    if not decoder.complete:
        raise CodingError("a stream without its end")
