"""Bounds of the values of a scenario, and their valid combinations."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec.structs import fields

from resourcesync.errors import ConfigurationError
from resourcesync_simulator.scenario import (
    DAY,
    Burst,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)

_LONGEST: Final = 3_660 * DAY
_MOST_EVENTS: Final = 100_000_000
_MOST_BURSTS: Final = 1_000_000
"""Each waits in memory from the start."""
_LARGEST: Final = 1 << 30
"""A resource or a package is in memory while it is transferred."""
_MOST_SEED: Final = 1 << 53
_FIRST: Final = datetime(1980, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(2999, 12, 31, tzinfo=UTC)
_MOST_SHOWN: Final = 100
_MEDIA_TYPE: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?: ?;[ -~]*)?", re.ASCII)


class Bound(NamedTuple):
    """Bounds of a number.

    Attributes:
        least, most: The smallest and the largest value.
        text: The same in words.
        unit: The unit after the number, for people.
        or_0: True if 0 is allowed, too, though it is less.
    """

    least: float
    most: float
    text: str
    unit: str = ""
    or_0: bool = False

    def allows(self, value: float) -> bool:
        """True if a number is in the bounds; ``nan`` never is."""
        return self.least <= value <= self.most or (self.or_0 and value == 0)


def _numbers(least: float, most: float) -> Bound:
    return Bound(least, most, f"from {least:,} to {most:,}")


def _times(text: str, least: float, most: float = _LONGEST, *, or_0: bool = False) -> Bound:
    return Bound(least, most, text, " s", or_0)


_AGE: Final = _times("0, or from 1 second to 3,660 days", 1.0, or_0=True)
_INTERVAL: Final = _times("from 1 second to 3,660 days", 1.0)
_MOMENT: Final = _times("from 0 to 3,660 days", 0.0)
RATE: Final = _numbers(0, 1)
"""The probability of a fault."""

BOUNDS: Final[Mapping[str, Bound]] = {
    "seed": _numbers(0, _MOST_SEED),
    "duration": _INTERVAL,
    "source.resources": _numbers(1, 10_000_000),
    "source.sizes.median": Bound(1, _LARGEST, "from 1 byte to 1 GiB"),
    "source.sizes.spread": _numbers(0, 10),
    "source.sizes.least": Bound(0, _LARGEST, "from 0 bytes to 1 GiB"),
    "source.sizes.most": Bound(1, _LARGEST, "from 1 byte to 1 GiB"),
    "source.changes": Bound(0.0, 10_000.0, "from 0 to 10,000 a second"),
    "source.bursts.at": Bound(0.0, DAY - 1, "a time from 00:00 to 23:59"),
    "source.bursts.changes": _numbers(1, 10_000_000),
    "source.create": _numbers(0, 1_000_000),
    "source.update": _numbers(0, 1_000_000),
    "source.delete": _numbers(0, 1_000_000),
    "publish.every": _INTERVAL,
    "publish.rotate": _AGE,
    "publish.rebase": _AGE,
    "publish.rebase_up_to": _numbers(0, 50_000),
    "publish.keep": _AGE,
    "publish.dump_every": _AGE,
    "publish.max_package": Bound(1, _LARGEST, "from 1 byte to 1 GiB"),
    "publish.max_entries": _numbers(1, 50_000),
    "destination.every": _INTERVAL,
    "destination.jobs": _numbers(1, 1_000),
    "destination.latency": _times("from 0 to 1 day", 0.0, DAY),
    "destination.bandwidth": Bound(1_000.0, 1e15, "from 1 kB to 1 PB a second"),
    "destination.phase": RATE,
}
"""The bounds of each number, by its key in a scenario."""
_Settings = Scenario | OriginSettings | Sizes | Burst | PublishSettings | DestinationSettings
_WRITTEN: Final = {"per_second": "changes"}
_STEPS: Final = frozenset({"clock_steps", "rollbacks"})


def check(scenario: Scenario) -> None:
    """Refuse a scenario that cannot be simulated, or would mean nothing."""
    for place, value, bound in _bounded(scenario):
        if not bound.allows(value):
            _refuse(f"{place} must be {bound.text}", value, unit=bound.unit)
    if not _FIRST <= scenario.start <= _LAST:
        _refuse("start must be from 1980 to 2999", scenario.start)
    _check_origin(scenario.origin)
    if not scenario.destinations:
        raise ConfigurationError("the scenario has no [[destination]]")
    _check_names([destination.name for destination in scenario.destinations])
    for destination in scenario.destinations:
        _check_spans(f"destination {destination.name}: offline", destination.offline)
    _check_faults(scenario.faults)
    _check_work(scenario)


def faults_after_end(scenario: Scenario) -> Iterator[str]:
    """Yield the faults that will not happen, since their time is not before the scenario's end."""
    faults = scenario.faults
    timed = [field.name for field in fields(faults) if not isinstance(field.default, float)]
    places = {f"faults.{name}": getattr(faults, name) for name in timed}
    places |= {
        f"destination {destination.name}: offline": destination.offline
        for destination in scenario.destinations
    }
    for place, values in places.items():
        for value in values:
            at = value[0] if isinstance(value, tuple) else value
            if at >= scenario.duration:
                longest = _duration_text(scenario.duration)
                yield f"{place} at {_duration_text(at)}: the duration is {longest}"


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigurationError(
            f"there is no time zone {name[:_MOST_SHOWN]!r}", hint="UTC is always available"
        ) from error


