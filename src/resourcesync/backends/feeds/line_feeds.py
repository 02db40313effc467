"""``feed:FILE`` and ``feed:-``: lines of changes in a growing file or on standard input.

A position in a file is recognised by the bytes before it: the first bytes of the file and the last
ones before the position, besides the inode. So a renamed file is found under its new name, a file
that was copied and truncated is found in its copy, and a file that was cut is not mistaken for the
same one.

A pipe cannot be read twice, so each line of standard input is accepted at most once: lines stay in
the pipe for half a second to gather, and are read only when they can be recorded.
"""

import hashlib
import os
import re
import select
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from resourcesync.backends.feeds.change_feed import (
    GAPS,
    ChangeFeed,
    PendingChanges,
    accepts_gaps,
    check_keys,
    decode_entry,
    gap_error,
    printable,
)
from resourcesync.documents.ndjson import MAX_LINE
from resourcesync.errors import StateError, StorageError
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, ResourceAccount
from resourcesync.ports.catalogue import Omission

HEAD: Final = 1024
"""Bytes at the beginning of a file that identify it."""
TAIL: Final = 4096
"""Bytes before a position that identify it."""
_MAX_ROTATED: Final = 100
_ROTATED_NAME: Final = re.compile(r"[.-][0-9][0-9A-Za-z:._-]*")
"""The suffix of a rotated file's name, such as ``.1`` and ``-20261121``."""


class FilePosition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A position in a file.

    Attributes:
        inode: The file's inode; 0 if there is no file yet.
        offset: Bytes before the position.
        head: Digest of the first `HEAD` of these bytes.
        tail: Digest of the last `TAIL` of them.
    """

    inode: int = 0
    offset: int = 0
    head: str = ""
    tail: str = ""


def encode_position(place: FilePosition) -> str:
    """Return a position as text."""
    return msgspec.json.encode(place).decode()


def decode_position(text: str) -> FilePosition:
    """Return the position in a text.

    Raises:
        StateError: The text is no position.
    """
    try:
        return msgspec.json.decode(text, type=FilePosition)
    except msgspec.MsgspecError as error:
        raise StateError(
            "the stored position of the feed is invalid", evidence=(("got", text[:200]),)
        ) from error


def read_edges(stream: BinaryIO, offset: int) -> tuple[bytes, bytes]:
    """Return the first and the last of the bytes before a position, as far as they count.

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
    """Return the position after the first ``offset`` bytes of a file, some of which are given."""
    return FilePosition(inode_of(stream), offset, _digest(head[:HEAD]), _digest(tail[-TAIL:]))


def read_error(name: str, error: OSError) -> StorageError:
    """Return the error for a file that cannot be read."""
    return StorageError(f"cannot read {name}: {error.strerror}")


def is_position_in(stream: BinaryIO, place: FilePosition) -> bool:
    """True if a position is in this file: the bytes before it are those that were read."""
    if not place.offset:
        return place.inode in {0, inode_of(stream)}
    found = position_at(stream, place.offset, *read_edges(stream, place.offset))
    return (found.head, found.tail) == (place.head, place.tail)


