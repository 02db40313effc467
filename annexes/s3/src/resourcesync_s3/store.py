"""The ``Store`` port on a bucket, by conditional writes, with a lease.

A lease is an object that its holder rewrites again and again. No local clock is trusted: the server
gives the age of a lease, by the dates of the lease and of an object put for comparison; a
monotonic clock measures how long this process has it. Each step from one holder to the next is a
conditional write: of two, one wins.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import BinaryIO, Final, NamedTuple, Self

from resourcesync.errors import ConfigurationError, LockedError, ResourceSyncError, StorageError
from resourcesync.ports.stores import ObjectContent, StoredObject
from resourcesync_s3.bucket import ABSENT, Bucket, BucketObject

LEASE_SECONDS: Final = 60.0
"""Seconds after which a lease expires that is not renewed."""
LEASE_KEY: Final = ".resourcesync/lease"
"""The key of the lease."""
_CLOCK_PROBE: Final = ".resourcesync/tmp/now-"
_MOST_BYTES: Final = 4_096
_LONGEST: Final = 3_600.0
_MARGIN: Final = 2.0  # dates have whole seconds
_RENEWALS: Final = 4
_NEVER_STORED: Final = f'"{"0" * 32}"'


def _stopwatch() -> float:
    """Return monotonic seconds, including suspend if the system counts it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class _LeaseRecord(NamedTuple):
    """The content of a lease; ``seconds`` is 0 if it is free."""

    who: str
    holder: str
    seconds: float