def _bounded(scenario: Scenario) -> Iterator[tuple[str, float, Bound]]:
    """Yield the place of each number, the number, and its bounds."""
    yield from _numbers_of("", "", scenario)
    yield from _numbers_of("source.", "source.", scenario.origin)
    yield from _numbers_of("source.sizes.", "source.sizes.", scenario.origin.sizes)
    for burst in scenario.origin.bursts:
        yield from _numbers_of("source.bursts.", "source.bursts.", burst)
    yield from _numbers_of("publish.", "publish.", scenario.publish)
    for destination in scenario.destinations:
        yield from _numbers_of(
            "destination.", f"destination {destination.name[:_MOST_SHOWN]!r}: ", destination
        )
    for field in fields(scenario.faults):
        if isinstance(field.default, float):
            yield f"faults.{field.name}", getattr(scenario.faults, field.name), RATE


def _numbers_of(table: str, place: str, settings: _Settings) -> Iterator[tuple[str, float, Bound]]:
    for field in fields(settings):
        name = _WRITTEN.get(field.name, field.name)
        bound = BOUNDS.get(table + name)
        if bound is not None:
            yield place + name, getattr(settings, field.name), bound


def _check_origin(origin: OriginSettings) -> None:
    if not origin.create + origin.update + origin.delete > 0:
        raise ConfigurationError("source.create, update and delete cannot all be 0")
    sizes = origin.sizes
    if not sizes.least <= sizes.median <= sizes.most:
        _refuse(
            "source.sizes.median must be from least to most",
            f"least {sizes.least:,}, median {sizes.median:,}, most {sizes.most:,}",
        )
    for name in origin.media_types:
        if len(name) > _MOST_SHOWN or _MEDIA_TYPE.fullmatch(name) is None:
            _refuse("source.media_types must be such as text/html", name)
    if not origin.media_types:
        raise ConfigurationError("source.media_types must have one at least")
    for burst in origin.bursts:
        zone_of(burst.zone)
        if not burst.days or not burst.days <= set(range(7)):
            _refuse("source.bursts.days must be days of the week", sorted(burst.days))


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not (name.isprintable() and 0 < len(name) <= _MOST_SHOWN):
            _refuse("destination.name must be 1 to 100 visible characters", name)
        if name in seen:
            raise ConfigurationError(
                f"two destinations have the name {name!r}",
                hint="each [[destination]] needs a name of its own, or none",
            )
        seen.add(name)


def _check_faults(faults: Faults) -> None:
    """Check the times of all faults: new kinds of faults are recognised by their form."""
    for field in fields(faults):
        value, place = getattr(faults, field.name), f"faults.{field.name}"
        if isinstance(field.default, float):
            continue
        if field.name in _STEPS:
            _check_steps(place, value, is_back=field.name == "rollbacks")
        elif field.name == "restarts":
            for at in value:
                _check_moment(place, at)
        else:
            _check_spans(place, value)


def _check_moment(place: str, at: float) -> None:
    if not _MOMENT.allows(at):
        _refuse(f"{place}: a time must be {_MOMENT.text}, from the beginning", at, unit=" s")


def _check_spans(place: str, spans: tuple[tuple[float, float], ...]) -> None:
    for since, until in spans:
        _check_moment(place, since)
        _check_moment(place, until)
        if since >= until:
            _refuse(
                f"{place} must begin before it ends",
                f"{_duration_text(since)} to {_duration_text(until)}",
            )


def _check_steps(place: str, steps: tuple[tuple[float, float], ...], *, is_back: bool) -> None:
    ahead = 0.0
    for at, seconds in sorted(steps):
        _check_moment(place, at)
        ahead = seconds if is_back else ahead + seconds
        if is_back and not _MOMENT.allows(seconds):
            _refuse(f"{place}: how far back must be {_MOMENT.text}", seconds, unit=" s")
        if not _MOMENT.allows(abs(ahead)):
            _refuse(f"{place}: a clock cannot be wrong by more than 3,660 days", ahead, unit=" s")


def _check_work(scenario: Scenario) -> None:
    """Refuse a run that would never end, or only after the calendar does."""
    origin, days = scenario.origin, scenario.duration / DAY + 1
    if days * len(origin.bursts) > _MOST_BURSTS:
        _refuse(
            f"at most {_MOST_BURSTS:,} bursts can be simulated",
            f"{len(origin.bursts):,} on each of {days:,.0f} days",
        )
    changes = scenario.duration * origin.per_second + days * sum(
        burst.changes for burst in origin.bursts
    )
    pulls = max(scenario.duration / destination.every for destination in scenario.destinations)
    events = changes + pulls + scenario.duration / scenario.publish.every
    if events > _MOST_EVENTS:
        _refuse(
            f"at most {_MOST_EVENTS:,} changes, publications and pulls can be simulated",
            f"about {events:,.0f}",
            hint="a shorter duration, or less often",
        )
    for destination in scenario.destinations:
        seconds = destination.latency + origin.sizes.most / destination.bandwidth
        if (origin.resources + changes) * seconds / destination.jobs > _LONGEST:
            _refuse(
                f"destination {destination.name}: one pull could take more than 3,660 days",
                f"{seconds:,.1f} s for the longest resource, {destination.jobs:,} at a time",
                hint="a greater bandwidth, more jobs, fewer resources, or a lower sizes.most",
            )


def _duration_text(seconds: float) -> str:
    """Return seconds as the author of a scenario may have written them: ``34h``."""
    for many, unit in ((DAY, "d"), (3_600.0, "h"), (60.0, "m")):
        if seconds and seconds % many == 0:
            return f"{seconds / many:g}{unit}"
    return f"{seconds:g}s"


def _refuse(reason: str, given: object, *, unit: str = "", hint: str = "") -> None:
    number = f"{given:g}" if isinstance(given, float) else str(given)
    shown = _duration_text(given) if unit and isinstance(given, float) else number
    raise ConfigurationError(reason, evidence=(("given", shown[:_MOST_SHOWN]),), hint=hint)
