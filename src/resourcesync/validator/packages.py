"""Checks of packages: the manifest, and the members against the manifest (§11.2, §13.2)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, Final

import msgspec

from resourcesync.documents.packages.reader import PackageReader, open_package
from resourcesync.errors import DocumentError, PackageError, PackedMemberError, VerificationError
from resourcesync.model.digests import digest_chunks
from resourcesync.model.entries import Change
from resourcesync.model.settings import RuleProfile
from resourcesync.model.vocabulary import Capability, ChangeKind
from resourcesync.validator.examination import Examination
from resourcesync.validator.marks import MarkStore
from resourcesync.validator.rule import RuleFinding, by_place
from resourcesync.validator.sample import Unreached
from resourcesync.validator.summaries import (
    DocumentSummary,
    ListedResource,
    ListedTarget,
    at_listed,
    at_root,
    at_target,
    without_place,
)

MANIFEST: Final = "manifest.xml"
_MANIFESTS: Final = {
    Capability.RESOURCE_DUMP: (Capability.RESOURCE_DUMP_MANIFEST, "RM02"),
    Capability.CHANGE_DUMP: (Capability.CHANGE_DUMP_MANIFEST, "CM01"),
}


class PackageFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file in a package: its length when unpacked, and the requested digests of its bytes."""

    name: str
    length: int
    hashes: Mapping[str, str] = msgspec.field(default_factory=dict)


def judge_manifest(
    manifest: DocumentSummary, *, dump: Capability | None = None
) -> Iterator[RuleFinding]:
    """Check that the manifest of a package is one, and of the kind wanted."""
    kind = manifest.capability
    if dump in _MANIFESTS:
        wanted, rule = _MANIFESTS[dump]
        if kind is not wanted:
            yield at_root(rule, f"a {manifest.phrase} in a package of a {dump.phrase}", manifest)
    elif kind is not None and not kind.is_manifest:
        yield at_root("RM02", f"a {manifest.phrase} in the place of a manifest", manifest)


def judge_members(
    uri: str, members: Sequence[PackageFile], listed: Sequence[ListedResource]
) -> Iterator[RuleFinding]:
    """Compare the members of a package with the entries of its manifest."""
    by_name = {member.name.lstrip("/"): member for member in members}
    used: set[str] = set()
    for entry in listed:
        if not entry.path:
            continue
        name = entry.path.lstrip("/")
        if name in used:
            yield at_listed("RM06b", f"a second entry for {entry.path}", entry)
        used.add(name)
        member = by_name.get(name)
        if member is None:
            yield at_listed("RM06a", f"{entry.path} is not in the package", entry)
        else:
            yield from _judge_member(member, entry)
    for name in sorted(by_name.keys() - used - {MANIFEST}):
        if not name.endswith("/"):
            yield without_place("RM06b", f"{name} is in the package and is not listed", uri)


def _judge_member(member: PackageFile, entry: ListedResource) -> Iterator[RuleFinding]:
    if entry.length is not None and entry.length != member.length:
        message = f"{entry.path} has {member.length} bytes instead of {entry.length}"
        yield at_listed("RM07", message, entry)
    for name, digest in entry.hashes.items():
        if member.hashes.get(name, digest) != digest:
            yield at_listed("RM07", f"the {name} of {entry.path} is not the manifest's", entry)


def judge_listed_package(
    dump: DocumentSummary, package: ListedTarget, length: int, hashes: Mapping[str, str]
) -> Iterator[RuleFinding]:
    """Compare the bytes of a package with its entry in the dump (§7)."""
    if package.length not in (None, length):
        message = f"{package.uri} has {length} bytes instead of {package.length}"
        yield at_target("RD07", message, dump, package)
    for name, digest in package.digests:
        if hashes.get(name, digest) != digest:
            yield at_target(
                "RD07", f"the {name} of {package.uri} is not the listed one", dump, package
            )


def judge_contents_copy(packed: DocumentSummary, copy: DocumentSummary) -> Iterator[RuleFinding]:
    """Compare the target of a ``contents`` link with the manifest in the package (§11.1, §13.1)."""
    if copy.capability is not packed.capability:
        yield at_root("RD04b", f"the copy of the manifest is a {copy.phrase}", copy)
    elif _summary_content(copy) != _summary_content(packed):
        yield at_root("RD04b", "the copy of the manifest is not the one in the package", copy)


def _summary_content(document: DocumentSummary) -> tuple[object, ...]:
    times = (document.at, document.completed, document.from_, document.until)
    return (*times, document.entries, document.resources, document.changes)


