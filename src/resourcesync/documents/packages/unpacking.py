"""The bytes inside a tar, tar.gz or tar.xz: read forward, in bounded pieces, under a budget."""

import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, final

from resourcesync.documents.packages.limits import PackageLimits, over_budget
from resourcesync.errors import PackageError, TruncatedPackageError

__all__ = ["UnpackedFile"]

_BLOCK: Final = 65_536
_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\0"
_GZIP_WINDOW: Final = 31
_LEAST_MEMBER: Final = 4096
"""Bytes of an honest gzip member or xz stream, on average; there may be some thousand smaller."""


@final
class UnpackedFile:
    """A file's unpacked bytes, at a position that can be set; backward means from the start again.

    Attributes:
        position: Where `read` goes on.
        is_packed: Whether it is compressed, so that going back is dear.
        rewinds: How often it went back.
    """

    def __init__(self, file: BinaryIO, size: int, *, uri: str, limits: PackageLimits) -> None:
        self._file = file
        self._uri = uri
        self._limits = limits
        self._size = size
        self._budget = limits.budget(size)
        self._streams = 1000 + size // _LEAST_MEMBER
        file.seek(0)
        start = file.read(len(_XZ))
        self._new: Callable[[], _Inflater | lzma.LZMADecompressor] | None = None
        if start.startswith(_GZIP):
            self._new = _Inflater
        elif start.startswith(_XZ):
            self._new = lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limits.decoder)
        self.is_packed = self._new is not None
        self.rewinds = 0
        self.position = 0
        self._buffered = b""
        self._pieces = self._all()

    def go_to(self, position: int) -> None:
        """Set the position.

        Raises:
            PackageError: The data on the way is damaged.
        """
        if not self.is_packed:
            self.position, self._buffered = position, b""
            return
        if position < self.position:
            self.rewinds += 1
            self.position, self._buffered = 0, b""
            self._pieces = self._all()
        self.skip(position - self.position)

    def skip(self, count: int) -> None:
        """Go forward; over the end it is noticed by the next `read`."""
        if not self.is_packed:
            self.go_to(self.position + count)
            return
        while count and (piece := self.read(min(count, _BLOCK))):
            count -= len(piece)

    def exactly(self, count: int) -> bytes:
        """Return so many bytes.

        Raises:
            TruncatedPackageError: The package ends before them.
        """
        data = b""
        while len(data) < count:
            piece = self.read(count - len(data))
            if not piece:
                raise TruncatedPackageError("The package stops before its end", uri=self._uri)
            data += piece
        return data

    def read(self, count: int) -> bytes:
        """Return at most ``count`` bytes, at most 64 KiB; none at the end.

        Raises:
            TruncatedPackageError: The compressed data stops before its end.
            PackageError: It is damaged, or unpacks to more than it may.
        """
        if not self._buffered:
            if self.is_packed:
                self._buffered = next(self._pieces, b"")
            else:
                self._file.seek(self.position)
                self._buffered = self._file.read(min(count, _BLOCK))
        piece, self._buffered = self._buffered[:count], self._buffered[count:]
        self.position += len(piece)
        if self.position > self._budget:
            raise over_budget(self._budget, uri=self._uri, code="tar-ratio")
        return piece

    def _all(self) -> Iterator[bytes]:
        assert self._new is not None or not self.is_packed
        streams = at = 0
        decoder = None
        while data := self._block(at):
            at += len(data)
            while data:
                if decoder is None:
                    data = data.lstrip(b"\0") if streams else data
                    if not data:
                        break
                    decoder = self._started(data)
                    streams += 1
                    if streams > self._streams:
                        raise self._bad("The package is cut into too many pieces")
                yield from self._step(decoder, data)
                data = decoder.unused_data if decoder.eof else b""
                decoder = None if decoder.eof else decoder
        if decoder is not None:
            raise TruncatedPackageError("The compressed data stops before its end", uri=self._uri)

    def _block(self, at: int) -> bytes:
        self._file.seek(at)
        return self._file.read(_BLOCK)

    def _started(self, data: bytes) -> "_Inflater | lzma.LZMADecompressor":
        assert self._new is not None
        decoder = self._new()
        mark = _GZIP if isinstance(decoder, _Inflater) else _XZ
        if not data.startswith(mark[: len(data)]):
            raise self._bad("The package has bytes after its end", code="tar-junk")
        return decoder

    def _step(self, decoder: "_Inflater | lzma.LZMADecompressor", data: bytes) -> Iterator[bytes]:
        """Yield all that comes from the data."""
        try:
            piece = decoder.decompress(data, _BLOCK)
            while piece:
                yield piece
                piece = b"" if decoder.eof else decoder.decompress(b"", _BLOCK)
        except (zlib.error, lzma.LZMAError) as error:
            raise self._bad(f"The compressed data is damaged: {error}") from error

    def _bad(self, message: str, *, code: str = "tar-data") -> PackageError:
        return PackageError(message, uri=self._uri, code=code)


@final
class _Inflater:
    """zlib with the manners of ``lzma``: it keeps what it could not unpack yet."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_WINDOW)

    @property
    def eof(self) -> bool:
        return self._inflater.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflater.unused_data

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._inflater.decompress(self._inflater.unconsumed_tail + data, most)
