"""Verification of a package: manifest against dump, bytes against a list (§11.1, §13.1)."""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Final
from xml.sax.saxutils import escape

import msgspec
from msgspec.structs import replace

from resourcesync import errors
from resourcesync.documents._xml_output import attribute, interval, moment_text
from resourcesync.documents.packages.planning import ManifestEntry
from resourcesync.documents.reader import Document
from resourcesync.documents.writer import render
from resourcesync.model.content_codings import ZLIB, Decoder
from resourcesync.model.digests import Digest, usable
from resourcesync.model.entries import Change, Header, Package, Part, RefusedEntry, Resource
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS, Capability, Dialect

_MANIFESTS = {
    Capability.RESOURCE_DUMP: Capability.RESOURCE_DUMP_MANIFEST,
    Capability.CHANGE_DUMP: Capability.CHANGE_DUMP_MANIFEST,
}


def check_manifest(manifest: Header, *, dump: Header, package: Package | None = None) -> None:
    """Check the root of a manifest against the dump that lists its package."""
    uri = "" if package is None else package.uri
    if dump.capability is None or _MANIFESTS.get(dump.capability) is not manifest.capability:
        raise mismatch_error(f"A {dump.phrase} contains no {manifest.phrase}", uri)
    if manifest.at and dump.at and manifest.at < dump.at:
        raise mismatch_error("The manifest is older than its dump", uri)
    if package is None:
        return
    pairs = (
        (manifest.at, package.at),
        (manifest.completed, package.completed),
        (manifest.from_, package.from_),
        (manifest.until, package.until),
    )
    if any(moment and other and moment != other for moment, other in pairs):
        raise mismatch_error("The manifest covers another time than the dump lists", uri)


def check_copy(manifest: Document, copy: Document) -> None:
    """Check that a copy of the manifest (``contents``) equals the packed one."""
    header, other = manifest.header, copy.header
    if (header.capability, header.at, header.from_) != (other.capability, other.at, other.from_):
        raise mismatch_error("The copy of the manifest has another root", copy.uri)
    for entry, copied in zip_longest(manifest.entries(), copy.entries()):
        if entry != copied:
            raise mismatch_error("The copy of the manifest has other entries", copy.uri)


def mismatch_error(message: str, uri: str, evidence: errors.Evidence = ()) -> errors.PackageError:
    """Return the error for a manifest that is not what it must be."""
    return errors.PackageError(message, uri=uri, evidence=evidence, code="manifest-mismatch")


def part_error(reason: str, uri: str, evidence: errors.Evidence = ()) -> errors.PackageError:
    """Return the error for a part of a manifest that cannot be used."""
    return mismatch_error(f"A part of the manifest cannot be used: {reason}", uri, evidence)


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
        raise errors.DigestMismatchError(
            "The hash of the bytes is not the listed one",
            uri=uri,
            evidence=(("list", str(claim)), ("got", f"{claim.algorithm}:{value}")),
        )


def wrong_length(uri: str, expected: int, actual: str) -> errors.LengthMismatchError:
    """Return the error for bytes that are more or fewer than listed."""
    return errors.LengthMismatchError(
        "The length of the bytes is not the listed one",
        uri=uri,
        evidence=(("list", f"{expected:,} bytes"), ("got", actual)),
    )


MAX_DEPTH: Final = 4
"""Manifests inside each other, the first included."""

Refusals = Callable[[RefusedEntry], None]
OpenPart = Callable[[str, Refusals], Document]
"""Function that opens a manifest in the package by its path; each once."""


class _PartEntries(msgspec.Struct, frozen=True):
    """The entries of a part as compressed XML, and the time of its first change."""

    first: datetime | None
    data: bytes


def join_manifests(index: Document, open_part: OpenPart, *, most: int) -> Iterator[bytes]:
    """Yield one manifest of all that the parts of a manifest list."""
    joiner = _ManifestJoiner(index, open_part, most)
    parts = [part for part in joiner.parts(index, MAX_DEPTH) if part.data]
    times = [part.first for part in parts if part.first is not None]
    if len(times) == len(parts):
        ordered = sorted(zip(times, range(len(parts)), strict=True))
        parts = [parts[number] for _, number in ordered]
    yield _opening(index.header)
    for part in parts:
        yield from Decoder(ZLIB).feed(part.data)
    yield b"</urlset>\n"


class _ManifestJoiner:
    def __init__(self, index: Document, open_part: OpenPart, most: int) -> None:
        self._uri = index.uri
        self._header = replace(index.header, is_index=False)
        self._open_part = open_part
        self._left = most

    def parts(self, index: Document, depth: int) -> Iterator[_PartEntries]:
        if depth <= 1:
            raise mismatch_error(
                "The manifests of the package lie too deep inside each other", self._uri
            )
        for part in index.entries():
            assert isinstance(part, Part), "an index has parts"
            refused: list[RefusedEntry] = []
            try:
                document = self._open_part(part.path, refused.append)
                if document.header.capability is not self._header.capability:
                    raise mismatch_error(
                        f"A part of the manifest is a {document.header.phrase}", self._uri
                    )
                if document.header.is_index:
                    yield from self.parts(document, depth - 1)
                else:
                    yield self._entries(document, refused)
                    continue
            except errors.DocumentError as error:
                raise part_error(error.message, self._uri) from error
            if refused:
                raise part_error(refused[0].reason, self._uri)

    def _entries(self, document: Document, refused: list[RefusedEntry]) -> _PartEntries:
        packer, pieces, first = zlib.compressobj(1), list[bytes](), None
        for entry in document.entries():
            assert isinstance(entry, Resource | Change), "a manifest has resources or changes"
            while refused:
                pieces.append(packer.compress(self._counted(_unusable(refused.pop(0).uri))))
            if first is None and isinstance(entry, Change):
                first = entry.time
            pieces.append(packer.compress(self._counted(self._rendered(entry))))
        while refused:
            pieces.append(packer.compress(self._counted(_unusable(refused.pop(0).uri))))
        return _PartEntries(first, b"".join((*pieces, packer.flush())) if pieces else b"")

    def _rendered(self, entry: ManifestEntry) -> bytes:
        resource = entry.resource if isinstance(entry, Change) else entry
        if resource.path and not resource.path.startswith("/"):
            resource = replace(resource, path=f"/{resource.path}")
            entry = replace(entry, resource=resource) if isinstance(entry, Change) else resource
        dialect = Dialect.V1_1
        if isinstance(entry, Change) and entry.time is not None and entry.time == resource.lastmod:
            dialect = Dialect.V1_0  # it has no other time of its own
        try:
            return render(entry, self._header, dialect)
        except ValueError:
            return _unusable(resource.uri)

    def _counted(self, entry: bytes) -> bytes:
        self._left -= len(entry)
        if self._left < 0:
            raise errors.PackageError(
                "The manifests of the package are too large", uri=self._uri, code="manifest-limit"
            )
        return entry


def _unusable(uri: str) -> bytes:
    return f"<url><loc>{escape(uri)}</loc><loc/></url>\n".encode("utf-8", "replace")


def _opening(header: Header) -> bytes:
    told = interval(header) + attribute("modified", moment_text(header.modified))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="{SITEMAP_NS}" xmlns:rs="{RS_NS}">\n'
        f'<rs:md capability="{header.capability}"{told}/>\n'
    ).encode()