ENDINGS: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
_MANIFEST_FAULTS: Final = frozenset({"manifest-missing", "manifest-duplicate"})
_OUR_LIMITS: Final = ("-limit", "-ratio")
_BLOCK: Final = 65_536


def is_package_name(target: str) -> bool:
    """True if a file or an address has the name of a package."""
    return target.partition("?")[0].lower().endswith(ENDINGS)


class ListedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package as a dump lists it, with the copy of its manifest that was read, if any."""

    uri: str
    dump: DocumentSummary
    package: ListedTarget
    copy: DocumentSummary | None = None


class PackageValidator:
    """Checks one package; then it has the summary of its manifest and counts its members."""

    def __init__(
        self,
        uri: str,
        profile: RuleProfile,
        listed: ListedPackage | None = None,
        store: MarkStore | None = None,
    ) -> None:
        self._uri = uri
        self._profile = profile
        self._listed = listed
        self._store = store
        self.manifest: DocumentSummary | None = None
        self.members = self.listed_members = 0

    def judge(self, file: BinaryIO) -> Iterator[RuleFinding | Unreached]:
        """Yield the faults of the package in a seekable file, at any position."""
        listed = self._listed
        if listed is not None:
            names = [digest.algorithm for digest in listed.package.digests]
            file.seek(0)
            length, found = digest_chunks(iter(lambda: file.read(_BLOCK), b""), names)
            yield from judge_listed_package(listed.dump, listed.package, length, dict(found))
        try:
            yield from self._judge_opened(open_package(file, uri=self._uri))
        except PackageError as error:
            yield self._report_broken(error)
        except DocumentError as error:
            yield Unreached(uri=self._uri, error=error)
        if self.manifest is not None and listed is not None and listed.copy is not None:
            yield from judge_contents_copy(self.manifest, listed.copy)

    def _report_broken(self, error: PackageError) -> RuleFinding | Unreached:
        named = "" if self._listed is None else self._listed.package.media_type.lower()
        is_known = any(kind in named for kind in ("zip", "tar", "octet-stream"))
        is_foreign = error.code == "package-unknown" and named and not is_known
        if is_foreign or error.code.endswith(_OUR_LIMITS):
            return Unreached(uri=self._uri, error=error)
        rule = "RM01" if error.code in _MANIFEST_FAULTS else "RM10"
        return without_place(rule, error.message, self._uri)

    def _judge_opened(self, reader: PackageReader) -> Iterator[RuleFinding]:
        listed: list[ListedResource] = []
        examination = Examination(
            reader.manifest_chunks(),
            uri=f"{self._uri}#/{MANIFEST}",
            profile=self._profile,
            on_resource=listed.append,
            store=self._store,
        )
        findings = list(by_place(examination))
        self.manifest = examination.summary
        deletions = sum(resource.change == ChangeKind.DELETED for resource in listed)
        self.listed_members = examination.summary.entries - deletions
        dump = None if self._listed is None else self._listed.dump.capability
        wrong = list(judge_manifest(examination.summary, dump=dump))
        if wrong and examination.summary.capability is not None:
            yield from wrong  # faults of its entries would only follow from these
            return
        yield from findings
        found = [PackageFile(name=MANIFEST, length=examination.summary.size)]
        yield from self._members(reader, {resource.path: resource for resource in listed}, found)
        if examination.summary.is_index:  # its parts were read, or an error was raised
            found += map(_member_as_listed, listed)
        found += [PackageFile(name=name, length=0) for name in reader.unlisted]
        yield from wrong
        yield from judge_members(self._uri, found, listed)

    def _members(
        self, reader: PackageReader, listed: dict[str, ListedResource], found: list[PackageFile]
    ) -> Iterator[RuleFinding]:
        for member in reader.members():
            entry_told = member.entry
            resource = entry_told.resource if isinstance(entry_told, Change) else entry_told
            entry = listed.get(resource.path)
            if member.is_deletion or entry is None:
                continue
            try:
                length, digests = digest_chunks(member.chunks(), entry.hashes)
                name, hashes = entry.path.lstrip("/"), dict(digests)
                found.append(PackageFile(name=name, length=length, hashes=hashes))
            except PackedMemberError as error:
                if error.code != "member-missing":
                    yield at_listed("RM07", f"{entry.path}: {error.message}", entry)
                    found.append(_member_as_listed(entry))
            except VerificationError as error:
                of = dict(error.evidence)
                message = f"{entry.path} has {of.get('got', '')} instead of {of.get('list', '')}"
                yield at_listed("RM07", message, entry)
                found.append(_member_as_listed(entry))
            self.members += 1


def _member_as_listed(entry: ListedResource) -> PackageFile:
    return PackageFile(name=entry.path.lstrip("/"), length=entry.length or 0)
