"""Simulated days with faults, and three of them without an answer: in sync again by itself."""

from typing import Final

from msgspec.structs import replace

from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync_simulator.scenario import (
    DAY,
    HOUR,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync_simulator.simulation import simulate

_QUARTER: Final = HOUR / 4


def run(asked: Asked) -> Outcome:
    """Live so many days; a Source that is away for 72 hours from the end of their first third."""
    outcome = Outcome()
    away, back = asked.size * DAY / 3, asked.size * DAY / 3 + 72 * HOUR
    scenario = replace(_SCENARIO, seed=asked.seed, duration=asked.size * DAY)
    scenario = replace(scenario, faults=replace(_FAULTS, outages=((away, back),)))
    recovered: list[float] = []
    last: list[int] = []

    def look(at: float, event: str, fields: object) -> None:
        if event != "pull" or at > scenario.duration or not isinstance(fields, dict):
            return  # what comes after the end is all quiet, and shows nothing
        if at >= back and not recovered and fields.get("state") == "in sync":
            recovered.append(at - back)
        if back - 6 * HOUR <= at < back:
            last.append(int(fields["requests"]))

    measured = simulate(scenario, scenario.destinations[0], look)
    outcome.add("pulls", measured.pulls)
    outcome.add("changes", measured.changes)
    outcome.add("consistency", measured.consistency)
    outcome.add("crashes", measured.crashes)
    outcome.add("requests in the last 6 h of the outage", sum(last))
    outcome.add("in sync again, minutes after it", recovered[0] / 60 if recovered else "never")
    outcome.add("ended", measured.outcome)
    outcome.require(measured.outcome == "converged", f"it ended {measured.outcome}")
    outcome.require(not measured.lies, "called in sync and was not")
    outcome.require(recovered and recovered[0] <= 4 * _QUARTER, "it took too long to recover")
    outcome.require(sum(last) <= 100, "it kept asking who did not answer")
    return outcome


_FAULTS: Final = Faults(
    lost=0.002, failed=0.002, late=0.01, altered=0.001, stale=0.005, crash=0.0002
)
_SCENARIO: Final = Scenario(
    origin=OriginSettings(
        resources=1_000, sizes=Sizes(median=400, spread=1.0, most=5_000), per_second=6 / HOUR
    ),
    publish=PublishSettings(every=HOUR / 2, rotate=DAY, rebase=7 * DAY, keep=7 * DAY),
    destinations=(DestinationSettings(every=_QUARTER),),
)
CAMPAIGN: Final = Campaign(run=run, size=30, unit="days", least=5, most=3_660, exact=True)
"""With less than 5 there would be no time left after the outage."""
