"""Mirrors: a folder or a store, and settings, become a mirror that can be pulled.

A folder that does not become a mirror is left as it was.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import structs

from resourcesync import app
from resourcesync.adapters.http import CurlFetcher
from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from resourcesync.adapters.mirror.locked_folder import MirrorFolder, probe_file_system
from resourcesync.adapters.mirror.own_folder import STATE_FILE
from resourcesync.app import mirror_home
from resourcesync.app.fetchers import StoredOrigins, open_fetcher
from resourcesync.app.mirror_home import Home
from resourcesync.destination.destination import Destination
from resourcesync.destination.options import Dependencies
from resourcesync.destination.reports import FailedRun
from resourcesync.destination.runs import record_failed_run
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import ConfigurationError, LockedError, ResourceSyncError, quoted
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.own_files import remove_file
from resourcesync.ports import CancelToken, Clock, Reporter
from resourcesync.settings.mirror import Network

if TYPE_CHECKING:
    from resourcesync.adapters.store_copies import StoredCopies
    from resourcesync.app.mirror_workers import CountingFetcher


def _open_workers(
    home: Home, source: str, network: Network, cancel: CancelToken, report: Reporter
) -> AbstractContextManager["CountingFetcher | None"]:
    if home.workers is None:
        return nullcontext()
    from resourcesync.app import mirror_workers  # noqa: PLC0415 - rarely

    site = mirror_workers.Site(
        source=source,
        folder=str(home.folder.absolute()),
        store=mirror_home.store_of(home.folder),
        network=network,
    )
    return mirror_workers.open_workers(site, home.workers, cancel, report)


def _traffic(http: CurlFetcher, workers: "CountingFetcher | None") -> Callable[[], tuple[int, int]]:
    def traffic() -> tuple[int, int]:
        requests, received = (0, 0) if workers is None else workers.traffic()
        return http.stats.requests + requests, http.stats.received + received

    return traffic


_CATALOGUE = "catalogue.db"


@contextmanager
def open_mirror_folder(
    home: Home, source: str | None, clock: Clock, *, is_expected: bool
) -> Iterator[MirrorFolder]:
    """Open a mirror's folder, and lock it."""
    folder = home.folder
    if home.workers is not None and (store := home.store or mirror_home.store_of(folder)):
        app.mirror_stores.open_staging_store(store)
    was_folder, was_mirror = folder.is_dir(), mirror_home.is_mirror(folder)
    if not was_mirror:
        if source is None:
            raise mirror_home.not_a_mirror_error(folder)
        _check_no_loop(folder, source)
    _check_not_nested(folder, is_new=not was_mirror)
    had_own = (folder / OWN_FOLDER).is_dir()
    if home.store:
        app.mirror_stores.bind(home)
    with MirrorFolder(folder, clock) as mirror:
        try:
            yield mirror
        finally:
            is_told = is_expected and mirror.state.last_run() is not None
            if not was_mirror and SyncState(mirror.state).identity is None and not is_told:
                _remove_created(folder, had_own=had_own, keep=was_folder)


def _remove_created(folder: Path, *, had_own: bool, keep: bool) -> None:
    """Remove what opening a mirror made, when none came of it; what was there before stays."""
    if had_own:
        for suffix in ("", "-wal", "-shm"):
            remove_file(folder / OWN_FOLDER / f"{STATE_FILE}{suffix}")
    else:
        import shutil  # noqa: PLC0415 - rarely

        shutil.rmtree(folder / OWN_FOLDER, ignore_errors=True)
    if not keep:
        with suppress(OSError):
            folder.rmdir()


def _check_no_loop(folder: Path, source: str) -> None:
    """Refuse a mirror in the folder that its Source publishes: copies would be published, too."""
    if not (folder / OWN_FOLDER / _CATALOGUE).is_file():
        return
    from resourcesync.catalogue.reader import read_note  # noqa: PLC0415 - rarely
    from resourcesync.source.publication_settings import NOTE, decode_settings  # noqa: PLC0415 - rarely

    url = decode_settings(read_note(folder / OWN_FOLDER / _CATALOGUE, NOTE)).url
    if url and f"{source.rstrip('/')}/".startswith(url):
        raise ConfigurationError(
            f"{folder} is published at {url}: it is the Source, and cannot be its mirror",
            hint=f"name another folder: resourcesync pull {quoted(source, 'https://HOST/')} DIR",
        )


