"""What a worker does, the same on every engine."""

import traceback
from pathlib import PurePath

from resourcesync import __version__
from resourcesync.errors import EngineError, ResourceSyncError
from resourcesync.ports.engines import HostShare, UnitFunction, UnitOutcome, WorkUnit

_LONGEST = 500


def run_unit(work: UnitFunction, unit: WorkUnit, share: HostShare) -> UnitOutcome:
    """Do a unit; whatever goes wrong is told in a way that reaches the coordinator.

    Errors of others may not survive being sent, and would break the engine.

    Raises:
        EngineError: What the work raised, on one line.
    """
    try:
        return work(unit, share)
    except BaseException as error:  # noqa: BLE001 - also SystemExit would end a worker
        raise EngineError(
            _describe(error), evidence=(("raised in", _source_location(error)),)
        ) from None


def package_version() -> str:
    """Return the version of this package, where it is called."""
    return __version__


def _describe(error: BaseException) -> str:
    if isinstance(error, ResourceSyncError):
        words = error.message
    else:
        words = f"{type(error).__name__}: {error}"
    return " ".join(words.split())[:_LONGEST]


def _source_location(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    return f"{PurePath(last.filename).name}:{last.lineno}, {last.name}"
