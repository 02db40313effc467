"""Links of a mirror's copies that are published again (§14.8), and the one ``via``.

A republished copy has its own address, times and digests. Of the links of the upstream entry, only
those that are true of the copy remain (``docs/how-to/publish-a-mirror.md``): one ``via`` to the
original (one for each hop before 1.0); ``profile`` and ``license``; and those to what we have a
copy of. All others concern the resource at its own place.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from resourcesync.mirror_state.rows import EntryLink
from resourcesync.model.digests import Digest, agree, parse_digests
from resourcesync.model.entries import Link
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Relation

_ABOUT: Final = frozenset({Relation.DESCRIBED_BY, Relation.DESCRIBES})
_OF_THE_BYTES: Final = frozenset({Relation.PROFILE, "license"})
_LOCAL_ONLY: Final = frozenset({Relation.COLLECTION, Relation.ALTERNATE})


class UpstreamEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The upstream entry of a republished copy, with its links that matter."""

    uri: str
    modified: int | None  # its ``lastmod``, microseconds
    hash: str  # empty unless the copy was verified by it
    links: Sequence[EntryLink]

    @property
    def hops(self) -> tuple[str, ...]:
        """Return the addresses by which the copy came, the original first, its own last."""
        return (*(link.href for link in self.links if link.rel == Relation.VIA), self.uri)


def republished_links(
    upstream: UpstreamEntry,
    length: int,
    digests: tuple[Digest, ...],
    own: Callable[[str], str | None],
    *,
    all_hops: bool = False,
) -> tuple[Link, ...]:
    """Return the links of a copy that is published again."""
    hops = [_via_link(link, length, digests) for link in upstream.links if link.rel == Relation.VIA]
    via = EntryLink(Relation.VIA, upstream.uri, "", upstream.hash, length, upstream.modified)
    hops.append(_via_link(via, length, digests))
    links = (_republished_link(link, own) for link in upstream.links if link.rel != Relation.VIA)
    return (*(hops if all_hops else hops[:1]), *(link for link in links if link is not None))


def _via_link(link: EntryLink, length: int, digests: tuple[Digest, ...]) -> Link:
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
