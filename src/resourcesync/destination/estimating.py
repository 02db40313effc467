"""What each package of a dump may be expected to hold of what is wanted, before it is read."""

from collections.abc import Iterable, Iterator, Sequence

from resourcesync.destination.choosing import REQUEST_COST, AgeIndex, PackageEstimate
from resourcesync.destination.packages import DumpPackage
from resourcesync.model.timestamps import known_microseconds, to_microseconds


class DumpEstimate:
    """What each package may be expected to hold of what is wanted, before anything is read of it.

    Args:
        packages: The packages.
        ages: What is wanted, by age.
        resources: How many resources the Source has.
    """

    def __init__(self, packages: Sequence[DumpPackage], ages: AgeIndex, resources: int) -> None:
        lengths = [offered.entry.length for offered in packages]
        self._whole = sum(length or 0 for length in lengths)
        self._sized = None not in lengths and self._whole > 0
        self._packages = packages
        self._ages = ages
        self._resources = resources
        self._trust = 1.0

    def for_package(self, number: int) -> PackageEstimate:
        """Return what is expected of one package."""
        offered = self._packages[number]
        length = offered.entry.length
        after, upto = interval_of(offered)
        wanted = self._ages.between(after, upto)
        if after is not None:  # a Change Dump: its times say what it holds
            return PackageEstimate(length=length, wanted=wanted.share(self._trust))
        part = 1 / len(self._packages)
        if self._sized and length is not None:
            part = length / self._whole
        held = max(1, round(self._resources * part))
        return PackageEstimate(length=length, wanted=wanted.share(part * self._trust), entries=held)

    def learn(self, expected: int, got: int) -> None:
        """Take how many resources a package brought, and expect as much of the next ones."""
        if expected:
            self._trust = min(1.0, max(got / expected, 1 / REQUEST_COST))


def interval_of(offered: DumpPackage) -> tuple[int | None, int | None]:
    """Return when what a package holds was modified: after, and not after; ``None``: who knows."""
    entry, dump = offered.entry, offered.dump
    if entry.from_ is not None or dump.from_ is not None:
        after, upto = entry.from_ or dump.from_, entry.until or dump.until
        assert after is not None, "one of them is there"
        return to_microseconds(after) - 1, known_microseconds(upto)
    moment = entry.completed or entry.at or dump.completed or dump.at
    return None, known_microseconds(moment)


def interval_ends(packages: Iterable[DumpPackage]) -> Iterator[int]:
    """Yield the moments that will be asked about."""
    for offered in packages:
        yield from (moment for moment in interval_of(offered) if moment is not None)