def files_since(
    path: Path, place: FilePosition, *, accept_gaps: bool
) -> Generator[tuple[BinaryIO, int], None, None]:
    """Yield what is to be read after a position: each file, and the offset to begin at.

    The file of the position comes first, then those rotated after it, the oldest first, and last
    the one that has the name now, if there is one. They are open until the iterator ends.

    Raises:
        DiscontinuityError: The file of the position is not found; with ``accept_gaps`` the one that
            has the name now is read from its beginning.
        StorageError: A file cannot be read.
    """
    with ExitStack() as stack:
        current = open_if_exists(path)
        if current is not None:
            stack.enter_context(current)
            if is_position_in(current, place):
                yield current, place.offset
                return
        beside = [stack.enter_context(file) for file in _rotated_files(path, current)]
        mine = [
            number for number, binary_io in enumerate(beside) if is_position_in(binary_io, place)
        ]
        if not mine and place.offset and not accept_gaps:
            raise gap_error(
                f"{path} was truncated or replaced, and its former content is not in the folder",
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
    """Return the inode of an open file."""
    return os.fstat(stream.fileno()).st_ino


def _rotated_files(path: Path, current: BinaryIO | None) -> Iterator[BinaryIO]:
    """Yield the rotated files, the oldest first."""
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
    """Open a file, without blocking on a pipe; ``None`` if it is not there.

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


_NAME: Final = "standard input"
_POSITION: Final = "standard input"
_BLOCK: Final = 64 * 1024
_MAX_BATCH_BYTES: Final = 192 * 1024
_BACKLOG_BYTES: Final = 32 * 1024
"""Bytes at which the wait for more ends: a pipe holds little more."""
GATHER_SECONDS: Final = 0.5
"""Seconds for which standard input may collect more before it is read."""
_INPUT_POLL_SECONDS: Final = 1.0
_TOO_LONG: Final = f"longer than {MAX_LINE:,} bytes"


class StandardInput(ChangeFeed):
    """An account of lines on standard input.

    Args:
        number: The file descriptor.
    """

    def __init__(self, clock: Clock, number: int | None = None) -> None:
        self._clock = clock
        self._number = sys.stdin.fileno() if number is None else number
        self._rest = b""
        self._long = b""
        self._is_over = self._is_behind = False

    def position(self) -> str:
        """Return the fixed position of standard input."""
        return _POSITION

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield the changes, until the end of the input, or until time is up.

        Without a time limit the input is read to its end. A batch comes about every second, so that
        the caller may stop.

        Raises:
            StorageError: It cannot be read.
        """
        del after
        until = self._clock.monotonic() + wait
        while not self._is_over:
            if self._wait_readable(
                _INPUT_POLL_SECONDS if not wait else until - self._clock.monotonic()
            ):
                if not self._is_behind:
                    self._clock.sleep(GATHER_SECONDS)
                lot = PendingChanges(self._clock)
                self._read(lot)
                yield lot.take(_POSITION, is_last=self._is_over)
            elif wait and self._clock.monotonic() >= until:
                return
            else:
                yield ChangeBatch(_POSITION, ())

    def _wait_readable(self, seconds: float) -> bool:
        """Wait for input, at most a second; return whether there is any."""
        most = max(0.0, min(seconds, _INPUT_POLL_SECONDS))
        try:
            return bool(select.select([self._number], [], [], most)[0])
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot read {_NAME}: {error}") from error

    def _read(self, lot: PendingChanges) -> None:
        """Read the available lines into a batch, fewer than 10,000."""
        size = 0
        while size < _MAX_BATCH_BYTES:
            try:
                block = os.read(self._number, _BLOCK)
            except OSError as error:
                raise StorageError(f"cannot read {_NAME}: {error.strerror}") from error
            size += len(block)
            self._is_over = not block
            self._split(block, lot)
            self._is_behind = size >= _BACKLOG_BYTES
            if self._is_over or not self._wait_readable(0.0):
                return

    def _split(self, block: bytes, lot: PendingChanges) -> None:
        *lines, rest = (self._rest + block).split(b"\n")
        if self._is_over:
            lines, rest = [*lines, rest], b""
        for line in lines:
            lot.add(self._entries(line), len(line))
        if self._long or len(rest) > MAX_LINE:
            self._long, rest = self._long or rest, b""
        self._rest = rest

    def _entries(self, line: bytes) -> list[Change | Omission]:
        if self._long:
            long, self._long = self._long, b""
            return [Omission(name=printable(long), reason=_TOO_LONG)]
        return [decode_entry(line, _NAME)] if line.strip() else []


POLL_SECONDS: Final = 0.25
"""Seconds between two checks whether a file has grown."""
LATE_WRITE_SECONDS: Final = 5.0
"""Seconds after its last byte for which a rotated file may still be written to."""


@contextmanager
def open_feed(options: AccountOptions) -> Iterator[ResourceAccount]:
    """Open the account of ``feed:FILE``, or of ``feed:-`` for standard input.

    Raises:
        ConfigurationError: A value is invalid.
    """
    name = options.address.partition(":")[2]
    check_keys("feed:", options.values, frozenset({GAPS}))
    if name == "-":
        yield StandardInput(options.clock)
    else:
        yield GrowingFile(Path(name), options.clock, accept_gaps=accepts_gaps(options.values))


class GrowingFile(ChangeFeed):
    """An account of lines appended to a file.

    Args:
        path: The file. It may be renamed, or copied and truncated, if it stays in its folder.
        accept_gaps: Go on after lost lines.
    """

    def __init__(self, path: Path, clock: Clock, *, accept_gaps: bool = False) -> None:
        self._path = path
        self._clock = clock
        self._accept_gaps = accept_gaps

    def position(self) -> str:
        """Return the beginning of the file: all of its lines are reported.

        Raises:
            StorageError: It cannot be read.
        """
        stream = open_if_exists(self._path)
        if stream is None:
            raise _missing_file(self._path)
        with stream:
            return _LineReader(stream, 0).position()

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield the changes after a position, from all files that they were written to.

        Raises:
            DiscontinuityError: The file was cut or replaced.
            StorageError: It cannot be read.
        """
        position = after
        until = self._clock.monotonic() + wait
        while True:
            place, is_there = decode_position(position), False
            files = files_since(self._path, place, accept_gaps=self._accept_gaps)
            with closing(files):
                for stream, offset in files:
                    lines, is_there = _LineReader(stream, offset), True
                    yield from self._read_changes(lines, until)
                    if lines.offset:  # a position before the first byte is in any file
                        position = lines.position()
                    if not lines.is_over:
                        break
            if self._clock.monotonic() >= until:
                if is_there:
                    return
                raise _missing_file(self._path)
            self._clock.sleep(POLL_SECONDS)

    def _read_changes(self, lines: "_LineReader", until: float) -> Iterator[ChangeBatch]:
        """Yield the changes in one file, until time is up, or it is rotated and complete."""
        lot = PendingChanges(self._clock)
        patience = max(until, self._clock.monotonic() + LATE_WRITE_SECONDS)
        while lines.is_intact():
            while lines.read(lot):
                if lot.is_due:
                    yield lot.take(lines.position())
            if self._finish_file(lines, lot, until, patience):
                break
            if lot:
                yield lot.take(lines.position())
            self._clock.sleep(POLL_SECONDS)
        if lot:
            yield lot.take(lines.position())

    def _finish_file(
        self, lines: "_LineReader", lot: PendingChanges, until: float, patience: float
    ) -> bool:
        """True if a file that was read to its end needs no more reading now."""
        now = self._clock.monotonic()
        if lines.is_current(self._path):
            return now >= until
        if lines.age(self._clock) > LATE_WRITE_SECONDS:
            lines.finish(lot)
            return True
        return now >= patience


def _missing_file(path: Path) -> StorageError:
    return StorageError(f"there is no file {path}", hint="create it, empty, before it is read")


class _LineReader:
    """A reader of the lines of one file from an offset.

    Attributes:
        offset: Bytes before the first unread line.
        is_over: The file was rotated and read to its end.
    """

    def __init__(self, stream: BinaryIO, offset: int) -> None:
        self._stream = stream
        self.offset = offset
        self.is_over = False
        self._head, self._tail = read_edges(stream, offset)
        self._rest = b""
        self._long = b""
        self._dropped = 0

    def position(self) -> str:
        """Return the reader's position as text."""
        return encode_position(self._file_position())

    def read(self, lot: PendingChanges) -> bool:
        """Read the lines of the next block into a batch; return whether there were any bytes.

        Raises:
            StorageError: It cannot be read.
        """
        try:
            block = os.pread(self._stream.fileno(), _BLOCK, self._read_to())
        except OSError as error:
            raise read_error(str(self._stream.name), error) from error
        *lines, rest = (self._rest + block).split(b"\n")
        self._rest = rest
        for line in lines:
            self._add_line(line + b"\n", lot)
        if self._dropped or len(rest) > MAX_LINE:
            self._long = self._long or rest[:MAX_LINE]
            self._dropped += len(rest)
            self._rest = b""
        return bool(block)

    def finish(self, lot: PendingChanges) -> None:
        """Read the last line, though it has no line break: none will come."""
        if self._rest or self._dropped:
            self._add_line(self._rest, lot)
        self._rest, self.is_over = b"", True

    def is_intact(self) -> bool:
        """True if the bytes read are still there: the file was not truncated."""
        try:
            size = os.fstat(self._stream.fileno()).st_size
        except OSError as error:
            raise read_error(str(self._stream.name), error) from error
        return size >= self._read_to() and is_position_in(self._stream, self._file_position())

    def is_current(self, path: Path) -> bool:
        """True if the file has the name, or no file has: it will be recreated."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return True
        except OSError as error:
            raise read_error(str(path), error) from error
        return os.path.samestat(found, os.fstat(self._stream.fileno()))

    def age(self, clock: Clock) -> float:
        """Return the seconds since the last write to the file."""
        written = os.fstat(self._stream.fileno()).st_mtime
        return to_microseconds(clock.now()) / 1_000_000 - written

    def _read_to(self) -> int:
        return self.offset + self._dropped + len(self._rest)

    def _file_position(self) -> FilePosition:
        return position_at(self._stream, self.offset, self._head, self._tail)

    def _add_line(self, line: bytes, lot: PendingChanges) -> None:
        size = self._dropped + len(line)
        entries: list[Change | Omission] = []
        if self._dropped:
            entries.append(Omission(name=printable(self._long), reason=_TOO_LONG))
        elif not line.isspace():
            entries.append(decode_entry(line, str(self._stream.name)))
        lot.add(entries, size)
        self.offset += size
        if self._dropped:
            self._head, self._tail = read_edges(self._stream, self.offset)
        else:
            self._head = (self._head + line[:HEAD])[:HEAD]
            self._tail = (self._tail + line)[-TAIL:]
        self._dropped, self._long = 0, b""
