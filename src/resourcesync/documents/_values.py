"""Entries become values: every attribute read by its own rule, the rest kept in ``extra``."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

from resourcesync.documents._assembling import Irregular
from resourcesync.documents._layouts import ATTRIBUTES, Row
from resourcesync.documents._tokens import (
    CHANGEFREQ,
    LASTMOD,
    LOC,
    RS_NAMESPACES,
    SEPARATOR,
)
from resourcesync.model.digests import Digest, disagree, parse_digests
from resourcesync.model.links import Extra, Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import parse_w3c
from resourcesync.model.vocabulary import Capability, ChangeKind

BLANKS: Final = " \t\r\n"
"""What XML calls white space; around ``loc`` and attributes it means nothing."""

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
ROOT_KNOWN: Final = frozenset({"capability", *TIMES})
MAX_PRIORITY: Final = 999_999

T = TypeVar("T")

_ALIASES: Final = {
    "changenotification": Capability.CHANGE_NOTIFICATION,
    "frameworknotification": Capability.FRAMEWORK_NOTIFICATION,
}
_LENGTH: Final = re.compile("[0-9]{1,19}")
# Control characters, and those that are not seen or that turn what follows around.
_ILLEGAL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


class RefusalError(Exception):
    """An entry cannot be used; its list can."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def resource_of(entry: Irregular, known: frozenset[str], *, longest: int) -> Resource:
    """Return the resource that any entry tells of.

    Args:
        entry: The entry.
        known: The attributes of ``rs:md`` that are not extra.
        longest: Most characters of a URI.

    Raises:
        RefusalError: It cannot be used.
    """
    values, extra = split(entry.metadata, known)
    texts = entry.texts
    return Resource(
        uri=entry_uri(entry, longest),
        lastmod=lastmod_of(entry),
        length=length_of(values["length"]) if "length" in values else None,
        digests=digests(values.get("hash", "")),
        media_type=values.get("type", ""),
        encoding=values.get("encoding", ""),
        changefreq=texts.get(CHANGEFREQ, "").strip(BLANKS),
        links=links(entry.links, longest=longest),
        path=path_of(entry) if "path" in known else "",
        extra=extra,
    )


def path_of(entry: Irregular) -> str:
    """Return the place of the entry inside a package, just as written."""
    return _parted(entry.metadata, frozenset({"path"}))[0].get("path", "")


def row_of(item: Irregular) -> Row:
    """Return the row of an entry, just as written; the URI is empty when there is none."""
    values, _ = _parted(item.metadata, CHANGE_KNOWN | {"path"})
    texts = item.texts
    return Row(
        uri=texts.get(LOC, ""),
        lastmod_text=texts.get(LASTMOD),
        hash_text=values.get("hash"),
        length_text=values.get("length"),
        media_type=values.get("type"),
        encoding=values.get("encoding"),
        changefreq=texts.get(CHANGEFREQ),
        change=values.get("change"),
        datetime_text=values.get("datetime"),
        line=item.line,
        column=item.column,
        path=values.get("path"),
    )


def irregular_of(row: Row) -> Irregular:
    """Return the entry that a row of a run was cut from."""
    texts = {LOC: row.uri}
    if row.lastmod_text is not None:
        texts[LASTMOD] = row.lastmod_text
    if row.changefreq is not None:
        texts[CHANGEFREQ] = row.changefreq
    metadata: list[str] = []
    for name, field in ATTRIBUTES.items():
        value = getattr(row, field)
        if value is not None:
            metadata += (name, value)
    return Irregular(line=row.line, column=row.column, texts=texts, metadata=metadata)


def capability(label: str) -> Capability | None:
    """Return the capability that a label names, or ``None`` when this version knows none."""
    name = label.strip(BLANKS).lower()
    if name in Capability.__members__.values():
        return Capability(name)
    return _ALIASES.get(name)


def change_kind(label: str | None) -> ChangeKind | None:
    """Return what a ``change`` attribute says, or ``None`` when it is missing or unknown."""
    if label is None:
        return None
    return CHANGES.get(label) or CHANGES.get(label.strip(BLANKS).lower())


def change_of(entry: Irregular, kind: ChangeKind, known: frozenset[str], *, longest: int) -> Change:
    """Return the change that any entry tells of.

    Args:
        entry: The entry.
        kind: What happened.
        known: The attributes of ``rs:md`` that are not extra.
        longest: Most characters of a URI.

    Raises:
        RefusalError: It cannot be used.
    """
    resource = resource_of(entry, known, longest=longest)
    text = split(entry.metadata, CHANGE_KNOWN)[0].get("datetime")
    time = resource.lastmod if text is None else change_moment(text)
    return Change(kind=kind, time=time, resource=resource)


def change_moment(text: str) -> datetime:
    """Return the time of a change that a ``datetime`` names.

    Raises:
        RefusalError: It names none.
    """
    return moment(text.strip(BLANKS), "The datetime is")


