"""A clock that moves only when it is told, and originals and documents in memory."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from io import BytesIO
from typing import BinaryIO

import msgspec

from resourcesync.errors import OriginalChangedError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Resource
from resourcesync.model.timestamps import from_microseconds
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
        self._elapsed += max(0.0, seconds)
        self._now += timedelta(seconds=max(0.0, seconds))

    def advance(self, *, hours: float = 0, seconds: float = 0) -> None:
        self.sleep(hours * 3_600 + seconds)

    def set(self, moment: datetime) -> None:
        self._now = moment


class _StoredOriginal(msgspec.Struct, frozen=True):
    content: bytes
    lastmod: datetime
    version: int


class MemoryOriginals(Originals):
    def __init__(self, clock: Clock, *, trusted: bool = True) -> None:
        self._clock = clock
        self._trusted = trusted
        self._stored: dict[str, _StoredOriginal] = {}
        self._versions = 0
        self.measured = 0
        """Number of times that bytes were read."""

    def put(self, uri: str, content: bytes) -> None:
        self._versions += 1
        lastmod = self._clock.now().replace(microsecond=0)
        self._stored[uri] = _StoredOriginal(content, lastmod, self._versions)

    def remove(self, uri: str) -> None:
        self._stored.pop(uri, None)

    def contents(self) -> dict[str, bytes]:
        return {uri: held.content for uri, held in self._stored.items()}

    def open(self, uri: str) -> BinaryIO | None:
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
        return ()

    def _fingerprint(self, held: _StoredOriginal) -> str:
        return str(held.version) if self._trusted else ""


class MemoryDocuments:
    """A ``DocumentStore`` in a dictionary: a document is replaced at once, or not at all."""

    def __init__(self) -> None:
        self._documents: dict[str, tuple[bytes, int]] = {}
        self.writes = 0
        """Number of documents written."""

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        """Put a whole document in place, if ``check`` accepts it; return its bytes."""
        content = b"".join(chunks)
        if check is not None:
            check(BytesIO(content))
        self.writes += 1
        self._documents[name] = (content, self.writes)
        return len(content)

    def open(self, name: str) -> BinaryIO | None:
        held = self._documents.get(name)
        return None if held is None else BytesIO(held[0])

    def signature(self, name: str) -> str | None:
        held = self._documents.get(name)
        return None if held is None else str(held[1])

    def names(self) -> Iterator[str]:
        return iter(sorted(self._documents))

    def delete(self, name: str) -> None:
        self._documents.pop(name, None)
