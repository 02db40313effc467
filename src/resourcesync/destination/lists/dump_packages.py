"""Packages of a Source's dumps: listed, downloaded to the mirror's disk, and opened (§11, §13).

A package is a temporary file beside the mirror, like any download: if its dump gives a strong
digest, a later run continues an interrupted one.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from resourcesync import errors
from resourcesync.destination.external_sort import translate_disk_errors
from resourcesync.destination.lists.list_documents import REPORT_IT, too_many_listed
from resourcesync.destination.options import Dependencies
from resourcesync.discovery.document_fetcher import DocumentFetcher, FetchedDocument, fetch
from resourcesync.discovery.uris import origin_if_any
from resourcesync.model.digests import Digest, disagree, format_digests, has_strong, usable
from resourcesync.model.entries import Header, Package, Part
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import Relation
from resourcesync.ports import FetchFailure, FetchRequest, Proof, Purpose, StagedCopy

if TYPE_CHECKING:
    from resourcesync.documents.packages.reader import PackageReader
    from resourcesync.documents.reader import Document

_log = logging.getLogger(__name__)
_MAX_PACKAGES: Final = 50_000
_TOO_MANY: Final = "a dump lists too many packages"
_PACKAGE_FILE: Final = "a package on the mirror's disk"
_MAX_RETAINED: Final = 32
"""Packages that stay on the disk between the reading of their manifests and of their contents."""


class DumpPackage(msgspec.Struct, frozen=True, kw_only=True):
    """Package of a dump.

    ``contents`` is the address of a separate copy of its manifest. ``is_near``: at the origin of
    its dump, so that the Source speaks for it.
    """

    uri: str
    entry: Package
    dump: Header
    contents: str
    is_near: bool

    @property
    def version(self) -> str:
        """Version among the packages of this name; empty if the dump does not give it.

        A date alone does not: the package may change again within it.
        """
        entry = self.entry
        if entry.length is None and not entry.digests:
            return ""
        times = map(known_microseconds, (entry.from_, entry.until, entry.lastmod))
        says = f"{[*times]} {entry.length} {format_digests(entry.digests)}"
        return f'"{hashlib.sha256(says.encode()).hexdigest()}"'


class DumpPackages:
    """Packages of dumps; while ``is_retaining``, those fetched for their manifests stay."""

    def __init__(
        self, equipment: Dependencies, documents: DocumentFetcher, *, is_retaining: bool
    ) -> None:
        self._dependencies = equipment
        self._documents = documents
        self._is_retaining = is_retaining
        self._retained: dict[str, StagedCopy] = {}
        self._bypasses_caches = False

    def bypassing_caches(self) -> "DumpPackages":
        """Return the same packages, with requests past all caches for what no digest proves."""
        fresh = copy(self)
        fresh._documents = self._documents.uncached()  # noqa: SLF001 - one of ours
        fresh._bypasses_caches = True  # noqa: SLF001 - one of ours
        return fresh

    def suspend(self) -> None:
        """Retain no packages any more; a later run continues what is there."""
        self._is_retaining = False
        kept, self._retained = self._retained, {}
        for staged in kept.values():
            staged.suspend()

    @property
    def has_retained(self) -> bool:
        """True if packages on the disk were fetched for their manifests."""
        return bool(self._retained)

    def is_retained(self, offered: DumpPackage) -> bool:
        """True if a package is on the disk already."""
        return offered.uri in self._retained

    def packages_at(self, uri: str) -> list[DumpPackage]:
        """Return the packages of the dump at an address, or of the dumps of its index."""
        with fetch(self._documents, uri) as fetched:
            return self.of_dump(fetched.open())

    def of_dump(
        self, dump: "Document", met: Callable[[Part, FetchedDocument], None] = lambda *_: None
    ) -> list[DumpPackage]:
        """Return the packages of an open dump, or of the dumps of an open index, in order."""
        if not dump.header.is_index:
            return _packages(dump)
        parts: dict[str, Part] = {}
        for part in dump.entries():
            assert isinstance(part, Part), "an index has parts"
            parts.setdefault(part.uri, part)
            if len(parts) > _MAX_PACKAGES:
                raise too_many_listed(dump.uri, _TOO_MANY, _MAX_PACKAGES)
        found: list[DumpPackage] = []
        for uri, part in parts.items():  # sequential: their order counts
            with fetch(self._documents, uri) as fetched:
                document = fetched.open()
                if document.header.capability is not dump.header.capability:
                    raise _not_a_dump(document)
                found += _packages(document)
                met(part, fetched)
            if len(found) > _MAX_PACKAGES:
                raise too_many_listed(dump.uri, _TOO_MANY, _MAX_PACKAGES)
        return found

    def manifest_copy(self, offered: DumpPackage) -> FetchedDocument | None:
        """Return the separate copy of a package's manifest; ``None`` if there is no usable one."""
        if not offered.contents:
            return None
        try:
            fetched = fetch(self._documents, offered.contents)
        except errors.SourceError as error:
            _log.info("cannot fetch the copy of a manifest: %s", error)
            return None
        from resourcesync.documents.packages.manifest_agreement import check_manifest  # noqa: PLC0415 - where there are dumps only

        try:
            header = fetched.open().header
            check_manifest(header, dump=offered.dump, package=offered.entry)
            if header.is_index:
                raise errors.UnexpectedDocumentError("it is in parts", uri=fetched.uri)
        except (errors.DocumentError, errors.PackageError) as error:
            _log.info("cannot use the copy of a manifest: %s", error)
            fetched.stream.close()
            return None
        return fetched

    def manifest(self, offered: DumpPackage) -> FetchedDocument:
        """Return a package's manifest under its address; the ``etag`` is the package's version."""
        copied = self.manifest_copy(offered)
        if copied is not None:
            return _manifest_document(offered, copied.stream, copied.final_uri)
        before = self._retained.pop(offered.uri, None)
        if before is not None:  # a second reading, after an inconsistency
            before.discard()
        staged = self._download(offered)
        try:
            document = self._copy_manifest(offered, staged)
        except BaseException:
            staged.discard()
            raise
        if self._is_retaining and len(self._retained) < _MAX_RETAINED and self._has_room():
            self._retained[offered.uri] = staged
        else:
            staged.suspend()
        return document

    def _has_room(self) -> bool:
        room = self._dependencies.room()
        return room is None or sum(copy.seal()[0] for copy in self._retained.values()) < room // 2

    def _copy_manifest(self, offered: DumpPackage, staged: StagedCopy) -> FetchedDocument:
        stream = self._dependencies.scratch()
        try:
            with staged.open_sealed() as file, translate_disk_errors(_PACKAGE_FILE):
                reader = _open_package(file, offered)
                for chunk in reader.whole_manifest():
                    stream.write(chunk)
        except BaseException:
            stream.close()
            raise
        return _manifest_document(offered, stream)

    @contextmanager
    def open_package(
        self, offered: DumpPackage, copied: FetchedDocument | None
    ) -> Iterator["PackageReader"]:
        """Fetch a package unless it is retained, check it and open it; then remove it."""
        from resourcesync.documents.packages.manifest_agreement import check_copy  # noqa: PLC0415 - as above

        staged = self._retained.pop(offered.uri, None) or self._download(offered)
        with (
            _suspended_if_stopped(staged),
            staged.open_sealed() as file,
            translate_disk_errors(_PACKAGE_FILE),
        ):
            reader = _open_package(file, offered)
            if copied is not None and not _is_same_manifest(reader, copied):
                check_copy(reader.manifest(), copied.open())
            yield reader
        staged.discard()

    def _download(self, offered: DumpPackage) -> StagedCopy:
        try:
            uncached = self._bypasses_caches and not usable(offered.entry.digests)
            staged = self._download_once(offered, uncached=uncached)
            try:
                if offered.entry.length is None and not usable(offered.entry.digests):
                    with staged.open_sealed() as file, translate_disk_errors(_PACKAGE_FILE):
                        _open_package(file, offered)
            except BaseException:
                staged.discard()
                raise
        except errors.PackageError as error:
            _log.info("fetching a package again, past all caches: %s", error)
            return self._download_once(offered, uncached=True)
        return staged

    def _download_once(self, offered: DumpPackage, *, uncached: bool = False) -> StagedCopy:
        entry = offered.entry
        claims = usable(entry.digests)[:1]
        of = f"{offered.uri} {claims[0]}" if has_strong(claims) and not uncached else ""
        staged = self._dependencies.copies.stage([claim.algorithm for claim in claims], of)
        with _suspended_if_stopped(staged):
            if staged.part is None or staged.part.length != entry.length:
                self._fetch(offered, staged, resuming=bool(of), uncached=uncached)
            _check(offered, *staged.seal())
        return staged

    def _fetch(
        self, offered: DumpPackage, staged: StagedCopy, *, resuming: bool, uncached: bool = False
    ) -> None:
        room = self._dependencies.room()
        request = FetchRequest(
            uri=offered.uri,
            sink=staged,
            purpose=Purpose.RESOURCE,
            limit=room if offered.entry.length is None else offered.entry.length,
            uncached=uncached,
            part=staged.part,
            # A package without a digest has an end of its own: a cut one cannot be opened.
            proof=Proof.BYTES if resuming else Proof.END,
            on_start=staged.record_validator if resuming else None,
        )
        with closing(self._dependencies.fetcher.fetch([request])) as outcomes:
            outcome = next(outcomes)
        if isinstance(outcome, FetchFailure):
            raise outcome.error