def _check_not_nested(folder: Path, *, is_new: bool) -> None:
    place = folder.resolve()
    above = next(filter(mirror_home.is_mirror, place.parents), None)
    if above is not None:
        raise ConfigurationError(
            f"{folder} is in another mirror, {above}",
            evidence=(("kept", "nothing was changed"),),
            hint="use a folder outside it; a mirror that is there already can be moved out",
            code="nested-mirror",
        )
    below = _mirror_below(place) if is_new else None
    if below is not None:
        raise ConfigurationError(
            f"there is a mirror in {folder} already: {below}",
            evidence=(("kept", "nothing was changed"),),
            hint="use a folder beside it, or move that mirror out",
            code="nested-mirror",
        )


_MAX_LOOKED_AT: Final = 100_000
"""Entries looked at for another mirror, the nearest first: 0.1 s of files, 3 s of folders."""


def _mirror_below(folder: Path) -> Path | None:
    waiting, rest = deque([folder]), _MAX_LOOKED_AT
    while waiting and rest:
        with suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in islice(entries, rest):
                rest -= 1
                if not entry.is_dir(follow_symlinks=False):
                    continue
                if mirror_home.is_mirror(below := Path(entry.path)):
                    return below
                waiting.append(below)
    return None


_DEFAULT_NETWORK: Final = Network()


FailedPulls = Literal["ignored", "of mirrors", "also first"]
"""Which pulls are recorded that fail before they begin.

A first pull of a mirror that is configured is recorded too: the mirror stays, with the failure in
its state.
"""


@contextmanager
def _open_copies(
    mirror: MirrorFolder, clock: Clock, recorded: FailedPulls
) -> "Iterator[FileTreeCopies | StoredCopies]":
    copies: FileTreeCopies | StoredCopies = mirror.copies
    with ExitStack() as stack:
        try:
            if mirror_home.store_of(mirror.root):
                copies = stack.enter_context(app.mirror_stores.copies_of(mirror, clock))
        except (ConfigurationError, LockedError):
            raise  # neither says anything of the mirror
        except ResourceSyncError as error:
            is_mirror = SyncState(mirror.state).identity is not None
            if recorded == "also first" or (is_mirror and recorded == "of mirrors"):
                record_failed_run(FailedRun.of(error), mirror.state, clock)
            raise
        yield copies


@contextmanager
def open_destination(
    home: Home,
    *,
    source: str | None = None,
    network: Network = _DEFAULT_NETWORK,
    report: Reporter,
    cancel: CancelToken,
    recorded: FailedPulls = "ignored",
) -> Iterator[Destination]:
    """Open a mirror for a pull or an audit; no other run may pull it meanwhile.

    A folder that was not a mirror and did not become one is left as it was.
    """
    clock, is_expected = cancel.clock, recorded == "also first"
    with open_mirror_folder(home, source, clock, is_expected=is_expected) as mirror:
        memory, rules = SyncState(mirror.state), StoredOrigins(mirror.state, clock)
        network = _with_stored_origins(network, memory)
        known = memory.identity
        address = source or ("" if known is None else known.source)
        with (
            _open_copies(mirror, clock, recorded) as copies,
            open_fetcher(address, network, cancel, rules, report) as http,
            _open_workers(home, address, network, cancel, report) as workers,
        ):
            yield Destination(
                Dependencies(
                    source=source,
                    fetcher=http,
                    copies=copies,
                    clock=clock,
                    cancel=cancel,
                    report=report,
                    purge=copies.purge,
                    traffic=_traffic(http, workers),
                    certificate_until=lambda: http.stats.certificate_until,
                    **_local_dependencies(home.folder, mirror, in_folder=copies is mirror.copies),
                    is_expected=is_expected,
                    workers=workers,
                )
            )


def _local_dependencies(folder: Path, mirror: MirrorFolder, *, in_folder: bool) -> dict[str, Any]:
    local = mirror.copies
    return {
        "folder": str(folder),
        "state": mirror.state,
        "is_case_sensitive": not in_folder or _is_distinct(folder, mirror.state),
        "scratch": local.scratch,
        "check_folder": mirror.check_marker,
        "drop_parts": partial(local.clear_temporary, inf),
        "room": partial(_free_bytes, folder if in_folder else None),
        "findings": lambda: mirror_home.audit_files(folder).write_findings(),
        "stored_parts": partial(mirror_home.part_files, folder, local.scratch),
        "patches": lambda: app.plugins.patch_formats(),  # noqa: PLW0108 - loaded for the first patch
    }


def _is_distinct(folder: Path, state: SqliteMirrorState) -> bool:
    if SyncState(state).identity is not None:
        return True
    found = probe_file_system(folder / OWN_FOLDER / "tmp")
    return found.distinguishes_case is not False and found.preserves_unicode_forms is not False


def _free_bytes(folder: Path | None) -> int | None:
    if folder is None:
        return None
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _with_stored_origins(network: Network, memory: SyncState) -> Network:
    known = memory.filters
    if network.allow_origins or known is None:
        return network
    return structs.replace(network, allow_origins=known.allow_origins)
