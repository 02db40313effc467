"""Bounds of whole scenarios: no run is without end, and each value is within its type."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import fields

from resourcesync.errors import ConfigurationError
from resourcesync_simulator.scenario import DAY, LONGEST, Scenario

_MOST_EVENTS: Final = 100_000_000
_MOST_BURSTS: Final = 1_000_000
"""Each waits in memory from the start."""
_PLACE: Final = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)


def check(scenario: Scenario) -> None:
    """Refuse a scenario that cannot be simulated, or would mean nothing."""
    with refusals():
        msgspec.convert(msgspec.to_builtins(scenario, builtin_types=(datetime,)), Scenario)
    _check_work(scenario)


@contextmanager
def refusals(place: str = "the scenario") -> Iterator[None]:
    """Translate errors of values, with their places in the file."""
    try:
        yield
    except msgspec.ValidationError as error:
        found = _PLACE.fullmatch(str(error))
        assert found is not None
        reason = found[1][:1].lower() + found[1][1:]
        raise ConfigurationError(f"{found[2] or place} is wrong: {reason}") from error


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
                longest = duration_text(scenario.duration)
                yield f"{place} at {duration_text(at)}: the duration is {longest}"


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
        if (origin.resources + changes) * seconds / destination.jobs > LONGEST:
            _refuse(
                f"destination {destination.name}: one pull could take more than 3,660 days",
                f"{seconds:,.1f} s for the longest resource, {destination.jobs:,} at a time",
                hint="a greater bandwidth, more jobs, fewer resources, or a lower sizes.most",
            )


def duration_text(seconds: float) -> str:
    """Return seconds as the author of a scenario may have written them: ``34h``."""
    for many, unit in ((DAY, "d"), (3_600.0, "h"), (60.0, "m")):
        if seconds and seconds % many == 0:
            return f"{seconds / many:g}{unit}"
    return f"{seconds:g}s"


def _refuse(reason: str, given: str, *, hint: str = "") -> None:
    raise ConfigurationError(reason, evidence=(("given", given),), hint=hint)
