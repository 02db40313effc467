"""Write a package: a ZIP that is the same, byte for byte, whenever its input is the same."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeGuard

from resourcesync.documents.packages.members import (
    BUFFERED,
    MADE_BY,
    WIDE_MARGIN,
    MemberWriter,
    short_member,
)
from resourcesync.documents.packages.naming import MANIFEST, find_clash, member_name
from resourcesync.documents.packages.planning import ManifestEntry, content_of, length_of
from resourcesync.documents.packages.records import (
    END,
    END64,
    END64_MARK,
    END_MARK,
    FULL16,
    FULL32,
    LOCATOR,
    LOCATOR_MARK,
)
from resourcesync.documents.writing import write
from resourcesync.model.capabilities import Header
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import MAX_ENTRIES

__all__ = ["ContentOpener", "write_package"]

ContentOpener = Callable[[Resource | Link], Iterable[bytes]]
"""Gives the bytes of a resource, or of the target of a link that has a ``path``, in pieces."""

_Member = tuple[Resource | Link | None, str]
"""What goes in, ``None`` for the manifest, and its name."""

_CHUNK: Final = 65_536


def write_package(
    header: Header, entries: Sequence[ManifestEntry], content: ContentOpener, manifest: bytes = b""
) -> Iterator[bytes]:
    """Yield a ZIP package in pieces of 64 KiB or more: its manifest, then what the entries say.

    Members stand in the order of the manifest, at 1980-01-01, with plain attributes; what is, or
    looks like, compressed data is not compressed again. Memory is bounded by 256 KiB of content and
    some 100 bytes for each entry. Should it raise, what it yielded so far is no package: readers
    need the directory, and that comes last.

    Args:
        header: The root of the manifest, a `Header` of one of the two manifests.
        entries: What to pack, at most 50,000, each with ``path`` and ``length``.
        content: Gives the bytes of an entry; called once for each, in order. A tuple of one piece
            is taken for all of them, which is quickest for short ones.
        manifest: What `write` makes of header and entries, if it is known.

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
    for piece in _pieces(members, lambda it: chunks if it is None else content(it)):
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
        raise ValueError(f"a package holds a manifest, no {header.phrase}")
    if header.up is None:
        raise ValueError(f"a {header.phrase} needs its link up (§11.2, §13.2)")
    if len(entries) > MAX_ENTRIES:
        raise ValueError(f"a manifest holds at most {MAX_ENTRIES:,} entries")
    _check_order(entries)
    members: list[_Member] = [(None, MANIFEST)]
    for entry in entries:
        resource = content_of(entry)
        if resource is not None:
            length_of(entry)
            members.append((resource, _strict_name(resource.path)))
            members += [(ln, _strict_name(ln.path)) for ln in resource.links if ln.path]
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


def end_records(count: int, size: int, offset: int) -> bytes:
    """Return what ends a ZIP whose directory has ``count`` records in ``size`` bytes."""
    start = b""
    if count >= FULL16 or size >= FULL32 or offset >= FULL32:
        start = END64.pack(
            END64_MARK, END64.size - 12, MADE_BY | 45, 45, 0, 0, count, count, size, offset
        ) + LOCATOR.pack(LOCATOR_MARK, 0, offset + size, 1)
    count, size, offset = min(count, FULL16), min(size, FULL32), min(offset, FULL32)
    return start + END.pack(END_MARK, 0, 0, count, count, size, offset, 0)