class Lease:
    """A lease, from entering the block to leaving it."""

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
        if version is None:  # which proves the condition of a new object
            version = self._take_over()
            self._check_refused(_NEVER_STORED)
        else:
            self._check_refused(_NEVER_STORED, ABSENT)
        self._version, self._until = version, began + self._seconds
        self._renewing.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._renewing.join()
        if not self._lost:
            with suppress(ResourceSyncError):  # it also expires
                self._write(self._version, seconds=0)

    def check(self) -> None:
        """Check that this process still has the lease."""
        if self._lost or self._stopwatch() >= self._until:
            raise LockedError(
                f"the lock on s3://{self._bucket.name} was lost",
                evidence=(("kept", "all that was put before"),),
                hint="try again: it resumes there",
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
        """Return the remaining seconds of a lease, by the server's own dates."""
        if not held.seconds:
            return 0.0
        key = f"{_CLOCK_PROBE}{secrets.token_hex(8)}"
        self._bucket.put(key, b"", over=ABSENT)
        asked = self._bucket.head(key)
        self._bucket.remove(key)
        if asked is None:
            return held.seconds
        return held.seconds + _MARGIN - (asked.modified - found.modified).total_seconds()

    def _check_refused(self, *overs: str) -> None:
        """Check that the server refuses to replace this lease under conditions that do not hold."""
        for over in overs:
            if self._bucket.put(LEASE_KEY, b"", over=over) is None:
                continue
            self._bucket.remove(LEASE_KEY)
            name = "If-Match" if over else "If-None-Match"
            raise ConfigurationError(
                f"the server of s3://{self._bucket.name} does not support conditional writes",
                evidence=(
                    ("got", f"a write in spite of {name}, which did not hold"),
                    ("kept", "all objects: nothing was written but a lock, which is removed"),
                ),
                hint="use a server that supports If-Match and If-None-Match when an object is put",
                code="no-conditions",
            )

    def _locked_error(self, who: str, left: float) -> LockedError:
        return LockedError(
            f"another run holds s3://{self._bucket.name}/{self._bucket.prefix}",
            evidence=(("who", who), ("until", f"it ends, at most {left:.0f} s after it died")),
            hint="wait until it ends, then try again",
        )

    def _write(self, over: str, *, seconds: float | None = None) -> str | None:
        """Write the lease; its content and version are always new."""
        lives = self._seconds if seconds is None else seconds
        text = {"who": self._who, "holder": self._holder, "seconds": lives}
        body = json.dumps({**text, "write": secrets.token_hex(8)}).encode()
        version = self._bucket.put(LEASE_KEY, body, over=over)
        if version is not None:
            return version
        # A write may have succeeded although its answer was lost, and was retried.
        there = self._bucket.read(LEASE_KEY, _MOST_BYTES)
        return there[0].version if there is not None and there[1] == body else None

    def _renew(self) -> None:
        pause = self._seconds / _RENEWALS
        while not self._ended.wait(pause):
            began = self._stopwatch()
            try:
                version = self._write(self._version)
            except ResourceSyncError:
                pause = min(pause, 1.0)  # until it expires it may still be renewed
                continue
            if version is None:
                self._lost = True
                return
            pause = self._seconds / _RENEWALS
            self._version, self._until = version, began + self._seconds


def _decode_lease(body: bytes) -> _LeaseRecord:
    """Decode a lease; an invalid one is free once it is old."""
    with suppress(ValueError, KeyError, TypeError):
        told = json.loads(body)
        seconds = min(max(float(told["seconds"]), 0.0), _LONGEST)
        return _LeaseRecord(str(told["who"])[:200], str(told["holder"])[:200], seconds)
    return _LeaseRecord("unknown", "", LEASE_SECONDS)


TEMPORARY: Final = ".resourcesync/tmp/"
"""The prefix of staged objects; the holder of the store removes those that others left."""
_OWN: Final = (TEMPORARY, LEASE_KEY)
PATIENCE: float = 60.0
"""Seconds for which a failed request is retried."""
_IN_FLIGHT: Final = 16
_BLOCK: Final = 1 << 20
_MARK: Final = "write"


class BucketStore:
    """A store of bytes by keys below a prefix of a bucket.

    A small body is put in one conditional request. A larger one is put in parts under a temporary
    key, and copied from there by the server, under the same condition.
    """

    max_in_flight: int = _IN_FLIGHT
    """Number of concurrent calls, from several threads."""
    largest_whole: int = 8 << 20
    """The most bytes that are put in one request."""

    def __init__(self, bucket: Bucket, leasing: Bucket, seconds: float) -> None:
        self._bucket = bucket
        self._leasing = leasing
        self._seconds = seconds
        self._lease: Lease | None = None

    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        """Store bytes, if the key still has the version to replace."""
        self._check_hold()
        over = replaces or ABSENT
        token = secrets.token_hex(16)
        if content.length > self.largest_whole:
            return self._put_large(key, content, replaces, token)
        body = b"".join(_VerifiedBlocks(key, content))
        version = self._bucket.put(key, body, over=over, attributes=_attributes(content, token))
        # If an answer was lost, the retry finds the object that it put.
        return self._marked(key, token) if version is None else version

    def _put_large(
        self, key: str, content: ObjectContent, replaces: str | None, token: str
    ) -> str | None:
        there = self._bucket.head(key)
        if replaces != (None if there is None else there.version):
            return None  # do not upload a large body in vain
        if content.length > self._bucket.largest_copy:
            blocks, attributes = _VerifiedBlocks(key, content), _attributes(content, token)
            self._bucket.put_parts(key, blocks, content.length, attributes)
            return self._marked(key, token)
        place = self.stage(content)
        try:
            return self.put_staged(key, place, content.length, replaces)
        finally:
            self._bucket.remove(place)

    def stage(self, content: ObjectContent) -> str:
        """Store bytes under a temporary key, without the lease; return the key."""
        token = secrets.token_hex(16)
        place = f"{TEMPORARY}{token}"
        blocks, attributes = _VerifiedBlocks(place, content), _attributes(content, token)
        if content.length > self.largest_whole:
            self._bucket.put_parts(place, blocks, content.length, attributes)
        else:
            self._bucket.put(place, b"".join(blocks), attributes=attributes)
        return place

    def put_staged(self, key: str, place: str, length: int, replaces: str | None) -> str | None:
        """Copy staged bytes to a key within the bucket, if it still has the version to replace."""
        self._check_hold()
        self._bucket.copy(place, key, length, over=replaces or ABSENT)
        return self._marked(key, place.removeprefix(TEMPORARY))

    def _marked(self, key: str, token: str) -> str | None:
        """Return the version at a key if this put wrote it, as its token shows."""
        found = self._bucket.attributes(key)
        return found[0].version if found and found[1].get(_MARK) == token else None

    def stat(self, key: str) -> StoredObject | None:
        """Return the object at a key now; ``None`` for none."""
        found = self._bucket.head(key)
        return None if found is None else StoredObject(found.version, found.length)

    def open(self, key: str) -> BinaryIO | None:
        """Open the bytes at a key, of one version to the end; ``None`` for none."""
        return self._bucket.open(key)

    def move(self, key: str, to: str, version: str) -> bool:
        """Move a version to a free key; false if it is not at ``key`` any more.

        S3 cannot rename: the object is copied, checked again, and removed. A write to ``key``
        between the check and the removal is lost, unless the bucket has versioning.
        """
        self._check_hold()
        there = self._bucket.head(key)
        if there is None or there.version != version:
            return False
        if not self._bucket.copy(key, to, there.length, over=ABSENT):
            if self._bucket.head(to) is None:
                return False
            raise StorageError(f"{to} exists already: nothing was moved", code="store")
        again = self._bucket.head(key)
        if again is None or again.version != version:
            self._bucket.remove(to)
            return False
        self._check_hold()
        self._bucket.remove(key)
        return True

    def remove(self, key: str) -> None:
        """Delete the object at a key; it is no error if there is none."""
        self._check_hold()
        self._bucket.remove(key)

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield all keys with a prefix, except those of staged objects and of the lease."""
        return (
            bucket_object.key
            for bucket_object in self._bucket.list(prefix)
            if not bucket_object.key.startswith(_OWN)
        )

    @contextmanager
    def lock(self, who: str, holder: str = "") -> Iterator[None]:
        """Lock the store; take over at once a lease that a dead run of the same holder left."""
        self._bucket.head(LEASE_KEY)  # a lease cannot wait for a server that is down
        lease = Lease(self._leasing, who, holder=holder, seconds=self._seconds)
        with lease:
            self._lease = lease
            try:
                for left in self._bucket.list(TEMPORARY):
                    self._bucket.remove(left.key)
                yield
            finally:
                self._lease = None

    def _check_hold(self) -> None:
        if self._lease is not None:
            self._lease.check()


def _attributes(content: ObjectContent, token: str) -> dict[str, str]:
    """Return the header fields to store with bytes, with a token that marks this call."""
    attributes = {**dict(content.headers), _MARK: token}
    if content.lastmod is not None:
        attributes["mtime"] = f"{content.lastmod.timestamp()}"
    return attributes


class _VerifiedBlocks:
    """The blocks of a body, verified against the digests at the end."""

    def __init__(self, key: str, content: ObjectContent) -> None:
        self._key = key
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        content = self._content
        known = sorted(
            filter(lambda digest: digest.is_usable, content.digests),
            key=lambda digest: len(digest.value),
        )
        named = [(digest, hashlib.new(digest.algorithm.replace("-", ""))) for digest in known[-1:]]
        left = content.length
        while block := content.stream.read(min(_BLOCK, left + 1)):
            left -= len(block)
            for _, hasher in named:
                hasher.update(block)
            yield block
        if left or any(digest.value != hasher.hexdigest() for digest, hasher in named):
            raise StorageError(
                f"the bytes of {self._key} changed since they were fetched",
                evidence=(("kept", "what was stored before"),),
                hint="check this machine's disk and memory",
            )


def open_store(address: str) -> BucketStore:
    """Open the store at ``s3://BUCKET/PREFIX``; nothing is written yet."""
    leasing = Bucket(address, patience=min(PATIENCE, LEASE_SECONDS / 4))
    return BucketStore(Bucket(address, patience=PATIENCE), leasing, LEASE_SECONDS)
