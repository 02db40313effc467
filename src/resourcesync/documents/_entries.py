"""Entries as values and rows: resources, changes and documents (§8 to §13, Archives).

The header of a document decides which kind of entry it has.
"""

from base64 import b64decode
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypedDict

import msgspec
from msgspec.structs import replace

from resourcesync.documents import _values, expat
from resourcesync.documents._raw_entries import (
    UNKNOWN_ENTRY,
    EntryColumns,
    RawEntry,
    TextRow,
    text_element,
)
from resourcesync.model.digests import Digest, parse_digests
from resourcesync.model.entries import (
    CapabilityEntry,
    Change,
    DocumentChange,
    Entry,
    Foreign,
    Header,
    Link,
    Package,
    Part,
    Resource,
)
from resourcesync.model.leniencies import Leniency
from resourcesync.model.vocabulary import SITEMAP_NS, Capability, ChangeKind

_MD5_BYTES: Final = 16
_ROW_KNOWN: Final = _values.CHANGE_KNOWN | {"path", "at"}


def resource_of(entry: RawEntry, known: frozenset[str], context: expat.ReadingContext) -> Resource:
    values, extra = _values.split_attributes(entry.metadata, known, context)
    texts = entry.texts
    length = values.get("length", texts.get(expat.SIZE))
    return Resource(
        uri=entry_uri(entry, context),
        lastmod=lastmod_of(entry, context),
        length=_values.length_or_none(length, context),
        digests=_values.digests_or_none(values.get("hash", ""), context) + draft_digests(entry),
        media_type=values.get("type", ""),
        encoding=values.get("encoding", ""),
        changefreq=texts.get(expat.CHANGEFREQ, "").strip(_values.BLANKS),
        links=_values.read_links(entry.links, context),
        path=path_of(entry) if "path" in known else "",
        extra=extra,
        foreign=foreign_of(entry),
    )


def change_of(
    entry: RawEntry, kind: ChangeKind | None, known: frozenset[str], context: expat.ReadingContext
) -> Change:
    assert kind is not None
    resource = resource_of(entry, known, context)
    if expat.EXPIRES in entry.texts:  # in drafts it is no hint, but the change itself
        resource = replace(resource, foreign=tuple(entry.foreign))
    text = _values.split_attributes(entry.metadata, known, context)[0].get("datetime")
    if text is not None:
        # One that cannot be read is no reason to borrow the time of the resource.
        time = _values.moment_or_none(text, context)
    else:
        time = _change_time(entry, resource, context)
    return Change(kind=kind, time=time, resource=resource)


def _change_time(
    entry: RawEntry, resource: Resource, context: expat.ReadingContext
) -> datetime | None:
    text = _values.partition_attributes(entry.metadata, frozenset({"at"}))[0].get("at")
    if text is not None:
        context.tolerate(Leniency.CHANGE_TIME_AT)
        return _values.moment_or_none(text.strip(_values.BLANKS), context)
    if resource.lastmod is None and expat.EXPIRES in entry.texts:
        return _values.moment_or_none(entry.texts[expat.EXPIRES].strip(_values.BLANKS), context)
    return resource.lastmod


def row_of(item: RawEntry) -> TextRow:
    """Return the row of an entry, just as written; the URI is empty when there is none."""
    values, _ = _values.partition_attributes(item.metadata, _ROW_KNOWN)
    texts = item.texts
    time = values.get("datetime", values.get("at") if "change" in values else None)
    if time is None and expat.LASTMOD not in texts:
        time = texts.get(expat.EXPIRES)
    return TextRow(
        uri=texts.get(expat.LOC, ""),
        lastmod_text=texts.get(expat.LASTMOD),
        hash_text=values.get("hash"),
        length_text=values.get("length", texts.get(expat.SIZE)),
        media_type=values.get("type"),
        encoding=values.get("encoding"),
        changefreq=texts.get(expat.CHANGEFREQ),
        change=values.get("change", _draft_change(item)),
        datetime_text=time,
        line=item.line,
        column=item.column,
        path=values.get("path"),
    )


