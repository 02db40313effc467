"""What must hold before a document is written: which times, which entries, which places (§7)."""

from collections.abc import Sequence
from typing import Final, cast

from resourcesync.documents._attributes import Timed
from resourcesync.documents._forms import DialectForm
from resourcesync.model.capabilities import (
    CapabilityEntry,
    DocumentChange,
    Entry,
    Header,
    Package,
    Part,
)
from resourcesync.model.resources import Change, Resource, ResourceRun
from resourcesync.model.vocabulary import Capability, ChangeKind, Relation

_KINDS: Final[dict[Capability | None, type[Entry]]] = {
    None: Resource,
    Capability.DESCRIPTION: CapabilityEntry,
    Capability.CAPABILITY_LIST: CapabilityEntry,
    Capability.RESOURCE_LIST: Resource,
    Capability.RESOURCE_DUMP: Package,
    Capability.RESOURCE_DUMP_MANIFEST: Resource,
    Capability.CHANGE_LIST: Change,
    Capability.CHANGE_DUMP: Package,
    Capability.CHANGE_DUMP_MANIFEST: Change,
    Capability.RESOURCE_LIST_ARCHIVE: Part,
    Capability.RESOURCE_DUMP_ARCHIVE: Part,
    Capability.CHANGE_LIST_ARCHIVE: Part,
    Capability.CHANGE_DUMP_ARCHIVE: Part,
    Capability.CHANGE_NOTIFICATION: Change,
    Capability.FRAMEWORK_NOTIFICATION: DocumentChange,
}
_NEVER_INDEXES: Final = frozenset(
    {Capability.CHANGE_NOTIFICATION, Capability.FRAMEWORK_NOTIFICATION}
)


def kind_of(header: Header) -> type[Entry]:
    """Return the kind of the entries that such a document has."""
    return Part if header.is_index else _KINDS[header.capability]


def check_header(header: Header, form: DialectForm) -> None:
    """Check a header against Appendix A and the kinds of documents that there are.

    Raises:
        ValueError: It breaks a rule.
    """
    kind = header.capability
    if kind is not None and kind.is_snapshot and header.at is None:
        raise ValueError(f"a {header.phrase} needs its at (Appendix A)")
    if kind is not None and kind.is_log and header.from_ is None and form.times != "modified":
        raise ValueError(f"a {header.phrase} needs its from (Appendix A)")
    nests = form.nests_manifests and _is_manifest(kind)
    if header.is_index and not nests and (kind in _NEVER_INDEXES or _is_manifest(kind)):
        raise ValueError(f"there is no {header.phrase} (§11.2, §13.2)")
    _check_times(header, kind, header.phrase)


def check_entries(entries: Sequence[Entry], header: Header) -> None:
    """Check entries against the document they stand in.

    Raises:
        ValueError: One is of another kind, or breaks a rule of such documents.
    """
    kind = kind_of(header)
    if isinstance(entries, ResourceRun) and kind is Resource:
        if _is_manifest(header.capability):
            raise ValueError(f"a {header.phrase} needs a path for each entry (§7)")
        return
    for found in set(map(type, entries)):
        if found is not kind:
            raise ValueError(f"a {header.phrase} has no {found.__name__} in it")
    if kind is Resource and _are_placed(cast("Sequence[Resource]", entries), header):
        return  # the usual case, at once
    for entry in entries:
        _check_entry(entry, header)


def _are_placed(resources: Sequence[Resource], header: Header) -> bool:
    """Whether there is no path, or in a manifest each is as it must be and nothing has links."""
    paths = [resource.path for resource in resources]
    if not _is_manifest(header.capability):
        return not any(paths)
    starts = [path[:1] == "/" for path in paths]
    return all(starts) and not any([resource.links for resource in resources])  # noqa: C419 - faster


def _check_entry(entry: Entry, header: Header) -> None:
    match entry:
        case Change():
            is_there = entry.kind is not ChangeKind.DELETED
            _check_place(entry.resource, header, is_there=is_there)
        case Resource():
            _check_place(entry, header, is_there=True)
        case Part() | Package():
            _check_pointer(entry, header)
        case DocumentChange():
            _check_times(entry, entry.capability, header.phrase, is_free=entry.capability is None)
        case CapabilityEntry():
            pass


def _check_pointer(entry: Part | Package, header: Header) -> None:
    kind = header.capability
    if kind is not None and kind.is_archive:
        kind = kind.archived
    _check_times(entry, kind, header.phrase)
    if isinstance(entry, Part) and (bool(entry.path) != _is_manifest(kind)):
        raise ValueError("a path stands in manifests, and there in each entry (§11.2, §13.2)")


def _check_place(resource: Resource, header: Header, *, is_there: bool) -> None:
    """Check the path: where in the package the bytes are, if there are any."""
    if not _is_manifest(header.capability):
        if resource.path:
            raise ValueError(f"a {header.phrase} has no path in it (§7)")
        return
    if is_there and not resource.path:
        raise ValueError(f"an entry of a {header.phrase} needs its path (§11.2, §13.2)")
    if resource.path and not resource.path.startswith("/"):
        raise ValueError(f"the path {resource.path[:64]!r} does not start with a slash (§11.2)")
    for link in resource.links:
        if link.has_relation(Relation.PATCH) and not link.path:
            raise ValueError("a patch in a package needs its path (§14.4)")


def _check_times(
    told: Timed, kind: Capability | None, phrase: str, *, is_free: bool = False
) -> None:
    if (told.at or told.completed) and not (is_free or (kind and kind.is_snapshot)):
        raise ValueError(f"a {phrase} has no at and no completed here (Appendix A)")
    if (told.from_ or told.until) and not (is_free or (kind and kind.is_log)):
        raise ValueError(f"a {phrase} has no from and no until here (Appendix A)")
    for start, end in ((told.at, told.completed), (told.from_, told.until)):
        if start and end and end < start:
            raise ValueError("an interval ends before it starts")


def _is_manifest(kind: Capability | None) -> bool:
    return kind is not None and kind.is_manifest
