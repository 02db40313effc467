"""Whether packages of a dump or single requests bring what is wanted at less cost; pure.

Everything is counted in bytes: a request costs as much as the bytes that could have come meanwhile.
The figures are estimates; nothing depends on them but the cost.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Final, Literal

DumpPolicy = Literal["auto", "never", "always"]
"""Whether dumps are used: where they are cheaper, not at all, or wherever they help."""

REQUEST_COST: Final = 32 * 1024
"""What one more request costs, in bytes: with the manners that a server may expect of us."""
DEFAULT_SIZE: Final = 16 * 1024
"""Bytes of a resource of which no list tells how many it has."""
MIN_FETCHES: Final = 8
"""Fetches below which nobody looks for a dump: the look itself takes some requests."""
MANIFEST_ENTRY_SIZE: Final = 200
"""Bytes of an entry of a manifest."""
_MIN_SHARE: Final = 0.1
"""What must be wanted, at least, of what a package holds: else it is mostly here already."""
_MIN_SHARE_UNSIZED: Final = 0.5
"""The same, where nobody knows how large the package is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceCount:
    """Some resources, counted.

    Attributes:
        count: How many.
        size: Bytes of those whose length is known.
        unsized: How many have no known length.
    """

    count: int = 0
    size: int = 0
    unsized: int = 0

    @property
    def total(self) -> int:
        """Bytes of all of them, estimated."""
        sized = self.count - self.unsized
        usual = self.size // sized if sized > 0 else DEFAULT_SIZE
        return self.size + self.unsized * usual

    def share(self, part: float) -> "ResourceCount":
        """Return the part of them that one of several packages may be expected to hold."""
        return ResourceCount(
            count=ceil(self.count * part),
            size=round(self.size * part),
            unsized=round(self.unsized * part),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageEstimate:
    """A package, as far as it is known before it is fetched.

    Attributes:
        length: Its bytes; ``None`` when nobody says.
        wanted: What of it is wanted.
        held: How many entries it has; ``None`` when nobody knows.
    """

    length: int | None
    wanted: ResourceCount
    entries: int | None = None


def cost_of_requests(need: ResourceCount) -> int:
    """Return what it costs to ask for each resource."""
    return need.count * REQUEST_COST + need.total


def is_package_worth_fetching(
    prospect: PackageEstimate, policy: DumpPolicy, room: int | None
) -> bool:
    """Whether a package is to be fetched rather than what is wanted of it.

    Args:
        prospect: The package.
        policy: What the operator wants.
        room: Bytes free on the mirror's disk; ``None`` when nobody knows.
    """
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
    """Whether so much is wanted that what a package holds is worth a look at its manifest."""
    if policy == "never":
        return False
    return wanted.count >= (1 if policy == "always" else MIN_FETCHES)


def are_manifests_worth_fetching(
    prospects: Iterable[PackageEstimate], rest: ResourceCount, policy: DumpPolicy
) -> bool:
    """Whether a look at the manifests of packages costs less than half of what it may save.

    Without the look, what is expected of them decides.

    Args:
        prospects: What is expected of the packages.
        rest: What nothing has brought yet.
        policy: What the operator wants.
    """
    if policy != "auto":
        return policy == "always"
    held = (
        prospect.wanted.count if prospect.entries is None else prospect.entries
        for prospect in prospects
    )
    return (
        sum(REQUEST_COST + MANIFEST_ENTRY_SIZE * count for count in held)
        < cost_of_requests(rest) / 2
    )


class AgeIndex:
    """What is wanted, by age, so that many packages can be asked about after one reading.

    Args:
        moments: The moments that will be asked about, microseconds.
    """

    def __init__(self, moments: Iterable[int]) -> None:
        self._edges = sorted(set(moments))
        self._counts = [[0, 0, 0] for _ in range(len(self._edges) + 1)]
        self._undated = [0, 0, 0]
        self._sums: list[list[int]] = []

    def add(self, lastmod: int | None, length: int | None) -> None:
        """Take one resource: when it was modified, if known, and its bytes, if known."""
        item = self._undated
        if lastmod is not None:
            item = self._counts[bisect_left(self._edges, lastmod)]
        item[0] += 1
        item[1] += length or 0
        item[2] += length is None

    def between(self, after: int | None, upto: int | None) -> ResourceCount:
        """Return what was modified after one moment and not after another, or nobody knows when."""
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
