"""The writer of a package or any other ZIP: the same input gives the same bytes."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from struct import Struct
from typing import Final, TypeGuard

from resourcesync.documents.packages.manifest_agreement import (
    check_bytes,
    check_digest,
    running_digest,
    wrong_length,
)
from resourcesync.documents.packages.planning import ManifestEntry, content_of, length_of
from resourcesync.documents.packages.safety import MANIFEST, find_clash, member_name
from resourcesync.documents.packages.zip_directory import (
    CENTRAL,
    CENTRAL_MARK,
    DEFLATED,
    DESCRIBED,
    DESCRIPTOR_MARK,
    END,
    END64,
    END64_MARK,
    END_MARK,
    FULL16,
    FULL32,
    LOCAL,
    LOCAL_MARK,
    LOCATOR,
    LOCATOR_MARK,
    STORED,
    UTF8,
    ZIP64,
)
from resourcesync.documents.writer import write
from resourcesync.model.capabilities import Header
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource, ResourceRun
from resourcesync.model.vocabulary import MAX_ENTRIES

_LEVEL: Final = 6
_RAW: Final = -15  # zlib's word for deflate without a frame, with the window that ZIP has
_SMALLEST_WINDOW: Final = 10
_SAMPLE: Final = 64
_STEP: Final = 4_096
_VARIETY: Final = range(50, 64)
"""Different bytes among 64 of noise: 57 on average, and one time in 300 not in this range.

