"""Source Description and Capability List (§8, §9), and the links of all lists up to them.

The specification asks for a description as the target of ``describedby`` and leaves its form open
(§8, §9). Ours is a VoID description in RDF/XML: few lines that stay the same as long as the address
does.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.documents._xml_output import escape
from resourcesync.model.entries import CapabilityEntry, Header, Link
from resourcesync.model.timestamps import format_w3c, from_microseconds
from resourcesync.model.vocabulary import LISTED_CAPABILITIES, VALID_FROM, Capability, Relation
from resourcesync.source import naming
from resourcesync.source.document_writer import DocumentWriter
from resourcesync.source.naming import SourceNaming

ABOUT_START: Final = b"""<?xml version="1.0" encoding="UTF-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" \
xmlns:void="http://rdfs.org/ns/void#" xmlns:dcterms="http://purl.org/dc/terms/" \
xmlns:foaf="http://xmlns.com/foaf/0.1/">
<!-- About a set of resources that is kept in step by ResourceSync, ANSI/NISO Z39.99. -->
"""
"""First bytes of every description that this package writes."""


def render_about(names: SourceNaming) -> bytes:
    """Return the description of the set that is published under these names."""
    base = names.base_uri
    title = escape(f"The resources of {base}")
    text = escape(
        "Copies of these resources can be kept in step with ResourceSync (ANSI/NISO Z39.99)."
        " The Source Description is the place to start from."
    )
    return (
        ABOUT_START
        + (
            f'<void:Dataset rdf:about="{escape(base)}">\n'
            f"<dcterms:title>{title}</dcterms:title>\n"
            f"<dcterms:description>{text}</dcterms:description>\n"
            f"<void:uriSpace>{escape(base)}</void:uriSpace>\n"
            f'<foaf:page rdf:resource="{escape(names.uri(naming.DESCRIPTION))}"/>\n'
            "</void:Dataset>\n"
            "</rdf:RDF>\n"
        ).encode()
    )


def publish(
    writer: DocumentWriter,
    offered: Mapping[Capability, str],
    described_by: str = "",
    hubs: tuple[str, ...] = (),
    *,
    monitored_since: int | None = None,
) -> None:
    """Write the Capability List and the Source Description, in this order, where they differ.

    A Source Description that several sets share is written after each of them: ``publish_site``.
    """
    if not described_by:
        described_by = writer.naming.uri(naming.ABOUT)
        writer.put_text(naming.ABOUT, render_about(writer.naming))
    description = Link(rel=Relation.DESCRIBED_BY.value, href=described_by)
    offers = [(kind, offered[kind]) for kind in LISTED_CAPABILITIES if kind in offered]
    key = repr(
        (described_by, offers, *filter(None, (hubs, monitored_since, writer.naming.site_uri)))
    )
    if not writer.has(naming.CAPABILITY_LIST, key):
        header = Header(
            capability=Capability.CAPABILITY_LIST,
            links=(up_link(writer.naming, naming.DESCRIPTION), description),
        )
        writer.put_entries(
            naming.CAPABILITY_LIST,
            key,
            header,
            (
                *_lists(writer.naming, offers, monitored_since),
                *_channel(writer.naming, Capability.CHANGE_NOTIFICATION, hubs),
            ),
        )
    if not writer.naming.site_uri:
        own = DescribedSet(names=writer.naming, described_by=described_by, hubs=hubs)
        key = repr((described_by, hubs)) if hubs else described_by
        _put_description(writer, key, description, _sets_entries([own]))


class DescribedSet(msgspec.Struct, frozen=True, kw_only=True):
    """What a shared Source Description says of a set."""

    names: SourceNaming
    described_by: str
    hubs: tuple[str, ...]


def publish_site(writer: DocumentWriter, sets: Sequence[DescribedSet]) -> None:
    """Write the Source Description of several sets (§8), where it differs."""
    writer.put_text(naming.SITE_ABOUT, render_about(writer.naming))
    about = Link(rel=Relation.DESCRIBED_BY.value, href=writer.naming.uri(naming.SITE_ABOUT))
    entries = _sets_entries(sets)
    key = hashlib.sha256(repr((about.href, entries)).encode()).hexdigest()
    _put_description(writer, key, about, entries)


def _sets_entries(sets: Sequence[DescribedSet]) -> list[CapabilityEntry]:
    entries: list[CapabilityEntry] = []
    for each in sets:
        entry = _entry(each.names, naming.CAPABILITY_LIST, Capability.CAPABILITY_LIST)
        link = Link(rel=Relation.DESCRIBED_BY.value, href=each.described_by)
        entries.append(replace(entry, links=(link,)))
    for each in sets:
        entries += _channel(each.names, Capability.FRAMEWORK_NOTIFICATION, each.hubs)
    return entries


def _put_description(
    writer: DocumentWriter, key: str, about: Link, entries: Sequence[CapabilityEntry]
) -> None:
    if not writer.has(naming.DESCRIPTION, key):
        header = Header(capability=Capability.DESCRIPTION, links=(about,))
        writer.put_entries(naming.DESCRIPTION, key, header, entries)


def _lists(
    names: SourceNaming, offers: Sequence[tuple[Capability, str]], since: int | None
) -> Iterator[CapabilityEntry]:
    monitor = dict(offers).get(Capability.CHANGE_LIST)
    for capability, name in offers:
        entry = _entry(names, name, capability)
        if since and monitor and capability is Capability.RESOURCE_LIST:
            link = Link(
                rel=Relation.MONITOR.value,
                href=names.uri(monitor),
                extra=((VALID_FROM, format_w3c(from_microseconds(since))),),
            )
            entry = replace(entry, links=(link,))
        yield entry


def _channel(
    names: SourceNaming, capability: Capability, hubs: tuple[str, ...]
) -> tuple[CapabilityEntry, ...]:
    if not hubs:
        return ()
    links = tuple(Link(rel=Relation.HUB.value, href=hub) for hub in hubs)
    return (replace(_entry(names, naming.CHANNELS[capability], capability), links=links),)


def up_link(names: SourceNaming, name: str) -> Link:
    """Return the link to the document above (§6.2)."""
    return Link(rel=Relation.UP.value, href=names.uri(name))


def index_link(names: SourceNaming, name: str) -> Link:
    """Return the link from a part to its index (§6.2)."""
    return Link(rel=Relation.INDEX.value, href=names.uri(name))


def _entry(names: SourceNaming, name: str, capability: Capability) -> CapabilityEntry:
    return CapabilityEntry(uri=names.uri(name), capability=capability, label=capability.value)
