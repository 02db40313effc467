"""The writer of a package, with `zipfile`: the same input gives the same bytes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from io import SEEK_SET, BytesIO
from itertools import chain, pairwise
from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from resourcesync.documents.packages.manifest_agreement import check_bytes, checked_chunks
from resourcesync.documents.packages.planning import ManifestEntry, content_of, length_of
from resourcesync.documents.packages.safety import MANIFEST, find_clash, member_name
from resourcesync.documents.packages.zip_directory import DESCRIBED, FULL32
from resourcesync.documents.writer import write
from resourcesync.model.entries import Change, Header, Link, Resource, ResourceRun
from resourcesync.model.vocabulary import MAX_ENTRIES

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


@lru_cache(maxsize=256)
def _is_compact_type(media_type: str) -> bool:
    kind = media_type.partition(";")[0].strip().lower()
    return kind in _PACKED_TYPES or (kind.startswith(_PACKED_KINDS) and kind not in _LOOSE_TYPES)


def is_noise(data: bytes) -> bool:
    """True if bytes look like noise in all samples, as compressed data does.

    A tenth of the time that deflate takes to find the same, and nothing for what is ASCII; looked
    at are 64 bytes of each 4 KiB, of which one in 16 may look otherwise by chance. Too short data
    is not tested.
    """
    if len(data) < 2 * _SAMPLE:
        return False
    at, last = (min(len(data), _STEP) - _SAMPLE) // 2, len(data) - _SAMPLE
    others = len(data) // (16 * _STEP)
    while at <= last and others >= 0:
        sample = data[at : at + _SAMPLE]
        if sample.isascii() or len(set(sample)) not in _VARIETY:
            others -= 1
        at += _STEP
    return others >= 0


BUFFERED: Final = 262_144
"""Bytes of a member that are buffered to learn its CRC; a longer member is followed by it."""
_CHUNK: Final = 65_536
_ATTRIBUTES: Final = 0o100644 << 16


class _Output(BytesIO):
    """Where `ZipFile` writes: holds the bytes since the last `take`, which it may still change."""

    def __init__(self) -> None:
        super().__init__()
        self._taken = 0

    def tell(self) -> int:
        return self._taken + super().tell()

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        return self._taken + super().seek(offset - self._taken, whence)

    def take(self) -> bytes:
        data = self.getvalue()
        super().seek(0)
        self.truncate()
        self._taken += len(data)
        return data


class _LongEntry(ZipInfo):
    """Deflated in any case: Java reads stored data only if its CRC comes first."""

    def __init__(self, name: str, length: int, *, compact: bool) -> None:
        self._flags = DESCRIBED
        super().__init__(name)
        self.file_size = length
        self.compress_type = ZIP_DEFLATED
        self._compresslevel = 0 if compact else None  # public as `compress_level` from 3.13 on

    @property
    def flag_bits(self) -> int:
        """The flags; `ZipFile` sets them to 0 when it opens a member of a file that can seek."""
        return self._flags

    @flag_bits.setter
    def flag_bits(self, flags: int) -> None:
        self._flags = flags | DESCRIBED


def _even(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= _CHUNK:
            yield bytes(held[:_CHUNK])
            del held[:_CHUNK]
    if held:
        yield bytes(held)


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
    some 400 bytes for each entry. Should it raise, what it yielded so far is no package: readers
    need the directory, and that comes last.
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
    output = _Output()
    with ZipFile(output, "w") as package:
        for member, name in members:
            chunks = _checked(member, content(member))
            start = _start(chunks)
            compact = is_noise(start[:BUFFERED])  # compressing it again would gain nothing
            if member is not None:
                compact = compact or bool(member.encoding) or _is_compact_type(member.media_type)
            if len(start) <= BUFFERED:
                entry = ZipInfo(name)
                entry.external_attr = _ATTRIBUTES
                is_stored = compact or not start
                package.writestr(entry, start, ZIP_STORED if is_stored else ZIP_DEFLATED)
            else:
                length = 0 if member is None else member.length  # a manifest has at most 50 MiB
                entry = _LongEntry(name, FULL32 if length is None else length, compact=compact)
                entry.external_attr = _ATTRIBUTES
                with package.open(entry, "w") as file:
                    for chunk in _even(chain((start,), chunks)):
                        file.write(chunk)
                        yield output.take()
            yield output.take()
    yield output.take()


def _checked(member: Resource | Link | None, chunks: Iterable[bytes]) -> Iterator[bytes]:
    if member is None:
        return iter(chunks)
    uri = member.href if isinstance(member, Link) else member.uri
    if isinstance(chunks, tuple) and len(chunks) == 1:
        check_bytes(chunks[0], uri=uri, length=member.length, digests=member.digests)
        return iter(chunks)
    return checked_chunks(chunks, uri=uri, length=member.length, digests=member.digests)


def _start(chunks: Iterator[bytes]) -> bytes:
    first = next(chunks, b"")
    held = bytearray()
    while len(first) + len(held) <= BUFFERED and (chunk := next(chunks, None)) is not None:
        held += chunk
    return first + held


def _members(header: Header, entries: Sequence[ManifestEntry]) -> list[_Member]:
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
