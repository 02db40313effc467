"""The bytes inside a tar, tar.gz or tar.xz: read forward, in bounded pieces, under a budget.

CORE publishes such packages. Regular files only; no links.
"""

import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple, final

from resourcesync.documents.packages.members import PackedMember, member_evidence
from resourcesync.documents.packages.safety import PackageLimits, over_budget
from resourcesync.errors import PackageError, PackedMemberError, TruncatedPackageError
from resourcesync.model.content_codings import GZIP

_BLOCK: Final = 65_536
_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\0"
_LEAST_MEMBER: Final = 4096
"""Bytes of an honest gzip member or xz stream, on average; there may be some thousand smaller."""


@final
class UnpackedFile:
    """A file's unpacked bytes, at a position that can be set; backward means from the start again.

    ``is_packed``: going back is expensive. ``rewinds`` counts that.
    """

    def __init__(self, file: BinaryIO, size: int, limits: PackageLimits) -> None:
        self._file = file
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
        """Set the position."""
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
        """Return so many bytes."""
        data = b""
        while len(data) < count:
            piece = self.read(count - len(data))
            if not piece:
                raise TruncatedPackageError("The package stops before its end")
            data += piece
        return data

    def read(self, count: int) -> bytes:
        """Return at most ``count`` bytes, at most 64 KiB; none at the end."""
        if not self._buffered:
            if self.is_packed:
                self._buffered = next(self._pieces, b"")
            else:
                self._file.seek(self.position)
                self._buffered = self._file.read(min(count, _BLOCK))
        piece, self._buffered = self._buffered[:count], self._buffered[count:]
        self.position += len(piece)
        if self.position > self._budget:
            raise over_budget(self._budget, code="tar-ratio")
        return piece

    def _all(self) -> Iterator[bytes]:
        assert self._new is not None or not self.is_packed
        streams = at = 0
        decoder = None
        while self._file.seek(at) == at and (data := self._file.read(_BLOCK)):
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
            raise TruncatedPackageError("The compressed data stops before its end")

    def _started(self, data: bytes) -> "_Inflater | lzma.LZMADecompressor":
        assert self._new is not None
        decoder = self._new()
        mark = _GZIP if isinstance(decoder, _Inflater) else _XZ
        if not data.startswith(mark[: len(data)]):
            raise self._bad("The package has bytes after its end", code="tar-junk")
        return decoder

    def _step(self, decoder: "_Inflater | lzma.LZMADecompressor", data: bytes) -> Iterator[bytes]:
        try:
            piece = decoder.decompress(data, _BLOCK)
            while piece:
                yield piece
                piece = b"" if decoder.eof else decoder.decompress(b"", _BLOCK)
        except (zlib.error, lzma.LZMAError) as error:
            raise self._bad(f"The compressed data is damaged: {error}") from error

    def _bad(self, message: str, *, code: str = "tar-data") -> PackageError:
        return PackageError(message, code=code)


