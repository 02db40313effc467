"""What an aggregator may say of a copy that it publishes again (§14.8).

Its own address, times and digests are its own; of the links that the upstream entry has, only those
are kept that are true of the copy:

- ``via``: one, to the resource at the original Source. Versions of the format before 1.0 keep one
  for each hop, the original first.
- ``describedby`` and ``describes``: to our copy of the target where there is one, else to the
  target itself, which describes, or is described, as before.
- ``profile`` and ``license``: as they are; they tell of the bytes.
- ``collection`` and ``alternate``: only where our copy of the target is here. Our copy is no member
  of a collection elsewhere.

Mirrors, patches, versions (``memento``, ``timegate``, ``timemap``), ``canonical`` and whatever is
not known are left out: they tell of the resource at its own place, and of how it goes on there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from resourcesync.model.digests import Digest, agree, parse_digests
from resourcesync.model.links import Link
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Relation
from resourcesync.ports.mirror import EntryLink

_ABOUT: Final = frozenset({Relation.DESCRIBED_BY, Relation.DESCRIBES})
_OF_THE_BYTES: Final = frozenset({Relation.PROFILE, "license"})
_LOCAL_ONLY: Final = frozenset({Relation.COLLECTION, Relation.ALTERNATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamEntry:
    """The entry that a copy was made of.

    Attributes:
        uri: Its URI.
        modified: Its ``lastmod``, microseconds, or ``None``.
        hash: The ``hash`` that it lists, where the copy was verified by it; else empty.
        links: Its links, as far as they matter.
    """

    uri: str
    modified: int | None
    hash: str
    links: Sequence[EntryLink]

    @property
    def hops(self) -> tuple[str, ...]:
        """The addresses by which it came, the original first, its own last."""
        return (*(link.href for link in self.links if link.rel == Relation.VIA), self.uri)


def republished_links(
    upstream: UpstreamEntry,
    length: int,
    digests: tuple[Digest, ...],
    own: Callable[[str], str | None],
    *,
    all_hops: bool = False,
) -> tuple[Link, ...]:
    """Return the links of a copy that is published again.

    Args:
        upstream: The entry that it was made of.
        length: Its bytes.
        digests: Its digests.
        own: Returns where our copy of a URI is published; ``None`` when there is none.
        all_hops: Whether each hop is told, as before 1.0.
    """
    hops = [_via_link(it, length, digests) for it in upstream.links if it.rel == Relation.VIA]
    told = EntryLink(Relation.VIA, upstream.uri, "", upstream.hash, length, upstream.modified)
    hops.append(_via_link(told, length, digests))
    others = (_republished_link(it, own) for it in upstream.links if it.rel != Relation.VIA)
    return (*(hops if all_hops else hops[:1]), *(link for link in others if link is not None))


def _via_link(link: EntryLink, length: int, digests: tuple[Digest, ...]) -> Link:
    """Return a link to where the bytes come from; what it says of other bytes is left out."""
    claims = parse_digests(link.hash)
    if (claims and not agree(claims, digests)) or link.length not in (None, length):
        return Link(rel=Relation.VIA, href=link.href)
    return Link(
        rel=Relation.VIA,
        href=link.href,
        media_type=link.media_type,
        digests=claims,
        length=link.length,
        modified=None if link.modified is None else from_microseconds(link.modified),
    )


def _republished_link(link: EntryLink, own: Callable[[str], str | None]) -> Link | None:
    if link.rel in _OF_THE_BYTES:
        return Link(rel=link.rel, href=link.href, media_type=link.media_type)
    if link.rel not in _ABOUT | _LOCAL_ONLY:
        return None
    here = own(link.href)
    if here is None and link.rel in _LOCAL_ONLY:
        return None
    return Link(rel=link.rel, href=here or link.href, media_type=link.media_type)