Letters of any script have fewer than 40, and a table that counts up has 64.
"""
_PACKED_TYPES: Final = frozenset(
    f"application/{name}"
    for name in (
        "epub+zip", "gzip", "java-archive", "pdf", "vnd.rar", "x-7z-compressed", "x-bzip2",
        "x-gzip", "x-rar-compressed", "x-xz", "zip", "zlib", "zstd",
    )
)  # fmt: skip
_PACKED_KINDS: Final = ("image/", "video/", "audio/", "application/vnd.openxmlformats-")
_LOOSE_TYPES: Final = frozenset({"image/svg+xml", "image/bmp", "image/tiff", "audio/wav"})


def is_compact(content: Resource | Link) -> bool:
    """True if compressing it again would gain nothing."""
    return bool(content.encoding) or _is_compact_type(content.media_type)


@lru_cache(maxsize=256)
def _is_compact_type(media_type: str) -> bool:
    kind = media_type.partition(";")[0].strip().lower()
    return kind in _PACKED_TYPES or (kind.startswith(_PACKED_KINDS) and kind not in _LOOSE_TYPES)


def is_noise(data: bytes) -> bool:
    """True if bytes look like noise in all samples, as compressed data does.

    A tenth of the time that deflate takes to find the same, and nothing for what is ASCII; looked
    at are 64 bytes of each 4 KiB. Too short data is not tested.
    """
    if len(data) < 2 * _SAMPLE:
        return False
    at, last = (min(len(data), _STEP) - _SAMPLE) // 2, len(data) - _SAMPLE
    while at <= last:
        sample = data[at : at + _SAMPLE]
        if sample.isascii() or len(set(sample)) not in _VARIETY:
            return False
        at += _STEP
    return True


def compress_short(data: bytes, *, compact: bool) -> tuple[int, bytes]:
    """Return the method for a short member, and its bytes in the package."""
    if compact or is_noise(data):
        return STORED, data
    deflated = _deflate(data)
    return (DEFLATED, deflated) if len(deflated) < len(data) else (STORED, data)


def _deflate(data: bytes) -> bytes:
    """Compress a short member; a window as small as the data does the same in a tenth of the time.

    What is saved is memory that deflate would clear, a quarter of a megabyte for each member.
    """
    window = min(max(len(data) - 1, 1).bit_length(), 15)
    window = max(window, _SMALLEST_WINDOW)
    memory = min(window - 6, zlib.DEF_MEM_LEVEL)
    deflater = zlib.compressobj(_LEVEL, DEFLATED, -window, memory)
    return deflater.compress(data) + deflater.flush()


class Deflater:
    """A compressor of a long member, piece by piece; pieces that look like noise are stored.

    Level 0 and not the method "stored": Java reads stored data only if its CRC comes first.

    Args:
        compact: True if all of it goes in as it is.
    """

    def __init__(self, *, compact: bool) -> None:
        self._is_compact = compact
        self._level = 0
        self._deflater: zlib._Compress | None = None

    def compress(self, piece: bytes) -> bytes:
        """Return the output so far."""
        level = 0 if self._is_compact or is_noise(piece) else _LEVEL
        before, deflater = b"", self._deflater
        if deflater is None or level != self._level:
            if deflater is not None:
                before = deflater.flush(zlib.Z_FULL_FLUSH)  # what was begun ends on a whole byte
            deflater = zlib.compressobj(level, DEFLATED, _RAW)
            self._deflater, self._level = deflater, level
        return before + deflater.compress(piece)

    def flush(self) -> bytes:
        """Return the rest; there was a piece before it."""
        assert self._deflater is not None
        return self._deflater.flush()


BUFFERED: Final = 262_144
"""Bytes of a member that are buffered to learn its CRC; a longer member is followed by it."""
MADE_BY: Final = 3 << 8  # Unix, so that the attributes count
WIDE_MARGIN: Final = 2**24
"""Deflate may make a member longer, by far less than this for any that is near 4 GiB."""

_CHUNK: Final = 65_536
_VERSION: Final = 20
_DOS_TIME: Final = 0
_DOS_DATE: Final = 0x21  # 1980-01-01, the earliest there is
_ATTRIBUTES: Final = 0o100644 << 16
_SHARED_FIELDS: Final = Struct("<5H3L2H")
"""Fields that header and directory share: from the version to the bytes of the extra field."""
_CENTRAL_START: Final = CENTRAL_MARK + (MADE_BY | _VERSION).to_bytes(2, "little")
_CENTRAL_REST: Final = Struct("<3HL").pack(0, 0, 0, _ATTRIBUTES)
"""Fields of the directory alone: bytes of comment, disk, internal and external attributes."""


def short_member(
    name: str, member: Resource | Link, data: bytes, offset: int
) -> tuple[bytes, bytes]:
    """Return a member that is in memory as a whole, and its record for the directory.

    The same as `MemberWriter` makes, in a third of the time.

    Args:
        name: Its name.
        member: The entry and its name.
        data: Its bytes, at most ``HELD``.
        offset: Its offset, less than 4 GiB.

    Raises:
        LengthMismatchError, DigestMismatchError: The bytes are not those of the entry.
    """
    check_bytes(data, uri=_uri(member), length=member.length, digests=member.digests)
    method, body = compress_short(data, compact=is_compact(member))
    raw, flags = name.encode(), 0 if name.isascii() else UTF8
    shared = _SHARED_FIELDS.pack(
        _VERSION, flags, method, _DOS_TIME, _DOS_DATE,
        zlib.crc32(data), len(body), len(data), len(raw), 0,
    )  # fmt: skip
    place = offset.to_bytes(4, "little")
    return (
        b"".join((LOCAL_MARK, shared, raw, body)),
        b"".join((_CENTRAL_START, shared, _CENTRAL_REST, place, raw)),
    )


class MemberWriter:
    """A writer of one member, in one piece when it is short, else with its CRC after it."""

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
        """Return the record of the member in the directory; its header is at ``offset``."""
        values = (self._size, self._packed, offset)
        size, packed, short = (
            FULL32 if self._wide or value >= FULL32 else value for value in values
        )
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


ContentOpener = Callable[[Resource | Link], Iterable[bytes]]
"""The bytes of a resource, or of the target of a link that has a ``path``, in pieces."""

_Member = tuple[Resource | Link | None, str]
"""The entry, ``None`` for the manifest, and the name of its member."""


def write_package(
    header: Header, entries: Sequence[ManifestEntry], content: ContentOpener, manifest: bytes = b""
) -> Iterator[bytes]:
    """Yield a ZIP package in pieces of 64 KiB or more: its manifest, then the members.

    Members are in the order of the manifest, at 1980-01-01, with plain attributes; what is, or
    looks like, compressed data is not compressed again. Memory is bounded by 256 KiB of content and
    some 100 bytes for each entry. Should it raise, what it yielded so far is no package: readers
    need the directory, and that comes last.

    Args:
        header: The root of the manifest, a `Header` of one of the two manifests.
        entries: The entries to pack, at most 50,000, each with ``path`` and ``length``.
        content: Gives the bytes of an entry; called once for each, in order. A tuple of one piece
            is taken for all of them, which is quickest for short ones.
        manifest: The bytes that `write` makes of header and entries, if they are known.

    Raises:
        ValueError: The manifest would not be valid, has no link ``up`` or tells a change after a
            later one; or an entry has no path, the path of another, or no length.
        LengthMismatchError: The bytes are more or fewer than ``length``.
        DigestMismatchError: The bytes do not have the strongest digest of the entry.
    """
    members = _members(header, entries)
    chunks: Iterable[bytes] = (manifest,) if manifest else write(header, entries)
    held: list[bytes] = []
    size = 0
    for piece in _pieces(members, lambda item: chunks if item is None else content(item)):
        held.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _pieces(
    members: Sequence[_Member], content: Callable[[Resource | Link | None], Iterable[bytes]]
) -> Iterator[bytes]:
    """Yield each member, then the directory and its end."""
    directory = bytearray()
    offset = 0
    for member, name in members:
        chunks = content(member)
        if member is not None and offset < FULL32 and _is_short(chunks):
            piece, record = short_member(name, member, chunks[0], offset)
            yield piece
            offset += len(piece)
        else:
            wide = member is not None and (member.length or 0) > FULL32 - WIDE_MARGIN
            writer = MemberWriter(name, member, wide=wide)
            yield from writer.pieces(chunks)
            record = writer.central_record(offset)
            offset += writer.written
        directory += record
    yield bytes(directory) + end_records(len(members), len(directory), offset)


def _is_short(chunks: Iterable[bytes]) -> TypeGuard[tuple[bytes]]:
    return isinstance(chunks, tuple) and len(chunks) == 1 and len(chunks[0]) <= BUFFERED


def _members(header: Header, entries: Sequence[ManifestEntry]) -> list[_Member]:
    """Return all members with their names, the manifest first; check before anything is written."""
    if header.capability is None or not header.capability.is_manifest or header.is_index:
        raise ValueError(f"a package contains a manifest, not a {header.phrase}")
    if header.up is None:
        raise ValueError(f"a {header.phrase} needs its link up (§11.2, §13.2)")
    if len(entries) > MAX_ENTRIES:
        raise ValueError(f"a manifest contains at most {MAX_ENTRIES:,} entries")
    members: list[_Member] = [(None, MANIFEST)]
    if isinstance(entries, ResourceRun):
        if None in entries.lengths:
            length_of(entries[entries.lengths.index(None)])  # raises
        members += zip(entries, map(_strict_name, entries.paths), strict=True)
    else:
        _check_order(entries)
        for entry in entries:
            members += _members_of(entry)
    clash = find_clash([name for _, name in members])
    if clash is not None:
        raise ValueError(f"{clash[0]!r} and {clash[1]!r} cannot be in one package")
    return members


def _members_of(entry: ManifestEntry) -> Iterator[_Member]:
    """Yield the members of an entry: its own, and those of its links."""
    resource = content_of(entry)
    if resource is not None:
        length_of(entry)
        yield resource, _strict_name(resource.path)
        for link in resource.links:
            if link.path:
                yield link, _strict_name(link.path)
    elif not isinstance(entry, Resource) and entry.resource.path:
        raise ValueError(f"{entry.uri!r} is deleted, so it has no path (§13.2)")


def _check_order(entries: Sequence[ManifestEntry]) -> None:
    """Refuse changes that are not oldest first; one without a time may be anywhere."""
    told = [
        (entry.time, entry.uri)
        for entry in entries
        if isinstance(entry, Change) and entry.time is not None
    ]
    for (before, _), (time, uri) in pairwise(told):
        if time < before:
            raise ValueError(f"the change of {uri[:200]!r} is listed after a later one (§13.2)")


def _strict_name(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"the path {path[:200]!r} has no leading slash (§11.2)")
    return member_name(path)


def end_records(count: int, size: int, offset: int) -> bytes:
    """Return what ends a ZIP whose directory has ``count`` records in ``size`` bytes."""
    start = b""
    if count >= FULL16 or size >= FULL32 or offset >= FULL32:
        start = END64.pack(
            END64_MARK, END64.size - 12, MADE_BY | 45, 45, 0, 0, count, count, size, offset
        ) + LOCATOR.pack(LOCATOR_MARK, 0, offset + size, 1)
    count, size, offset = min(count, FULL16), min(size, FULL32), min(offset, FULL32)
    return start + END.pack(END_MARK, 0, 0, count, count, size, offset, 0)
