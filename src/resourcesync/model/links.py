"""Links: ``rs:ln`` (§7, §14)."""

from datetime import datetime
from typing import Final

import msgspec

from resourcesync.model.digests import Digest
from resourcesync.model.vocabulary import Relation

Extra = tuple[tuple[str, str], ...]
"""Attributes of other communities, as ``({namespace}name, value)``; preserved when written (§7)."""

Foreign = tuple[str, ...]
"""Elements of other communities, each as XML that stands alone; preserved when written (§7)."""

LAST_PRIORITY: Final = 999_999
"""The priority of a link without one: lower numbers come first (§14.2)."""


class Link(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link to a related resource or document.

    Attributes:
        rel: Relation types, separated by blanks, as written.
        href: The target's URI.
        media_type: ``type``.
        length: Bytes of the target.
        digests: ``hash`` of the target.
        encoding: Content coding of the target.
        modified: Last modification of the target, UTC.
        path: Place inside a package.
        priority: ``pri``, 1 (first) to 999999 (last).
        extra: Attributes of other communities.
    """

    rel: str
    href: str
    media_type: str = ""
    length: int | None = None
    digests: tuple[Digest, ...] = ()
    encoding: str = ""
    modified: datetime | None = None
    path: str = ""
    priority: int | None = None
    extra: Extra = ()

    def has_relation(self, name: str) -> bool:
        """True if ``name`` is among the relation types; registered names ignore case (RFC 8288)."""
        wanted = name.lower()
        return any(token.lower() == wanted for token in self.rel.split())


def find_link(links: tuple[Link, ...], relation: str) -> Link | None:
    """Return the first link of this relation, or ``None``."""
    return next((link for link in links if link.has_relation(relation)), None)


class Linked:
    """Targets of the links of a document or an entry, by relation (§14).

    A link that cannot be understood is no fault: then the entry's own URI is to be used (§14.1).
    """

    __slots__ = ()

    links: tuple[Link, ...]

    def links_to(self, relation: str) -> tuple[Link, ...]:
        """Return all links of a relation, in the order written."""
        return tuple(link for link in self.links if link.has_relation(relation))

    def link_to(self, relation: str) -> Link | None:
        """Return the first link of a relation, or ``None``."""
        return find_link(self.links, relation)

    @property
    def mirrors(self) -> tuple[Link, ...]:
        """Other places of the same bytes, the preferred one first (``duplicate``, §14.2)."""
        found = self.links_to(Relation.DUPLICATE)
        return tuple(sorted(found, key=lambda link: link.priority or LAST_PRIORITY))

    @property
    def patches(self) -> tuple[Link, ...]:
        """Links to patches from the version before to this one (§14.4)."""
        return self.links_to(Relation.PATCH)

    @property
    def alternates(self) -> tuple[Link, ...]:
        """Other representations (§14.3)."""
        return self.links_to(Relation.ALTERNATE)

    @property
    def canonical(self) -> Link | None:
        """The generic resource that this is one representation of (§14.3)."""
        return self.link_to(Relation.CANONICAL)

    @property
    def described_by(self) -> tuple[Link, ...]:
        """Metadata about it (§8, §14.5)."""
        return self.links_to(Relation.DESCRIBED_BY)

    @property
    def describes(self) -> tuple[Link, ...]:
        """Links to the resources it is metadata about (§14.5)."""
        return self.links_to(Relation.DESCRIBES)

    @property
    def profiles(self) -> tuple[Link, ...]:
        """The kinds of metadata it is (§14.5)."""
        return self.links_to(Relation.PROFILE)

    @property
    def memento(self) -> Link | None:
        """The very version that the entry lists (§14.6)."""
        return self.link_to(Relation.MEMENTO)

    @property
    def timegate(self) -> Link | None:
        """Links to the TimeGate, for the version of a given time (§14.6)."""
        return self.link_to(Relation.TIMEGATE)

    @property
    def timemap(self) -> Link | None:
        """The list of all versions (§14.6)."""
        return self.link_to(Relation.TIMEMAP)

    @property
    def collections(self) -> tuple[Link, ...]:
        """Links to the collections it is a member of (§14.7)."""
        return self.links_to(Relation.COLLECTION)

    @property
    def via(self) -> tuple[Link, ...]:
        """Links to the origin of a copy; since 1.0 the original Source only (§14.8)."""
        return self.links_to(Relation.VIA)

    @property
    def contents(self) -> Link | None:
        """A copy of the manifest in a package (§11.1, §13.1)."""
        return self.link_to(Relation.CONTENTS)

    @property
    def archives(self) -> Link | None:
        """Documents of the past (Archives §2)."""
        return self.link_to(Relation.ARCHIVES)

    @property
    def up(self) -> Link | None:
        """The document above (§6.2)."""
        return self.link_to(Relation.UP)

    @property
    def index(self) -> Link | None:
        """The index that a document is part of (§6.2)."""
        return self.link_to(Relation.INDEX)

    @property
    def hubs(self) -> tuple[Link, ...]:
        """Links to the hubs of a channel (Notification, WebSub §4)."""
        return self.links_to(Relation.HUB)

    @property
    def itself(self) -> Link | None:
        """The address of the channel or document (``self``, WebSub §4)."""
        return self.link_to(Relation.SELF)
