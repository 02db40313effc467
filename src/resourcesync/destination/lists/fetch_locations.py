"""Fetch locations of one resource, in order of preference; pure (§14.2, §14.6)."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs

from resourcesync.destination.planner import Fetch, ListedEntry
from resourcesync.discovery.uris import origin_if_any
from resourcesync.model.digests import STRONG, disagree, has_strong, parse_digests, usable
from resourcesync.model.entries import Link, Resource

MAX_MIRRORS: Final = 8
MIN_RESUMABLE: Final = 1 << 20


class FetchLocation(NamedTuple):
    """Location of a resource's bytes.

    ``after_mismatch``: it helps only after the resource's own URI gave other bytes. ``is_patch``:
    of the present copy. ``version_at`` is the ``Accept-Datetime`` for a TimeGate (RFC 7089).
    """

    uri: str
    is_own: bool = True
    uncached: bool = False
    after_mismatch: bool = False
    is_patch: bool = False
    version_at: str = ""


_new_location: Final[Callable[[tuple[Any, ...]], FetchLocation]] = partial(
    tuple.__new__, FetchLocation
)


class FetchAttempt(msgspec.Struct):
    """Fetch with its locations and the present one; it is never changed.

    ``has_mismatch`` and ``last_failure`` are of the resource's own URI. ``has_waited``: for the
    same bytes of another resource.
    """

    fetch: Fetch
    locations: tuple[FetchLocation, ...]
    location: FetchLocation
    position: int = 0
    has_mismatch: bool = False
    tries: int = 0
    last_failure: tuple[str, str] = ("", "")
    has_waited: bool = False

    def after_failure(
        self, code: str, reason: str, *, mismatch: bool, tries: int
    ) -> "FetchAttempt":
        """Return the attempt after a failure at its location."""
        own = self.location.is_own
        return structs.replace(
            self,
            has_mismatch=self.has_mismatch or (own and mismatch),
            tries=self.tries + tries,
            last_failure=(code, reason) if own else self.last_failure,
        )

    def next_attempt(self) -> "FetchAttempt | None":
        """Return the attempt at the next location that may help, or ``None``."""
        for at in range(self.position + 1, len(self.locations)):
            if self.has_mismatch or not self.locations[at].after_mismatch:
                return structs.replace(self, position=at, location=self.locations[at])
        return None


def first_attempt(fetch: Fetch) -> FetchAttempt:
    """Return a fetch at its first location: patch, mirrors by priority, the resource's own URI.

    If that gives other bytes than listed, a cache may be stale, or the resource may have changed;
    then it is requested again, uncached, and then the memento of the listed version. Where the
    Source decides between lists, only the Source itself is requested, past all caches.
    """
    listed = fetch.listed
    loc = listed.loc
    if listed.undated:
        locations: tuple[FetchLocation, ...] = (FetchLocation(loc, uncached=True),)
    else:
        own = _new_location((loc, True, False, False, False, ""))
        locations = (own, _new_location((loc, True, True, True, False, "")))
        if listed.mirrors or listed.memento or listed.patch is not None:
            locations = tuple(_around(fetch, locations))
    return FetchAttempt(fetch, locations, locations[0])


def _around(fetch: Fetch, own: tuple[FetchLocation, ...]) -> Iterator[FetchLocation]:
    """Yield the locations of a fetch, those at the resource's own URI among others."""
    listed = fetch.listed
    if listed.patch is not None and not listed.patch.path and fetch.before is not None:
        yield FetchLocation(listed.patch.uri, is_own=False, is_patch=True)
    yield from (FetchLocation(uri, is_own=False) for uri in listed.mirrors)
    yield from own
    if listed.memento:
        uri, _, moment = listed.memento.partition(" ")
        yield FetchLocation(uri, is_own=False, after_mismatch=True, version_at=moment)


def digest_by(listed: ListedEntry, algorithm: str) -> str:
    """Return the listed strong digest of this algorithm; empty if there is none."""
    for digest in usable(parse_digests(listed.hash)):
        if digest.algorithm == algorithm and algorithm in STRONG:
            return str(digest)
    return ""


def part_name(uri: str, listed: ListedEntry) -> str:
    """Return the name of a partial download for a later run; empty if it is not worth storing.

    Only a strong digest of the whole can prove bytes assembled from parts.
    """
    large = listed.length is None or listed.length >= MIN_RESUMABLE
    return f"{uri} {listed.hash}" if large and has_strong(parse_digests(listed.hash)) else ""


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
