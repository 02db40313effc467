"""Capability documents: their headers, and the entries that point to other documents (§8-§13)."""

from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import force_setattr

from resourcesync.model.digests import Digest
from resourcesync.model.links import Extra, Foreign, Link, Linked, find_link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind, Relation

_GROWING: Final = frozenset({Capability.CHANGE_LIST, Capability.CHANGE_DUMP})


class Header(msgspec.Struct, Linked, frozen=True, kw_only=True):
    """The header of a document: ``rs:md`` and ``rs:ln`` of its root (§7).

    Attributes:
        capability: Its capability; ``None`` for a plain sitemap.
        is_index: True if the root is ``sitemapindex``: an index over documents of one capability.
        at: Snapshot start, UTC: every entry includes all changes up to here (resource side).
        completed: Snapshot end, UTC (resource side).
        from_: All changes since here are listed, UTC (change side).
        until: All changes up to here are listed, UTC; its presence closes the document
            (change side).
        modified: Last update of the document, UTC; only in dialects before 0.9.
        links: ``rs:ln`` under the root.
        extra: Attributes of other communities on the root's ``rs:md``.
        foreign: Elements of other communities under the root, before the first entry.
    """

    capability: Capability | None
    is_index: bool = False
    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None
    modified: datetime | None = None
    links: tuple[Link, ...] = ()
    extra: Extra = ()
    foreign: Foreign = ()

    def link(self, relation: Relation) -> str | None:
        """Return the target of the first root link of this relation, or ``None``."""
        found = find_link(self.links, relation)
        return None if found is None else found.href

    @property
    def is_open(self) -> bool:
        """True if further changes will be added to this very document (§12.1)."""
        return self.capability in _GROWING and self.until is None

    @property
    def phrase(self) -> str:
        """Name of such a document for people, such as ``Change List Index``."""
        name = "sitemap" if self.capability is None else self.capability.phrase
        return f"{name} Index" if self.is_index else name


class Part(msgspec.Struct, Linked, frozen=True, kw_only=True):
    """A document of the same capability in an index, or one of the past in an archive.

    §10.2, §12.2; Archives §3 to §6.

    Attributes:
        uri: The document's URI.
        lastmod: Last-Modified of the document, UTC.
        at, completed: The document's own snapshot times, UTC (resource side).
        from_, until: Its own interval, UTC (change side); ``until`` only when it is closed.
        length: Bytes of the document.
        digests: ``hash`` of the document.
        media_type: ``type``.
        encoding: Content coding of the document.
        path: Place inside a package; only 0.5 has manifests that are indexes.
        links: ``rs:ln`` of this entry.
        extra: Attributes of other communities on ``rs:md``.
        foreign: Elements of other communities in the entry.
    """

    uri: str
    lastmod: datetime | None = None
    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None
    length: int | None = None
    digests: tuple[Digest, ...] = ()
    media_type: str = ""
    encoding: str = ""
    path: str = ""
    links: tuple[Link, ...] = ()
    extra: Extra = ()
    foreign: Foreign = ()


class Package(msgspec.Struct, Linked, frozen=True, kw_only=True):
    """A package of a Resource Dump or a Change Dump (§11.1, §13.1).

    Attributes:
        uri: The package's URI.
        lastmod: Last-Modified of the package, UTC.
        at, completed: Its own snapshot times, UTC (Resource Dump).
        from_, until: Its own interval, UTC (Change Dump).
        length: Bytes of the package.
        digests: ``hash`` of the package.
        media_type: ``type``; ``application/zip`` is recommended.
        encoding: Content coding of the package.
        links: ``rs:ln`` of this entry, such as ``contents``.
        extra: Attributes of other communities on ``rs:md``.
        foreign: Elements of other communities in the entry.
    """

    uri: str
    lastmod: datetime | None = None
    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None
    length: int | None = None
    digests: tuple[Digest, ...] = ()
    media_type: str = ""
    encoding: str = ""
    links: tuple[Link, ...] = ()
    extra: Extra = ()
    foreign: Foreign = ()


class CapabilityEntry(msgspec.Struct, Linked, frozen=True, kw_only=True):
    """An entry of a Source Description or a Capability List (§8, §9).

    Attributes:
        uri: The document's URI.
        capability: Capability of that document; ``None`` where the entry has none.
        label: The capability exactly as written; differs from ``capability`` for values that this
            version does not know, which are stored and skipped.
        lastmod: Last-Modified of the document, UTC.
        links: ``rs:ln`` of this entry, such as ``describedby``.
        extra: Attributes of other communities on ``rs:md``.
        foreign: Elements of other communities in the entry.
    """

    uri: str
    capability: Capability | None = None
    label: str = ""
    lastmod: datetime | None = None
    links: tuple[Link, ...] = ()
    extra: Extra = ()
    foreign: Foreign = ()


class DocumentChange(msgspec.Struct, Linked, frozen=True, kw_only=True):
    """An entry of a Framework Notification: one document of the Source changed.

    Attributes:
        uri: The document's URI.
        kind: The kind of change.
        time: Time of the change, UTC.
        capability: Capability of that document; ``None`` where the entry has none, or one that this
            version does not know.
        label: The capability exactly as written.
        lastmod: Last-Modified of the document, UTC.
        at, completed: The document's own snapshot times, UTC.
        from_, until: Its own interval, UTC.
        links: ``rs:ln`` of this entry.
        extra: Attributes of other communities on ``rs:md``.
        foreign: Elements of other communities in the entry.

    Raises:
        ValueError: ``kind`` is no word of `ChangeKind`.
    """

    uri: str
    kind: ChangeKind
    time: datetime | None = None
    capability: Capability | None = None
    label: str = ""
    lastmod: datetime | None = None
    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None
    links: tuple[Link, ...] = ()
    extra: Extra = ()
    foreign: Foreign = ()

    def __post_init__(self) -> None:
        if type(self.kind) is not ChangeKind:
            force_setattr(self, "kind", ChangeKind(self.kind))


Entry = Resource | Change | Part | Package | CapabilityEntry | DocumentChange
"""An entry of a document; the document's capability says which of them."""


class RefusedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that cannot be used; the rest of its document can (§7).

    Attributes:
        line: 1-based line of the entry in its document; 0 when it has none.
        code: A stable code of the reason.
        reason: The reason in a sentence.
        uri: The entry's ``loc`` as written, cut to 2,048 characters; empty when it has none.
    """

    line: int
    code: str
    reason: str
    uri: str = ""
