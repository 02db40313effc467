"""Conversion of a mirror's copy records between a table and rows of its state."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.adapters.mirror.own_folder import OWN_FOLDER, STATE_FILE, is_mirror
from resourcesync.adapters.mirror.tabled_state import TabledState
from resourcesync.app.mirrors import mirror_state, state_backup, stores, table_mirror
from resourcesync.app.mirrors.mirror_state import not_a_mirror_error
from resourcesync.app.mirrors.stores import Home
from resourcesync.app.mirrors.table_mirror import TableInStore
from resourcesync.app.mirrors.work_units import Site
from resourcesync.errors import ConfigurationError, Remedy
from resourcesync.ports import Clock
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.tables import TablePart
from resourcesync.settings.network import Network


class CopyTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table of a mirror's copies.

    Attributes:
        store: The address of the store that has its parts, below ``.resourcesync/copies/``.
        folder: The folder of its parts on this machine.
        parts: The parts, in order; none for a mirror without a table.
        copies: Number of copies of the mirror.
    """

    store: str
    folder: Path
    parts: tuple[TablePart, ...]
    copies: int


def describe_table(home: Home) -> CopyTable:
    """Return a description of the table of a mirror.

    Raises:
        ConfigurationError: There is no such mirror, or its copies are not a table.
        StateError: Its state is damaged.
    """
    if not is_mirror(home.folder):
        raise not_a_mirror_error(home.folder)
    if not mirror_state.has_copy_table(home.folder):
        raise _no_table_error(home)
    with mirror_state.open_table_state(
        home.folder / OWN_FOLDER / STATE_FILE, read_only=True
    ) as state:
        return _describe(home, state)


def make_table(home: Home, clock: Clock) -> CopyTable:
    """Make a table of the copies of a mirror whose files are in a store.

    Raises:
        ConfigurationError: There is no such mirror, or it is in a folder.
        LockedError: Another run has locked it.
        StorageError: The disk is full, or the store fails; the mirror is unchanged.
    """
    if not stores.store_of(home.folder):
        raise ConfigurationError(
            f"the copies of {home.folder} are in this folder, not in a store",
            hint="a table is for mirrors in a store, such as s3://BUCKET/PREFIX",
        )
    with _open_locked(home, clock) as (state, table, _):
        table.fold()
        return _describe(home, state)


def dissolve_table(home: Home, clock: Clock) -> CopyTable:
    """Move the rows of the copies back into the mirror's own state.

    Raises:
        ConfigurationError: There is no such mirror, or its copies are not a table.
        LockedError: Another run has locked it.
        StorageError: The disk is full, or the store fails; the mirror is unchanged.
    """
    if not mirror_state.has_copy_table(home.folder):
        raise _no_table_error(home) if is_mirror(home.folder) else not_a_mirror_error(home.folder)
    with _open_locked(home, clock) as (state, table, keep):
        site = Site(source="", store=stores.store_of(home.folder), network=Network())
        with table_mirror.open_table_strategy(
            state, home.folder / OWN_FOLDER, site, None, CancelToken(clock), _ignore_event
        ):
            pass  # the results of workers of a killed run are committed
        table.dissolve(keep)
        return _describe(home, state)


@contextmanager
def _open_locked(
    home: Home, clock: Clock
) -> Iterator[tuple[TabledState, TableInStore, Callable[[], None]]]:
    if not is_mirror(home.folder):
        raise not_a_mirror_error(home.folder)
    with MirrorFolder(home.folder, clock, mirror_state.open_table_state) as mirror:
        state = mirror.state
        assert isinstance(state, TabledState)
        with stores.copies_of(mirror, clock):
            store = stores.open_store(stores.store_of(home.folder))
            table = TableInStore(state, store, home.folder / OWN_FOLDER)
            yield state, table, partial(state_backup.back_up, store, mirror, clock)


def _describe(home: Home, state: TabledState) -> CopyTable:
    own = home.folder / OWN_FOLDER
    store = stores.store_of(home.folder)
    folder = mirror_state.parts_folder(own)
    return CopyTable(store=store, folder=folder, parts=tuple(state.parts), copies=state.count())


def _ignore_event(event: str, fields: Mapping[str, object]) -> None:
    del event, fields


def _no_table_error(home: Home) -> ConfigurationError:
    return ConfigurationError(
        f"the copies of {home.store or home.folder} are not a table",
        hint="make one",
        remedy=Remedy("make-table", target=str(home.store or home.folder)),
    )
