"""The reader of a package: its manifest, and in the order of the manifest the bytes it lists.

A package that is not sound is refused when it is opened. A fault of one member costs that member:
it is reported, and its URI can be fetched instead.
"""

import io
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import BinaryIO, Final, cast, final

from resourcesync import errors
from resourcesync.documents.packages import manifest_agreement, safety
from resourcesync.documents.packages.members import (
    PackageContainer,
    errors_about,
    find_manifest,
    member_error,
    member_evidence,
)
from resourcesync.documents.packages.planning import ManifestEntry, content_of
from resourcesync.documents.packages.tar_reader import TarContainer, may_be_tar
from resourcesync.documents.packages.zip_directory import may_be_truncated_zip
from resourcesync.documents.packages.zip_reader import ZipContainer
from resourcesync.documents.reader import Document, read
from resourcesync.model.content_codings import ZLIB, Decoder
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Link, RefusedEntry, Resource, ResourceRun

_START: Final = 512
_PACKINGS: Final = {
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"7z\xbc\xaf": "7-Zip",
    b"Rar!": "RAR",
    b"LZIP": "lzip",
    b"\x1f\x9d": "compress",
}
"""First bytes of what is met in place of a package, and cannot be read."""
_BLOCK: Final = 65_536

MemberFault = errors.PackedMemberError | errors.LengthMismatchError
Refusals = Callable[[RefusedEntry], None]


def open_package(
    file: BinaryIO, *, uri: str = "", limits: safety.PackageLimits = safety.DEFAULT_LIMITS
) -> "PackageReader":
    """Open a package and check all that does not need a member unpacked.

    ZIP, tar, tar.gz and tar.xz are recognized by their first bytes. A compressed tar is unpacked
    once, to list its members; nothing of it is stored.
    """
    with errors_about(uri):
        return PackageReader(_open_container(file, limits), uri=uri, limits=limits)


def _open_container(file: BinaryIO, limits: safety.PackageLimits) -> PackageContainer:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    start = file.read(_START)
    if may_be_truncated_zip(start):
        return ZipContainer(file, size, limits)
    if may_be_tar(start):
        return TarContainer(file, size, limits)
    if not start:
        raise errors.TruncatedPackageError("The package is empty")
    packing = next((name for mark, name in _PACKINGS.items() if start.startswith(mark)), "")
    raise errors.PackageError(
        f"The file {f'is packed with {packing}' if packing else 'is neither ZIP nor tar'}",
        hint="ask the Source for ZIP, tar, tar.gz or tar.xz",
        code="package-unknown",
    )


