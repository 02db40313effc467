"""Which links of an entry are followed, and what they say of what they lead to. Pure."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from resourcesync.destination.scope import Scope
from resourcesync.errors import ConfigurationError
from resourcesync.model.digests import format_digests
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import Relation

_MAX_FOLLOWED_LINKS: Final = 256
"""Links of one entry that are followed."""
_RESERVED_RELATIONS: Final = frozenset({Relation.DUPLICATE, Relation.PATCH})

LinkFields = tuple[str, str, int | None, int | None]
"""A ``Target`` as it is stored."""


class LinkTarget(NamedTuple):
    """What a link leads to.

    Attributes:
        href: Its address, as written.
        hash: Its ``hash``, in our form.
        length: Its bytes, or ``None``.
        modified: When it was modified, microseconds, or ``None``.
    """

    href: str
    hash: str
    length: int | None
    modified: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFilter:
    """Which links are followed.

    Attributes:
        relations: Relation types; registered names ignore case.
        scope: What the Source may speak for and the operator wants, of what is linked to.
    """

    relations: frozenset[str]
    scope: Scope

    def targets_of(self, resource: Resource) -> tuple[LinkFields, ...]:
        """Return what an entry links to that is wanted, each once."""
        found: dict[str, LinkFields] = {}
        for link in resource.links:
            if self.relations.isdisjoint(link.rel.lower().split()) or link.href in found:
                continue
            modified = known_microseconds(link.modified)
            digests = format_digests(link.digests)
            found[link.href] = (link.href, digests, link.length, modified)
        return tuple(found.values())[:_MAX_FOLLOWED_LINKS]


def check_relation(name: str) -> str:
    """Return a relation as it is compared.

    Raises:
        ConfigurationError: It is none, or one that every pull uses by itself.
    """
    relation = name.strip().lower()
    if not relation or len(relation.split()) > 1:
        raise ConfigurationError(f"{name!r} is no link relation", hint="such as describedby")
    if relation in _RESERVED_RELATIONS:
        raise ConfigurationError(
            f"links of the relation {relation} are no resources of their own",
            hint="leave it out: every pull uses them where they help",
        )
    return relation
