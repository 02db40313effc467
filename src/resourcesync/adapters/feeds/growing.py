"""A file that grows, and is put away and begun anew now and then: where its reader stands.

A place is known by what was read before it: the beginning of the file and the last bytes before
the place, besides the inode. So a file that was renamed is found under its new name, one that was
copied and emptied is found in its copy, and one that was cut is not taken for itself.
"""

import hashlib
import os
import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from resourcesync.adapters.feeds.telling import gap_error
from resourcesync.errors import StateError, StorageError

HEAD: Final = 1024
"""So many bytes of the beginning of a file tell it from others,"""
TAIL: Final = 4096
"""and so many before the place."""
_MAX_ROTATED: Final = 100
_ROTATED_NAME: Final = re.compile(r"[.-][0-9][0-9A-Za-z:._-]*")
"""What is added to the name of a file that is put away, such as ``.1`` and ``-20261121``."""


class FilePosition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where in a file its reader stands.

    Attributes:
        inode: Of the file; 0 where there is none yet.
        offset: Bytes before the place.
        head: Digest of the first of these bytes.
        tail: Digest of the last of them.
    """

    inode: int = 0
    offset: int = 0
    head: str = ""
    tail: str = ""


def encode_position(place: FilePosition) -> str:
    """Return a place as text."""
    return msgspec.json.encode(place).decode()


def decode_position(text: str) -> FilePosition:
    """Return a place that was written.

    Raises:
        StateError: It is none.
    """
    try:
        return msgspec.json.decode(text, type=FilePosition)
    except msgspec.MsgspecError as error:
        raise StateError(
            "the position of the feed that was noted is none", evidence=(("got", text[:200]),)
        ) from error


def read_edges(stream: BinaryIO, offset: int) -> tuple[bytes, bytes]:
    """Return the first and the last of the bytes before a place, as far as they count.

    Raises:
        StorageError: They cannot be read.
    """
    try:
        number = stream.fileno()
        head = os.pread(number, min(HEAD, offset), 0)
        return head, os.pread(number, min(TAIL, offset), max(0, offset - TAIL))
    except OSError as error:
        raise read_error(str(stream.name), error) from error


def position_at(stream: BinaryIO, offset: int, head: bytes, tail: bytes) -> FilePosition:
    """Return the place behind the first ``offset`` bytes of a file, of which some are given."""
    return FilePosition(inode_of(stream), offset, _digest(head[:HEAD]), _digest(tail[-TAIL:]))


def read_error(name: str, error: OSError) -> StorageError:
    """Return the error for a file that cannot be read."""
    return StorageError(f"cannot read {name}: {error.strerror}")


def is_position_in(stream: BinaryIO, place: FilePosition) -> bool:
    """Whether a place is one of this file: whether what is before it is what was read."""
    if not place.offset:
        return place.inode in {0, inode_of(stream)}
    found = position_at(stream, place.offset, *read_edges(stream, place.offset))
    return (found.head, found.tail) == (place.head, place.tail)


def files_since(
    path: Path, place: FilePosition, *, accept_gaps: bool
) -> Generator[tuple[BinaryIO, int], None, None]:
    """Yield what is to be read after a place: each file, and the offset to begin at.

    The file of the place comes first, then those that were put away after it, the oldest first,
    and last the one that has the name now, if there is one. They are open until the iterator ends.

    Raises:
        DiscontinuityError: The file of the place is nowhere; with ``accept_gaps`` the one that has
            the name now is read from its beginning.
        StorageError: A file cannot be read.
    """
    with ExitStack() as stack:
        current = open_if_exists(path)
        if current is not None:
            stack.enter_context(current)
            if is_position_in(current, place):
                yield current, place.offset
                return
        beside = [stack.enter_context(it) for it in _rotated_files(path, current)]
        mine = [number for number, it in enumerate(beside) if is_position_in(it, place)]
        if not mine and place.offset and not accept_gaps:
            raise gap_error(
                f"{path} was cut or replaced, and what it was before is not beside it",
                ("read", f"{place.offset:,} bytes of it"),
            )
        if mine:
            first = min(mine, key=lambda number: inode_of(beside[number]) != place.inode)
            yield beside[first], place.offset
            for stream in beside[first + 1 :]:
                if _ROTATED_NAME.fullmatch(str(stream.name)[len(str(path)) :]):
                    yield stream, 0
        if current is not None:
            yield current, 0


def inode_of(stream: BinaryIO) -> int:
    """Return the number by which the file system knows an open file."""
    return os.fstat(stream.fileno()).st_ino


def _rotated_files(path: Path, current: BinaryIO | None) -> Iterator[BinaryIO]:
    """Yield the files whose name begins with that of the file, the oldest first."""
    own = None if current is None else inode_of(current)
    found = []
    try:
        with os.scandir(path.parent) as entries:
            for entry in entries:
                if entry.name.startswith(path.name) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_ino != own:
                        found.append((status.st_mtime_ns, entry.name))
    except OSError as error:
        raise read_error(str(path.parent), error) from error
    for _, name in sorted(found)[-_MAX_ROTATED:]:
        stream = open_if_exists(path.with_name(name))
        if stream is not None:
            yield stream


def open_if_exists(path: Path) -> BinaryIO | None:
    """Open a file, which is not waited for if it is a pipe; ``None`` when it is not there.

    Raises:
        StorageError: It cannot be opened.
    """
    try:
        return open(path, "rb", buffering=0, opener=_open_at_once)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise read_error(str(path), error) from error


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if content else ""
