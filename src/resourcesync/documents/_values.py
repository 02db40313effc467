"""Values of entries and headers: attributes by their rules, old times by their present names.

An error in one ``rs:ln`` does not affect the rest of the entry (§7, §14). The header of a document
is the root's own ``rs:md`` and ``rs:ln``, in the terms of 1.1.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from resourcesync.documents import expat
from resourcesync.errors import UnexpectedDocumentError
from resourcesync.model.digests import Digest, disagree, parse_digests
from resourcesync.model.entries import Extra, Header, Link
from resourcesync.model.leniencies import LENIENCIES, Leniency
from resourcesync.model.timestamps import parse_loosely, parse_w3c
from resourcesync.model.vocabulary import CAPABILITIES, Capability, ChangeKind

if TYPE_CHECKING:
    from resourcesync.documents._raw_entries import EntryAssembler

BLANKS: Final = " \t\r\n"
"""White space of XML; around ``loc`` and attributes it means nothing."""

CHANGES: Final = {
    "created": ChangeKind.CREATED,
    "create": ChangeKind.CREATED,
    "updated": ChangeKind.UPDATED,
    "update": ChangeKind.UPDATED,
    "deleted": ChangeKind.DELETED,
    "delete": ChangeKind.DELETED,
}

REPRESENTATION: Final = frozenset({"hash", "length", "type", "encoding"})
CHANGE_KNOWN: Final = REPRESENTATION | {"change", "datetime"}
LINK_KNOWN: Final = REPRESENTATION | {"rel", "href", "modified", "path", "pri"}
TIMES: Final = ("at", "completed", "from", "until")
PACKAGE_KNOWN: Final = REPRESENTATION | {*TIMES}
PART_KNOWN: Final = PACKAGE_KNOWN | {"path"}
CAPABILITY_KNOWN: Final = frozenset({"capability"})
ROOT_KNOWN: Final = CAPABILITY_KNOWN | {*TIMES}
DOCUMENT_KNOWN: Final = ROOT_KNOWN | {"change", "datetime"}
MAX_PRIORITY: Final = 999_999

_MISPLACED: Final = {
    "path": "G31",
    "change": "G32",
    "datetime": "G34",
    "capability": "G35",
    "modified": "G36",
    "at": "G37",
    "completed": "G37",
    "from": "G38",
    "until": "G38",
}
_LENGTH: Final = re.compile("[0-9]{1,19}")
MOST_BYTES: Final = 2**63 - 1
"""The largest length: no file system and no database supports more."""
# Control characters, and those that are not seen or that turn what follows around.
ILLEGAL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def capability(label: str) -> Capability | None:
    """Return the capability that a label names, or ``None`` when this version knows none."""
    return capability_and_form(label)[0]


def capability_and_form(label: str) -> tuple[Capability | None, bool]:
    """Return the capability that a label names, and whether it names an index."""
    name = label.strip(BLANKS).lower()
    if name in CAPABILITIES:
        return CAPABILITIES[name], False
    base = name.removesuffix("index")
    return CAPABILITIES.get(base), base != name and base in CAPABILITIES


def entry_capability(label: str, context: expat.ReadingContext) -> Capability | None:
    """Return the capability that an entry's label names; note what is odd about the label."""
    found = capability(label)
    if found is None and label:
        context.tolerate(Leniency.CAPABILITY_UNKNOWN, about=label)
    elif found is not None and found.value != label:
        context.tolerate(Leniency.CAPABILITY_SPELLED, about=label)
    return found


def change_kind(label: str | None) -> ChangeKind | None:
    """Return the kind in a ``change`` attribute, or ``None`` if it is missing or unknown."""
    if label is None:
        return None
    return CHANGES.get(label) or CHANGES.get(label.strip(BLANKS).lower())


def change_moment(text: str) -> datetime:
    return moment(text.strip(BLANKS), "The datetime is")


def clean_uri(text: str) -> str:
    """Return a URI without the blanks around it."""
    # Mostly there is nothing to strip, and the first strip returns the very same string.
    uri = text if text.strip() is text else text.strip(BLANKS)
    if not uri.isprintable() and ILLEGAL.search(uri):
        raise expat.RefusalError(
            "uri-illegal", "The loc contains control or invisible characters", "G13"
        )
    if not uri:
        raise expat.RefusalError("entry-invalid", "The loc is empty", "G12")
    return uri


def element_moment(text: str) -> datetime | None:
    """Return the time in a ``lastmod``; ``None`` for an empty one."""
    stripped = text.strip(BLANKS)
    return moment(stripped, "The lastmod is") if stripped else None


def moment(text: str, subject: str) -> datetime:
    try:
        return parse_w3c(text)
    except ValueError as error:
        raise expat.RefusalError(
            "time-invalid", f"{subject} not a W3C Datetime: {text[:64]!r}", "G17"
        ) from error