@contextmanager
def _suspended_if_stopped(staged: StagedCopy) -> Iterator[None]:
    try:
        yield
    except (errors.SourceUnavailableError, errors.StoppedError):
        staged.suspend()
        raise
    except Exception:
        staged.discard()
        raise
    except BaseException:
        staged.suspend()
        raise


def _check(offered: DumpPackage, length: int, found: Sequence[Digest]) -> None:
    entry = offered.entry
    if entry.length not in (None, length) or disagree(found, usable(entry.digests)):
        raise errors.PackageError(
            "The package is not the one that its dump lists",
            uri=offered.uri,
            code="package-mismatch",
        )


def _packages(dump: "Document") -> list[DumpPackage]:
    header = dump.header
    if header.capability is None or not header.capability.is_dump or header.is_index:
        raise _not_a_dump(dump)
    found: list[DumpPackage] = []
    for entry in dump.entries():
        assert isinstance(entry, Package), "a dump has packages"
        copied, home = entry.link_to(Relation.CONTENTS), origin_if_any(dump.uri)
        near = home != "" and origin_if_any(entry.uri) == home
        contents = "" if copied is None else copied.href
        found.append(
            DumpPackage(uri=entry.uri, entry=entry, dump=header, contents=contents, is_near=near)
        )
        if len(found) > _MAX_PACKAGES:
            raise too_many_listed(dump.uri, _TOO_MANY, _MAX_PACKAGES)
    return found


def _not_a_dump(document: "Document") -> errors.UnexpectedDocumentError:
    return errors.UnexpectedDocumentError(
        f"expected a dump, got a {document.header.phrase}", uri=document.uri, hint=REPORT_IT
    )


def _manifest_document(
    offered: DumpPackage, stream: BinaryIO, final_uri: str = ""
) -> FetchedDocument:
    return FetchedDocument(
        uri=offered.uri,
        final_uri=final_uri or offered.uri,
        stream=stream,
        etag=offered.version,
        media_type="application/xml",
    )


def _open_package(file: BinaryIO, offered: DumpPackage) -> "PackageReader":
    from resourcesync.documents.packages.manifest_agreement import check_manifest  # noqa: PLC0415 - as above
    from resourcesync.documents.packages.reader import open_package  # noqa: PLC0415 - as above

    reader = open_package(file, uri=offered.uri)
    check_manifest(reader.manifest().header, dump=offered.dump, package=offered.entry)
    return reader


def _is_same_manifest(reader: "PackageReader", copied: FetchedDocument) -> bool:
    copied.stream.seek(0)
    chunks = reader.manifest_chunks()
    return all(copied.stream.read(len(chunk)) == chunk for chunk in chunks) and (
        not copied.stream.read(1)
    )
