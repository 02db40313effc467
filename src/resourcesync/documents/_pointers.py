"""Entries that point to documents or packages become rows of XML (§8-§13, Archives, Framework)."""

from typing import Final

from resourcesync.documents._attributes import (
    attribute,
    extra_attributes,
    interval,
    length_text,
    link_element,
    moment_text,
)
from resourcesync.documents._escaping import escape
from resourcesync.documents._foreign import split_priority
from resourcesync.documents._values import REPRESENTATION, TIMES, capability
from resourcesync.model.capabilities import CapabilityEntry, DocumentChange, Package, Part
from resourcesync.model.digests import format_digests

_PACKAGE_KNOWN: Final = REPRESENTATION | {*TIMES}
_PART_KNOWN: Final = _PACKAGE_KNOWN | {"path"}
_CAPABILITY_KNOWN: Final = frozenset({"capability"})
_DOCUMENT_KNOWN: Final = _CAPABILITY_KNOWN | {"change", "datetime", *TIMES}

Pointer = Part | Package | CapabilityEntry | DocumentChange


def part_row(part: Part, element: str) -> str:
    """Return the entry of a document in an index or in an archive.

    Args:
        part: The document.
        element: ``sitemap`` in an index, ``url`` in an archive.

    Raises:
        ValueError: It cannot be written.
    """
    return _row(part, element, interval(part) + _representation(part, part.path), _PART_KNOWN)


def package_row(package: Package) -> str:
    """Return the entry of a package in a dump.

    Raises:
        ValueError: It cannot be written.
    """
    return _row(package, "url", interval(package) + _representation(package), _PACKAGE_KNOWN)


def capability_row(entry: CapabilityEntry) -> str:
    """Return the entry of a document in a Capability List or Source Description.

    Raises:
        ValueError: It cannot be written.
    """
    return _row(entry, "url", attribute("capability", _label(entry)), _CAPABILITY_KNOWN)


def document_change_row(change: DocumentChange, *, dated: bool = True) -> str:
    """Return the entry of a document in a Framework Notification.

    Args:
        change: What happened to the document.
        dated: Whether to write ``datetime``, which is new in 1.1.

    Raises:
        ValueError: It cannot be written.
    """
    told = (
        attribute("capability", _label(change))
        + attribute("change", change.kind.value)
        + attribute("datetime", moment_text(change.time) if dated else "")
        + interval(change)
    )
    return _row(change, "url", told, _DOCUMENT_KNOWN)


def _label(entry: CapabilityEntry | DocumentChange) -> str:
    if entry.label and capability(entry.label) is not entry.capability:
        raise ValueError(f"the label {entry.label!r} does not name {entry.capability!r}")
    return entry.label or (entry.capability.value if entry.capability else "")


def _representation(told: Part | Package, path: str = "") -> str:
    return (
        attribute("hash", format_digests(told.digests))
        + attribute("length", length_text(told.length))
        + attribute("type", told.media_type)
        + attribute("encoding", told.encoding)
        + attribute("path", path)
    )


def _row(entry: Pointer, element: str, told: str, known: frozenset[str]) -> str:
    if not entry.uri:
        raise ValueError("an entry needs a URI")
    lastmod = f"<lastmod>{moment_text(entry.lastmod)}</lastmod>" if entry.lastmod else ""
    told += extra_attributes(entry.extra, known)
    metadata = f"<rs:md{told}/>" if told else ""
    links = "".join(map(link_element, entry.links))
    before, after = split_priority(entry.foreign)
    return (
        f"<{element}><loc>{escape(entry.uri)}</loc>{lastmod}{before}{metadata}{links}{after}"
        f"</{element}>\n"
    )
