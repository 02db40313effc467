"""Writer of packages and copies of their manifests: files as they are now; all is read back."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import BinaryIO, Final

import msgspec
from msgspec.structs import replace

from resourcesync import errors
from resourcesync.documents import writer
from resourcesync.documents.packages.planning import ManifestEntry, content_of
from resourcesync.documents.packages.reader import open_package
from resourcesync.documents.packages.safety import PackageLimits
from resourcesync.documents.packages.zip_writer import write_package
from resourcesync.model.entries import Change, Header, Link, Resource, ResourceRun, without_patches
from resourcesync.model.vocabulary import ChangeKind, Dialect
from resourcesync.ports.documents import DocumentStore, SecondProcess
from resourcesync.ports.originals import ResourceContents
from resourcesync.source.document_writer import digest_of
from resourcesync.source.dump_record import PublishedPackage
from resourcesync.source.naming import PackageNames
from resourcesync.source.read_back import read_back_error

_TRIES: Final = 3
_CHUNK: Final = 1 << 16
_SHORT: Final = 1 << 17
"""Size of one read, in bytes."""
_OURS: Final = PackageLimits(ratio=1_100, rewinds=0)
"""Deflate makes bytes at most 1,032 times smaller: no file of our own is a bomb."""
_CHANGE_ERRORS: Final = (
    errors.OriginalChangedError,
    errors.LengthMismatchError,
    errors.DigestMismatchError,
)


class PackageJob(msgspec.Struct, frozen=True, kw_only=True):
    """A package to be written."""

    names: PackageNames
    header: Header  # the root of the manifest
    entries: Sequence[ManifestEntry]
    key: str  # identifies the contents
    text: bytes  # the rendered entries of the manifest
    since: int  # microseconds
    dialect: Dialect  # of the manifest


class Packager:
    """Writer of packages from the originals.

    ``renewed`` has the resources that differ in the package from the requested state, by URI;
    ``None`` for those that no longer exist. The log of changes must record them.
    """

    def __init__(
        self, store: DocumentStore, contents: ResourceContents, second: SecondProcess | None = None
    ) -> None:
        self.renewed: dict[str, Resource | None] = {}
        self.harmed = 0
        self._store = store
        self.contents = contents
        self._second = second

    def confirm(self, packed: PublishedPackage) -> PublishedPackage | None:
        """Return a package as it was written, with the copy of its manifest; else count it."""
        if self._signature(packed.name, packed.manifest) == packed.signature:
            return packed
        is_it = digest_of(self._store, packed.name) == packed.digest
        stream = self._store.open(packed.name) if is_it else None
        if stream is None:
            self.harmed += 1
            return None
        with closing(stream):
            reader = open_package(stream, uri=packed.name, limits=_OURS)
            self._store.write(packed.manifest, reader.manifest_chunks())
        return replace(packed, signature=self._signature(packed.name, packed.manifest))

    def pack_all(
        self, planned: Iterable[PublishedPackage | PackageJob]
    ) -> Iterator[PublishedPackage]:
        """Write packages, two at a time with a second process; yield all packages in order."""
        waiting: list[PublishedPackage | PackageJob] = []
        for item in planned:
            waiting.append(item)
            if sum(isinstance(item, PackageJob) for item in waiting) == (2 if self._second else 1):
                yield from self._pack_waiting(waiting)
                waiting = []
        yield from self._pack_waiting(waiting)

    def _pack_waiting(
        self, waiting: Sequence[PublishedPackage | PackageJob]
    ) -> Iterator[PublishedPackage]:
        second, jobs = self._second, [item for item in waiting if isinstance(item, PackageJob)]
        if second is None or len(jobs) < 2:  # noqa: PLR2004 - one for each process
            for item in waiting:
                yield self.pack(item) if isinstance(item, PackageJob) else item
            return
        second.start(lambda: (self.pack(jobs[1]), self.renewed))
        try:
            for item in waiting:
                if isinstance(item, PublishedPackage):
                    yield item
                elif item is jobs[1] and (done := second.result()) is not None:
                    packed, renewed = done
                    self.renewed.update(renewed)
                    yield packed
                else:
                    yield self.pack(item)
        finally:
            second.stop()

    def pack(self, job: PackageJob) -> PublishedPackage:
        """Write a package and the copy of its manifest.

        A resource that differs from the requested entry is packed as it is now, with an entry for
        this newer state. One that no longer exists is left out, or becomes a deletion if the entry
        is a change. Both are recorded in ``renewed``.
        """
        requested, name = job.entries, job.names.package
        for _ in range(_TRIES):
            try:
                packed = self._write(job)
            except _CHANGE_ERRORS:
                entries = list(self._current_entries(job.entries))
                job = replace(
                    job, entries=entries, text=writer.body(entries, job.header, job.dialect)
                )
                if not any(map(content_of, entries)):  # the same as a disk that is not mounted
                    raise errors.OriginalChangedError(
                        f"all resources to pack into {name} are gone",
                        evidence=(("kept", "what was published before"),),
                        hint="check that the disk is mounted, then run it again",
                    ) from None
            else:
                return (
                    packed
                    if job.entries is requested
                    else self._note_renewed(packed, requested, job.entries)
                )
        raise errors.OriginalChangedError(
            f"a resource in {name} changed each time it was packed",
            evidence=(("kept", "what was published before"),),
            hint="run it again when fewer files change",
        )

    def _write(self, job: PackageJob) -> PublishedPackage:
        names, header, entries = job.names, job.header, job.entries
        around = writer.opening(header, job.dialect), writer.closing(header, job.dialect)
        manifest = job.text.join(around)
        running = hashlib.sha256()

        def hashed() -> Iterator[bytes]:
            for chunk in write_package(header, entries, self._bytes_of, manifest):
                running.update(chunk)
                yield chunk

        length = self._store.write(
            names.package, hashed(), lambda stream: _check(stream, names.package, manifest)
        )
        self._store.write(names.manifest, (manifest,))
        return PublishedPackage(
            name=names.package,
            manifest=names.manifest,
            key=job.key,
            start=entries[0].uri,
            since=job.since,
            entries=len(entries),
            content=sum(_lengths(entries)),
            length=length,
            digest=running.hexdigest(),
            signature=self._signature(names.package, names.manifest),
        )

    def _note_renewed(
        self,
        packed: PublishedPackage,
        requested: Sequence[ManifestEntry],
        entries: Sequence[ManifestEntry],
    ) -> PublishedPackage:
        found = {entry.uri: content_of(entry) for entry in entries}
        for entry in requested:
            was, now = content_of(entry), found.get(entry.uri)
            if was is None or (isinstance(now, Resource) and now.digests == was.digests):
                continue
            self.renewed[entry.uri] = replace(now, path="") if isinstance(now, Resource) else None
        return replace(packed, key="")

    def _signature(self, package: str, manifest: str) -> str:
        found = [self._store.signature(name) for name in (package, manifest)]
        return "" if None in found else " ".join(map(str, found))

    def _bytes_of(self, content: Resource | Link) -> Iterable[bytes]:
        if isinstance(content, Resource):
            uri, stream = content.uri, self.contents.open(content)
        else:
            uri, stream = content.href, self.contents.open_patch(content)
        if stream is None:
            raise errors.OriginalChangedError(f"{uri} no longer exists")
        length = content.length
        if length is None or length > _SHORT:
            return _pieces(stream, uri)
        with stream:  # one byte more, to see if there is more than the entry says
            data = _read(stream, uri, length + 1)
            while len(data) < length and (more := _read(stream, uri)):
                data += more
        return (data,)

    def _current_entries(self, entries: Sequence[ManifestEntry]) -> Iterator[ManifestEntry]:
        for entry in entries:
            resource = content_of(entry)
            if resource is None:
                yield entry
                continue
            found = self.contents.measure(entry.uri)
            if found is not None:
                # Links to versions are those of its present version; a patch is not packed by
                # itself.
                found = replace(without_patches(found), path=resource.path)
            if isinstance(entry, Change) and found is None:
                yield replace(entry, kind=ChangeKind.DELETED, resource=Resource(uri=entry.uri))
            elif isinstance(entry, Change):
                yield replace(entry, resource=found)
            elif found is not None:
                yield found


def _lengths(entries: Sequence[ManifestEntry]) -> Iterator[int]:
    if isinstance(entries, ResourceRun):
        yield from filter(None, entries.lengths)
        return
    for entry in entries:
        resource = content_of(entry)
        if resource is not None:
            yield resource.length or 0


def _pieces(stream: BinaryIO, uri: str) -> Iterator[bytes]:
    with closing(stream):
        while chunk := _read(stream, uri):
            yield chunk


def _read(stream: BinaryIO, uri: str, most: int = _CHUNK) -> bytes:
    try:
        return stream.read(most)
    except OSError as error:
        raise errors.StorageError(
            f"{uri} cannot be read: {error.strerror}",
            evidence=(("kept", "what was published before"),),
            hint="make the file readable, or exclude it",
            code="unreadable-file",
        ) from error


def _check(stream: BinaryIO, name: str, manifest: bytes) -> None:
    try:
        reader = open_package(stream, uri=name, limits=_OURS)
        fault = "" if b"".join(reader.manifest_chunks()) == manifest else "its manifest differs"
        if not fault:
            reader.verify()
            if reader.unlisted:
                fault = "it contains more than its manifest lists"
    except (errors.PackageError, errors.DocumentError, errors.VerificationError) as error:
        fault = error.message
    if fault:
        raise read_back_error(name, fault)
