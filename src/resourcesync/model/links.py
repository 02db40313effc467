"""Links: ``rs:ln`` (§7, §14)."""

from dataclasses import dataclass
from datetime import datetime

from resourcesync.model.digests import Digest

Extra = tuple[tuple[str, str], ...]
"""Attributes of other communities, as ``({namespace}name, value)``; kept and written back (§7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
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
        """Whether ``name`` is among the relation types; registered names ignore case (RFC 8288)."""
        wanted = name.lower()
        return any(token.lower() == wanted for token in self.rel.split())


def find_link(links: tuple[Link, ...], relation: str) -> Link | None:
    """Return the first link of this relation, or ``None``."""
    return next((link for link in links if link.has_relation(relation)), None)
