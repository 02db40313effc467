"""Cost policy: packages of a dump against single requests; pure.

Costs are counted in bytes: a request costs the bytes that could be received in its time. The
figures are estimates; only the cost depends on them.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from math import ceil
from typing import Final

import msgspec

from resourcesync.destination.options import DumpPolicy

REQUEST_COST: Final = 32 * 1024
"""Cost of one request in bytes, at a polite request rate."""
DEFAULT_SIZE: Final = 16 * 1024
"""Bytes assumed for a resource of unknown length."""
MIN_FETCHES: Final = 8
"""Fetches below which no dump is checked: the check itself takes some requests."""
MANIFEST_ENTRY_SIZE: Final = 200
"""Bytes of an entry of a manifest."""
_MIN_SHARE: Final = 0.1
"""Smallest share of a package that must be needed: else most of it is in the mirror already."""
_MIN_SHARE_UNSIZED: Final = 0.5
"""Smallest share of a package of unknown size that must be needed."""


class ResourceCount(msgspec.Struct, frozen=True, kw_only=True):
    """Number and size of some resources; ``size`` is that of those with a known length."""

    count: int = 0
    size: int = 0
    unsized: int = 0

    @property
    def total(self) -> int:
        """Estimated bytes of all resources."""
        sized = self.count - self.unsized
        usual = self.size // sized if sized > 0 else DEFAULT_SIZE
        return self.size + self.unsized * usual

    def share(self, part: float) -> "ResourceCount":
        """Return the share of the resources that one of several packages is expected to have."""
        return ResourceCount(
            count=ceil(self.count * part),
            size=round(self.size * part),
            unsized=round(self.unsized * part),
        )


class PackageEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Estimate of a package before it is fetched; ``None`` is unknown."""

    length: int | None
    wanted: ResourceCount
    entries: int | None = None


def cost_of_requests(need: ResourceCount) -> int:
    """Return the cost of one request for each resource."""
    return need.count * REQUEST_COST + need.total


def is_package_worth_fetching(
    prospect: PackageEstimate, policy: DumpPolicy, room: int | None
) -> bool:
    """True if fetching the package costs less than single requests for what is needed of it."""
    wanted, length = prospect.wanted, prospect.length
    if policy == "never" or not wanted.count:
        return False
    if room is not None and (length or 0) + wanted.total > room:
        return False
    if policy == "always":
        return True
    share = 1.0 if prospect.entries is None else wanted.count / max(prospect.entries, 1)
    if length is None:
        return prospect.entries is not None and share >= _MIN_SHARE_UNSIZED
    return share >= _MIN_SHARE and REQUEST_COST + length < cost_of_requests(wanted)


def is_dump_worth_checking(wanted: ResourceCount, policy: DumpPolicy) -> bool:
    """True if enough is needed for a check of the package's manifest."""
    if policy == "never":
        return False
    return wanted.count >= (1 if policy == "always" else MIN_FETCHES)


def are_manifests_worth_fetching(
    prospects: Iterable[PackageEstimate], rest: ResourceCount, policy: DumpPolicy
) -> bool:
    """True if fetching the manifests costs less than half of what it may save."""
    if policy != "auto":
        return policy == "always"
    held = (
        prospect.wanted.count if prospect.entries is None else prospect.entries
        for prospect in prospects
    )
    cost = sum(REQUEST_COST + MANIFEST_ENTRY_SIZE * count for count in held)
    return cost < cost_of_requests(rest) / 2


class AgeIndex:
    """Needed resources by age, counted in one pass for the intervals of many packages."""

    def __init__(self, moments: Iterable[int]) -> None:
        self._edges = sorted(set(moments))
        self._counts = [[0, 0, 0] for _ in range(len(self._edges) + 1)]
        self._undated = [0, 0, 0]
        self._sums: list[list[int]] = []

    def add(self, lastmod: int | None, length: int | None) -> None:
        """Add a resource: its time of modification and its bytes, if known."""
        item = self._undated
        if lastmod is not None:
            item = self._counts[bisect_left(self._edges, lastmod)]
        item[0] += 1
        item[1] += length or 0
        item[2] += length is None

    def between(self, after: int | None, upto: int | None) -> ResourceCount:
        """Return the resources modified after one moment and not after another, or undated."""
        if not self._sums:
            columns = zip(*self._counts, strict=True)
            self._sums = [list(accumulate(column, initial=0)) for column in columns]
        low = 0 if after is None else bisect_left(self._edges, after) + 1
        high = len(self._counts) if upto is None else bisect_left(self._edges, upto) + 1
        high = max(low, high)
        count, size, unsized = (
            sums[high] - sums[low] + more
            for sums, more in zip(self._sums, self._undated, strict=True)
        )
        return ResourceCount(count=count, size=size, unsized=unsized)