def _draft_change(item: RawEntry) -> str | None:
    given = item.given.get(expat.LASTMOD, [])
    for name, value in zip(given[::2], given[1::2], strict=True):
        namespace, _, local = name.rpartition(expat.SEPARATOR)
        if local in ("type", "eventtype") and namespace in expat.ALL_RS_NAMESPACES:
            return value
    return item.texts.get(expat.EVENT, "deleted" if expat.EXPIRES in item.texts else None)


def foreign_of(entry: RawEntry) -> Foreign:
    """Return the elements of other communities in an entry; a sitemap's own hints are, too."""
    hints = [
        text_element(SITEMAP_NS, name, entry.texts[mark])
        for mark, name in ((expat.PRIORITY, "priority"), (expat.EXPIRES, "expires"))
        if mark in entry.texts
    ]
    return (*hints, *entry.foreign)


def draft_digests(entry: RawEntry) -> tuple[Digest, ...]:
    """Return the digests in the elements of a draft, in base64 or in hex."""
    found: list[Digest] = []
    for mark in (expat.FIXITY, expat.MD5):
        text = entry.texts.get(mark, "").strip(_values.BLANKS)
        given = entry.given.get(mark, [])
        name = dict(zip(given[::2], given[1::2], strict=True)).get("type", "md5")
        if text:
            found += parse_digests(f"{name}:{_to_hex(text)}")[:1]
    return tuple(found)


def _to_hex(text: str) -> str:
    try:
        octets = b64decode(text, validate=True)
    except ValueError:
        return text
    return octets.hex() if len(octets) == _MD5_BYTES else text


def path_of(entry: RawEntry) -> str:
    """Return the place of the entry inside a package, just as written."""
    return _values.partition_attributes(entry.metadata, frozenset({"path"}))[0].get("path", "")


def check_is_entry(entry: RawEntry) -> None:
    """Check that it is an entry at all, whatever is wrong with it."""
    if entry.fault is not None and entry.fault[0] == UNKNOWN_ENTRY:
        raise expat.RefusalError(*entry.fault)


def entry_uri(entry: RawEntry, context: expat.ReadingContext) -> str:
    """Return the entry's URI, absolute."""
    if entry.fault is not None:
        raise expat.RefusalError(*entry.fault)
    uri = entry.texts[expat.LOC].strip(_values.BLANKS)
    if len(uri) <= context.longest:
        uri = context.absolute(_values.clean_uri(uri))
    if len(uri) > context.longest:
        raise expat.RefusalError(
            "uri-too-long", f"The loc has more than {context.longest:,} characters", "G13"
        )
    return uri


def lastmod_of(entry: RawEntry, context: expat.ReadingContext) -> datetime | None:
    """Return the entry's ``lastmod``; ``None`` if it cannot be read."""
    text = entry.texts.get(expat.LASTMOD, "").strip(_values.BLANKS)
    return _values.moment_or_none(text, context) if text else None


def place_of(item: EntryColumns | RawEntry, index: int) -> tuple[int, int]:
    """Return line and column of an entry; in a run, of the entry with this (negative) index."""
    if isinstance(item, EntryColumns):
        return item.lines[index], item.columns[index]
    return item.line, item.column


def part_of(entry: RawEntry, context: expat.ReadingContext) -> Part:
    """Return the document that an entry of an index or an archive points to."""
    values, extra = _values.split_attributes(entry.metadata, _values.PART_KNOWN, context)
    return Part(
        path=path_of(entry),
        extra=extra,
        **_described(entry, context),
        **_moments(values, context),
        **_representation(values, context),
    )


def package_of(entry: RawEntry, context: expat.ReadingContext) -> Package:
    """Return the package that an entry of a dump points to."""
    values, extra = _values.split_attributes(entry.metadata, _values.PACKAGE_KNOWN, context)
    return Package(
        extra=extra,
        **_described(entry, context),
        **_moments(values, context),
        **_representation(values, context),
    )


