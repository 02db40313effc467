"""Storage of the versions of resources (§14.6), and patches, proven by applying them (§14.4).

A version is durable before anybody can know of it: its bytes are stored while the resource is
measured, before the catalogue records the change, and so before a list names it.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from functools import cache
from typing import IO, TYPE_CHECKING, BinaryIO, Final, cast

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.version_files import FolderVersions
from resourcesync.catalogue.versions import ResourceVersion, VersionPatch
from resourcesync.documents.patches.limits import BoundedSink
from resourcesync.errors import ConfigurationError, OriginalChangedError, PatchError
from resourcesync.model.digests import Digest, format_digests, parse_digests
from resourcesync.model.entries import Link, Resource
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Relation
from resourcesync.ports.originals import Original, Originals, WrappedOriginals
from resourcesync.ports.patches import PatchComputer, Patcher, PatchFormat, PatchMaker
from resourcesync.source.naming import FOLDER, SourceNaming
from resourcesync.source.present_contents import OpenOriginal, PresentContents

if TYPE_CHECKING:
    from resourcesync.source.publisher import OpenSource

_log = logging.getLogger(__name__)
_MAX_IN_MEMORY: Final = 1 << 20
_CHUNK: Final = 1 << 18


class PatchGenerator:
    """Generator of patches; those of a plug-in are verified like our own."""

    def __init__(
        self,
        makers: Callable[[], Sequence[PatchMaker]],
        formats: Callable[[], Mapping[str, PatchFormat]],
    ) -> None:
        self._makers = cache(makers)
        self._formats = cache(formats)
        self._load = cache(self._loaded)

    def compute(
        self, before: BinaryIO, after: BinaryIO, *, media_type: str, largest: int, length: int
    ) -> tuple[str, IO[bytes]] | None:
        """Return the format and the bytes of a patch that is proven to yield the new version."""
        kind = media_type.partition(";")[0].strip().lower()
        for maker in self._makers():
            if maker.media_type not in self._formats() or not maker.supports(kind):
                continue
            if maker.largest is not None and largest > maker.largest:
                continue
            from tempfile import SpooledTemporaryFile  # noqa: PLC0415 - quick start

            patch = cast("IO[bytes]", SpooledTemporaryFile(_MAX_IN_MEMORY))  # noqa: SIM115 - returned
            try:
                self._compute_proven(maker, before, after, patch, length)
            except Exception as error:  # noqa: BLE001 - a plug-in is foreign code
                patch.close()
                _log.debug("no %s: %.300s", maker.media_type, error)
                continue
            patch.seek(0)
            return maker.media_type, patch
        return None

    def _compute_proven(
        self, maker: PatchMaker, before: BinaryIO, after: BinaryIO, patch: IO[bytes], length: int
    ) -> None:
        _rewind(before, after)
        refusal = "the patch is not smaller than the new version"
        limited = cast("BinaryIO", BoundedSink(patch.write, length - 1, refusal))
        compute, apply = self._load(maker)
        compute(before, after, limited, length - 1)
        _rewind(before, patch)
        running = hashlib.sha256()
        result = BoundedSink(running.update, length, "the result is larger than the new version")
        apply(before, cast("BinaryIO", patch), cast("BinaryIO", result), length)
        _rewind(after)
        if running.hexdigest() != digest_of(after):
            raise PatchError("the patch does not yield the new version")

    def _loaded(self, maker: PatchMaker) -> tuple[PatchComputer, Patcher]:
        return maker.load(), self._formats()[maker.media_type].load()


def digest_of(stream: IO[bytes]) -> str:
    """Return the sha-256 of the rest of a stream, in hex."""
    running = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        running.update(chunk)
    return running.hexdigest()


def _rewind(*streams: IO[bytes]) -> None:
    for stream in streams:
        stream.seek(0)


_TRIES: Final = 3
ALGORITHM: Final = "sha-256"
"""The digest that identifies stored versions."""
VERSIONS_FOLDER: Final = "versions/"
"""The folder of versions, below the folder of the documents."""


class VersionNames(msgspec.Struct, frozen=True, kw_only=True):
    """Public addresses of versions: below one folder, which is not one of files."""

    naming: SourceNaming

    def memento(self, uri: str, moment: int) -> str:
        """Return the address of one version."""
        return self._address(f"{stamp(moment)}/", uri)

    def patch(self, uri: str, moment: int) -> str:
        """Return the address of the patch to a version from the one before."""
        return self._address(f"patch/{stamp(moment)}/", uri)

    def timegate(self, uri: str) -> str:
        """Return the address of a resource's TimeGate."""
        return self._address("timegate/", uri)

    def timemap(self, uri: str) -> str:
        """Return the address of a resource's TimeMap."""
        return self._address("timemap/", uri)

    def _address(self, folder: str, uri: str) -> str:
        path = uri.removeprefix(self.naming.base_uri)
        return f"{self.naming.uri(FOLDER)}{VERSIONS_FOLDER}{folder}{path}"

    def links(self, resource: Resource, version: ResourceVersion) -> tuple[Link, ...]:
        """Return the links of an entry to its version: never to a patch that it does not have."""
        uri = version.uri
        memento, listed = self.memento(uri, version.moment), "application/link-format"
        return (
            Link(rel=Relation.MEMENTO.value, href=memento, modified=resource.lastmod),
            Link(rel=Relation.TIMEGATE.value, href=self.timegate(uri)),
            Link(rel=Relation.TIMEMAP.value, href=self.timemap(uri), media_type=listed),
        )

    def patch_link(self, version: ResourceVersion, patch: VersionPatch) -> Link:
        """Return the link to the patch that leads to a version."""
        return Link(
            rel=Relation.PATCH.value,
            href=self.patch(version.uri, version.moment),
            media_type=patch.media_type,
            length=patch.length,
            digests=(Digest(ALGORITHM, patch.sha256),),
        )


