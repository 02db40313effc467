"""Links of an entry that a mirror may use: other locations, a memento, a patch; and that it stores.

Which patch may be applied is decided here by the entry (§8.2), and by the copy in `derived_bytes`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from resourcesync.destination.planner import MAX_MIRRORS
from resourcesync.discovery.uris import normalise_if_possible, origin_if_any, read_address
from resourcesync.errors import OutOfScopeError
from resourcesync.mirror_state.rows import EntryLink, PatchLink
from resourcesync.model.digests import disagree, format_digests, has_strong, usable
from resourcesync.model.entries import Link, Resource
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import Relation

if TYPE_CHECKING:
    from resourcesync.ports.patches import PatchFormat

_STORED_RELATIONS: Final = frozenset(
    {
        Relation.VIA, Relation.DESCRIBED_BY, Relation.DESCRIBES, Relation.PROFILE,
        Relation.COLLECTION, Relation.ALTERNATE, "license",
    }
)  # fmt: skip
"""Relations that are stored."""
_MAX_ENTRY_LINKS: Final = 64
_MAX_ENTRY_SIZE: Final = 16_384
_encode: Final = msgspec.json.Encoder().encode


def mirrors_of(resource: Resource, allowed: frozenset[str]) -> tuple[str, ...]:
    """Return the other locations of the same bytes that may be used, preferred first.

    Bytes of an origin outside the Source's scope are compared with the listed digest, so there has
    to be one. A match by a weak one is weak evidence, as it is of the Source's own answer.
    """
    links = (link for link in resource.mirrors if not disagree(link.digests, resource.digests))
    found = _usable_addresses(links, resource, allowed)
    return tuple(uri for uri in found if uri != resource.uri)[:MAX_MIRRORS]


def memento_of(resource: Resource, moment: datetime | None) -> str:
    """Return the address of the listed version; empty if no digest could verify it.

    It is the memento; else the TimeGate, and after a blank the moment to request: that of the list,
    or when the resource was modified.
    """
    nowhere: frozenset[str] = frozenset()
    if resource.memento is not None:
        return next(iter(_usable_addresses([resource.memento], resource, nowhere)), "")
    at = moment or resource.lastmod
    if resource.timegate is None or at is None:
        return ""
    from email.utils import formatdate  # noqa: PLC0415 - few entries have a TimeGate

    gates = _usable_addresses([resource.timegate], resource, nowhere)
    return "".join(f"{uri} {formatdate(at.timestamp(), usegmt=True)}" for uri in gates)


def _usable_addresses(
    links: Iterable[Link], resource: Resource, allowed: frozenset[str]
) -> dict[str, None]:
    homes = ((link.href, origin_if_any(link.href)) for link in links)
    proven = bool(usable(resource.digests))
    return dict.fromkeys(uri for uri, home in homes if home in allowed or (proven and home))


def patch_of(resource: Resource, formats: "Mapping[str, PatchFormat]") -> PatchLink | None:
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
        return PatchLink(name, link.href, format_digests(link.digests), bound, is_exact, link.path)
    return None


def encode_links(resource: Resource) -> str:
    """Return the links of an entry that a mirror stores, as JSON; empty if there are too many."""
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
        for rel in sorted(_STORED_RELATIONS.intersection(link.rel.lower().split()))
    ]
    text = _encode(found[:_MAX_ENTRY_LINKS]).decode() if found else ""
    return text if len(text) <= _MAX_ENTRY_SIZE else ""
