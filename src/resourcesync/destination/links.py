"""Which links of an entry are followed, and what they say of what they lead to. Pure.

Whether a patch can stand for a whole resource: from the very version before (§14.4). Pure.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from resourcesync.destination.scope import Scope
from resourcesync.destination.uris import normalise
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.model.digests import STRONG, format_digests, usable
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import Relation
from resourcesync.ports.mirror import Copy, Fixity, Pending
from resourcesync.ports.patches import PatchFormat

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


_LINE = "patch "


class PatchLink(NamedTuple):
    """A patch that leads to a listed version.

    Attributes:
        media_type: Its format.
        uri: Its address.
        hash: Its own ``hash``, in our form.
        length: Bytes that it has, or fewer than which it must have; see ``is_exact``.
        is_exact: Whether the length is the link's own.
    """

    media_type: str
    uri: str
    hash: str
    length: int
    is_exact: bool


PatchFields = tuple[str, str, str, int, bool]
"""A ``PatchLink`` as it is stored."""


class PatchSizeLimits(Mapping[str, int | None]):
    """Bytes of the largest version that each format can patch; asks for formats when asked itself.

    Args:
        formats: The known formats, by media type.
    """

    def __init__(self, formats: Mapping[str, PatchFormat]) -> None:
        self._formats = formats

    def __getitem__(self, name: str) -> int | None:
        return self._formats[name].largest

    def __iter__(self) -> Iterator[str]:
        return iter(self._formats)

    def __len__(self) -> int:
        return len(self._formats)


def usable_patch_of(resource: Resource, largest: Mapping[str, int | None]) -> PatchFields | None:
    """Return the first patch of an entry that can be used; ``None`` when there is none.

    The result must be provable by a strong digest, and the patch smaller than the resource.

    Args:
        resource: The entry.
        largest: Bytes of the largest version that each known format can patch.
    """
    length = resource.length
    proven = any(digest.algorithm in STRONG for digest in usable(resource.digests))
    if length is None or not proven or resource.encoding:
        return None
    for link in resource.patches:
        name = link.media_type.partition(";")[0].strip().lower()
        if name not in largest or link.path or link.encoding:
            continue
        most = largest[name]
        if (most is not None and length > most) or (link.length or 0) >= length:
            continue
        try:
            normalise(link.href)
        except OutOfScopeError:
            continue  # no address of the web: as if it were not there
        is_exact = link.length is not None
        bound = length - 1 if link.length is None else link.length
        return name, link.href, format_digests(link.digests), bound, is_exact
    return None


def is_version_before(copy: Copy | None, waiting: Pending | None) -> bool:
    """Whether a copy is surely what the one new change of its resource began with.

    Every earlier change is known and done: nothing waits. And the copy was proven by a strong
    digest to be the version that was listed then, not one that came later.

    Args:
        copy: What is here.
        waiting: What is still to be done for it.
    """
    if copy is None or waiting is not None or copy.length < 0:
        return False
    return copy.fixity == Fixity.VERIFIED and bool(copy.listed)


def encode_patch(patch: PatchFields | None) -> tuple[str, ...]:
    """Return the line that a patch is remembered by; none when there is none."""
    return () if patch is None else (_LINE + json.dumps(patch),)


def decode_patch(line: str) -> PatchFields | None:
    """Return the patch that a line is about; ``None`` when it is about something else."""
    if not line.startswith(_LINE):
        return None
    media_type, uri, hash_, length, is_exact = json.loads(line.removeprefix(_LINE))
    return media_type, uri, hash_, length, is_exact
