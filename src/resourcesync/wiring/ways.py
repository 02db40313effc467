"""How a Destination synchronizes: by itself, or with workers where its copies are a table."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.adapters.mirror.mirror_folder import STATE_FILE, MirrorFolder
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.destination.sync_state import SyncState
from resourcesync.ports import Clock, Reporter
from resourcesync.wiring import states, stores
from resourcesync.wiring.stores import Home

if TYPE_CHECKING:
    from resourcesync.wiring.tabled import TableSyncStrategy
    from resourcesync.wiring.units import SourceNetwork


def state_opener(home: Home) -> Callable[[Path], SqliteMirrorState]:
    """Return what opens a mirror's memory, whose copies may be a table, or are to be one.

    Raises:
        ConfigurationError: Workers are named, and its copies can be no table.
    """
    if home.workers is None:
        return states.open_state
    from resourcesync.wiring import tabled  # noqa: PLC0415 - seldom

    tabled.check_table(home, home.folder / OWN_FOLDER / STATE_FILE)
    return states.open_table_state


@contextmanager
def open_strategy(
    mirror: MirrorFolder,
    home: Home,
    source: str | None,
    network: "SourceNetwork",
    clock: Clock,
    report: Reporter,
) -> Iterator["TableSyncStrategy | None"]:
    """Give the ways of a Destination whose copies are a table; ``None`` for others.

    Raises:
        ConfigurationError: There is no such engine.
        StateError: A part of the table is nowhere.
        StorageError: The store fails.
    """
    state = mirror.state
    assert state is not None
    if state.note(states.TABLE_NOTE) is None and home.workers is None:
        yield None
        return
    from resourcesync.wiring import tabled, units  # noqa: PLC0415 - seldom

    known = SyncState(state).identity
    address = source or ("" if known is None else known.source)
    site = units.Site(source=address, store=stores.store_of(home.folder), network=network)
    own = home.folder / OWN_FOLDER
    with tabled.open_table_strategy(state, own, site, home.workers, clock, report) as ways:
        yield ways
