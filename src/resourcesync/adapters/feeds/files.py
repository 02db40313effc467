"""``feed:FILE``: lines of changes in a file that another program lets grow."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from resourcesync.adapters.feeds import growing
from resourcesync.adapters.feeds.standard_input import StandardInput
from resourcesync.adapters.feeds.telling import (
    GAPS,
    ChangeFeed,
    PendingChanges,
    accepts_gaps,
    check_keys,
    decode_entry,
    printable,
)
from resourcesync.documents.ndjson import MAX_LINE
from resourcesync.errors import StorageError
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock, Omission
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, ResourceAccount

_BLOCK: Final = 64 * 1024
_POLL_SECONDS: Final = 0.25
_LATE_WRITE_SECONDS: Final = 5.0
"""Seconds after its last byte for which a file that was put away may still be written to."""
_TOO_LONG: Final = f"longer than {MAX_LINE:,} bytes"


@contextmanager
def open_feed(options: AccountOptions) -> Iterator[ResourceAccount]:
    """Open the account of ``feed:FILE``, or of ``feed:-`` for standard input.

    Raises:
        ConfigurationError: A value cannot work.
    """
    name = options.address.partition(":")[2]
    check_keys("feed:", options.values, frozenset({GAPS}))
    if name == "-":
        yield StandardInput(options.clock)
    else:
        yield GrowingFile(Path(name), options.clock, accept_gaps=accepts_gaps(options.values))


class GrowingFile(ChangeFeed):
    """An account: the lines that are added to a file.

    Args:
        path: The file. It may be renamed, or copied and emptied, if it stays in its folder.
        clock: Time.
        accept_gaps: Whether to go on where lines were lost.
    """

    def __init__(self, path: Path, clock: Clock, *, accept_gaps: bool = False) -> None:
        self._path = path
        self._clock = clock
        self._accept_gaps = accept_gaps

    def position(self) -> str:
        """Return the beginning of the file: all of its lines are told.

        Raises:
            StorageError: It cannot be read.
        """
        stream = growing.open_if_exists(self._path)
        if stream is None:
            raise _missing_file(self._path)
        with stream:
            return _LineReader(stream, 0).position()

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield what was added after a place, in all the files that it went into.

        Raises:
            DiscontinuityError: The file was cut or replaced.
            StorageError: It cannot be read.
        """
        position = after
        until = self._clock.monotonic() + wait
        while True:
            place, is_there = growing.decode_position(position), False
            files = growing.files_since(self._path, place, accept_gaps=self._accept_gaps)
            with closing(files):
                for stream, offset in files:
                    lines, is_there = _LineReader(stream, offset), True
                    yield from self._read_changes(lines, until)
                    if lines.offset:  # a place before the first byte is in any file
                        position = lines.position()
                    if not lines.is_over:
                        break
            if self._clock.monotonic() >= until:
                if is_there:
                    return
                raise _missing_file(self._path)
            self._clock.sleep(_POLL_SECONDS)

    def _read_changes(self, lines: "_LineReader", until: float) -> Iterator[ChangeBatch]:
        """Yield what one file says, until time is up, or it is put away and nobody writes to it."""
        lot = PendingChanges(self._clock)
        patience = max(until, self._clock.monotonic() + _LATE_WRITE_SECONDS)
        while lines.is_intact():
            while lines.read(lot):
                if lot.is_due:
                    yield lot.take(lines.position())
            if self._finish_file(lines, lot, until, patience):
                break
            if lot:
                yield lot.take(lines.position())
            self._clock.sleep(_POLL_SECONDS)
        if lot:
            yield lot.take(lines.position())

    def _finish_file(
        self, lines: "_LineReader", lot: PendingChanges, until: float, patience: float
    ) -> bool:
        """Whether no more is to be read of a file now, which was read to its end."""
        now = self._clock.monotonic()
        if lines.is_current(self._path):
            return now >= until
        if lines.age(self._clock) > _LATE_WRITE_SECONDS:
            lines.finish(lot)
            return True
        return now >= patience


def _missing_file(path: Path) -> StorageError:
    return StorageError(f"there is no file {path}", hint="let it be made, empty, before it is read")


class _LineReader:
    """The lines of one file, read from an offset on.

    Attributes:
        offset: Bytes before the first line that was not read.
        is_over: Whether the file was put away and read to its end.
    """

    def __init__(self, stream: BinaryIO, offset: int) -> None:
        self._stream = stream
        self.offset = offset
        self.is_over = False
        self._head, self._tail = growing.read_edges(stream, offset)
        self._rest = b""
        self._long = b""
        self._dropped = 0

    def position(self) -> str:
        """Return where the reader stands, as text."""
        return growing.encode_position(self._file_position())

    def read(self, lot: PendingChanges) -> bool:
        """Put the lines of the next block into a lot; whether there was anything to read.

        Raises:
            StorageError: It cannot be read.
        """
        try:
            block = os.pread(self._stream.fileno(), _BLOCK, self._read_to())
        except OSError as error:
            raise growing.read_error(str(self._stream.name), error) from error
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
        """Take the last line, though it has no end: none will come."""
        if self._rest or self._dropped:
            self._add_line(self._rest, lot)
        self._rest, self.is_over = b"", True

    def is_intact(self) -> bool:
        """Whether what was read is still there: the file was not cut."""
        try:
            size = os.fstat(self._stream.fileno()).st_size
        except OSError as error:
            raise growing.read_error(str(self._stream.name), error) from error
        return size >= self._read_to() and growing.is_position_in(
            self._stream, self._file_position()
        )

    def is_current(self, path: Path) -> bool:
        """Whether the file has the name, or nothing has: it will be written anew."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return True
        except OSError as error:
            raise growing.read_error(str(path), error) from error
        return os.path.samestat(found, os.fstat(self._stream.fileno()))

    def age(self, clock: Clock) -> float:
        """Return the seconds since the file was written to."""
        written = os.fstat(self._stream.fileno()).st_mtime
        return to_microseconds(clock.now()) / 1_000_000 - written

    def _read_to(self) -> int:
        return self.offset + self._dropped + len(self._rest)

    def _file_position(self) -> growing.FilePosition:
        return growing.position_at(self._stream, self.offset, self._head, self._tail)

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
            self._head, self._tail = growing.read_edges(self._stream, self.offset)
        else:
            self._head = (self._head + line[: growing.HEAD])[: growing.HEAD]
            self._tail = (self._tail + line)[-growing.TAIL :]
        self._dropped, self._long = 0, b""
