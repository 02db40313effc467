"""The root's own ``rs:md`` and ``rs:ln`` become a header (§7)."""

from datetime import datetime
from typing import Any

from resourcesync.documents._assembling import Assembler
from resourcesync.documents._limits import Limits
from resourcesync.documents._values import (
    ROOT_KNOWN,
    TIMES,
    RefusalError,
    capability,
    links,
    moment,
    split,
)
from resourcesync.errors import MalformedDocumentError, UnexpectedDocumentError
from resourcesync.model.capabilities import Header


def header_of(
    assembler: Assembler, *, is_index: bool, place: tuple[int, int], uri: str, limits: Limits
) -> Header:
    """Return the header of the document that the assembler has begun.

    A document without ``rs:md`` is a plain sitemap.

    Raises:
        MalformedDocumentError: The ``rs:md`` names no capability, or a time that is none.
        UnexpectedDocumentError: It names a capability that this version does not read.
    """
    found = links(assembler.links, longest=limits.uri)
    if assembler.metadata is None:
        return Header(capability=None, is_index=is_index, links=found)
    line, column = place
    values, extra = split(assembler.metadata, ROOT_KNOWN)
    label = values.get("capability")
    if label is None:
        raise MalformedDocumentError(
            "The root's rs:md names no capability",
            uri=uri,
            line=line,
            column=column,
            code="xml-metadata",
        )
    known = capability(label)
    if known is None:
        raise UnexpectedDocumentError(
            f"The document's capability is {label[:64]!r}, which is not read here",
            uri=uri,
            line=line,
            column=column,
            evidence=(("got", label[:64]),),
        )
    moments: dict[str, Any] = {}
    for name in TIMES:
        if name in values:
            moments["from_" if name == "from" else name] = _moment(name, values[name], uri, place)
    return Header(capability=known, is_index=is_index, links=found, extra=extra, **moments)


def _moment(name: str, text: str, uri: str, place: tuple[int, int]) -> datetime:
    try:
        return moment(text, f"The document's {name} is")
    except RefusalError as refusal:
        raise MalformedDocumentError(
            refusal.reason, uri=uri, line=place[0], column=place[1], code="time-invalid"
        ) from refusal
