"""A decoder of Server-Sent Events (HTML §9.2.6): bytes in, events out. Pure."""

import re
from collections.abc import Generator, Iterator
from typing import Final, Protocol, runtime_checkable

import msgspec

from resourcesync.ports import FetchResponse

MAX_EVENT: Final = 1 << 20
"""The most bytes of one event; a larger one comes without its data."""
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 200


@runtime_checkable
class Streamer(Protocol):
    """A reader of endless bodies."""

    def stream(
        self, uri: str, fields: tuple[tuple[str, str], ...]
    ) -> Generator[bytes, None, FetchResponse]:
        """Yield the bytes of a 200 answer as they come; return the answer when it ends.

        No bytes are yielded at least every second, so that the caller can look at the clock; the
        silence is for him to judge. It is tried once, without ``robots.txt``.
        """


class ServerSentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A Server-Sent Event.

    Attributes:
        kind: The field ``event``; ``message`` if there is none.
        data: The data; only their beginning if they are too large.
        last_id: The ``id`` in force after it; empty if there was none yet.
        size: Bytes of all lines of the event.
        is_whole: The event was not too large.
        has_data: There is a data field; an event without one only sets an ``id``.
    """

    kind: str
    data: bytes
    last_id: str
    size: int
    is_whole: bool
    has_data: bool


class EventReader:
    """A decoder of the events of one connection.

    Attributes:
        retry: Seconds that the server asks to wait before a reconnect; ``None`` if it did not.
    """

    def __init__(self, last_id: str = "") -> None:
        self.retry: float | None = None
        self._last_id = self._next_id = last_id
        self._rest = self._mark = b""
        self._is_new = True
        self._is_long = self._is_after_return = False
        self._begin()

    def read(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that are complete with these bytes."""
        *lines, self._rest = _LINE_END.split(self._rest + self._without_mark(chunk))
        for line in lines:
            if self._is_long:  # the end of an overlong line
                self._is_long = False
            elif line:
                self._read_field(line)
            else:
                has_id, self._last_id = self._has_id, self._next_id
                event = ServerSentEvent(
                    kind=self._kind or "message",
                    data=b"\n".join(self._data),
                    last_id=self._last_id,
                    size=self._size,
                    is_whole=self._size <= MAX_EVENT,
                    has_data=bool(self._data),
                )
                self._begin()
                if has_id or event.has_data:
                    yield event
        if len(self._rest) > MAX_EVENT:
            self._size += len(self._rest)
            if not self._is_long:
                self._read_field(self._rest)
            self._rest, self._is_long = b"", True

    @property
    def is_incomplete(self) -> bool:
        """True if an event has begun, and not ended."""
        return bool(self._size or self._rest)

    def _without_mark(self, chunk: bytes) -> bytes:
        """Return bytes without the byte order mark, and without the rest of a line end."""
        if self._is_new:
            self._mark += chunk
            if self._mark != _BOM and _BOM.startswith(self._mark):
                return b""  # the rest of the mark may come with the next bytes
            chunk, self._is_new = self._mark.removeprefix(_BOM), False
        if not chunk:
            return chunk
        if self._is_after_return:
            chunk = chunk.removeprefix(b"\n")  # the line has ended already
        self._is_after_return = chunk.endswith(b"\r")
        return chunk

    def _begin(self) -> None:
        self._kind = ""
        self._data: list[bytes] = []
        self._size = 0
        self._has_id = False

    def _read_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if not name:
            return  # a comment
        self._size += len(line)
        value = value.removeprefix(b" ")
        if name == b"data":
            is_small = self._size <= MAX_EVENT
            if is_small or not self._data:
                self._data.append(value if is_small else value[:_SHOWN])
        elif name == b"event":
            self._kind = value[:_SHOWN].decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._has_id, self._next_id = True, value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self.retry = int(value[:9]) / 1000
