"""Checks of packages: their members against their manifest (§11.2, §13.2)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from resourcesync.model.vocabulary import Capability
from resourcesync.validator.findings import RuleFinding
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFile:
    """A file in a package.

    Attributes:
        name: Its name as the package gives it.
        length: Bytes, unpacked.
        hashes: Digests of these bytes: algorithm to lower-case hex; the requested ones.
    """

    name: str
    length: int
    hashes: Mapping[str, str] = field(default_factory=dict)


def judge_package(
    uri: str,
    members: Sequence[PackageFile],
    manifest: DocumentSummary | None,
    listed: Sequence[ListedResource] = (),
    *,
    dump: Capability | None = None,
) -> Iterator[RuleFinding]:
    """Check a package.

    Args:
        uri: Its address or file.
        members: Its members, the manifest included.
        manifest: The summary of its manifest; ``None`` when it has none that can be read.
        listed: The entries of the manifest.
        dump: Kind of dump that lists the package, if known.
    """
    if not any(member.name == MANIFEST for member in members):
        similar = [
            member.name for member in members if member.name.rpartition("/")[2].lower() == MANIFEST
        ]
        found = f"; it contains {similar[0]}" if similar else ""
        yield without_place("RM01", f"the package has no {MANIFEST} at its root{found}", uri)
    if manifest is None:
        return
    yield from judge_manifest(manifest, dump=dump)
    yield from _judge_members(uri, members, listed)


def judge_manifest(
    manifest: DocumentSummary, *, dump: Capability | None = None
) -> Iterator[RuleFinding]:
    """Check that the manifest of a package is one, and of the kind wanted.

    Args:
        manifest: Its summary.
        dump: Kind of dump that lists the package, if known.
    """
    kind = manifest.capability
    if dump in _MANIFESTS:
        wanted, rule = _MANIFESTS[dump]
        if kind is not wanted:
            message = f"a {manifest.phrase} in a package of a {dump.phrase}"
            yield at_root(rule, message, manifest)
    elif kind is not None and not kind.is_manifest:
        yield at_root("RM02", f"a {manifest.phrase} in the place of a manifest", manifest)


def _judge_members(
    uri: str, members: Sequence[PackageFile], listed: Sequence[ListedResource]
) -> Iterator[RuleFinding]:
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
        misnamed = MANIFEST not in by_name and name.rpartition("/")[2].lower() == MANIFEST
        if not name.endswith("/") and not misnamed:
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
    """Compare the bytes of a package with its entry in the dump (§7).

    Args:
        dump: Lists it.
        package: Its entry in the dump.
        length: Bytes that it has.
        hashes: Its digests: algorithm to lower-case hex; the requested ones.
    """
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
