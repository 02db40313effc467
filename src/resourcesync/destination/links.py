"""Links of an entry: followed, stored, and those to patches of a listed version (§14.4). Pure."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from resourcesync.destination.scope import Filters, Scope
from resourcesync.discovery.uris import normalise_if_possible, read_address
from resourcesync.errors import ConfigurationError, OutOfScopeError, StateError
from resourcesync.mirror_state.rows import Copy, EntryLink, Fixity, Pending
from resourcesync.model.digests import format_digests, has_strong
from resourcesync.model.entries import Resource
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import Relation

if TYPE_CHECKING:
    from resourcesync.ports.patches import PatchFormat

T = TypeVar("T")
_MAX_FOLLOWED_LINKS: Final = 256
"""Links of one entry that are followed."""
STORED_RELATIONS: Final = frozenset(
    {
        Relation.VIA, Relation.DESCRIBED_BY, Relation.DESCRIBES, Relation.PROFILE,
        Relation.COLLECTION, Relation.ALTERNATE, "license",
    }
)  # fmt: skip
"""Relations that are stored."""
_MAX_ENTRY_LINKS: Final = 64
_MAX_ENTRY_SIZE: Final = 16_384
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(list[EntryLink]).decode
_RESERVED_RELATIONS: Final = frozenset({Relation.DUPLICATE, Relation.PATCH})


class LinkTarget(NamedTuple):
    """Target of a link."""

    href: str
    hash: str
    length: int | None
    modified: int | None


class LinkFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of the links to follow; registered relations ignore case."""

    relations: frozenset[str]
    scope: Scope

    def targets_of(self, resource: Resource) -> tuple[LinkTarget, ...]:
        """Return the selected link targets of an entry, each once."""
        found: dict[str, LinkTarget] = {}
        for link in resource.links:
            if self.relations.isdisjoint(link.rel.lower().split()) or link.href in found:
                continue
            modified = known_microseconds(link.modified)
            digests = format_digests(link.digests)
            found[link.href] = LinkTarget(link.href, digests, link.length, modified)
        return tuple(found.values())[:_MAX_FOLLOWED_LINKS]


def link_filter(scope: Scope, filters: Filters) -> LinkFilter | None:
    """Return the filter of links: those of selected entries, whatever their target.

    Filters that include entries do not apply to links; those that exclude do.
    """
    if not filters.links:
        return None
    wide = Scope(origins=scope.origins, exclude=filters.exclude, max_size=filters.max_size)
    return LinkFilter(relations=frozenset(map(check_relation, filters.links)), scope=wide)


def check_relation(name: str) -> str:
    """Return a relation in the form in which it is compared."""
    relation = name.strip().lower()
    if not relation or len(relation.split()) > 1:
        raise ConfigurationError(
            f"{name!r} is not a link relation", hint="use for example describedby"
        )
    if relation in _RESERVED_RELATIONS:
        raise ConfigurationError(
            f"links of the relation {relation} are not separate resources",
            hint="omit it: every pull uses these links where they help",
        )
    return relation


_LINE = "patch "


def encode_entry_links(resource: Resource) -> str:
    """Return the links of an entry as stored; empty if there are none."""
    found = [
        EntryLink(
            rel=rel,
            href=normalise_if_possible(link.href),
            media_type=link.media_type,
            hash=format_digests(link.digests),
            length=link.length,
            modified=known_microseconds(link.modified),
        )
        for link in resource.links
        for rel in sorted(STORED_RELATIONS.intersection(link.rel.lower().split()))
    ]
    text = _encode(found[:_MAX_ENTRY_LINKS]).decode() if found else ""
    return text if len(text) <= _MAX_ENTRY_SIZE else ""


def decode_entry_links(text: str) -> list[EntryLink]:
    """Return the links of an entry as stored by ``encode_entry_links``."""
    return _decode(text) if text else []


class PatchLink(NamedTuple):
    """Patch that leads to a listed version; ``length`` is an upper limit unless ``is_exact``.

    One with a ``path`` is in a package of a Change Dump, and nowhere else.
    """

    media_type: str
    uri: str
    hash: str
    length: int
    is_exact: bool
    path: str = ""


def usable_patch_of(resource: Resource, formats: "Mapping[str, PatchFormat]") -> PatchLink | None:
    """Return the first usable patch of an entry; ``None`` if there is none.

    One in a package counts only where the package has no more of the resource. The result must be
    provable by a strong digest, and the patch smaller than the resource.
    """
    length = resource.length
    if length is None or not has_strong(resource.digests) or resource.encoding:
        return None
    for link in resource.patches:
        name = link.media_type.partition(";")[0].strip().lower()
        if name not in formats or link.encoding or (link.path and resource.path):
            continue
        most = formats[name].largest
        if (most is not None and length > most) or (link.length or 0) >= length:
            continue
        try:
            read_address(link.href)
        except OutOfScopeError:
            continue  # not a web address: ignored
        is_exact = link.length is not None
        bound = length - 1 if link.length is None else link.length
        digests = format_digests(link.digests)
        return PatchLink(name, link.href, digests, bound, is_exact, link.path)
    return None


def is_version_before(copy: Copy | None, waiting: Pending | None) -> bool:
    """True if a copy is certainly the version before the one new change of its resource.

    Every earlier change is known and done: no task is pending. And a strong digest proved the copy
    to be the version that was listed then, not a later one.
    """
    if copy is None or waiting is not None or copy.length < 0:
        return False
    return copy.fixity == Fixity.VERIFIED and bool(copy.listed)


def encode_patch(patch: PatchLink | None) -> tuple[str, ...]:
    """Return the line that stores a patch; none if there is no patch."""
    return () if patch is None else (_LINE + json.dumps(patch),)


def decode_patch(line: str) -> PatchLink | None:
    """Return the patch in a line; ``None`` if the line stores something else."""
    if not line.startswith(_LINE):
        return None
    return decode_stored(line.removeprefix(_LINE), PatchLink)


def decode_stored(text: str, kind: type[T]) -> T:
    """Return a value that a field of the mirror's state has as JSON."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise StateError(
            f"the mirror's state is damaged: {error}: {text[:100]!r}",
            evidence=(("kept", "all copies, and the last complete step"),),
            hint="move .resourcesync/state.db away and pull the address again: copies are kept",
        ) from error
