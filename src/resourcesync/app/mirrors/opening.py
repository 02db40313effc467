"""Mirrors: a folder or a store, and settings, become a mirror that can be pulled.

A folder that does not become a mirror is left as it was.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs

from resourcesync.adapters.mirror import mirror_folder
from resourcesync.adapters.mirror.change_log import ConsumerFiles
from resourcesync.adapters.mirror.copies import OWN_FOLDER, FileTreeCopies
from resourcesync.adapters.mirror.mirror_folder import (
    STATE_FILE,
    MirrorFolder,
    probe_file_system,
    read_sets,
)
from resourcesync.adapters.mirror.state import TABLES_NOTE, SqliteMirrorState
from resourcesync.app import plugins, transports
from resourcesync.app.mirrors import mirror_state, stores
from resourcesync.app.mirrors.stores import Home
from resourcesync.app.options import fetch_settings
from resourcesync.app.transports import StoredRobotsRules
from resourcesync.destination.destination import Destination
from resourcesync.destination.options import Dependencies, FindingWriter
from resourcesync.destination.reports import MirrorStatus
from resourcesync.destination.status import status_of
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import (
    ConfigurationError,
    Remedy,
    ResourceSyncError,
    StateError,
    StorageError,
)
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock, Reporter
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.mirror import MirrorStateStore
from resourcesync.settings.network import Network
from resourcesync.settings.publication import NOTE, decode_settings

if TYPE_CHECKING:
    from resourcesync.adapters.mirror.audit_files import AuditFiles
    from resourcesync.app.mirrors.table_mirror import TableSyncStrategy
    from resourcesync.destination.audits.reports import AuditFinding
    from resourcesync.destination.changelog import ChangeLogReader, Consumers


def state_opener(home: Home) -> Callable[[Path], SqliteMirrorState]:
    """Return the opener of a mirror's state, whose copies may be a table, or are to be one.

    Raises:
        ConfigurationError: Workers are named, and its copies cannot be a table.
    """
    if home.workers is None:
        return mirror_state.open_state
    from resourcesync.app.mirrors import table_mirror  # noqa: PLC0415 - rarely

    table_mirror.check_table(home, home.folder / OWN_FOLDER / STATE_FILE)
    return mirror_state.open_table_state


@contextmanager
def open_strategy(
    mirror: MirrorFolder,
    home: Home,
    source: str,
    network: Network,
    cancel: CancelToken,
    report: Reporter,
) -> Iterator["TableSyncStrategy | None"]:
    """Yield the strategy for a Destination whose copies are a table; ``None`` for others.

    Raises:
        ConfigurationError: There is no such engine.
        StateError: A part of the table is missing.
        StorageError: The store fails.
    """
    state = mirror.state
    assert state is not None
    if state.note(TABLES_NOTE) is None and home.workers is None:
        yield None
        return
    from resourcesync.app.mirrors import table_mirror, work_units  # noqa: PLC0415 - rarely

    site = work_units.Site(source=source, store=stores.store_of(home.folder), network=network)
    own = home.folder / OWN_FOLDER
    with table_mirror.open_table_strategy(
        state, own, site, home.workers, cancel, report
    ) as strategy:
        yield strategy


_CATALOGUE = "catalogue.db"


@contextmanager
def open_mirror_folder(
    place: Path | Home, source: str | None, clock: Clock, *, is_expected: bool, report: Reporter
) -> Iterator[MirrorFolder]:
    """Open a mirror's folder, and lock it.

    Args:
        place: The folder, or the mirror in a store.
        source: The address of the Source, where it was given.
        clock: Time.
        is_expected: True if a first pull that failed is recorded there.
        report: Receives events.

    Raises:
        ConfigurationError: It is no mirror, and no Source is named; or it is published at the
            address of the Source.
    """
    home = place if isinstance(place, Home) else Home(place)
    folder, open_state = home.folder, state_opener(home)
    was_folder, was_mirror = folder.is_dir(), is_mirror(folder)
    if not was_mirror:
        if source is None:
            raise not_a_mirror_error(folder)
        _check_no_loop(folder, source)
    had_own = (folder / OWN_FOLDER).is_dir()
    if isinstance(place, Home):
        stores.bind(place)
        try:
            is_restored = bool(place.store) and stores.restore(place)
        except BaseException:
            _remove_created(folder, had_own=had_own, keep=was_folder)
            raise
        if is_restored:
            message = f"the mirror's state was restored from its copy in {place.store}"
            report("warning", {"code": "memory-restored", "message": message})
    with MirrorFolder(folder, clock, open_state) as mirror:
        state = mirror.state
        assert state is not None
        try:
            yield mirror
        finally:
            is_told = is_expected and state.last_run() is not None
            if not was_mirror and SyncState(state).identity is None and not is_told:
                _remove_created(folder, had_own=had_own, keep=was_folder)


def open_state_and_copies(mirror: MirrorFolder) -> tuple[SqliteMirrorState, FileTreeCopies]:
    """Return the state and the files of a mirror that is open."""
    assert mirror.state is not None
    assert mirror.copies is not None
    return mirror.state, mirror.copies


def _remove_created(folder: Path, *, had_own: bool, keep: bool) -> None:
    """Remove what opening a mirror made, when no mirror came of it, and nothing else.

    A folder ``.resourcesync`` that existed before may contain a catalogue, a trash or a quarantine.
    """
    if had_own:
        for suffix in ("", "-wal", "-shm"):
            (folder / OWN_FOLDER / f"{STATE_FILE}{suffix}").unlink(missing_ok=True)
    else:
        import shutil  # noqa: PLC0415 - rarely

        shutil.rmtree(folder / OWN_FOLDER, ignore_errors=True)
    if not keep:
        with suppress(OSError):
            folder.rmdir()


def _check_no_loop(folder: Path, source: str) -> None:
    """Refuse to make a mirror of a Source in the very folder that the Source publishes.

    Its copies would be published next time, and then pulled again.

    Raises:
        ConfigurationError: The folder is published at the address of the Source.
    """
    if not (folder / OWN_FOLDER / _CATALOGUE).is_file():
        return
    from resourcesync.adapters.catalogue import read_note  # noqa: PLC0415 - rarely

    url = ""
    with suppress(StateError, StorageError):  # a damaged catalogue has no address
        url = decode_settings(read_note(folder / OWN_FOLDER / _CATALOGUE, NOTE)).url
    if url and f"{source.rstrip('/')}/".startswith(url):
        raise ConfigurationError(
            f"{folder} is published at {url}: it is the Source, and cannot be its mirror",
            hint="name another folder",
            remedy=Remedy("pull-from", value=source),
        )


_DEFAULT_NETWORK: Final = Network()
_SHOWN_SETS: Final = 20
_HOST: Final = re.compile(
    r"(?:(?P<near>localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3})"
    r"|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,63})(?P<port>:[0-9]{1,5})?(?:/|\Z)"
)
"""An address without its scheme begins like this."""


def is_mirror(folder: Path) -> bool:
    """True if a folder is a mirror: its Source's address is recorded."""
    return mirror_folder.is_mirror(folder)