def stamp(moment: int) -> str:
    """Return the name of a version among those of its resource: 20 digits."""
    return f"{from_microseconds(moment):%Y%m%d%H%M%S%f}"


def parse_stamp(text: str) -> int | None:
    """Return the moment of a version's name; ``None`` for any other text."""
    if len(text) != len("20260101000000000000") or not (text.isascii() and text.isdecimal()):
        return None
    with suppress(ValueError):
        return to_microseconds(datetime.strptime(f"{text}+0000", "%Y%m%d%H%M%S%f%z"))
    return None


class VersionRecorder:
    """Recorder of versions; it counts those stored, patched, and skipped for want of room.

    Where they are not public, entries do not lead to them: only changed versions are stored, for
    the next package of changes.
    """

    def __init__(
        self, source: "OpenSource", store: FolderVersions, patches: PatchGenerator | None
    ) -> None:
        settings = source.settings
        self.stored = self.patched = self.skipped = 0
        self.index = source.catalogue.versions()
        self.content = store
        self._names = VersionNames(naming=SourceNaming(base_uri=settings.url))
        self._clock = source.clock
        self._is_public, self._most = settings.versions, settings.versions_max_bytes
        self._patches = patches
        self._last = 0
        self._size = self.index.stored_bytes() if self._most else 0

    def store(
        self, resource: Resource, opening: Callable[[str], BinaryIO | None]
    ) -> tuple[Link, ...] | None:
        """Store the bytes of a measured resource; return the links to them."""
        is_public = self._is_public
        sha256, length = sha256_of(resource), resource.length
        if not is_public and (
            sha256 is None
            or self.index.recorded_hash(resource.uri) == format_digests(resource.digests)
        ):
            return ()
        if sha256 is None or length is None:
            raise ConfigurationError(f"versions need a {ALGORITHM}, which is not known")
        newest = self.index.newest(resource.uri)
        if not self.content.contains(sha256, length):
            if not self._make_room(length):
                self.skipped += 1
                return ()
            stream = opening(resource.uri)
            if stream is None:
                return None
            with closing(stream):
                if not self.content.store(stream, sha256, length):
                    return None
            self._size += length
        if newest is None or newest.is_superseded or newest.sha256 != sha256:
            return self._add(resource, sha256, length, newest)
        return self._names.links(resource, newest) if is_public else ()

    def flush(self) -> None:
        """Flush the stored bytes to disk, before the catalogue refers to them."""
        self.content.flush()

    def _add(
        self, resource: Resource, sha256: str, length: int, before: ResourceVersion | None
    ) -> tuple[Link, ...]:
        moment = max(to_microseconds(self._clock.now()), self._last + 1)
        if before is not None:
            moment = max(moment, before.moment + 1)
        self._last = moment
        version = ResourceVersion(
            uri=resource.uri,
            moment=moment,
            since=_since(resource, before, moment),
            length=length,
            sha256=sha256,
            media_type=resource.media_type,
        )
        if before is not None and self._patches is not None:
            version = replace(version, patch=self._patch(before, version))
        self.index.add(version)
        self.stored += 1
        if not self._is_public:
            return ()
        links = self._names.links(resource, version)
        if version.patch is None:
            return links
        self.patched += 1
        return (*links, self._names.patch_link(version, version.patch))

    def _patch(self, before: ResourceVersion, after: ResourceVersion) -> VersionPatch | None:
        """Its base is the version that was listed last: some may not have been stored."""
        assert self._patches is not None, "asked only where patches are computed"
        listed = parse_digests(self.index.recorded_hash(before.uri))
        if Digest(ALGORITHM, before.sha256) not in listed:
            return None
        binary_io, other = self.content.open(before.sha256), self.content.open(after.sha256)
        if binary_io is None or other is None:
            for stream in filter(None, (binary_io, other)):
                stream.close()
            return None
        with closing(binary_io), closing(other):
            found = self._patches.compute(
                binary_io,
                other,
                media_type=after.media_type,
                largest=max(before.length, after.length),
                length=after.length,
            )
        if found is None:
            return None
        media_type, patch = found
        with closing(patch):
            return self._store_patch(media_type, patch, after.sha256)

    def _store_patch(self, media_type: str, patch: IO[bytes], leads_to: str) -> VersionPatch | None:
        sha256 = digest_of(patch)
        length = patch.tell()
        patch.seek(0)
        is_new = not self.content.contains(sha256, length)
        if is_new and not self._make_room(length, leads_to):
            return None
        if not self.content.store(cast("BinaryIO", patch), sha256, length):
            return None
        self._size += length * is_new
        return VersionPatch(sha256=sha256, length=length, media_type=media_type)

    def _make_room(self, length: int, spared: str = "") -> bool:
        """The version ``spared`` is about to be current again: the index does not know that yet."""
        most = self._most
        if not most:
            return True
        if length > most:
            return False
        while self._size + length > most:
            gone = self.index.drop_oldest()
            if gone is None:
                return False
            gone = tuple(item for item in gone if item[0] != spared)
            self._size -= sum(size for _, size in gone)
            self.content.remove(gone)
        return True


