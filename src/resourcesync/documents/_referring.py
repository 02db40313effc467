"""Entries that refer to documents and packages become values (§8 to §13, Archives)."""

from typing import Any, Final, TypedDict

from resourcesync.documents._assembling import Irregular
from resourcesync.documents._values import (
    REPRESENTATION,
    TIMES,
    capability,
    digests,
    entry_uri,
    lastmod_of,
    length_of,
    links,
    moment,
    path_of,
    split,
)
from resourcesync.model.capabilities import CapabilityEntry, DocumentChange, Package, Part
from resourcesync.model.digests import Digest
from resourcesync.model.vocabulary import ChangeKind

_PACKAGE_KNOWN: Final = REPRESENTATION | {*TIMES}
_PART_KNOWN: Final = _PACKAGE_KNOWN | {"path"}
_CAPABILITY_KNOWN: Final = frozenset({"capability"})
_DOCUMENT_KNOWN: Final = frozenset({"capability", "change", "datetime", *TIMES})


def part_of(entry: Irregular, *, longest: int) -> Part:
    """Return the document that an entry of an index or an archive points to.

    Raises:
        RefusalError: It cannot be used.
    """
    values, extra = split(entry.metadata, _PART_KNOWN)
    return Part(
        uri=entry_uri(entry, longest),
        lastmod=lastmod_of(entry),
        path=path_of(entry),
        links=links(entry.links, longest=longest),
        extra=extra,
        **_moments(values),
        **_representation(values),
    )


def package_of(entry: Irregular, *, longest: int) -> Package:
    """Return the package that an entry of a dump points to.

    Raises:
        RefusalError: It cannot be used.
    """
    values, extra = split(entry.metadata, _PACKAGE_KNOWN)
    return Package(
        uri=entry_uri(entry, longest),
        lastmod=lastmod_of(entry),
        links=links(entry.links, longest=longest),
        extra=extra,
        **_moments(values),
        **_representation(values),
    )


def capability_of(entry: Irregular, *, longest: int) -> CapabilityEntry:
    """Return the document that an entry of a Capability List or Source Description points to.

    Raises:
        RefusalError: It cannot be used.
    """
    values, extra = split(entry.metadata, _CAPABILITY_KNOWN)
    label = values.get("capability", "")
    return CapabilityEntry(
        uri=entry_uri(entry, longest),
        capability=capability(label),
        label=label,
        lastmod=lastmod_of(entry),
        links=links(entry.links, longest=longest),
        extra=extra,
    )


def document_change_of(entry: Irregular, kind: ChangeKind, *, longest: int) -> DocumentChange:
    """Return the change of a document that an entry of a Framework Notification tells of.

    Raises:
        RefusalError: It cannot be used.
    """
    values, extra = split(entry.metadata, _DOCUMENT_KNOWN)
    label = values.get("capability", "")
    lastmod = lastmod_of(entry)
    text = values.get("datetime")
    return DocumentChange(
        uri=entry_uri(entry, longest),
        kind=kind,
        time=lastmod if text is None else moment(text, "The datetime is"),
        capability=capability(label),
        label=label,
        lastmod=lastmod,
        links=links(entry.links, longest=longest),
        extra=extra,
        **_moments(values),
    )


class _Representation(TypedDict):
    length: int | None
    digests: tuple[Digest, ...]
    media_type: str
    encoding: str


def _representation(values: dict[str, str]) -> _Representation:
    return {
        "length": length_of(values["length"]) if "length" in values else None,
        "digests": digests(values.get("hash", "")),
        "media_type": values.get("type", ""),
        "encoding": values.get("encoding", ""),
    }


def _moments(values: dict[str, str]) -> dict[str, Any]:
    return {
        "from_" if name == "from" else name: moment(values[name], f"The {name} is")
        for name in TIMES
        if name in values
    }
