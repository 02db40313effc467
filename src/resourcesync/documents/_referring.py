"""Entries that refer to documents and packages become values (§8 to §13, Archives)."""

from typing import Any, Final, TypedDict

from resourcesync.documents._assembling import RawEntry
from resourcesync.documents._context import ReadingContext
from resourcesync.documents._entries import entry_uri, foreign_of, lastmod_of, path_of
from resourcesync.documents._linking import read_links
from resourcesync.documents._values import (
    REPRESENTATION,
    TIMES,
    digests_or_none,
    entry_capability,
    length_or_none,
    moment_or_none,
    split_attributes,
)
from resourcesync.model.capabilities import CapabilityEntry, DocumentChange, Package, Part
from resourcesync.model.digests import Digest
from resourcesync.model.vocabulary import ChangeKind

_PACKAGE_KNOWN: Final = REPRESENTATION | {*TIMES}
_PART_KNOWN: Final = _PACKAGE_KNOWN | {"path"}
_CAPABILITY_KNOWN: Final = frozenset({"capability"})
_DOCUMENT_KNOWN: Final = frozenset({"capability", "change", "datetime", *TIMES})


def part_of(entry: RawEntry, context: ReadingContext) -> Part:
    """Return the document that an entry of an index or an archive points to.

    Raises:
        RefusalError: It cannot be used.
    """
    values, extra = split_attributes(entry.metadata, _PART_KNOWN, context)
    return Part(
        uri=entry_uri(entry, context),
        lastmod=lastmod_of(entry, context),
        path=path_of(entry),
        links=read_links(entry.links, context),
        extra=extra,
        foreign=foreign_of(entry),
        **_moments(values, context),
        **_representation(values, context),
    )


def package_of(entry: RawEntry, context: ReadingContext) -> Package:
    """Return the package that an entry of a dump points to.

    Raises:
        RefusalError: It cannot be used.
    """
    values, extra = split_attributes(entry.metadata, _PACKAGE_KNOWN, context)
    return Package(
        uri=entry_uri(entry, context),
        lastmod=lastmod_of(entry, context),
        links=read_links(entry.links, context),
        extra=extra,
        foreign=foreign_of(entry),
        **_moments(values, context),
        **_representation(values, context),
    )


def capability_of(entry: RawEntry, context: ReadingContext) -> CapabilityEntry:
    """Return the document that an entry of a Capability List or Source Description points to.

    Raises:
        RefusalError: It cannot be used.
    """
    values, extra = split_attributes(entry.metadata, _CAPABILITY_KNOWN, context)
    label = values.get("capability", "")
    return CapabilityEntry(
        uri=entry_uri(entry, context),
        capability=entry_capability(label, context),
        label=label,
        lastmod=lastmod_of(entry, context),
        links=read_links(entry.links, context),
        extra=extra,
        foreign=foreign_of(entry),
    )


def document_change_of(
    entry: RawEntry, kind: ChangeKind, context: ReadingContext
) -> DocumentChange:
    """Return the change of a document that an entry of a Framework Notification tells of.

    Raises:
        RefusalError: It cannot be used.
    """
    values, extra = split_attributes(entry.metadata, _DOCUMENT_KNOWN, context)
    label = values.get("capability", "")
    lastmod = lastmod_of(entry, context)
    text = values.get("datetime")
    return DocumentChange(
        uri=entry_uri(entry, context),
        kind=kind,
        time=lastmod if text is None else moment_or_none(text, context),
        capability=entry_capability(label, context),
        label=label,
        lastmod=lastmod,
        links=read_links(entry.links, context),
        extra=extra,
        foreign=foreign_of(entry),
        **_moments(values, context),
    )


class _RepresentationValues(TypedDict):
    length: int | None
    digests: tuple[Digest, ...]
    media_type: str
    encoding: str


def _representation(values: dict[str, str], context: ReadingContext) -> _RepresentationValues:
    return {
        "length": length_or_none(values.get("length"), context),
        "digests": digests_or_none(values.get("hash", ""), context),
        "media_type": values.get("type", ""),
        "encoding": values.get("encoding", ""),
    }


def _moments(values: dict[str, str], context: ReadingContext) -> dict[str, Any]:
    return {
        "from_" if name == "from" else name: moment_or_none(values[name], context)
        for name in TIMES
        if name in values
    }
