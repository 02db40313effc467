"""One layer of gzip, taken off step by step under a budget. Pure."""

import zlib
from collections.abc import Iterator

_STEP = 65_536
_GZIP_WBITS = zlib.MAX_WBITS | 16


class GzipDecoder:
    """Decodes a gzip stream, which may have several members (RFC 1952 §2.2).

    No step gives more than 64 KiB, whatever the input claims, so that the caller can stop it.
    """

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WBITS)
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what the next bytes hold.

        Raises:
            zlib.error: They are no gzip.
        """
        while chunk:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_WBITS)
            self._begun = True
            piece = self._member.decompress(chunk, _STEP)
            if piece:
                yield piece
            chunk = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    @property
    def complete(self) -> bool:
        """Whether the stream ended where a member ends; an empty body is complete."""
        return self._member.eof or not self._begun
