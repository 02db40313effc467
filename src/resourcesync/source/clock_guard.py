"""Whether the machine's clock can be believed, before anything is dated by it.

Times of a Source only rise. A clock that once ran ahead, by years perhaps, would date all changes
after that moment until it comes. And no one could tell a clock that runs ahead now from a Source
that was silent for long, but for the length of the silence.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from resourcesync.errors import StateError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import CatalogueStore
from resourcesync.source.plan import PublicationStep, forget_plan, read_record, write_offers

AHEAD: Final = timedelta(days=1)
"""How far the times that were given may be ahead of the clock: they rise by themselves until then.

Destinations follow no time that is further ahead of theirs.
"""
SILENCE: Final = timedelta(days=366)
"""How long a Source may have been silent before its clock is doubted."""


def check_clock(catalogue: CatalogueStore, now: datetime, step: PublicationStep) -> PublicationStep:
    """Refuse to go on by a clock that cannot be right; return the step to take.

    ``Step.REBASE`` and ``Step.INITIALISE`` say that the clock is right now. Where it was ahead
    before, what was dated later than now is forgotten and the lists start over: with a Resource
    List of the present state, and no changes.

    Args:
        catalogue: Knows the latest time that was given.
        now: The present moment.
        step: What is asked for.

    Raises:
        StateError: The clock is a day or more behind what it once said (code ``clock-behind``), or
            more than a year ahead of it (``clock-ahead``). Nothing was written.
        StorageError: The catalogue cannot be read or written.
    """
    latest = catalogue.latest()
    if latest is None:
        return step
    is_meant = step in (PublicationStep.REBASE, PublicationStep.INITIALISE)
    if is_behind(latest, now, is_meant=is_meant):
        turn_back(catalogue, now)
        return PublicationStep.INITIALISE
    if not is_meant and read_record(catalogue) is not None:
        check_silence(latest, now)
    return step


def is_behind(latest: datetime, now: datetime, *, is_meant: bool) -> bool:
    """Whether the lists are to start over, since times were given that are far ahead of the clock.

    Args:
        latest: The newest time that was given.
        now: The present moment.
        is_meant: Whether the operator said that the clock is right now.

    Raises:
        StateError: He did not (code ``clock-behind``).
    """
    if latest - now <= AHEAD:
        return False
    if not is_meant:
        raise _clock_error("clock-behind", "earlier", latest, now)
    return True


def check_silence(latest: datetime, now: datetime) -> None:
    """Refuse to go on after so long a silence that the clock may be ahead.

    Raises:
        StateError: It is (code ``clock-ahead``).
    """
    if now - latest > SILENCE:
        raise _clock_error("clock-ahead", "more than a year later", latest, now)


def turn_back(catalogue: CatalogueStore, now: datetime) -> None:
    """Forget what was dated later than now: changes, packages, offers of dumps."""
    from resourcesync.source.dump_record import read_dumps, write_dumps  # noqa: PLC0415 - rare

    moment, dumps = to_microseconds(now), read_dumps(catalogue)
    kept = replace(
        dumps,
        resources=tuple(resource for resource in dumps.resources if resource.since <= moment),
        changes=tuple(change for change in dumps.changes if change.until <= moment),
        former=tuple(dump for dump in dumps.former if dump.since <= moment),
    )
    if kept != dumps:
        write_dumps(catalogue, kept)
    write_offers(catalogue, ())  # the next dump offers what goes with the new lists
    forget_plan(catalogue)
    catalogue.rewind(now)  # last: until then the next run is refused as this one was


def _clock_error(code: str, where: str, latest: datetime, now: datetime) -> StateError:
    return StateError(
        f"the clock says {now:%Y-%m-%d %H:%M}, {where} than the newest time that was given",
        evidence=(
            ("newest", f"{latest:%Y-%m-%dT%H:%M:%SZ}"),
            ("kept", "what was published before"),
        ),
        hint="set the clock; if it is right: publish once with --rebase",
        code=code,
    )
