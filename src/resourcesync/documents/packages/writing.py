"""Write a package: a ZIP that is the same, byte for byte, whenever its input is the same."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from resourcesync.documents.packages.checking import (
    check_digest,
    running_digest,
    wrong_length,
)
from resourcesync.documents.packages.naming import MANIFEST, find_clash, member_name
from resourcesync.documents.packages.planning import ManifestEntry, content_of, length_of
from resourcesync.documents.packages.records import (
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
from resourcesync.documents.writing import write
from resourcesync.model.capabilities import Header
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import MAX_ENTRIES

__all__ = ["Content", "write_package"]

Content = Callable[[Resource | Link], Iterable[bytes]]
"""Gives the bytes of a resource, or of the target of a link that has a ``path``, in pieces."""

_HELD: Final = 262_144
"""Bytes of a member that are held to learn its CRC; a longer member is followed by its CRC."""
_CHUNK: Final = 65_536
_LEVEL: Final = 6
_RAW: Final = -15  # zlib's word for deflate without a frame, with the window that ZIP has
_SMALLEST_WINDOW: Final = 10
_DOS_TIME: Final = 0
_DOS_DATE: Final = 0x21  # 1980-01-01, the earliest there is
_MADE_BY: Final = 3 << 8  # Unix, so that the attributes count
_ATTRIBUTES: Final = 0o100644 << 16
WIDE_MARGIN: Final = 2**24
"""Deflate may make a member longer, by far less than this for any that is near 4 GiB."""

_PACKED_TYPES: Final = frozenset(
    f"application/{name}"
    for name in (
        "epub+zip", "gzip", "java-archive", "pdf", "vnd.rar", "x-7z-compressed", "x-bzip2",
        "x-gzip", "x-rar-compressed", "x-xz", "zip", "zlib", "zstd",
    )
)  # fmt: skip
_PACKED_KINDS: Final = ("image/", "video/", "audio/", "application/vnd.openxmlformats-")
_LOOSE_TYPES: Final = frozenset({"image/svg+xml", "image/bmp", "image/tiff", "audio/wav"})


def write_package(
    header: Header, entries: Sequence[ManifestEntry], content: Content
) -> Iterator[bytes]:
    """Yield a ZIP package in pieces of 64 KiB or more: its manifest, then what the entries say.

    Members stand in the order of the manifest, at 1980-01-01, with plain attributes; types that
    are compressed already are not compressed again. Memory is bounded by 256 KiB of content and
    some 100 bytes for each entry. Should it raise, what it yielded so far is no package: readers
    need the directory, and that comes last.

    Args:
        header: The root of the manifest, a `Header` of one of the two manifests.
        entries: What to pack, at most 50,000, each with ``path`` and ``length``.
        content: Gives the bytes of an entry; called once for each, in order.

    Raises:
        ValueError: The manifest would not be valid, has no link ``up`` or tells a change after a
            later one; or an entry has no path, the path of another, or no length.
        LengthMismatchError: The bytes are more or fewer than ``length``.
        DigestMismatchError: The bytes do not have the strongest digest of the entry.
    """
    packed = _packed(header, entries)
    directory = bytearray()
    held: list[bytes] = []
    size = offset = 0
    for member, name in packed:
        pieces = write(header, entries) if member is None else content(member)
        wide = member is not None and (member.length or 0) > FULL32 - WIDE_MARGIN
        writer = MemberWriter(name, member, wide=wide)
        for piece in writer.pieces(pieces):
            held.append(piece)
            size += len(piece)
            if size >= _CHUNK:
                offset += size
                yield b"".join(held)
                held, size = [], 0
        directory += writer.central_record(offset + size - writer.written)
    held.append(bytes(directory) + end_records(len(packed), len(directory), offset + size))
    yield b"".join(held)


def _packed(
    header: Header, entries: Sequence[ManifestEntry]
) -> list[tuple[Resource | Link | None, str]]:
    """Return all members with their names, the manifest first; check before anything is written."""
    if header.capability is None or not header.capability.is_manifest or header.is_index:
        raise ValueError(f"a package holds a manifest, no {header.phrase}")
    if header.up is None:
        raise ValueError(f"a {header.phrase} needs its link up (§11.2, §13.2)")
    if len(entries) > MAX_ENTRIES:
        raise ValueError(f"a manifest holds at most {MAX_ENTRIES:,} entries")
    _check_order(entries)
    members: list[tuple[Resource | Link | None, str]] = [(None, MANIFEST)]
    for entry in entries:
        resource = content_of(entry)
        if resource is not None:
            length_of(entry)
            members.append((resource, _strict_name(resource.path)))
            members += ((ln, _strict_name(ln.path)) for ln in resource.links if ln.path)
        elif not isinstance(entry, Resource) and entry.resource.path:
            raise ValueError(f"{entry.uri!r} is deleted, so it has no path (§13.2)")
    clash = find_clash([name for _, name in members])
    if clash is not None:
        raise ValueError(f"{clash[0]!r} and {clash[1]!r} cannot be in one package")
    return members


def _check_order(entries: Sequence[ManifestEntry]) -> None:
    """Refuse changes that are not told oldest first; one without a time stands where it stands."""
    told = [(it.time, it.uri) for it in entries if isinstance(it, Change) and it.time is not None]
    for (before, _), (time, uri) in pairwise(told):
        if time < before:
            raise ValueError(f"the change of {uri[:200]!r} is told after a later one (§13.2)")


def _strict_name(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"the path {path[:200]!r} has no leading slash (§11.2)")
    return member_name(path)


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
            held.append(self._seen(chunk))
            if self._size > _HELD:
                break
        else:
            self._finished()
            yield self._counted(self._short(b"".join(held)))
            return
        yield from self._long(held, chunks)

    def _short(self, data: bytes) -> bytes:
        packed = data if self._is_compact else _deflate(data)
        if self._is_compact or len(packed) >= len(data):
            packed, self._method = data, STORED
        self._packed = len(packed)
        return self._local_header(self._crc, self._packed, self._size) + packed

    def _long(self, held: list[bytes], chunks: Iterator[bytes]) -> Iterator[bytes]:
        # Level 0 and not the method "stored": Java reads stored data only if its CRC comes first.
        self._flags |= DESCRIBED
        deflater = zlib.compressobj(0 if self._is_compact else _LEVEL, DEFLATED, _RAW)
        yield self._counted(self._local_header(0, 0, 0))
        for chunk in held:
            yield self._deflated(deflater.compress(chunk))
        for chunk in chunks:
            yield self._deflated(deflater.compress(self._seen(chunk)))
        yield self._deflated(deflater.flush())
        self._finished()
        size = 8 if self._wide else 4
        yield self._counted(
            DESCRIPTOR_MARK
            + self._crc.to_bytes(4, "little")
            + self._packed.to_bytes(size, "little")
            + self._size.to_bytes(size, "little")
        )

    def _seen(self, chunk: bytes) -> bytes:
        self._size += len(chunk)
        self._crc = zlib.crc32(chunk, self._crc)
        if self._claim is not None:
            self._claim[1].update(chunk)
        length = None if self._member is None else self._member.length
        if length is not None and self._size > length:
            raise wrong_length(self._uri, length, f"more than {length:,} bytes")
        return chunk

    def _finished(self) -> None:
        length = None if self._member is None else self._member.length
        if length is not None and self._size != length:
            raise wrong_length(self._uri, length, f"{self._size:,} bytes")
        if self._claim is not None:
            check_digest(self._uri, self._claim[0], self._claim[1].hexdigest())

    @property
    def _uri(self) -> str:
        if self._member is None:
            return MANIFEST
        return self._member.href if isinstance(self._member, Link) else self._member.uri

    def _counted(self, piece: bytes) -> bytes:
        self.written += len(piece)
        return piece

    def _deflated(self, piece: bytes) -> bytes:
        self._packed += len(piece)
        return self._counted(piece)

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
                CENTRAL_MARK, _MADE_BY | version, version, self._flags, self._method, _DOS_TIME,
                _DOS_DATE, self._crc, packed, size, len(self._name), len(extra), 0, 0, 0,
                _ATTRIBUTES, short,
            )
            + self._name
            + extra
        )  # fmt: skip

    @property
    def _version(self) -> int:
        return 45 if self._wide else 20


def _deflate(data: bytes) -> bytes:
    """Compress a short member; a window as small as the data does the same in a tenth of the time.

    What is saved is memory that deflate would clear, a quarter of a megabyte for each member.
    """
    window = min(max(len(data) - 1, 1).bit_length(), 15)
    window = max(window, _SMALLEST_WINDOW)
    memory = min(window - 6, zlib.DEF_MEM_LEVEL)
    deflater = zlib.compressobj(_LEVEL, DEFLATED, -window, memory)
    return deflater.compress(data) + deflater.flush()


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


def end_records(count: int, size: int, offset: int) -> bytes:
    """Return what ends a ZIP whose directory has ``count`` records in ``size`` bytes."""
    start = b""
    if count >= FULL16 or size >= FULL32 or offset >= FULL32:
        start = END64.pack(
            END64_MARK, END64.size - 12, _MADE_BY | 45, 45, 0, 0, count, count, size, offset
        ) + LOCATOR.pack(LOCATOR_MARK, 0, offset + size, 1)
    count, size, offset = min(count, FULL16), min(size, FULL32), min(offset, FULL32)
    return start + END.pack(END_MARK, 0, 0, count, count, size, offset, 0)


def is_compact(content: Resource | Link) -> bool:
    """Whether compressing it again would gain nothing."""
    kind = content.media_type.partition(";")[0].strip().lower()
    if content.encoding:
        return True
    return kind in _PACKED_TYPES or (kind.startswith(_PACKED_KINDS) and kind not in _LOOSE_TYPES)