@final
class _Inflater:
    """zlib with the interface of ``lzma``: it buffers the input not unpacked yet."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(GZIP)

    @property
    def eof(self) -> bool:
        return self._inflater.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflater.unused_data

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._inflater.decompress(self._inflater.unconsumed_tail + data, most)


_SIZE: Final = 512
_EMPTY: Final = bytes(_SIZE)
_MAX_NOTE: Final = 65_536
"""Bytes of a pax header or a long name; real ones are below a kilobyte."""
_FILES: Final = b"07\0"
_FOLDER: Final = b"5"
_BARE: Final = b"12346"  # links, devices, pipes: they have no bytes, whatever their size says


def may_be_tar(start: bytes) -> bool:
    """True if a file that starts so is a tar, or something compressed that may be one."""
    return start.startswith((_GZIP, _XZ)) or (len(start) == _SIZE and _has_checksum(start))


class _TarExtension(NamedTuple):
    name: str | None = None
    size: int | None = None


@final
class TarContainer:
    """An open tar."""

    kind = "tar"

    def __init__(self, file: BinaryIO, size: int, limits: PackageLimits) -> None:
        self._limits = limits
        self.budget = limits.budget(size)
        self._size = size
        self._bytes = UnpackedFile(file, size, limits)
        self.is_sequential = self._bytes.is_packed
        self._members: list[PackedMember] = []
        self.members: Sequence[PackedMember] = self._members
        self._starts: list[int] = []
        self._scan()

    def _scan(self) -> None:
        note = _TarExtension()
        count = 0
        while (header := self._bytes.exactly(_SIZE)) != _EMPTY:
            count += 1
            if count > self._limits.members:
                raise self._bad("tar-limit", "The package has too many members")
            if not _has_checksum(header):
                raise self._bad("tar-header", "A header is damaged")
            note = self._read_header(header, note)
        if self._bytes.exactly(_SIZE) != _EMPTY:
            raise self._bad("tar-junk", "The package has bytes after its end")
        # What follows is in no archive (POSIX pax): a parallel xz stores its index there.
        while self._bytes.is_packed and self._bytes.read(_BLOCK):
            pass  # a stream that stops before its end, or unpacks to too much, is noticed

    def _read_header(self, header: bytes, note: _TarExtension) -> _TarExtension:
        kind = header[156:157]
        size = _number(header[124:136])
        if kind in b"xgLK" and kind:
            return self._read_extension(kind, size, note)
        name = _name(header) if note.name is None else note.name
        size = size if note.size is None else note.size
        if size is None or "\0" in name or len(name) > self._limits.name:
            raise self._bad("tar-header", "A header has no usable name or size")
        if kind in _BARE:
            size = 0
        start = self._bytes.position
        name = name.removeprefix("./").removeprefix("/")
        is_file = kind in _FILES and not name.endswith("/")
        if is_file and not name:
            raise self._bad("tar-name", "A name is empty")
        if kind != _FOLDER and name and not name.endswith("/"):
            fault = "" if is_file else "tar-link" if kind in _BARE else "tar-kind"
            self._members.append(PackedMember(name, size, fault))
            self._starts.append(start)
        self._next_header(size)
        return _TarExtension()

    def _read_extension(self, kind: bytes, size: int | None, note: _TarExtension) -> _TarExtension:
        if size is None or size > _MAX_NOTE:
            raise self._bad("tar-limit", "A header of the package is too long")
        start = self._bytes.position
        data = self._bytes.exactly(size)
        self._next_header(size, since=start)
        if kind == b"K":  # the target of a link, and links are refused
            return note
        if kind == b"L":
            return note._replace(name=_text(data.rstrip(b"\0")))
        records = self._records(data)
        if any(key.startswith("GNU.sparse") for key in records):
            raise self._bad("tar-kind", "The package has sparse members")
        if kind == b"g":
            if not {"path", "size"}.isdisjoint(records):
                raise self._bad("tar-header", "A header gives all members one name or size")
            return note
        return self._pax(records, note)

    def _pax(self, records: dict[str, str], note: _TarExtension) -> _TarExtension:
        size = records.get("size")
        if size is not None and not (size.isascii() and size.isdigit() and len(size) < 20):  # noqa: PLR2004 - digits of a 64-bit number
            raise self._bad("tar-header", "A header has no usable name or size")
        return _TarExtension(
            records.get("path", note.name), note.size if size is None else int(size)
        )

    def _records(self, data: bytes) -> dict[str, str]:
        found: dict[str, str] = {}
        while data:
            count, blank, _ = data[:8].partition(b" ")
            if not blank or not count.isdigit():
                raise self._bad("tar-header", "A pax header is damaged")
            record = data[: int(count)]
            key, equals, value = record[len(count) + 1 :].partition(b"=")
            if len(record) != int(count) or not equals or not value.endswith(b"\n"):
                raise self._bad("tar-header", "A pax header is damaged")
            found[_text(key)] = _text(value[:-1])
            data = data[len(record) :]
        return found

    def _next_header(self, size: int, *, since: int | None = None) -> None:
        start = self._bytes.position if since is None else since
        end = start + -(-size // _SIZE) * _SIZE
        if end > (self.budget if self._bytes.is_packed else self._size):
            if self._bytes.is_packed:
                raise self._bad("tar-ratio", "A member is larger than the package can justify")
            raise TruncatedPackageError("The package stops before its end")
        self._bytes.skip(end - self._bytes.position)

    def read_short(self, index: int) -> bytes | None:
        """Leave it to `read`: what is read forward needs no shorter way."""
        del index
        return None

    def read(self, index: int) -> Iterator[bytes]:
        """Yield the bytes of a member; see `PackageContainer.read`."""
        at, left = self._starts[index], self._members[index].size
        while left:
            if self._bytes.position != at:
                self._check_rewind(index, at)
                self._bytes.go_to(at)
            piece = self._bytes.read(min(left, _BLOCK))
            if not piece:
                raise TruncatedPackageError("The package became shorter while it was read")
            at += len(piece)
            left -= len(piece)
            yield piece

    def _check_rewind(self, index: int, at: int) -> None:
        is_behind = self._bytes.is_packed and at < self._bytes.position
        if is_behind and self._bytes.rewinds >= self._limits.rewinds:
            raise PackedMemberError(
                "The member stands before others that were read, too often for this package",
                evidence=member_evidence(self._members[index].name),
                code="tar-order",
            )

    def _bad(self, code: str, message: str) -> PackageError:
        return PackageError(message, code=code)


def _has_checksum(header: bytes) -> bool:
    told = _number(header[148:156])
    return told is not None and told == sum(header) - sum(header[148:156]) + 8 * 0x20


def _number(field: bytes) -> int | None:
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    return None if not digits or digits.strip(b"01234567") else int(digits, 8)


def _name(header: bytes) -> str:
    name = _text(header[:100].partition(b"\0")[0])
    prefix = _text(header[345:500].partition(b"\0")[0])
    is_posix = header[257:263] == b"ustar\0"
    return f"{prefix}/{name}" if is_posix and prefix else name


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