def moment_or_none(text: str, context: expat.ReadingContext) -> datetime | None:
    """Return the moment that a text clearly names, else ``None``."""
    try:
        return _clear_moment(text, context)
    except ValueError:
        context.drop_value(Leniency.TIME_INVALID, about=text)
        return None


def _clear_moment(text: str, context: expat.ReadingContext) -> datetime:
    try:
        found = parse_w3c(text)
    except ValueError:
        found = parse_loosely(text)
        context.tolerate(Leniency.TIME_SPELLED, about=text)
    else:
        if lacks_zone(text):
            context.tolerate(Leniency.TIME_ZONE, about=text)
    return found


def lacks_zone(text: str) -> bool:
    """True if a W3C Datetime has a time, but no time zone."""
    return "T" in text and not text.endswith("Z") and text[-6] not in "+-"


def length_of(text: str) -> int:
    if (_LENGTH.fullmatch(text) or _LENGTH.fullmatch(text.strip(BLANKS))) and (
        int(text) <= MOST_BYTES
    ):
        return int(text)
    raise expat.RefusalError(
        "length-invalid", f"The length is not a number of bytes: {text[:64]!r}", "G26"
    )


def length_or_none(text: str | None, context: expat.ReadingContext) -> int | None:
    """Return the number of bytes in a ``length``; ``None`` for an invalid one."""
    if text is None:
        return None
    try:
        return length_of(text)
    except expat.RefusalError as refusal:
        context.drop_value(Leniency(refusal.code), about=text)
        return None


def digests_or_none(text: str, context: expat.ReadingContext) -> tuple[Digest, ...]:
    """Return the digests in a ``hash``, without those that are none or contradict each other."""
    found, fault = _sound_digests(text)
    if fault is not None:
        context.drop_value(fault, about=text)
    return found


def digests(text: str) -> tuple[Digest, ...]:
    found, fault = _sound_digests(text)
    if fault is not None:
        raise expat.RefusalError(fault, LENIENCIES[fault][1], LENIENCIES[fault][0])
    return found


def _sound_digests(text: str) -> tuple[tuple[Digest, ...], Leniency | None]:
    found = parse_digests(text)
    sound = tuple(digest for digest in found if not digest.is_malformed)
    if len(sound) > 1 and disagree(sound, sound):
        return (), Leniency.HASH_DISAGREES
    return sound, Leniency.HASH_INVALID if len(sound) < len(found) else None


def split_attributes(
    flat: list[str] | None, known: frozenset[str], context: expat.ReadingContext
) -> tuple[dict[str, str], Extra]:
    """Part the attributes of ``rs:md`` or ``rs:ln`` into those we know, stripped, and the rest."""
    values, extra = partition_attributes(flat, known, context)
    for name, _ in extra:
        if name == "etag":
            context.version_marks.add(expat.ETAG)
        if name in _MISPLACED:
            context.tolerate(Leniency.ATTRIBUTE_MISPLACED, rule=_MISPLACED[name], about=name)
        elif not name.startswith("{"):
            context.tolerate(Leniency.ATTRIBUTE_UNKNOWN, about=name)
    return {name: value.strip(BLANKS) for name, value in values.items()}, extra


def partition_attributes(
    flat: list[str] | None, known: frozenset[str], context: expat.ReadingContext | None = None
) -> tuple[dict[str, str], Extra]:
    """Part attributes into those we know and the rest, all as written.

    An attribute that carries the ResourceSync namespace counts as if it had none (§7 forbids the
    prefix; version 0.9 required it).
    """
    values: dict[str, str] = {}
    extra: dict[str, str] = {}
    late: list[tuple[str, str]] = []
    pairs = iter(flat or ())
    for name, value in zip(pairs, pairs, strict=True):
        if name in known:
            values[name] = value
            continue
        namespace, _, local = name.rpartition(expat.SEPARATOR)
        if namespace in expat.ALL_RS_NAMESPACES:
            late.append((local, value))
        else:
            extra[f"{{{namespace}}}{local}" if namespace else name] = value
    if late and context is not None:
        context.tolerate(Leniency.ATTRIBUTE_PREFIXED, about=late[0][0])
    for name, value in late:
        (values if name in known else extra).setdefault(name, value)
    return values, tuple(extra.items())


T = TypeVar("T")


def read_links(found: list[list[str]], context: expat.ReadingContext) -> tuple[Link, ...]:
    """Return the links that lead somewhere; a link without ``rel`` or ``href`` does not."""
    made = tuple(link for flat in found if (link := _read_link(flat, context)) is not None)
    if len(made) > 1 and sum(link.has_relation("via") for link in made) > 1:
        context.version_marks.add(expat.VIA_CHAIN)
    return made