def is_folder_of_sets(folder: Path) -> bool:
    """True if a folder has a mirror for each set of a Source, even if its state is damaged.

    Raises:
        StorageError: It cannot be read.
    """
    try:
        return read_sets(folder) is not None
    except StateError:
        return True


def knows_source(folder: Path) -> bool:
    """True if a folder is a mirror with a known Source: its first pull found one.

    Raises:
        StateError: The state is damaged or from a newer version.
    """
    if not is_mirror(folder):
        return False
    with mirror_state.open_state(
        folder / OWN_FOLDER / mirror_folder.STATE_FILE, read_only=True
    ) as state:
        return SyncState(state).identity is not None


@contextmanager
def open_destination(
    place: Path | Home,
    *,
    source: str | None = None,
    network: Network = _DEFAULT_NETWORK,
    report: Reporter,
    cancel: CancelToken,
    is_expected: bool = False,
) -> Iterator[Destination]:
    """Open a mirror for a pull or an audit; no other run may pull it meanwhile.

    A folder that was not a mirror and did not become one is left as it was.

    Args:
        place: The mirror's folder, made when it does not exist; or the mirror in a store.
        source: Address of the Source, for a mirror without a recorded one.
        network: Settings for requests to the Source.
        report: Receives events.
        cancel: The request to stop, and the clock.
        is_expected: True if a mirror is configured here, so that one whose first pull failed
            stays, with the failure in its state.

    Raises:
        LockedError: Another run has locked the mirror.
        MirrorChangedError: The folder is not the one that its state names.
        StateError: The state is damaged or from a newer version.
        StorageError: The folder cannot be used.
        ConfigurationError: A setting cannot work.
    """
    home = place if isinstance(place, Home) else Home(place)
    clock = cancel.clock
    with open_mirror_folder(place, source, clock, is_expected=is_expected, report=report) as mirror:
        state, local = open_state_and_copies(mirror)
        network = _with_stored_origins(network, SyncState(state))
        address, rules = source or _followed(SyncState(state)), StoredRobotsRules(state, clock)
        settings = partial(fetch_settings, network)
        with (
            stores.copies_of(mirror, clock) as copies,
            transports.open_fetcher(address, settings, cancel, rules, report) as (fetcher, traffic),
            open_strategy(mirror, home, address, network, cancel, report) as strategy,
        ):
            yield Destination(
                Dependencies(
                    source=source,
                    fetcher=fetcher,
                    copies=copies,
                    clock=clock,
                    cancel=cancel,
                    report=report,
                    purge=copies.purge,
                    traffic=traffic if strategy is None else strategy.with_workers(traffic),
                    **_local_dependencies(home.folder, mirror, local, in_folder=copies is local),
                    patches=plugins.patch_formats(),
                    mappers=plugins.mapper,
                    is_expected=is_expected,
                    strategy=strategy,
                )
            )


