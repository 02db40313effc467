"""Capability documents: their headers, and the entries that point to other documents (§8-§13)."""

from dataclasses import dataclass
from datetime import datetime

from resourcesync.model.links import Extra, Link, find_link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the root of a document says: its ``rs:md`` and ``rs:ln`` (§7).

    Attributes:
        capability: What the document offers; ``None`` for a plain sitemap.
        is_index: Whether the root is ``sitemapindex``: an index over documents of one capability.
        at: Snapshot start, UTC: every entry includes all changes up to here (resource side).
        completed: Snapshot end, UTC (resource side).
        from_: All changes since here are listed, UTC (change side).
        until: All changes up to here are listed, UTC; its presence closes the document
            (change side).
        links: ``rs:ln`` under the root.
        extra: Attributes of other communities on the root's ``rs:md``.
    """

    capability: Capability | None
    is_index: bool = False
    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None
    links: tuple[Link, ...] = ()
    extra: Extra = ()

    def link(self, relation: Relation) -> str | None:
        """Return the target of the first root link of this relation, or ``None``."""
        found = find_link(self.links, relation)
        return None if found is None else found.href

    @property
    def is_open(self) -> bool:
        """Whether further changes will be added to this very document (§12.1)."""
        return self.capability is Capability.CHANGE_LIST and self.until is None

    @property
    def phrase(self) -> str:
        """What people call such a document, such as ``Change List Index``."""
        name = "sitemap" if self.capability is None else self.capability.phrase
        return f"{name} Index" if self.is_index else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An entry of an index: one document of the same capability (§10.2, §12.2).

    Attributes:
        uri: The document's URI.
        lastmod: Last-Modified of the document, UTC.
        at, completed: The part's own snapshot times (Resource List Index).
        from_, until: The part's own interval (Change List Index); ``until`` only when it is closed.
    """

    uri: str
    lastmod: datetime | None = None
    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityEntry:
    """An entry of a Source Description or a Capability List (§8, §9).

    Attributes:
        uri: The document's URI.
        capability: What that document offers; ``None`` where the entry does not say.
        label: The capability exactly as written; differs from ``capability`` for values that this
            version does not know, which are kept and skipped.
        lastmod: Last-Modified of the document, UTC.
        links: ``rs:ln`` of this entry, such as ``describedby``.
    """

    uri: str
    capability: Capability | None = None
    label: str = ""
    lastmod: datetime | None = None
    links: tuple[Link, ...] = ()


Entry = Resource | Change | Part | CapabilityEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEntry:
    """An entry that cannot be used; the rest of its document can (§7).

    Attributes:
        line: 1-based line of the entry in its document; 0 when it has none.
        code: A stable word for the reason.
        reason: The reason in a sentence.
        uri: The entry's ``loc`` as written, cut to 2,048 characters; empty when it has none.
    """

    line: int
    code: str
    reason: str
    uri: str = ""
