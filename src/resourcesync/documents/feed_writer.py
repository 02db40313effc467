"""Writers of the abandoned draft forms: two of Atom and the native one (Klein et al., 2013).

They are those of figures 9 to 11 in D-Lib Magazine 19(1/2). In one Atom form a link names the
resource, in the other the entry's content does. Identifiers that Atom demands are derived from the
values, so they are the same each time. Figure 11 is not well-formed; this is its corrected form,
with the links of an item in the item.
"""

import uuid
from typing import Final

from resourcesync.documents._xml_output import attribute, escape, length_text, moment_text
from resourcesync.documents.feeds import ATOM_NS, DRAFT_NS
from resourcesync.model.capabilities import Header
from resourcesync.model.digests import format_digests
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, Relation

CAPABILITY_LIST: Final = DRAFT_NS + Capability.CAPABILITY_LIST
"""The relation to the Capability List in these forms."""
_AUTHOR: Final = "resourcesync"


def feed_opening(header: Header) -> str:
    """Return what comes before the entries.

    Raises:
        ValueError: It has no time, or a text cannot be written in XML.
    """
    assert header.capability is not None
    kind = DRAFT_NS + header.capability.value
    identity = uuid.uuid5(
        uuid.NAMESPACE_URL, f"{header.capability} {moment_text(header.modified)} {header.links}"
    )
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<feed xmlns="{ATOM_NS}" xmlns:rs="{DRAFT_NS}" rs:type="{kind}">',
        f"<title>{header.phrase}</title>",
        f"<id>{identity.urn}</id>",
        *(link_element(link) for link in header.links),
        f"<updated>{moment_text(header.modified)}</updated>",
        f"<author><name>{_AUTHOR}</name></author>",
    ]
    return "\n".join(lines) + "\n"


def feed_closing() -> str:
    """Return what comes after the entries."""
    return "</feed>\n"


def link_row(entry: Resource | Change) -> str:
    """Return an entry with its resource in a link.

    Raises:
        ValueError: It has no time, or something in it cannot be written.
    """
    resource = _resource(entry)
    told = (
        attribute("href", resource.uri)
        + attribute("hash", format_digests(resource.digests))
        + attribute("length", length_text(resource.length))
        + attribute("type", resource.media_type)
        + _extension_attributes(entry)
    )
    return _entry(entry, f'<link rel="canonical alternate"{told}/>')


def content_row(entry: Resource | Change) -> str:
    """Return an entry with its resource in its content.

    Raises:
        ValueError: It has no time, or something in it cannot be written.
    """
    resource = _resource(entry)
    told = (
        attribute("src", resource.uri)
        + attribute("rs:hash", format_digests(resource.digests))
        + attribute("rs:length", length_text(resource.length))
        + attribute("rs:type", resource.media_type)
        + _extension_attributes(entry)
    )
    return _entry(entry, f"<content{told}/><summary>{escape(resource.uri)}</summary>")


def _entry(entry: Resource | Change, told: str) -> str:
    resource = _resource(entry)
    time = moment_text(resource.lastmod)
    if not time:
        raise ValueError(f"Atom needs the time of each entry; {resource.uri} has none")
    kind = entry.kind.value if isinstance(entry, Change) else ""
    identity = uuid.uuid5(uuid.NAMESPACE_URL, f"{resource.uri} {kind} {time} {resource.path}")
    links = "".join(map(link_element, resource.links))
    return (
        f"<entry><title>{escape(resource.uri)}</title><id>{identity.urn}</id>"
        f"<updated>{time}</updated>{told}{links}</entry>\n"
    )


def _resource(entry: Resource | Change) -> Resource:
    return entry.resource if isinstance(entry, Change) else entry


def _extension_attributes(entry: Resource | Change) -> str:
    resource = _resource(entry)
    return (
        attribute("rs:encoding", resource.encoding)
        + attribute("rs:path", resource.path)
        + attribute("rs:change", entry.kind.value if isinstance(entry, Change) else "")
    )


def link_element(link: Link, prefix: str = "rs:") -> str:
    """Return a link; ``prefix`` is that of attributes which Atom lacks.

    Raises:
        ValueError: It has no ``rel`` or ``href``, or something in it cannot be written.
    """
    if not link.rel or not link.href:
        raise ValueError("a link needs rel and href (§7)")
    rel = CAPABILITY_LIST if link.rel.lower() == Relation.UP else link.rel
    return (
        "<link"
        + attribute("rel", rel)
        + attribute("href", link.href)
        + attribute("hash", format_digests(link.digests))
        + attribute("length", length_text(link.length))
        + attribute("modified", moment_text(link.modified))
        + attribute("type", link.media_type)
        + attribute(f"{prefix}encoding", link.encoding)
        + attribute(f"{prefix}path", link.path)
        + attribute(f"{prefix}pri", "" if link.priority is None else str(link.priority))
        + "/>"
    )


def native_opening(header: Header) -> str:
    """Return what comes before the items.

    Raises:
        ValueError: A text cannot be written in XML.
    """
    assert header.capability is not None
    links = "".join(f"{link_element(link, prefix='')}\n" for link in header.links)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<resync xmlns="{DRAFT_NS}" rstype="{DRAFT_NS}{header.capability.value}"'
        f"{attribute('modified', moment_text(header.modified))}>\n{links}"
    )


def native_closing() -> str:
    """Return what comes after the items."""
    return "</resync>\n"


def native_row(entry: Resource | Change) -> str:
    """Return an item.

    Raises:
        ValueError: Something in it cannot be written.
    """
    resource = entry.resource if isinstance(entry, Change) else entry
    told = (
        attribute("change", entry.kind.value if isinstance(entry, Change) else "")
        + attribute("href", resource.uri)
        + attribute("hash", format_digests(resource.digests))
        + attribute("length", length_text(resource.length))
        + attribute("modified", moment_text(resource.lastmod))
        + attribute("type", resource.media_type)
        + attribute("encoding", resource.encoding)
        + attribute("path", resource.path)
    )
    links = "".join(link_element(link, prefix="") for link in resource.links)
    return f"<item{told}>{links}</item>\n" if links else f"<item{told}/>\n"
