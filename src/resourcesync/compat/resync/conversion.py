"""Conversion between resync's dicts and attributes and the values of our documents."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from resourcesync.compat.resync.resources import CompatResource, LinkDict, from_moment, to_moment
from resourcesync.model.capabilities import (
    CapabilityEntry,
    DocumentChange,
    Entry,
    Header,
    Package,
    Part,
)
from resourcesync.model.digests import Digest, format_digests, parse_digests
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import format_w3c, parse_w3c
from resourcesync.model.vocabulary import Capability, ChangeKind

_TIMES: Final = {
    "md_at": "at", "md_completed": "completed", "md_from": "from_", "md_until": "until",
}  # fmt: skip
_KNOWN_LINK: Final = frozenset(
    {
        "hash", "href", "length", "modified", "path", "rel", "pri", "mime_type", "type", "encoding",
    }
)  # fmt: skip
_ALGORITHMS: Final = {"md5": "md5", "sha-1": "sha1", "sha-256": "sha256"}


class _Timed(Protocol):
    """An entry with the times of a document."""

    @property
    def at(self) -> datetime | None: ...

    @property
    def completed(self) -> datetime | None: ...

    @property
    def from_(self) -> datetime | None: ...

    @property
    def until(self) -> datetime | None: ...


# --- from our documents ------------------------------------------------------------------------


def md_of(header: Header) -> dict[str, str]:
    """Return the ``md`` of a document, its times as W3C Datetimes in UTC."""
    times = {name: getattr(header, field) for name, field in _TIMES.items()}
    told = {name: format_w3c(moment) for name, moment in times.items() if moment is not None}
    if header.capability is not None:
        told["capability"] = header.capability.value
    return told


def link_dict(link: Link) -> LinkDict:
    """Return a link as a dict."""
    values = {
        "hash": format_digests(link.digests),
        "href": link.href,
        "length": link.length,
        "modified": format_w3c(link.modified) if link.modified else "",
        "path": link.path,
        "rel": link.rel,
        "pri": link.priority,
        "mime_type": link.media_type,
        "encoding": link.encoding,
    }
    return {name: value for name, value in values.items() if value not in ("", None)}


def resource_of(entry: Entry, *, is_dated: bool = True) -> CompatResource:
    """Return an entry of a document as a resource.

    Args:
        entry: The entry.
        is_dated: True if changes have times of their own, which may equal the ``lastmod``.
    """
    match entry:
        case Resource():
            return _resource(entry)
        case Change():
            found = _resource(entry.resource)
            found.change = entry.kind.value
            is_own = is_dated or entry.time != entry.resource.lastmod
            found.ts_datetime = from_moment(entry.time) if is_own else None
            return found
        case CapabilityEntry():
            found = _pointer(entry)
            found.capability = entry.label or None
            return found
        case DocumentChange():
            found = _dated_pointer(entry, entry)
            found.capability = entry.label or None
            found.change = entry.kind.value
            found.ts_datetime = from_moment(entry.time)
            return found
        case Part() | Package():
            found = _dated_pointer(entry, entry)
            _describe(found, entry)
            return found


def _resource(entry: Resource) -> CompatResource:
    found = _pointer(entry)
    _describe(found, entry)
    found.path = entry.path or None
    return found


def _pointer(
    entry: Resource | Part | Package | CapabilityEntry | DocumentChange,
) -> CompatResource:
    found = CompatResource(entry.uri, from_moment(entry.lastmod))
    if entry.links:
        found.ln = list(map(link_dict, entry.links))
    return found


def _dated_pointer(entry: Part | Package | DocumentChange, times: _Timed) -> CompatResource:
    found = _pointer(entry)
    found.ts_at, found.ts_completed = from_moment(times.at), from_moment(times.completed)
    found.ts_from, found.ts_until = from_moment(times.from_), from_moment(times.until)
    return found


def _describe(found: CompatResource, entry: Resource | Part | Package) -> None:
    """Set length, media type and digests; those of other algorithms are verified, too."""
    found.length = entry.length
    found.mime_type = entry.media_type or None
    for digest in entry.digests:
        attribute = _ALGORITHMS.get(digest.algorithm, "")
        if attribute and getattr(found, attribute) is None:
            setattr(found, attribute, digest.value)
    found.other_digests = (
        tuple(digest for digest in entry.digests if digest.algorithm not in _ALGORITHMS) or None
    )


# --- to our documents --------------------------------------------------------------------------


def link_of(told: Mapping[str, Any]) -> Link:
    """Return a link that is told as a dict; ``type`` and ``mime_type`` mean the same.

    Raises:
        ValueError: It has no ``rel`` or ``href``, or a value that cannot be written.
    """
    if not told.get("rel") or not told.get("href"):
        raise ValueError("a link needs rel and href (§7)")
    length, priority, modified = told.get("length"), told.get("pri"), told.get("modified")
    return Link(
        rel=str(told["rel"]),
        href=str(told["href"]),
        media_type=str(told.get("mime_type") or told.get("type") or ""),
        length=None if length is None else int(length),
        digests=parse_digests(str(told.get("hash") or "")),
        encoding=str(told.get("encoding") or ""),
        modified=parse_w3c(modified) if modified else None,
        path=str(told.get("path") or ""),
        priority=None if priority is None else int(priority),
        extra=tuple(
            (name, str(value))
            for name, value in told.items()
            if name not in _KNOWN_LINK and value is not None
        ),
    )


def links_of(told: Iterable[Mapping[str, Any]] | None) -> tuple[Link, ...]:
    """Return links that are told as dicts.

    Raises:
        ValueError: One of them cannot be written.
    """
    return tuple(map(link_of, told or ()))


def times_of(md: Mapping[str, Any]) -> dict[str, datetime]:
    """Return the times of an ``md``, by the names of a header.

    Raises:
        ValueError: One is no W3C Datetime.
    """
    found = {field: md.get(name) or md.get(field.strip("_")) for name, field in _TIMES.items()}
    return {field: parse_w3c(str(text)) for field, text in found.items() if text}


def digests_of(resource: CompatResource) -> tuple[Digest, ...]:
    """Return the digests of a resource."""
    return (*parse_digests(resource.hash or ""), *(resource.other_digests or ()))


def entry_of(resource: CompatResource, kind: type[Entry], capability: Capability | None) -> Entry:
    """Return a resource as an entry of a document.

    Args:
        resource: The resource.
        kind: The kind of the document's entries.
        capability: The document's capability.

    Raises:
        ValueError: It cannot be an entry of such a document.
    """
    pointer: dict[str, Any] = {
        "uri": resource.uri,
        "lastmod": to_moment(resource.timestamp),
        "links": links_of(resource.ln),
    }
    if kind is CapabilityEntry:
        label = resource.capability or ""
        known = Capability(label) if label in list(Capability) else None
        return CapabilityEntry(**pointer, capability=known, label=label)
    described: dict[str, Any] = {
        **pointer,
        "length": None if resource.length is None else int(resource.length),
        "digests": digests_of(resource),
        "media_type": resource.mime_type or "",
    }
    if kind in (Part, Package):
        times: dict[str, Any] = {field: to_moment(getattr(resource, f"ts_{field.strip('_')}"))
                 for field in _TIMES.values()}  # fmt: skip
        return kind(**described, **times)
    in_package = capability is not None and capability.is_manifest
    listed = Resource(**described, path=_member_path(resource.path) if in_package else "")
    if kind is Resource:
        return listed
    if resource.change is None:
        raise ValueError(f"the entry of {resource.uri} has no change (§12.1)")
    time = resource.ts_at if resource.ts_datetime is None else resource.ts_datetime
    return Change(kind=ChangeKind(resource.change), time=to_moment(time), resource=listed)


def change_timestamp(resource: CompatResource) -> float | None:
    """Return the time of a change: ``datetime``, else ``at``, else ``lastmod``."""
    times = (resource.ts_datetime, resource.ts_at, resource.timestamp)
    return next((found for found in times if found is not None), None)


def _member_path(path: str | None) -> str:
    """Return the place in a package, with the slash that the standard demands (§11.2)."""
    return f"/{path.removeprefix('/')}" if path else ""
