"""One member of a ZIP on its way in: its header, its data, and what the directory says of it."""

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from resourcesync.documents.packages.checking import (
    check_bytes,
    check_digest,
    running_digest,
    wrong_length,
)
from resourcesync.documents.packages.compressing import Deflater, compress_short, is_compact
from resourcesync.documents.packages.naming import MANIFEST
from resourcesync.documents.packages.records import (
    CENTRAL,
    CENTRAL_MARK,
    DEFLATED,
    DESCRIBED,
    DESCRIPTOR_MARK,
    FULL32,
    LOCAL,
    LOCAL_MARK,
    UTF8,
    ZIP64,
)
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource

__all__ = ["BUFFERED", "MADE_BY", "WIDE_MARGIN", "MemberWriter", "short_member"]

BUFFERED: Final = 262_144
"""Bytes of a member that are held to learn its CRC; a longer member is followed by its CRC."""
MADE_BY: Final = 3 << 8  # Unix, so that the attributes count
WIDE_MARGIN: Final = 2**24
"""Deflate may make a member longer, by far less than this for any that is near 4 GiB."""

_CHUNK: Final = 65_536
_VERSION: Final = 20
_DOS_TIME: Final = 0
_DOS_DATE: Final = 0x21  # 1980-01-01, the earliest there is
_ATTRIBUTES: Final = 0o100644 << 16
_SHARED_FIELDS: Final = Struct("<5H3L2H")
"""What header and directory say alike: from the version to the bytes of the extra field."""
_CENTRAL_FIELDS: Final = Struct("<3H2L")
"""What only the directory says: bytes of comment, disk, internal and other attributes, offset."""
_MADE: Final = (MADE_BY | _VERSION).to_bytes(2, "little")


def short_member(
    name: str, member: Resource | Link, data: bytes, offset: int
) -> tuple[bytes, bytes]:
    """Return a member that is all here, and its record for the directory.

    The same as `MemberWriter` makes, in a third of the time.

    Args:
        name: Its name.
        member: What it is.
        data: Its bytes, at most ``HELD``.
        offset: Where it stands, less than 4 GiB.

    Raises:
        LengthMismatchError, DigestMismatchError: The bytes are not what the entry says.
    """
    check_bytes(data, uri=_uri(member), length=member.length, digests=member.digests)
    method, body = compress_short(data, compact=is_compact(member))
    raw, flags = name.encode(), 0 if name.isascii() else UTF8
    told = _SHARED_FIELDS.pack(
        _VERSION, flags, method, _DOS_TIME, _DOS_DATE,
        zlib.crc32(data), len(body), len(data), len(raw), 0,
    )  # fmt: skip
    after = _CENTRAL_FIELDS.pack(0, 0, 0, _ATTRIBUTES, offset)
    return LOCAL_MARK + told + raw + body, b"".join((CENTRAL_MARK, _MADE, told, after, raw))


class MemberWriter:
    """Writes one member, in one piece when it is short, else with its CRC after it."""

    def __init__(self, name: str, member: Resource | Link | None, *, wide: bool) -> None:
        self._name = name.encode()
        self._member = member
        self._wide = wide
        self._flags = 0 if name.isascii() else UTF8
        self._method = DEFLATED
        self._crc = self._size = self._packed = 0
        self._is_compact = member is not None and is_compact(member)
        self._claim = None if member is None else running_digest(member.digests)
        self.written = 0

    def pieces(self, content: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the whole member: header, data, and for a long one its descriptor."""
        chunks = _even(content)
        held: list[bytes] = []
        for chunk in chunks:
            held.append(self._digest(chunk))
            if self._size > BUFFERED:
                break
        else:
            self._check_complete()
            yield self._count_written(self._short(b"".join(held)))
            return
        yield from self._long(held, chunks)

    def _short(self, data: bytes) -> bytes:
        self._method, body = compress_short(data, compact=self._is_compact)
        self._packed = len(body)
        return self._local_header(self._crc, self._packed, self._size) + body

    def _long(self, held: list[bytes], chunks: Iterator[bytes]) -> Iterator[bytes]:
        self._flags |= DESCRIBED
        deflater = Deflater(compact=self._is_compact)
        yield self._count_written(self._local_header(0, 0, 0))
        for chunk in held:
            yield self._count_packed(deflater.compress(chunk))
        for chunk in chunks:
            yield self._count_packed(deflater.compress(self._digest(chunk)))
        yield self._count_packed(deflater.flush())
        self._check_complete()
        size = 8 if self._wide else 4
        yield self._count_written(
            DESCRIPTOR_MARK
            + self._crc.to_bytes(4, "little")
            + self._packed.to_bytes(size, "little")
            + self._size.to_bytes(size, "little")
        )

    def _digest(self, chunk: bytes) -> bytes:
        self._size += len(chunk)
        self._crc = zlib.crc32(chunk, self._crc)
        if self._claim is not None:
            self._claim[1].update(chunk)
        length = None if self._member is None else self._member.length
        if length is not None and self._size > length:
            raise wrong_length(_uri(self._member), length, f"more than {length:,} bytes")
        return chunk

    def _check_complete(self) -> None:
        length = None if self._member is None else self._member.length
        if length is not None and self._size != length:
            raise wrong_length(_uri(self._member), length, f"{self._size:,} bytes")
        if self._claim is not None:
            check_digest(_uri(self._member), self._claim[0], self._claim[1].hexdigest())

    def _count_written(self, piece: bytes) -> bytes:
        self.written += len(piece)
        return piece

    def _count_packed(self, piece: bytes) -> bytes:
        self._packed += len(piece)
        return self._count_written(piece)

    def _local_header(self, crc: int, packed: int, size: int) -> bytes:
        extra = b""
        if self._wide:
            extra = _zip64_extra(size, packed)
            packed = size = FULL32
        return (
            LOCAL.pack(
                LOCAL_MARK, self._version, self._flags, self._method, _DOS_TIME, _DOS_DATE,
                crc, packed, size, len(self._name), len(extra),
            )
            + self._name
            + extra
        )  # fmt: skip

    def central_record(self, offset: int) -> bytes:
        """Return what the directory says of the member, whose header stands at ``offset``."""
        values = (self._size, self._packed, offset)
        size, packed, short = (FULL32 if self._wide or it >= FULL32 else it for it in values)
        extra = _zip64_extra(*values) if FULL32 in (size, packed, short) else b""
        if extra:
            size = packed = short = FULL32
        version = 45 if extra else self._version
        return (
            CENTRAL.pack(
                CENTRAL_MARK, MADE_BY | version, version, self._flags, self._method, _DOS_TIME,
                _DOS_DATE, self._crc, packed, size, len(self._name), len(extra), 0, 0, 0,
                _ATTRIBUTES, short,
            )
            + self._name
            + extra
        )  # fmt: skip

    @property
    def _version(self) -> int:
        return 45 if self._wide else _VERSION


def _even(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes in pieces of 64 KiB: what deflate makes depends on how it is fed."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= _CHUNK:
            yield bytes(held[:_CHUNK])
            del held[:_CHUNK]
    if held:
        yield bytes(held)


def _zip64_extra(*values: int) -> bytes:
    body = b"".join(value.to_bytes(8, "little") for value in values)
    return ZIP64.to_bytes(2, "little") + len(body).to_bytes(2, "little") + body


def _uri(member: Resource | Link | None) -> str:
    if member is None:
        return MANIFEST
    return member.href if isinstance(member, Link) else member.uri
