"""Write any files into one ZIP, with the same reproducible bytes as a package has."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple

from resourcesync.documents.packages.members import WIDE_MARGIN, MemberWriter
from resourcesync.documents.packages.records import FULL32
from resourcesync.documents.packages.writing import end_records

__all__ = ["ZipMember", "write_zip"]

_PIECE: Final = 1 << 20


class ZipMember(NamedTuple):
    """A file on its way into a ZIP.

    Attributes:
        name: Its name there, with ``/``.
        content: Its bytes, in pieces.
        most: Bytes that it has at most, when that may be nearly 4 GiB or more.
    """

    name: str
    content: Iterable[bytes]
    most: int = 0


def write_zip(members: Iterable[ZipMember], directory: BinaryIO) -> Iterator[bytes]:
    """Yield a ZIP in pieces: members in the order given, at 1980-01-01, with plain attributes.

    Memory does not grow with the members: what ends the ZIP waits in a file.

    Args:
        members: What to pack; the names must differ, which is not looked at.
        directory: An empty file to write and read; it stays the caller's.
    """
    offset = count = 0
    for member in members:
        wide = member.most > FULL32 - WIDE_MARGIN
        writer = MemberWriter(member.name, None, wide=wide)
        yield from writer.pieces(member.content)
        directory.write(writer.central_record(offset))
        offset += writer.written
        count += 1
    size = directory.tell()
    directory.seek(0)
    while piece := directory.read(_PIECE):
        yield piece
    yield end_records(count, size, offset)
