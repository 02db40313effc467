"""Resources of a simulated Source, and their changes, from a seed."""

import hashlib
import math
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from resourcesync.model.digests import Digest
from resourcesync.model.entries import Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync_simulator.scenario import Burst, OriginSettings, Sizes, zone_of

BASE: Final = "http://source.example/"
_NAME: Final = "r{:04d}/i{:07d}.html"


class SimulatedVersion(NamedTuple):
    """One version of a resource.

    Attributes:
        number: 1 for the first one of its name, and so on.
        length: Length in bytes.
        digest: SHA-256 of its bytes.
        lastmod: The time of its creation, whole seconds, UTC.
        media_type: Its media type.
    """

    number: int
    length: int
    digest: str
    lastmod: datetime
    media_type: str


class OriginChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change at the origin.

    Attributes:
        kind: The kind of the change.
        name: The name of the resource, below the base.
        before: The version before; ``None`` when there was none.
    """

    kind: ChangeKind
    name: str
    before: SimulatedVersion | None = None


class SimulatedOrigin:
    """The resources as they are now."""

    def __init__(
        self, settings: OriginSettings, seed: int, now: Callable[[], datetime], base: str = BASE
    ) -> None:
        self.base = base
        self._settings = settings
        self._seed = seed
        self._now = now
        self._random = random.Random(f"origin {seed}")  # noqa: S311 - a simulation
        self._names: list[str] = []
        self._places: dict[str, int] = {}
        self._next = 0
        self.versions: dict[str, SimulatedVersion] = {}
        """The present versions, by name."""
        self._ever: dict[str, int] = {}
        for _ in range(settings.resources):
            self._create()

    def change(self) -> OriginChange:
        """Make one random change."""
        kind = self._random.choices(list(ChangeKind), [self._weight(kind) for kind in ChangeKind])[
            0
        ]
        if kind is ChangeKind.CREATED or not self._names:
            return OriginChange(kind=ChangeKind.CREATED, name=self._create())
        name = self._random.choice(self._names)
        before = self.versions[name]
        if kind is ChangeKind.DELETED:
            place = self._places.pop(name)
            last = self._names.pop()
            if last != name:
                self._names[place] = last
                self._places[last] = place
            del self.versions[name]
        else:
            self._renew(name)
        return OriginChange(kind=kind, name=name, before=before)

    def gap(self) -> float:
        """Return the seconds until the next change of the Poisson process; infinite for none."""
        rate = self._settings.per_second
        return self._random.expovariate(rate) if rate > 0 else math.inf

    def body(self, name: str, version: SimulatedVersion) -> bytes:
        """Return the bytes of a version, present or former."""
        return _bytes(self._seed, name, version.number, version.length)

    def body_of(self, name: str, length: int, sha256: str) -> bytes | None:
        """Return the bytes of the version with this digest; ``None`` when none ever had it."""
        for number in range(self._ever.get(name, 0), 0, -1):
            body = _bytes(self._seed, name, number, length)
            if hashlib.sha256(body).hexdigest() == sha256:
                return body
        return None

    def resource(self, name: str) -> Resource | None:
        """Return the entry of a resource; ``None`` when it does not exist."""
        version = self.versions.get(name)
        if version is None:
            return None
        return Resource(
            uri=self.base + name,
            lastmod=version.lastmod,
            length=version.length,
            digests=(Digest("sha-256", version.digest),),
            media_type=version.media_type,
        )

    def restore(self, versions: dict[str, SimulatedVersion]) -> None:
        """Restore former versions of the resources."""
        self.versions = dict(versions)
        self._names = list(versions)
        self._places = {name: place for place, name in enumerate(self._names)}

    def _weight(self, kind: ChangeKind) -> float:
        of = self._settings
        weights = {
            ChangeKind.CREATED: of.create,
            ChangeKind.UPDATED: of.update,
            ChangeKind.DELETED: of.delete,
        }
        return weights[kind]

    def _create(self) -> str:
        number, self._next = self._next, self._next + 1
        name = _NAME.format(number // 1_000, number)
        self._places[name] = len(self._names)
        self._names.append(name)
        self._renew(name)
        return name

    def _renew(self, name: str) -> None:
        number = self._ever[name] = self._ever.get(name, 0) + 1
        length = length_of(self._settings.sizes, self._random)
        self.versions[name] = SimulatedVersion(
            number=number,
            length=length,
            digest=hashlib.sha256(_bytes(self._seed, name, number, length)).hexdigest(),
            lastmod=self._now().replace(microsecond=0),
            media_type=self._random.choice(self._settings.media_types),
        )


def length_of(sizes: Sizes, luck: random.Random) -> int:
    """Return a random length in bytes."""
    drawn = round(sizes.median * math.exp(luck.gauss(0.0, sizes.spread)))
    return min(max(drawn, sizes.least), sizes.most)


def burst_times(burst: Burst, start: datetime, duration: float) -> Iterator[float]:
    """Yield the times of a burst, in seconds since the start."""
    zone = zone_of(burst.zone)
    day = start.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(1)
    while True:
        day += timedelta(days=1)
        moment = (day.replace(tzinfo=None) + timedelta(seconds=burst.at)).replace(tzinfo=zone)
        at = (moment - start).total_seconds()
        if at > duration:
            return
        if at >= 0 and moment.weekday() in burst.days:
            yield at


def _bytes(seed: int, name: str, number: int, length: int) -> bytes:
    """Return unique bytes: hashes of the name, then noise, over and over."""
    head = hashlib.sha256(f"{seed} {name} {number}".encode()).digest()
    block = head + _NOISE
    return (block * (length // len(block) + 1))[:length] if length > len(head) else head[:length]


_NOISE: Final = random.Random("noise").randbytes(4_064)  # noqa: S311 - a simulation