def _read_link(flat: list[str], context: expat.ReadingContext) -> Link | None:
    values, extra = split_attributes(flat, LINK_KNOWN, context)
    href, rel = values.get("href", ""), values.get("rel", "")
    target = _target(href, context) if rel else None
    if target is None:
        context.tolerate(Leniency.LINK_INCOMPLETE)
        return None
    return Link(
        rel=rel,
        href=target,
        media_type=values.get("type", ""),
        length=_read_hint(length_of, values.get("length"), "G26", context),
        digests=_read_hint(_link_digests, values.get("hash"), "G29", context) or (),
        encoding=values.get("encoding", ""),
        modified=_read_hint(parse_w3c, values.get("modified"), "G17", context),
        path=values.get("path", ""),
        priority=_read_hint(_priority, values.get("pri"), "G25", context),
        extra=extra,
    )


def _target(href: str, context: expat.ReadingContext) -> str | None:
    if len(href) > context.longest:
        context.drop_value(Leniency.VALUE_LONG, about=href)
        return None
    if not href or ILLEGAL.search(href):
        return None
    try:
        return context.absolute(href)
    except expat.RefusalError:
        return None


def _read_hint(
    read: Callable[[str], T | None], text: str | None, rule: str, context: expat.ReadingContext
) -> T | None:
    if text is None:
        return None
    try:
        found = read(text)
    except (ValueError, expat.RefusalError):
        found = None
    if found is None:
        context.tolerate(Leniency.LINK_ATTRIBUTE, rule=rule, about=text)
    return found


def _link_digests(text: str) -> tuple[Digest, ...] | None:
    found = parse_digests(text)
    return None if len(found) > 1 and disagree(found, found) else found


def _priority(text: str) -> int | None:
    value = length_of(text)
    return value if 1 <= value <= MAX_PRIORITY else None


_KNOWN: Final = ROOT_KNOWN | {"modified"}
_OLD_DESCRIPTION: Final = "resourcesync"


def header_of(root: "EntryAssembler", context: expat.ReadingContext) -> Header:
    """Return the header of a document, whose place is the context's.

    A document without ``rs:md`` is a plain sitemap, or a draft that names its kind.
    """
    if root.metadata is None:
        kind = None
        if root.kind:
            kind = _capability(root.kind, context)[0]
        if expat.P1 in context.version_marks:
            context.tolerate(Leniency.DRAFT)
        modified = _moment("modified", root.modified, context) if root.modified else None
        at = modified if kind is not None and kind.is_snapshot else None
        header = Header(capability=kind, is_index=root.is_index, at=at, modified=modified)
    else:
        header = _with_metadata(root.metadata, context, is_index=root.is_index)
    found = read_links(root.links, context)
    return replace(header, links=_modern_relations(found, context), foreign=tuple(root.foreign))


def _with_metadata(metadata: list[str], context: expat.ReadingContext, *, is_index: bool) -> Header:
    values, extra = split_attributes(metadata, _KNOWN, context)
    label = values.get("capability")
    if label is None:
        context.refuse("xml-metadata", "The root's rs:md names no capability")
    kind, says_index = _capability(label, context)
    moments: dict[str, Any] = {
        "from_" if name == "from" else name: _moment(name, values[name], context)
        for name in (*TIMES, "modified")
        if name in values
    }
    _modern_times(kind, moments, context)
    return Header(capability=kind, is_index=is_index or says_index, extra=extra, **moments)


def _capability(label: str, context: expat.ReadingContext) -> tuple[Capability, bool]:
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
        context.version_marks.add(expat.BEFORE_0_9_1)
    if label != kind.value:
        context.tolerate(Leniency.CAPABILITY_SPELLED, about=label)
    return kind, says_index


def _modern_times(kind: Capability, moments: dict[str, Any], context: expat.ReadingContext) -> None:
    if moments.keys() == {"modified"}:
        context.version_marks.add(expat.MODIFIED)
        context.tolerate(Leniency.TIME_MODIFIED)
        if kind.is_snapshot:
            moments["at"] = moments.pop("modified")
    if kind.is_snapshot and "from_" in moments and "at" not in moments:
        context.version_marks.add(expat.BEFORE_0_9_1)
        context.tolerate(Leniency.TIME_FROM)
        moments["at"] = moments.pop("from_")


def _modern_relations(found: tuple[Link, ...], context: expat.ReadingContext) -> tuple[Link, ...]:
    words = {}
    for old in ("resourcesync", "top"):
        if any(link.has_relation(old) for link in found):
            words = {old: "up", "up": "index"}
    if "resourcesync" in words:
        context.version_marks.add(expat.BEFORE_0_9_1)
    if not words and {expat.MODIFIED, expat.P2, expat.BEFORE_0_9_1} & context.version_marks:
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


def _moment(name: str, text: str, context: expat.ReadingContext) -> datetime:
    try:
        return _clear_moment(text, context)
    except ValueError:
        reason = f"The document's {name} is not a W3C Datetime: {text[:64]!r}"
        context.refuse("time-invalid", reason)
