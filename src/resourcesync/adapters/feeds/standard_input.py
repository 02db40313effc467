"""``feed:-``: lines of changes on standard input, each taken at most once.

What was read of a pipe cannot be read again. So it is left in the pipe until it can be recorded:
it is waited for, it gathers there for half a second, and then what is there is read and told.
"""

import os
import select
import sys
from collections.abc import Iterator
from typing import Final

from resourcesync.adapters.feeds.telling import ChangeFeed, PendingChanges, decode_entry, printable
from resourcesync.documents.ndjson import MAX_LINE
from resourcesync.errors import StorageError
from resourcesync.model.resources import Change
from resourcesync.ports import Clock, Omission
from resourcesync.ports.accounts import ChangeBatch

_NAME: Final = "standard input"
_POSITION: Final = "standard input"
_BLOCK: Final = 64 * 1024
_MAX_BATCH_BYTES: Final = 192 * 1024
_BACKLOG_BYTES: Final = 32 * 1024
"""Bytes after which nothing is left to gather: a pipe holds little more."""
_GATHER: Final = 0.5
_INPUT_POLL_SECONDS: Final = 1.0
_TOO_LONG: Final = f"longer than {MAX_LINE:,} bytes"


class StandardInput(ChangeFeed):
    """An account: the lines that come on standard input.

    Args:
        clock: Time.
        number: The descriptor to read.
    """

    def __init__(self, clock: Clock, number: int | None = None) -> None:
        self._clock = clock
        self._number = sys.stdin.fileno() if number is None else number
        self._rest = b""
        self._long = b""
        self._is_over = self._is_behind = False

    def position(self) -> str:
        """Return that it is standard input: there is no other position."""
        return _POSITION

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield what comes, until it ends, or until time is up.

        Without a time it is read to its end. About every second something is yielded, so that the
        caller may stop.

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
                    self._clock.sleep(_GATHER)
                lot = PendingChanges(self._clock)
                self._read(lot)
                yield lot.take(_POSITION, is_last=self._is_over)
            elif wait and self._clock.monotonic() >= until:
                return
            else:
                yield ChangeBatch(_POSITION, ())

    def _wait_readable(self, seconds: float) -> bool:
        """Wait until there is something to read, at most a second; whether there is."""
        most = max(0.0, min(seconds, _INPUT_POLL_SECONDS))
        try:
            return bool(select.select([self._number], [], [], most)[0])
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot read {_NAME}: {error}") from error

    def _read(self, lot: PendingChanges) -> None:
        """Put the lines that are there into a lot, fewer than 10,000."""
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