def capability_of(entry: RawEntry, context: expat.ReadingContext) -> CapabilityEntry:
    """Return the document that an entry of a Capability List or Source Description points to."""
    values, extra = _values.split_attributes(entry.metadata, _values.CAPABILITY_KNOWN, context)
    label = values.get("capability", "")
    return CapabilityEntry(
        capability=_values.entry_capability(label, context),
        label=label,
        extra=extra,
        **_described(entry, context),
    )


def document_change_of(
    entry: RawEntry, kind: ChangeKind | None, context: expat.ReadingContext
) -> DocumentChange:
    """Return the change of a document in an entry of a Framework Notification."""
    assert kind is not None
    values, extra = _values.split_attributes(entry.metadata, _values.DOCUMENT_KNOWN, context)
    label, text = values.get("capability", ""), values.get("datetime")
    described = _described(entry, context)
    return DocumentChange(
        kind=kind,
        time=described["lastmod"] if text is None else _values.moment_or_none(text, context),
        capability=_values.entry_capability(label, context),
        label=label,
        extra=extra,
        **described,
        **_moments(values, context),
    )


class _DescribedValues(TypedDict):
    uri: str
    lastmod: datetime | None
    links: tuple[Link, ...]
    foreign: Foreign


def _described(entry: RawEntry, context: expat.ReadingContext) -> _DescribedValues:
    return {
        "uri": entry_uri(entry, context),
        "lastmod": lastmod_of(entry, context),
        "links": _values.read_links(entry.links, context),
        "foreign": foreign_of(entry),
    }


class _RepresentationValues(TypedDict):
    length: int | None
    digests: tuple[Digest, ...]
    media_type: str
    encoding: str


def _representation(values: dict[str, str], context: expat.ReadingContext) -> _RepresentationValues:
    return {
        "length": _values.length_or_none(values.get("length"), context),
        "digests": _values.digests_or_none(values.get("hash", ""), context),
        "media_type": values.get("type", ""),
        "encoding": values.get("encoding", ""),
    }


def _moments(values: dict[str, str], context: expat.ReadingContext) -> dict[str, Any]:
    return {
        "from_" if name == "from" else name: _values.moment_or_none(values[name], context)
        for name in _values.TIMES
        if name in values
    }


_PATH: Final = frozenset({"path"})
_OF_RESOURCES: Final = {Capability.RESOURCE_LIST, Capability.RESOURCE_DUMP_MANIFEST, None}
_OF_CHANGES: Final = {
    Capability.CHANGE_LIST,
    Capability.CHANGE_DUMP_MANIFEST,
    Capability.CHANGE_NOTIFICATION,
}


class EntryFamily(msgspec.Struct, frozen=True, kw_only=True):
    """A family of entries: those of one kind of document, and how they are read.

    ``known`` attributes of ``rs:md`` are values, not extra. ``is_regular``: its entries fit into
    columns.
    """

    known: frozenset[str] = frozenset()
    is_regular: bool = False
    has_changes: bool = False
    make: Callable[[RawEntry, ChangeKind | None, expat.ReadingContext], Entry]


def family_of(header: Header) -> EntryFamily:
    """Return how the entries under such a header are read."""
    kind = header.capability
    if header.is_index or (kind is not None and kind.is_archive):
        return EntryFamily(make=lambda entry, _, context: part_of(entry, context))
    path = _PATH if kind is not None and kind.is_manifest else frozenset()
    if kind in _OF_RESOURCES:
        known = _values.REPRESENTATION | path
        return EntryFamily(
            known=known,
            is_regular=True,
            make=lambda entry, _, context: resource_of(entry, known, context),
        )
    if kind in _OF_CHANGES:
        known = _values.CHANGE_KNOWN | path
        return EntryFamily(
            known=known,
            is_regular=True,
            has_changes=True,
            make=lambda entry, kind, context: change_of(entry, kind, known, context),
        )
    if kind is not None and kind.is_dump:
        return EntryFamily(make=lambda entry, _, context: package_of(entry, context))
    if kind is Capability.FRAMEWORK_NOTIFICATION:
        return EntryFamily(has_changes=True, make=document_change_of)
    return EntryFamily(make=lambda entry, _, context: capability_of(entry, context))
