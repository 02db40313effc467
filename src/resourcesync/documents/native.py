"""Write the form of ResourceSync's own that was considered and given up.

It is that of figure 11 of Klein et al., D-Lib Magazine 19(1/2), 2013. The figure is not
well-formed; this is its corrected form, with the links of an item in the item.
"""

from resourcesync.documents._attributes import attribute, length_text, moment_text
from resourcesync.documents.atom import link_element
from resourcesync.documents.feeds import DRAFT_NS
from resourcesync.model.capabilities import Header
from resourcesync.model.digests import format_digests
from resourcesync.model.resources import Change, Resource


def native_opening(header: Header) -> str:
    """Return what comes before the items.

    Raises:
        ValueError: A text cannot stand in XML.
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
