"""Verification of a package: manifest against dump, bytes against a list (§11.1, §13.1)."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from resourcesync.documents.reader import Document
from resourcesync.errors import DigestMismatchError, LengthMismatchError, PackageError
from resourcesync.model.capabilities import Header, Package
from resourcesync.model.digests import Digest, usable
from resourcesync.model.vocabulary import Capability

_MANIFESTS = {
    Capability.RESOURCE_DUMP: Capability.RESOURCE_DUMP_MANIFEST,
    Capability.CHANGE_DUMP: Capability.CHANGE_DUMP_MANIFEST,
}


def check_manifest(manifest: Header, *, dump: Header, package: Package | None = None) -> None:
    """Check the root of a manifest against the dump that lists its package."""
    uri = "" if package is None else package.uri
    if dump.capability is None or _MANIFESTS.get(dump.capability) is not manifest.capability:
        raise _mismatch(f"A {dump.phrase} contains no {manifest.phrase}", uri)
    if manifest.at and dump.at and manifest.at < dump.at:
        raise _mismatch("The manifest is older than its dump", uri)
    if package is None:
        return
    pairs = (
        (manifest.at, package.at),
        (manifest.completed, package.completed),
        (manifest.from_, package.from_),
        (manifest.until, package.until),
    )
    if any(moment and other and moment != other for moment, other in pairs):
        raise _mismatch("The manifest covers another time than the dump lists", uri)


def check_copy(manifest: Document, copy: Document) -> None:
    """Check that a copy of the manifest (``contents``) equals the packed one.

    Both are read to their ends, or to the first difference.
    """
    header, other = manifest.header, copy.header
    if (header.capability, header.at, header.from_) != (other.capability, other.at, other.from_):
        raise _mismatch("The copy of the manifest has another root", copy.uri)
    for entry, copied in zip_longest(manifest.entries(), copy.entries()):
        if entry != copied:
            raise _mismatch("The copy of the manifest has other entries", copy.uri)


def _mismatch(message: str, uri: str) -> PackageError:
    return PackageError(message, uri=uri, code="manifest-mismatch")


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
    """Yield the chunks; they are verified only when the last one was read."""
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
    """Check bytes in memory likewise; quickest for one sha-256."""
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
            "The hash of the bytes is not the listed one",
            uri=uri,
            evidence=(("list", str(claim)), ("got", f"{claim.algorithm}:{value}")),
        )


def wrong_length(uri: str, expected: int, actual: str) -> LengthMismatchError:
    """Return the error for bytes that are more or fewer than listed."""
    return LengthMismatchError(
        "The length of the bytes is not the listed one",
        uri=uri,
        evidence=(("list", f"{expected:,} bytes"), ("got", actual)),
    )