def _local_dependencies(
    folder: Path, mirror: MirrorFolder, local: FileTreeCopies, *, in_folder: bool
) -> dict[str, Any]:
    """Return a Destination's dependencies on this machine's disk, wherever the copies are."""
    assert mirror.state is not None
    return {
        "folder": str(folder),
        "state": mirror.state,
        "is_case_sensitive": not in_folder or _is_distinct(folder, mirror.state),
        "scratch": local.scratch,
        "check_folder": mirror.check_marker,
        "drop_parts": partial(local.clear_temporary, inf),
        "room": partial(_free_bytes, folder if in_folder else None),
        "findings": partial(_open_findings, folder),
    }


def _is_distinct(folder: Path, state: MirrorStateStore) -> bool:
    """True if all names are distinct in a file system; a mirror with chosen names knows them."""
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
    """Allow the origins that were allowed last, where none is given now, as for filters."""
    known = memory.filters
    if network.allow_origins or known is None:
        return network
    return structs.replace(network, allow_origins=known.allow_origins)


def _followed(memory: SyncState) -> str:
    known = memory.identity
    return "" if known is None else known.source


def read_status(folder: Path) -> MirrorStatus:
    """Return a mirror's status from its own state, without a request or a lock.

    Raises:
        ConfigurationError: The folder is not a mirror.
        StateError: The state is damaged or from a newer version.
    """
    if not is_mirror(folder):
        raise not_a_mirror_error(folder)
    with mirror_state.open_state(
        folder / OWN_FOLDER / mirror_folder.STATE_FILE, read_only=True
    ) as state:
        return status_of(str(folder), state, running=_is_locked(folder))


