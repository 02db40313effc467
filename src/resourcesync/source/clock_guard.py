"""Plausibility check of the machine's clock, before anything is dated by it.

Times of a Source only rise. A clock that once ran ahead, by years perhaps, would date all changes
after that moment until it comes. A clock that runs ahead now looks like a Source that was silent
for long; only the length of the silence tells them apart.
"""

from datetime import datetime, timedelta
from typing import Final

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import StateError
from resourcesync.source.stored_plan import OFFERS, PLAN, RECORD, PublicationStep

AHEAD: Final = timedelta(days=1)
"""Largest lead of the newest recorded time over the clock; below it, times continue from there.

Destinations follow no time that is further ahead of theirs.
"""
SILENCE: Final = timedelta(days=366)
"""Length of a Source's silence from which its clock is suspect."""


def check_clock(
    catalogue: SourceCatalogue, now: datetime, step: PublicationStep
) -> PublicationStep:
    """Refuse to publish with an implausible clock; return the step to take.

    ``Step.REBASE`` and ``Step.INITIALISE`` confirm that the clock is right now. Where it was ahead
    before, everything dated later than now is forgotten and the lists start over: with a Resource
    List of the present state, and no changes.
    """
    latest = catalogue.latest()
    if latest is None:
        return step
    is_meant = step in (PublicationStep.REBASE, PublicationStep.INITIALISE)
    if is_behind(latest, now, is_meant=is_meant):
        turn_back(catalogue, now)
        return PublicationStep.INITIALISE
    if not is_meant and now - latest > SILENCE and RECORD.read(catalogue) is not None:
        raise _clock_error("clock-ahead", "more than a year later", latest, now)
    return step


def is_behind(latest: datetime, now: datetime, *, is_meant: bool) -> bool:
    """True if the lists must start over, since recorded times are far ahead of the clock."""
    if latest - now <= AHEAD:
        return False
    if not is_meant:
        raise _clock_error("clock-behind", "earlier", latest, now)
    return True


def turn_back(catalogue: SourceCatalogue, now: datetime) -> None:
    """Forget everything that is dated later than now: changes, and offers of dumps."""
    OFFERS.write(catalogue, ())  # the next dump begins again, with the new lists
    PLAN.write(catalogue, None)
    catalogue.rewind(now)  # last: until then the next run is refused as well


def _clock_error(code: str, where: str, latest: datetime, now: datetime) -> StateError:
    return StateError(
        f"the clock says {now:%Y-%m-%d %H:%M}, {where} than the newest recorded time",
        evidence=(
            ("newest", f"{latest:%Y-%m-%dT%H:%M:%SZ}"),
            ("kept", "what was published before"),
        ),
        hint="set the clock; if it is right, write a new Resource List once: --rebase",
        code=code,
    )
