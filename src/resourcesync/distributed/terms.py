"""The terms of a pull, for its workers."""

from resourcesync.destination.options import Filters
from resourcesync.destination.pulling import SyncSession
from resourcesync.destination.runs import new_run_id
from resourcesync.distributed.crew import WorkerContext
from resourcesync.distributed.units import UnitOptions


def unit_options(pull: SyncSession, crew: WorkerContext, *, at: int) -> UnitOptions:
    """Return what all units of a pull have in common.

    Args:
        pull: What the pull works with.
        crew: Workers and tables.
        at: The Source's time that the plan knows it up to, microseconds.
    """
    identity = pull.identity
    assert identity is not None, "a pull has found its Source"
    return UnitOptions(
        identity=identity,
        yielding=pull.sync_state.relocated_uris,
        filters=pull.options.filters or pull.sync_state.filters or Filters(),
        site=crew.site,
        run=new_run_id(),
        generation=pull.generation,
        at=at,
        lenient=pull.options.verify == "lenient",
        accepts_missing=pull.accepts_missing,
        own_algorithm=pull.options.own_algorithm,
        applies_deletions=pull.options.delete != "never",
    )
