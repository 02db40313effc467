"""The header of a document: the root's own ``rs:md`` and ``rs:ln`` (§7), in the terms of 1.1."""

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from resourcesync.documents._context import BEFORE_0_9_1, MODIFIED, P1, P2, ReadingContext
from resourcesync.documents._values import (
    ROOT_KNOWN,
    TIMES,
    capability_and_form,
    lacks_zone,
    read_links,
    split_attributes,
)
from resourcesync.errors import MalformedDocumentError, UnexpectedDocumentError
from resourcesync.model.capabilities import Header
from resourcesync.model.leniencies import Leniency
from resourcesync.model.links import Link
from resourcesync.model.timestamps import parse_loosely, parse_w3c
from resourcesync.model.vocabulary import Capability

_KNOWN: Final = ROOT_KNOWN | {"modified"}
_OLD_DESCRIPTION: Final = "resourcesync"


class RawRoot(msgspec.Struct, frozen=True, kw_only=True):
    """The root of a document before its entries, as written.

    ``metadata`` has names and values of ``rs:md`` in turn; ``links`` the same for each ``rs:ln``.
    ``kind`` and ``modified`` are those of a draft.
    """

    is_index: bool
    metadata: list[str] | None
    links: list[list[str]]
    foreign: list[str]
    kind: str = ""
    modified: str = ""


def header_of(root: RawRoot, context: ReadingContext) -> Header:
    """Return the header of a document, whose place is the context's.

    A document without ``rs:md`` is a plain sitemap, or a draft that names its kind.
    """
    if root.metadata is None:
        kind = None
        if root.kind:
            kind = _capability(root.kind, context)[0]
        if P1 in context.version_marks:
            context.tolerate(Leniency.DRAFT)
        modified = _moment("modified", root.modified, context) if root.modified else None
        at = modified if kind is not None and kind.is_snapshot else None
        header = Header(capability=kind, is_index=root.is_index, at=at, modified=modified)
    else:
        header = _with_metadata(root, root.metadata, context)
    found = read_links(root.links, context)
    return replace(header, links=_modern_relations(found, context), foreign=tuple(root.foreign))


def _with_metadata(root: RawRoot, metadata: list[str], context: ReadingContext) -> Header:
    values, extra = split_attributes(metadata, _KNOWN, context)
    label = values.get("capability")
    if label is None:
        raise _malformed("The root's rs:md names no capability", "xml-metadata", context)
    kind, says_index = _capability(label, context)
    moments: dict[str, Any] = {
        "from_" if name == "from" else name: _moment(name, values[name], context)
        for name in (*TIMES, "modified")
        if name in values
    }
    _modern_times(kind, moments, context)
    return Header(capability=kind, is_index=root.is_index or says_index, extra=extra, **moments)


def _capability(label: str, context: ReadingContext) -> tuple[Capability, bool]:
    kind, says_index = capability_and_form(label)
    if kind is None:
        raise UnexpectedDocumentError(
            f"The document's capability is {label[:64]!r}, which is not supported",
            uri=context.uri,
            line=context.line,
            column=context.column,
            evidence=(("got", label[:64]),),
            hint="see what else the Source offers: resourcesync explore URL",
        )
    if label.lower() == _OLD_DESCRIPTION:
        context.version_marks.add(BEFORE_0_9_1)
    if label != kind.value:
        context.tolerate(Leniency.CAPABILITY_SPELLED, about=label)
    return kind, says_index


def _modern_times(kind: Capability, moments: dict[str, Any], context: ReadingContext) -> None:
    """Give the times the names they have since 0.9.1 (§3.1 of it)."""
    if moments.keys() == {"modified"}:
        context.version_marks.add(MODIFIED)
        context.tolerate(Leniency.TIME_MODIFIED)
        if kind.is_snapshot:
            moments["at"] = moments.pop("modified")
    if kind.is_snapshot and "from_" in moments and "at" not in moments:
        context.version_marks.add(BEFORE_0_9_1)
        context.tolerate(Leniency.TIME_FROM)
        moments["at"] = moments.pop("from_")


def _modern_relations(found: tuple[Link, ...], context: ReadingContext) -> tuple[Link, ...]:
    """Give the links up and to the index the relations they have since 0.9.1."""
    words = {}
    for old in ("resourcesync", "top"):
        if any(link.has_relation(old) for link in found):
            words = {old: "up", "up": "index"}
    if "resourcesync" in words:
        context.version_marks.add(BEFORE_0_9_1)
    if not words and {MODIFIED, P2, BEFORE_0_9_1} & context.version_marks:
        words = {"up": "index"}
    if not words:
        return found
    made = tuple(replace(link, rel=_renamed(link.rel, words)) for link in found)
    if made != found:
        context.tolerate(Leniency.RELATION_OLD)
    return made


def _renamed(rel: str, words: dict[str, str]) -> str:
    tokens = rel.split()
    if not any(token.lower() in words for token in tokens):
        return rel
    return " ".join(words.get(token.lower(), token) for token in tokens)


def _moment(name: str, text: str, context: ReadingContext) -> datetime:
    """Return a time of the document itself, which all its entries depend on."""
    try:
        found = parse_w3c(text)
    except ValueError:
        return _loose_moment(name, text, context)
    if lacks_zone(text):
        context.tolerate(Leniency.TIME_ZONE, about=text)
    return found


def _loose_moment(name: str, text: str, context: ReadingContext) -> datetime:
    try:
        found = parse_loosely(text)
    except ValueError as error:
        reason = f"The document's {name} is not a W3C Datetime: {text[:64]!r}"
        raise _malformed(reason, "time-invalid", context) from error
    context.tolerate(Leniency.TIME_SPELLED, about=text)
    return found


def _malformed(reason: str, code: str, context: ReadingContext) -> MalformedDocumentError:
    return MalformedDocumentError(
        reason, uri=context.uri, line=context.line, column=context.column, code=code
    )