class OpenChanges(NamedTuple):
    """A mirror's change log, open for reading, and the positions of its readers."""

    folder: Path
    state: MirrorStateStore
    consumers: "Consumers"

    def reader(
        self,
        consumer: str | None,
        since: int | datetime | None = None,
        *,
        touched: bool = False,
        restart: bool = False,
    ) -> "ChangeLogReader":
        """Return a reader of the changes.

        Args:
            consumer: The program whose cursor to start from; ``None`` has none.
            since: Without a consumer: a change's number, or a moment; ``None`` is the oldest.
            touched: True if fetches that returned the same bytes are yielded too.
            restart: True if the consumer starts over with everything in the mirror.
        """
        from resourcesync.destination import changelog  # noqa: PLC0415 - no pull reads changes

        cursor: int | None
        if consumer is not None:
            cursor = None if restart else self.consumers.cursor(consumer)
        elif since is None:
            cursor = changelog.oldest_cursor(self.state)
        elif isinstance(since, datetime):
            cursor = changelog.cursor_at(self.state, to_microseconds(since))
        else:
            cursor = since
        remedy = Remedy("read-all-changes", target=str(self.folder))
        if consumer is not None:
            remedy = Remedy("restart-consumer", target=str(self.folder), value=consumer)
        return changelog.ChangeLogReader(
            state=self.state, cursor=cursor, include_touched=touched, remedy=remedy
        )


@contextmanager
def open_changes(folder: Path) -> Iterator[OpenChanges]:
    """Open a mirror's change log without locking the mirror: a pull may go on meanwhile.

    Raises:
        ConfigurationError: The folder is not a mirror.
        StateError: The state is damaged or from a newer version.
    """
    if not is_mirror(folder):
        raise not_a_mirror_error(folder)
    own = folder / OWN_FOLDER
    with mirror_state.open_state(own / mirror_folder.STATE_FILE, read_only=True) as state:
        yield OpenChanges(folder=folder, state=state, consumers=ConsumerFiles(own))


@contextmanager
def _open_findings(folder: Path) -> Iterator[FindingWriter]:
    with audit_files(folder).write_findings() as writer:
        yield writer


def audit_files(folder: Path) -> "AuditFiles":
    """Return the store of the findings of a mirror's audits."""
    from resourcesync.adapters.mirror.audit_files import AuditFiles  # noqa: PLC0415 - no pull has

    return AuditFiles(folder / OWN_FOLDER)


def findings_of(folder: Path, audit: str) -> "list[AuditFinding]":
    """Return the findings of an audit of a mirror; ``last`` is the newest one.

    Raises:
        ConfigurationError: There is no such audit.
        StateError: The file of its findings was damaged.
        StorageError: It cannot be read.
    """
    from resourcesync.destination.audits.reports import AuditFinding, FindingKind  # noqa: PLC0415 - no pull has

    return [
        AuditFinding(
            kind=FindingKind(row["kind"]), uri=row["uri"], path=row["path"], reason=row["reason"]
        )
        for row in audit_files(folder).read_findings(audit)
    ]


def last_findings(folder: Path) -> "list[AuditFinding]":
    """Return the findings of the last audit with any; nothing when there was none.

    Raises:
        StateError: The file of its findings was damaged.
        StorageError: It cannot be read.
    """
    try:
        return findings_of(folder, "last")
    except ConfigurationError:
        return []


def not_a_mirror_error(folder: Path) -> ResourceSyncError:
    """Return the error for a folder that is not a mirror; it lists the mirrors of sets."""
    tried = (("tried", f"{folder / OWN_FOLDER / mirror_folder.STATE_FILE}: not found"),)
    try:
        sets = read_sets(folder)
    except StorageError as error:
        return error
    if sets is not None and sets.sets:
        names = tuple(
            ("mirror", str(folder / followed_set.folder))
            for followed_set in sets.sets[:_SHOWN_SETS]
        )
        return ConfigurationError(
            f"{folder} has a mirror for each set of {sets.source}",
            evidence=names,
            hint="name one of them",
        )
    hint, remedy = _advice_for(folder)
    return ConfigurationError(f"{folder} is not a mirror", evidence=tried, hint=hint, remedy=remedy)


def _advice_for(folder: Path) -> tuple[str, Remedy]:
    """Return the advice for a folder that is not a mirror, or an address without ``https://``."""
    host = _HOST.match(str(folder))
    if host is None or folder.exists():
        return "make it one", Remedy("pull-from", target=str(folder))
    scheme = "http" if host["port"] or host["near"] else "https"
    address = f"{scheme}://{folder}"
    return f"did you mean {address}?", Remedy("pull-address", value=address)


def _is_locked(folder: Path) -> bool:
    try:
        lock = os.open(folder / OWN_FOLDER / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