def _since(resource: Resource, before: ResourceVersion | None, moment: int) -> int:
    """Return the start of a resource's state: its Last-Modified, unless that is impossible."""
    if resource.lastmod is None:
        return moment
    modified = to_microseconds(resource.lastmod)
    if modified > moment or (before is not None and modified <= before.moment):
        return moment
    return modified


def sha256_of(content: Resource | Link) -> str | None:
    """Return the sha-256 of a resource or of the target of a link, if it is known."""
    found = (digest.value for digest in content.digests if digest.algorithm == ALGORITHM)
    return next(found, None)


class VersionedOriginals(WrappedOriginals):
    """Originals whose versions are stored when they are read (``Originals``)."""

    def __init__(self, originals: Originals, keeper: VersionRecorder) -> None:
        super().__init__(originals)
        self._recorder = keeper

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read and store the bytes; return the resource with the links to its versions."""
        for _ in range(_TRIES):
            resource, fingerprint = self._originals.measure(original)
            links = self._recorder.store(resource, self._originals.open)
            if links is not None:
                return replace(resource, links=(*resource.links, *links)), fingerprint
            original = original._replace(fingerprint="")  # read it again: it changed since
        raise OriginalChangedError(f"{original.uri} changed each time it was read")


class VersionedContents(PresentContents):
    """The bytes of the originals as they are now, and of stored versions."""

    def __init__(self, originals: Originals, opening: OpenOriginal, store: FolderVersions) -> None:
        super().__init__(originals, opening)
        self._store = store

    def contains(self, resource: Resource) -> bool:
        """True if the bytes of a version are stored."""
        sha256, length = sha256_of(resource), resource.length
        return sha256 is not None and length is not None and self._store.contains(sha256, length)

    def open(self, resource: Resource) -> BinaryIO | None:
        """Open the bytes of a version; the present ones when it is not stored."""
        sha256 = sha256_of(resource)
        kept = self._store.open(sha256) if sha256 is not None and self.contains(resource) else None
        return super().open(resource) if kept is None else kept

    def open_patch(self, patch: Link) -> BinaryIO | None:
        """Open a patch; ``None`` when it is not stored."""
        sha256 = sha256_of(patch)
        return None if sha256 is None else self._store.open(sha256)
