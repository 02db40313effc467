"""A clock that moves only when it is told, and originals in memory."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from io import BytesIO
from typing import BinaryIO

import msgspec

from resourcesync.errors import OriginalChangedError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Resource
from resourcesync.model.timestamps import floor_to_second, from_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.originals import Omission, Original, Originals


class ManualClock:
    """A ``Clock`` that moves only by its methods; ``sleep`` moves it."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or from_microseconds(1_767_139_200_000_000)
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        """Return the elapsed seconds; setting the clock back does not reduce them."""
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass at once."""
        self._elapsed += max(0.0, seconds)
        self._now += timedelta(seconds=max(0.0, seconds))

    def advance(self, *, hours: float = 0, seconds: float = 0) -> None:
        self.sleep(hours * 3_600 + seconds)

    def set(self, moment: datetime) -> None:
        """Set the clock, forwards or back, as an operator may do; no time passes."""
        self._now = moment


class _StoredOriginal(msgspec.Struct, frozen=True):
    content: bytes
    lastmod: datetime
    version: int


class MemoryOriginals(Originals):
    """Originals in a dictionary."""

    def __init__(self, clock: Clock, *, trusted: bool = True) -> None:
        self._clock = clock
        self._trusted = trusted
        self._stored: dict[str, _StoredOriginal] = {}
        self._versions = 0
        self.measured = 0
        """Number of times that bytes were read."""

    def put(self, uri: str, content: bytes) -> None:
        """Create an original, or replace its bytes, as of now."""
        self._versions += 1
        lastmod = floor_to_second(self._clock.now())
        self._stored[uri] = _StoredOriginal(content, lastmod, self._versions)

    def remove(self, uri: str) -> None:
        """Remove an original; it is no error when there is none."""
        self._stored.pop(uri, None)

    def contents(self) -> dict[str, bytes]:
        """Return a copy of everything: URI to bytes."""
        return {uri: held.content for uri, held in self._stored.items()}

    def open(self, uri: str) -> BinaryIO | None:
        """Open an original for reading; ``None`` when there is none."""
        held = self._stored.get(uri)
        return None if held is None else BytesIO(held.content)

    def scan(self) -> Iterator[Original]:
        for uri, held in sorted(self._stored.items()):
            yield Original(
                uri=uri,
                fingerprint=self._fingerprint(held),
                length=len(held.content),
                lastmod=held.lastmod,
                media_type="text/plain",
            )

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Return the resource with its sha-256, and its fingerprint."""
        held = self._stored.get(original.uri)
        if held is None:
            raise OriginalChangedError(f"{original.uri} is no longer there")
        self.measured += 1
        resource = Resource(
            uri=original.uri,
            lastmod=held.lastmod,
            length=len(held.content),
            digests=(Digest("sha-256", hashlib.sha256(held.content).hexdigest()),),
            media_type="text/plain",
        )
        return resource, self._fingerprint(held)

    def omissions(self) -> Sequence[Omission]:
        """Return nothing: every original is published."""
        return ()

    def _fingerprint(self, held: _StoredOriginal) -> str:
        return str(held.version) if self._trusted else ""