def entry_uri(entry: Irregular, longest: int) -> str:
    """Return the entry's URI.

    Raises:
        RefusalError: The entry is faulty, or its ``loc`` is.
    """
    if entry.fault is not None:
        raise RefusalError(*entry.fault)
    uri = entry.texts[LOC].strip(BLANKS)
    if len(uri) > longest:
        raise RefusalError("uri-too-long", f"The loc has more than {longest:,} characters")
    return clean_uri(uri)


def clean_uri(text: str) -> str:
    """Return a URI without the blanks around it.

    Raises:
        RefusalError: It is empty, or holds characters that nobody sees.
    """
    # Mostly there is nothing to strip, and the first strip returns the very same string.
    uri = text if text.strip() is text else text.strip(BLANKS)
    if not uri.isprintable() and _ILLEGAL.search(uri):
        raise RefusalError("uri-illegal", "The loc holds control or invisible characters")
    if not uri:
        raise RefusalError("entry-invalid", "The loc is empty")
    return uri


def element_moment(text: str) -> datetime | None:
    """Return what a ``lastmod`` says; an empty one says nothing.

    Raises:
        RefusalError: It is no W3C Datetime.
    """
    stripped = text.strip(BLANKS)
    return moment(stripped, "The lastmod is") if stripped else None


def moment(text: str, subject: str) -> datetime:
    """Return the moment that a text names.

    Raises:
        RefusalError: It names none.
    """
    try:
        return parse_w3c(text)
    except ValueError as error:
        raise RefusalError("time-invalid", f"{subject} no W3C Datetime: {text[:64]!r}") from error


def lastmod_of(entry: Irregular) -> datetime | None:
    """Return what the entry's ``lastmod`` says.

    Raises:
        RefusalError: It is no W3C Datetime.
    """
    text = entry.texts.get(LASTMOD)
    return None if text is None else element_moment(text)


def length_of(text: str) -> int:
    """Return the number of bytes that a ``length`` names.

    Raises:
        RefusalError: It names none: up to 19 ASCII digits do.
    """
    if _LENGTH.fullmatch(text) or _LENGTH.fullmatch(text.strip(BLANKS)):
        return int(text)
    raise RefusalError("length-invalid", f"The length is no number of bytes: {text[:64]!r}")


def digests(text: str) -> tuple[Digest, ...]:
    """Return the digests in a ``hash`` attribute.

    Raises:
        RefusalError: Two of them are of one algorithm, and disagree.
    """
    found = parse_digests(text)
    if len(found) > 1 and disagree(found, found):
        raise RefusalError("hash-disagrees", "Two digests of one algorithm disagree")
    return found


def links(found: list[list[str]], *, longest: int) -> tuple[Link, ...]:
    """Return the links that lead somewhere; a link without ``rel`` or ``href`` does not."""
    return tuple(link for flat in found if (link := _link(flat, longest)) is not None)


def _link(flat: list[str], longest: int) -> Link | None:
    values, extra = split(flat, LINK_KNOWN)
    href, rel = values.get("href", ""), values.get("rel", "")
    if not rel or not 0 < len(href) <= longest or _ILLEGAL.search(href):
        return None
    return Link(
        rel=rel,
        href=href,
        media_type=values.get("type", ""),
        length=_hint(length_of, values.get("length")),
        digests=_hint(digests, values.get("hash")) or (),
        encoding=values.get("encoding", ""),
        modified=_hint(parse_w3c, values.get("modified")),
        path=values.get("path", ""),
        priority=_hint(_priority, values.get("pri")),
        extra=extra,
    )


def _hint(read: Callable[[str], T], text: str | None) -> T | None:
    """Return what an attribute of a link says; one that says nothing sound spoils nothing."""
    if text is None:
        return None
    try:
        return read(text)
    except (ValueError, RefusalError):
        return None


def _priority(text: str) -> int | None:
    value = length_of(text)
    return value if 1 <= value <= MAX_PRIORITY else None


def split(flat: list[str] | None, known: frozenset[str]) -> tuple[dict[str, str], Extra]:
    """Part the attributes of ``rs:md`` or ``rs:ln`` into those we know, stripped, and the rest."""
    values, extra = _parted(flat, known)
    return {name: value.strip(BLANKS) for name, value in values.items()}, extra


def _parted(flat: list[str] | None, known: frozenset[str]) -> tuple[dict[str, str], Extra]:
    """Part attributes into those we know and the rest, all as written.

    An attribute that carries the ResourceSync namespace counts as if it had none (§7 forbids the
    prefix; version 0.9 asked for it).
    """
    values: dict[str, str] = {}
    extra: dict[str, str] = {}
    late: list[tuple[str, str]] = []
    pairs = iter(flat or ())
    for name, value in zip(pairs, pairs, strict=True):
        namespace, _, local = name.rpartition(SEPARATOR)
        if namespace in RS_NAMESPACES:
            late.append((local, value))
        elif name in known:
            values[name] = value
        else:
            extra[f"{{{namespace}}}{local}" if namespace else name] = value
    for name, value in late:
        (values if name in known else extra).setdefault(name, value)
    return values, tuple(extra.items())
