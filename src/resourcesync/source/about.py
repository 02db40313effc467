"""What tells of the set of resources, for people and machines: the target of ``describedby``.

The specification asks for such a document and leaves its form open (§8, §9). Ours is a VoID
description in RDF/XML: few lines that stay the same as long as the address does.
"""

from html import escape
from typing import Final

from resourcesync.source import naming
from resourcesync.source.naming import SourceNaming

ABOUT_START: Final = b"""<?xml version="1.0" encoding="UTF-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" \
xmlns:void="http://rdfs.org/ns/void#" xmlns:dcterms="http://purl.org/dc/terms/" \
xmlns:foaf="http://xmlns.com/foaf/0.1/">
<!-- About a set of resources that is kept in step by ResourceSync, ANSI/NISO Z39.99. -->
"""
"""What every such document of ours starts with."""


def render_about(names: SourceNaming) -> bytes:
    """Return the document about the set that is published under these names."""
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
