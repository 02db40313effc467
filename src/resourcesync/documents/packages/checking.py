"""Bytes on their way are held against what a list says of them."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from resourcesync.errors import DigestMismatchError, LengthMismatchError
from resourcesync.model.digests import Digest, usable

__all__ = ["check_bytes", "checked_chunks", "running_digest"]


def running_digest(digests: Sequence[Digest]) -> tuple[Digest, "hashlib._Hash"] | None:
    """Return the strongest digest that can be checked, and a hash to feed; ``None`` if none can."""
    claims = usable(digests)
    if not claims:
        return None
    name = claims[0].algorithm.replace("-", "")
    return claims[0], hashlib.new(name, usedforsecurity=False)


def checked_chunks(
    chunks: Iterable[bytes], *, uri: str, length: int | None, digests: Sequence[Digest]
) -> Iterator[bytes]:
    """Yield the chunks; what they are is certain only when the last one was taken.

    Raises:
        LengthMismatchError: There are more or fewer bytes than ``length``; nothing beyond it is
            yielded.
        DigestMismatchError: The strongest digest that can be checked is another one.
    """
    running = running_digest(digests)
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if length is not None and total > length:
            raise wrong_length(uri, length, f"more than {length:,} bytes")
        if running is not None:
            running[1].update(chunk)
        yield chunk
    if length is not None and total != length:
        raise wrong_length(uri, length, f"{total:,} bytes")
    if running is not None:
        check_digest(uri, running[0], running[1].hexdigest())


def check_bytes(data: bytes, *, uri: str, length: int | None, digests: Sequence[Digest]) -> None:
    """Hold bytes that are all here against the same; quickest for one sha-256.

    Raises:
        LengthMismatchError, DigestMismatchError: As `checked` does.
    """
    if length is not None and len(data) != length:
        raise wrong_length(uri, length, f"{len(data):,} bytes")
    if len(digests) == 1 and digests[0] == ("sha-256", hashlib.sha256(data).hexdigest()):
        return
    running = running_digest(digests)
    if running is not None:
        running[1].update(data)
        check_digest(uri, running[0], running[1].hexdigest())


def check_digest(uri: str, claim: Digest, value: str) -> None:
    """Raise `DigestMismatchError` unless the digest is the listed one."""
    if value != claim.value:
        raise DigestMismatchError(
            "The bytes have another hash than the list says",
            uri=uri,
            expected=str(claim),
            actual=f"{claim.algorithm}:{value}",
        )


def wrong_length(uri: str, expected: int, actual: str) -> LengthMismatchError:
    """Return the error for bytes that are more or fewer than listed."""
    return LengthMismatchError(
        "The bytes are not as many as the list says",
        uri=uri,
        expected=f"{expected:,} bytes",
        actual=actual,
    )
