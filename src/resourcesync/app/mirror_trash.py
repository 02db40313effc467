"""The trash of a mirror: listing, restoring and emptying."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import methodcaller
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from resourcesync.app import mirror_home, mirror_stores
from resourcesync.app.mirror_home import Home
from resourcesync.app.mirror_opening import open_mirror_folder
from resourcesync.destination.sync_state import SyncState
from resourcesync.destination.trash import Trash, register_lost_trash
from resourcesync.discovery.known_addresses import MovedBases, address_fields, present_uri
from resourcesync.errors import ConfigurationError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Fixity, PendingTask, TrashRow
from resourcesync.model.globs import normal_path, parse_glob
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.own_files import IN_TRASH, one_name, open_folder, opened
from resourcesync.ports import Clock, Reporter

_TRASH: Final = "trash"

TrashFilter = Callable[[TrashRow], bool]
"""True for the selected rows of the trash."""


def trash_filter(folder: Path, glob: str = "", removed_before: int | None = None) -> TrashFilter:
    """Return the filter for rows of the trash; a URI is the present or the first one."""
    try:
        pattern = parse_glob(glob) if glob else None
    except ConfigurationError:
        if not glob.startswith(("/", "http")):  # a path need not be a valid glob
            raise
        pattern = None
    moved = mirror_home.read_state(folder, _moved)

    def fits(row: TrashRow) -> bool:
        if removed_before is not None and row.removed >= removed_before:
            return False
        present = present_uri(row.uri, moved)
        if not glob or glob in (row.uri, present, f"/{row.path}"):
            return True
        parts = urlsplit(present)
        return pattern is not None and (
            pattern.matches(normal_path(row.path), None)
            or (bool(row.uri) and pattern.matches(parts.path, parts.query or None))
        )

    return fits


def rows_of(
    folder: Path, fits: TrashFilter
) -> Iterator[tuple[TrashRow, int | None, dict[str, object]]]:
    """Yield the rows of the trash, by path, with their bytes (``None``: missing) and addresses."""
    rows, size = read_rows(folder, fits), _sizes(folder)
    moved = mirror_home.read_state(folder, _moved)
    yield from ((row, size(row.place), address_fields(row.uri, moved)) for row in rows)


def _moved(state: SqliteMirrorState) -> MovedBases:
    return SyncState(state).moved


def read_rows(folder: Path, fits: TrashFilter) -> Iterator[TrashRow]:
    """Yield the rows of the trash, by path; a trash may have millions."""
    last: TrashRow | None = None
    while found := mirror_home.read_state(folder, methodcaller("trash_by_path", last)):
        yield from filter(fits, found)
        last = found[-1]


def is_restored(folder: Path, fits: TrashFilter) -> bool:
    """True if a copy that a filter of the trash selects was restored, and no audit missed it."""
    return mirror_home.read_state(
        folder,
        lambda state: any(
            fits(TrashRow("", row.uri, row.path, 0, ""))
            and (copy := state.copy(row.uri))
            and copy.fixity == Fixity.RESTORED
            and not copy.is_damaged
            for row in state.pending(PendingTask.RETAIN)
        ),
    )


def _sizes(folder: Path) -> Callable[[str], int | None]:
    address = mirror_home.store_of(folder)
    if address:
        store = mirror_stores.open_store(address)

        def stored(place: str) -> int | None:
            found = store.stat(f"{OWN_FOLDER}/{_TRASH}/{one_name(place, IN_TRASH)}")
            return None if found is None else found.length

        return stored

    def on_disk(place: str) -> int | None:
        name = one_name(place, IN_TRASH)
        try:
            with opened(open_folder(folder / OWN_FOLDER / _TRASH)) as trash:
                return os.stat(name, dir_fd=trash, follow_symlinks=False).st_size
        except OSError:
            return None

    return on_disk


def is_blocked(folder: Path, path: str) -> bool:
    """True if a folder is at a path of a mirror, or something else where its folders are."""
    place, above = folder / path, [folder / each for each in PurePosixPath(path).parents][:-1]
    found = next(filter(os.path.lexists, (place, *above, folder)))
    is_folder = found.is_dir() and not place.is_symlink()
    return is_folder is (found == place) or any(map(os.path.islink, above))


@contextmanager
def open_trash(home: Home, *, dry_run: bool, report: Reporter, clock: Clock) -> Iterator[Trash]:
    """Open the trash, to restore what is in it or to remove it for good."""
    with (
        open_mirror_folder(home, None, clock, is_expected=False) as mirror,
        mirror_stores.copies_of(mirror, clock) as copies,
    ):
        if not dry_run:
            register_lost_trash(mirror.state, copies, clock)
        yield Trash(
            copies=copies,
            state=mirror.state,
            clock=clock,
            purge=copies.purge,
            size=_sizes(home.folder),
            is_blocked=partial(is_blocked, home.folder),
            report=report,
            dry_run=dry_run,
        )
