"""Where the bytes of one resource may be had, one place after the other; pure (§14.2, §14.6)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from resourcesync.destination.links import PatchLink
from resourcesync.destination.planner import Fetch, ListedEntry, without_patch
from resourcesync.destination.uris import origin
from resourcesync.errors import OutOfScopeError
from resourcesync.model.digests import STRONG, disagree, parse_digests, usable
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource

MAX_MIRRORS: Final = 8
_MIN_RESUMABLE: Final = 1 << 20


class FetchLocation(NamedTuple):
    """One place.

    Attributes:
        uri: Its address.
        is_own: Whether it is the resource's own URI; the Source's word on it counts.
        uncached: Whether caches on the way are to be passed by.
        after_mismatch: Whether it helps only when the resource's own URI gave other bytes.
        is_patch: Whether it is not the resource, but what makes it of the copy that is here.
    """

    uri: str
    is_own: bool = True
    uncached: bool = False
    after_mismatch: bool = False
    is_patch: bool = False


@dataclass(frozen=True, slots=True)
class FetchAttempt:
    """A fetch on its way through its places.

    Attributes:
        fetch: What is wanted.
        places: Where it may be had.
        at: Which of them is asked now.
        mismatch: Whether the resource's own URI gave bytes that are not what is listed.
        tries: Requests so far.
        why: Code and reason of the last failure at the resource's own URI.
        waited: Whether it waited for the same bytes to come for another resource.
    """

    fetch: Fetch
    locations: tuple[FetchLocation, ...]
    position: int = 0
    has_mismatch: bool = False
    tries: int = 0
    last_failure: tuple[str, str] = ("", "")
    has_waited: bool = False

    @property
    def location(self) -> FetchLocation:
        """The place that is asked now."""
        return self.locations[self.position]

    def after_failure(
        self, code: str, reason: str, *, mismatch: bool, tries: int
    ) -> "FetchAttempt":
        """Return it after a failure at its place."""
        own = self.location.is_own
        return replace(
            self,
            has_mismatch=self.has_mismatch or (own and mismatch),
            tries=self.tries + tries,
            last_failure=(code, reason) if own else self.last_failure,
        )

    def next_attempt(self) -> "FetchAttempt | None":
        """Return it at the next place that may help, or ``None``."""
        for at in range(self.position + 1, len(self.locations)):
            if self.has_mismatch or not self.locations[at].after_mismatch:
                return replace(self, position=at)
        return None


def first_attempt(fetch: Fetch) -> FetchAttempt:
    """Return a fetch at its first place: patch, mirrors by priority, the resource's own URI.

    When that gives other bytes than listed, a cache may be old, or the resource may have moved
    on; then it is asked once more, uncached, and then the memento of the listed version.
    Where the Source is to decide between lists, only the Source itself is asked, past all caches.
    """
    listed = fetch.listed
    loc = listed.loc
    if listed.undated:
        return FetchAttempt(fetch, (FetchLocation(loc, uncached=True),))
    own = (FetchLocation(loc), FetchLocation(loc, uncached=True, after_mismatch=True))
    if listed.patch is not None and fetch.before is not None:
        uri = PatchLink._make(listed.patch).uri
        rest = first_attempt(fetch._replace(listed=without_patch(listed))).locations
        return FetchAttempt(fetch, (FetchLocation(uri, is_own=False, is_patch=True), *rest))
    if not listed.mirrors and not listed.memento:
        return FetchAttempt(fetch, own)
    mirrors = (FetchLocation(uri, is_own=False) for uri in listed.mirrors)
    mementos = (
        [FetchLocation(listed.memento, is_own=False, after_mismatch=True)] if listed.memento else []
    )
    return FetchAttempt(fetch, (*mirrors, *own, *mementos))


def digest_by(listed: ListedEntry, algorithm: str) -> str:
    """Return the strong digest that is listed by this algorithm; empty when there is none."""
    for digest in usable(parse_digests(listed.hash)):
        if digest.algorithm == algorithm and algorithm in STRONG:
            return str(digest)
    return ""


def has_strong_digest(listed: ListedEntry) -> bool:
    """Whether a digest is listed that proves bytes, wherever they come from."""
    return any(d.algorithm in STRONG for d in usable(parse_digests(listed.hash)))


def part_name(uri: str, listed: ListedEntry) -> str:
    """Return what a part of a copy is kept under for a later run; empty when it is not worth it.

    Only a strong digest of the whole can prove what was put together from parts.
    """
    large = listed.length is None or listed.length >= _MIN_RESUMABLE
    return f"{uri} {listed.hash}" if large and has_strong_digest(listed) else ""


def mirrors_of(resource: Resource, allowed: frozenset[str]) -> tuple[str, ...]:
    """Return the other places of the same bytes that may be asked, the preferred one first.

    A place of an origin that the Source does not speak for needs a strong digest to check it by.
    """
    links = (link for link in resource.mirrors if not disagree(link.digests, resource.digests))
    found = _usable_addresses(links, resource, allowed)
    return tuple(uri for uri in found if uri != resource.uri)[:MAX_MIRRORS]


def memento_of(resource: Resource) -> str:
    """Return the address of the very version that is listed; empty when there is none to trust."""
    memento = resource.memento
    return next(iter(_usable_addresses([memento] if memento else [], resource, frozenset())), "")


def _usable_addresses(
    links: Iterable[Link], resource: Resource, allowed: frozenset[str]
) -> dict[str, None]:
    proven = any(d.algorithm in STRONG for d in usable(resource.digests))
    found: dict[str, None] = {}
    for link in links:
        try:
            if proven or origin(link.href) in allowed:
                found[link.href] = None
        except OutOfScopeError:
            continue  # no address of the web: as if it were not there
    return found
