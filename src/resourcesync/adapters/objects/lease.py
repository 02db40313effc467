"""A lease on what is below a prefix: an object that is written again and again while it is held.

Nobody's clock is asked what time it is. How old a lease is, the server says: by the dates of the
lease and of an object that is put for the comparison. How long we have it, a stopwatch says. And
every step from one holder to the next is a conditional write: of two, one wins.
"""

import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Final, NamedTuple, Self

from resourcesync.adapters.objects.bucket import ABSENT, Bucket, BucketObject
from resourcesync.errors import LockedError, ResourceSyncError

LEASE_SECONDS: Final = 60.0
"""How long a lease lives that is not written again."""
LEASE_KEY: Final = ".resourcesync/lease"
"""Where it is."""
_CLOCK_PROBE: Final = ".resourcesync/tmp/now-"
_MOST_BYTES: Final = 4_096
_LONGEST: Final = 3_600.0
_MARGIN: Final = 2.0  # dates have whole seconds
_RENEWALS: Final = 4


def _stopwatch() -> float:
    """Return seconds that never go back, those that the machine slept counted where it knows."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class _LeaseRecord(NamedTuple):
    """What a lease says of its holder; ``seconds`` is 0 when nobody holds it."""

    who: str
    holder: str
    seconds: float


class Lease:
    """A lease, from entering the block to leaving it.

    Args:
        bucket: Where; its patience is less than the lease lives.
        who: Says who holds it, for whom it keeps out.
        holder: Names a holder of whom the caller knows that no other run lives; what such a one
            left is taken over at once. Empty for none.
        seconds: How long it lives by itself.
        stopwatch: Seconds that never go back.

    Raises:
        LockedError: Somebody holds it.
        StorageError: The bucket fails.
    """

    def __init__(
        self,
        bucket: Bucket,
        who: str,
        *,
        holder: str = "",
        seconds: float = LEASE_SECONDS,
        stopwatch: Callable[[], float] = _stopwatch,
    ) -> None:
        self._bucket = bucket
        self._who, self._holder, self._seconds = who, holder, seconds
        self._stopwatch = stopwatch
        self._version = ""
        self._until = 0.0
        self._lost = False
        self._ended = Event()
        self._renewing = Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Self:
        began = self._stopwatch()
        version = self._write(ABSENT)
        if version is None:
            version = self._take_over()
        self._version, self._until = version, began + self._seconds
        self._renewing.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._renewing.join()
        if not self._lost:
            with suppress(ResourceSyncError):  # it ends by itself too
                self._write(self._version, seconds=0)

    def check(self) -> None:
        """See that we still hold it.

        Raises:
            LockedError: It was lost: nothing more may be written.
        """
        if self._lost or self._stopwatch() >= self._until:
            raise LockedError(
                f"the hold on s3://{self._bucket.name} was lost",
                evidence=(("kept", "all that was put before"),),
                hint="run the same command: it goes on from there",
            )

    def _take_over(self) -> str:
        there = self._bucket.read(LEASE_KEY, _MOST_BYTES)
        if there is None:
            version = self._write(ABSENT)
        else:
            found, body = there
            held = _decode_lease(body)
            is_ours = bool(self._holder) and held.holder == self._holder
            left = 0.0 if is_ours else self._left(found, held)
            if left > 0:
                raise self._locked_error(held.who, left)
            version = self._write(found.version)
        if version is None:
            raise self._locked_error("another run, since this moment", self._seconds)
        return version

    def _left(self, found: BucketObject, held: _LeaseRecord) -> float:
        """Return the seconds that a lease has still to live, by the server's own dates."""
        if not held.seconds:
            return 0.0
        key = f"{_CLOCK_PROBE}{secrets.token_hex(8)}"
        self._bucket.put(key, b"", over=ABSENT)
        asked = self._bucket.head(key)
        self._bucket.remove(key)
        if asked is None:
            return held.seconds
        return held.seconds + _MARGIN - (asked.modified - found.modified).total_seconds()

    def _locked_error(self, who: str, left: float) -> LockedError:
        return LockedError(
            f"another run holds s3://{self._bucket.name}/{self._bucket.prefix}",
            evidence=(("who", who), ("until", f"it ends, at most {left:.0f} s after it died")),
            hint="wait until it ends, then run the same command",
        )

    def _write(self, over: str, *, seconds: float | None = None) -> str | None:
        """Write the lease; what is written is never the same twice, nor its version."""
        lives = self._seconds if seconds is None else seconds
        text = {"who": self._who, "holder": self._holder, "seconds": lives}
        body = json.dumps({**text, "write": secrets.token_hex(8)}).encode()
        version = self._bucket.put(LEASE_KEY, body, over=over)
        if version is not None:
            return version
        # A write may have come to pass although its answer was lost, and was sent again.
        there = self._bucket.read(LEASE_KEY, _MOST_BYTES)
        return there[0].version if there is not None and there[1] == body else None

    def _renew(self) -> None:
        pause = self._seconds / _RENEWALS
        while not self._ended.wait(pause):
            began = self._stopwatch()
            try:
                version = self._write(self._version)
            except ResourceSyncError:
                pause = min(pause, 1.0)  # until it is lost it may still be had
                continue
            if version is None:
                self._lost = True
                return
            pause = self._seconds / _RENEWALS
            self._version, self._until = version, began + self._seconds


def _decode_lease(body: bytes) -> _LeaseRecord:
    """Return what a lease says; one that cannot be read is nobody's once it is old."""
    with suppress(ValueError, KeyError, TypeError):
        told = json.loads(body)
        seconds = min(max(float(told["seconds"]), 0.0), _LONGEST)
        return _LeaseRecord(str(told["who"])[:200], str(told["holder"])[:200], seconds)
    return _LeaseRecord("unknown", "", LEASE_SECONDS)