@final
class ManifestMember:
    """The member of a package for one entry of its manifest.

    ``index`` is the position of the entry; `PackageReader.members` can start there again. ``fault``
    is why the package has no usable bytes for it, as far as is known before they are read: then its
    URI is to be fetched.
    """

    def __init__(
        self,
        index: int,
        entry: ManifestEntry,
        *,
        fault: MemberFault | None,
        open_chunks: Callable[[], Iterator[bytes]] | None,
    ) -> None:
        self.index = index
        self.entry = entry
        self.fault = fault
        self.is_deletion = content_of(entry) is None
        self._open_chunks = open_chunks

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes in pieces of at most 64 KiB; they are verified once the last was read.

        Length, CRC (ZIP) and the strongest digest of the entry are checked on the way. Without a
        digest the bytes are not proven, only undamaged.
        """
        if self.fault is not None:
            raise self.fault
        if self._open_chunks is None:
            raise RuntimeError("a deletion has no bytes")
        return self._open_chunks()


@final
class PackageReader:
    """An open package."""

    def __init__(
        self, container: PackageContainer, *, uri: str, limits: safety.PackageLimits
    ) -> None:
        self.uri = uri
        self._container = container
        self._limits = limits
        members = container.members
        clash = safety.find_clash([member.name for member in members])
        if clash is not None:
            is_manifest = safety.MANIFEST in map(safety.name_key, clash)
            raise errors.PackageError(
                "Two members of the package have names that clash",
                evidence=(*member_evidence(clash[0]), ("and", clash[1][:1024])),
                code="manifest-duplicate" if is_manifest else f"{container.kind}-duplicate",
            )
        self._manifest = find_manifest(members, safety.MANIFEST)
        self._indexes = {member.name: index for index, member in enumerate(members)}
        self._listed = bytearray(len(members))
        self._listed[self._manifest] = True
        self._spent = 0
        self._check_manifest()
        # Together with the members it could be read only in turns.
        is_dear = container.is_sequential
        self._copy = _packed(container.read(self._manifest)) if is_dear else None
        self._joined: bytes | None = None

    def _check_manifest(self) -> None:
        manifest = self._container.members[self._manifest]
        if manifest.fault:
            raise errors.PackageError(
                "The manifest cannot be unpacked",
                evidence=member_evidence(manifest.name),
                code=manifest.fault,
            )
        most = self._limits.manifest.bytes
        if manifest.size > most:
            raise errors.PackageError(
                "The manifest is too large",
                evidence=(("limit", f"{most:,} bytes"), ("got", f"{manifest.size:,} bytes")),
                code="manifest-limit",
            )

    def manifest(self, *, on_refused: Refusals | None = None) -> Document:
        """Open the manifest; each call reads it from its start."""
        document = self._read(self.whole_manifest(), safety.MANIFEST, on_refused)
        header = document.header
        if header.capability is None or not header.capability.is_manifest or header.is_index:
            raise manifest_agreement.mismatch_error(
                f"The package's {safety.MANIFEST} is no manifest but a {header.phrase}", self.uri
            )
        return document

    def manifest_chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the manifest, sound or not."""
        if self._copy is None:
            return self._bytes_of(self._manifest)
        return Decoder(ZLIB).feed(self._copy)

    def whole_manifest(self) -> Iterator[bytes]:
        """Yield the manifest; of one that is an index (0.5), one with all that its parts list."""
        if self._joined is None:
            index = self._read(self.manifest_chunks(), safety.MANIFEST, self._no_part)
            kind = index.header.capability
            is_nested = index.header.is_index and kind is not None and kind.is_manifest
            self._joined = self._join(index) if is_nested else b""
        return Decoder(ZLIB).feed(self._joined) if self._joined else self.manifest_chunks()

    def _join(self, index: Document) -> bytes:
        opened = {self._manifest}

        def open_part(path: str, on_refused: Refusals) -> Document:
            found, fault = self._find_path(path)
            if fault is not None:
                raise manifest_agreement.part_error(fault.message, self.uri, member_evidence(path))
            if found in opened:
                raise manifest_agreement.mismatch_error(
                    "The manifest has a part twice", self.uri, member_evidence(path)
                )
            opened.add(found)
            return self._read(self._bytes_of(found), path.lstrip("/"), on_refused)

        most = self._limits.manifest.bytes
        return _packed(manifest_agreement.join_manifests(index, open_part, most=most))

    def _bytes_of(self, found: int) -> Iterator[bytes]:
        with errors_about(self.uri):
            yield from self._container.read(found)

    def _read(
        self, chunks: Iterator[bytes], name: str, on_refused: Refusals | None = None
    ) -> Document:
        return read(
            cast("BinaryIO", _PieceStream(chunks)),
            uri=f"{self.uri}#/{name}",
            limits=self._limits.manifest,
            on_refused=on_refused,
        )

    def _no_part(self, entry: RefusedEntry) -> None:
        raise manifest_agreement.part_error(entry.reason, self.uri)

    def members(
        self, start: int = 0, *, on_refused: Refusals | None = None
    ) -> Iterator[ManifestMember]:
        """Yield the member of each entry, in the order of the manifest.

        Read each member before the next: that is cheapest, and for a compressed
        tar it is needed.
        """
        self._spent = 0
        for index, entry in enumerate(self.manifest(on_refused=on_refused).entries()):
            assert isinstance(entry, Resource | Change)
            found, fault = self._find(entry)
            if index >= start:
                yield self._member(index, entry, found, fault)

    def verify(self) -> None:
        """Verify all that the manifest lists, as reading each of `members` to its end does."""
        self._spent = 0
        for batch in self.manifest().batches():
            if isinstance(batch, ResourceRun):
                self._verify_run(batch)
                continue
            for entry in batch:
                assert isinstance(entry, Resource | Change)
                self._verify_entry(entry)

    def _verify_run(self, run: ResourceRun) -> None:
        members = self._container.members
        for at, name in enumerate(self._usual_names(run)):
            found = self._indexes.get(name, -1)
            is_usable = found >= 0 and not members[found].fault
            short = self._container.read_short(found) if is_usable else None
            if (
                short is not None
                and len(short) == run.lengths[at]
                and run.hashes[at] == f"sha-256:{sha256(short).hexdigest()}"
            ):
                self._listed[found] = True
                self._spent += len(short)
            else:
                self._verify_entry(run[at])

    def _usual_names(self, run: ResourceRun) -> list[str]:
        unusual = [""] * len(run)
        if self._spent + sum(filter(None, run.lengths)) > self._container.budget:
            return unusual
        try:
            return list(map(safety.member_name, run.paths)) or unusual
        except ValueError:
            return unusual

    def _verify_entry(self, entry: ManifestEntry) -> None:
        found, fault = self._find(entry)
        member = self._member(0, entry, found, fault)
        if not member.is_deletion:
            for _ in member.chunks():
                pass

    @property
    def unlisted(self) -> list[str]:
        """Names that no entry has mentioned yet; all extras once `members` was read to its end.

        They come from the package as they are: nothing to use as a path, and to be escaped when
        shown.
        """
        members = self._container.members
        return [
            member.name
            for member, is_listed in zip(members, self._listed, strict=True)
            if not is_listed
        ]

    def linked(self, link: Link) -> Iterator[bytes]:
        """Yield the bytes of a link that has a ``path``, such as a patch (§14.4)."""
        found, fault = self._find_path(link.path)
        fault = fault or self._wrong_length(link.href, link.length, found)
        if fault is not None:
            raise fault
        return self._open(found, uri=link.href, length=link.length, digests=link.digests)

    def _find(self, entry: ManifestEntry) -> tuple[int, MemberFault | None]:
        resource = entry if isinstance(entry, Resource) else entry.resource
        for link in resource.links:
            if link.path:
                self._find_path(link.path)
        found, fault = self._find_path(resource.path)
        if content_of(entry) is None:
            return found, None
        return found, fault or self._wrong_length(resource.uri, resource.length, found)

    def _find_path(self, path: str) -> tuple[int, MemberFault | None]:
        if not path:
            return -1, self._fault("manifest-no-path", "The entry has no path", path)
        try:
            name = safety.member_name(path)
        except ValueError as error:
            return -1, self._fault("manifest-path", f"The path cannot be used: {error}", path)
        found = self._indexes.get(name)
        if found is None:
            return -1, self._fault("member-missing", "The package lacks a listed member", name)
        self._listed[found] = True
        member = self._container.members[found]
        return found, member_error(member, uri=self.uri) if member.fault else None

    def _fault(self, code: str, message: str, member: str) -> errors.PackedMemberError:
        return errors.PackedMemberError(
            message, uri=self.uri, evidence=member_evidence(member), code=code
        )

    def _wrong_length(self, uri: str, length: int | None, found: int) -> MemberFault | None:
        size = self._container.members[found].size if found >= 0 else length
        if length is None or size is None or size == length:
            return None
        return manifest_agreement.wrong_length(uri, length, f"{size:,} bytes")

    def _member(
        self, index: int, entry: ManifestEntry, found: int, fault: MemberFault | None
    ) -> ManifestMember:
        resource = content_of(entry)
        if resource is None or fault is not None:
            return ManifestMember(index, entry, fault=fault, open_chunks=None)
        return ManifestMember(
            index,
            entry,
            fault=None,
            open_chunks=lambda: self._open(
                found, uri=resource.uri, length=resource.length, digests=resource.digests
            ),
        )

    def _open(
        self, found: int, *, uri: str, length: int | None, digests: tuple[Digest, ...]
    ) -> Iterator[bytes]:
        self._spent += self._container.members[found].size
        if self._spent > self._container.budget:
            kind = self._container.kind
            raise safety.over_budget(self._container.budget, uri=self.uri, code=f"{kind}-ratio")
        return self._checked(found, uri=uri, length=length, digests=digests)

    def _checked(
        self, found: int, *, uri: str, length: int | None, digests: tuple[Digest, ...]
    ) -> Iterator[bytes]:
        data = self._container.read_short(found)
        if data is None:
            pieces = self._bytes_of(found)
            yield from manifest_agreement.checked_chunks(
                pieces, uri=uri, length=length, digests=digests
            )
        else:
            manifest_agreement.check_bytes(data, uri=uri, length=length, digests=digests)
            yield data


def _packed(chunks: Iterator[bytes]) -> bytes:
    packer = zlib.compressobj(1)
    pieces = [packer.compress(piece) for piece in chunks]
    return b"".join((*pieces, packer.flush()))


class _PieceStream:
    """Pieces of bytes, none of them empty, as a file to read from: of any size that they have."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, _size: int) -> bytes:
        return next(self._pieces, b"")
