"""Whether a package's manifest is the one that its dump promises (§11.1, §13.1)."""

from itertools import zip_longest

from resourcesync.documents.reading import Document
from resourcesync.errors import PackageError
from resourcesync.model.capabilities import Header, Package
from resourcesync.model.vocabulary import Capability

__all__ = ["check_copy", "check_manifest"]

_MANIFESTS = {
    Capability.RESOURCE_DUMP: Capability.RESOURCE_DUMP_MANIFEST,
    Capability.CHANGE_DUMP: Capability.CHANGE_DUMP_MANIFEST,
}


def check_manifest(manifest: Header, *, dump: Header, package: Package | None = None) -> None:
    """Check the root of a manifest against the dump that lists its package.

    Args:
        manifest: The root of the manifest in the package.
        dump: The root of the Resource Dump or Change Dump.
        package: The entry of the dump, if its own times are to be compared.

    Raises:
        PackageError: The manifest is of the other kind, its snapshot is older than that of the
            dump, or it covers another time than the entry says.
    """
    uri = "" if package is None else package.uri
    if dump.capability is None or _MANIFESTS.get(dump.capability) is not manifest.capability:
        raise _mismatch(f"A {dump.phrase} holds no {manifest.phrase}", uri)
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
    if any(one and other and one != other for one, other in pairs):
        raise _mismatch("The manifest covers another time than the dump says", uri)


def check_copy(manifest: Document, copy: Document) -> None:
    """Check that a copy of the manifest (``contents``) says what the packed one does.

    Both are read to their ends, or to the first difference.

    Raises:
        PackageError: They differ.
        DocumentError: One of them is no sound document.
    """
    one, other = manifest.header, copy.header
    if (one.capability, one.at, one.from_) != (other.capability, other.at, other.from_):
        raise _mismatch("The copy of the manifest has another root", copy.uri)
    for entry, copied in zip_longest(manifest.entries(), copy.entries()):
        if entry != copied:
            raise _mismatch("The copy of the manifest has other entries", copy.uri)


def _mismatch(message: str, uri: str) -> PackageError:
    return PackageError(message, uri=uri, code="manifest-mismatch")
