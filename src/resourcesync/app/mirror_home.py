"""A mirror's home and state, read without a lock.

State, lock and partial downloads are always in a folder of this machine, the home. If the copies
are in a store, the home has none, and a file that names the store.
"""

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from resourcesync import app, errors, own_files
from resourcesync.adapters.mirror import own_folder
from resourcesync.adapters.mirror.own_folder import STATE_FILE, FollowedSets, StateVersion
from resourcesync.destination.reports import LastingFailure, MirrorState, MirrorStatus
from resourcesync.destination.sync_state import MirrorIdentity, SyncState, status_of
from resourcesync.discovery.known_addresses import present_uri
from resourcesync.discovery.uris import with_likely_scheme
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import ChangeLogPosition
from resourcesync.model.own_names import OWN_FOLDER

if TYPE_CHECKING:
    from resourcesync.adapters.mirror.audit_findings import AuditFiles
    from resourcesync.adapters.mirror.consumer_positions import ConsumerFiles
    from resourcesync.adapters.mirror.stored_parts import PartFiles
    from resourcesync.app.mirror_workers import Workers
    from resourcesync.destination.audits.reports import AuditFinding
    from resourcesync.destination.change_log_reader import ChangeLogReader

_SHOWN_SETS: Final = 20
_PAUSED_FILE: Final = "paused"
STORE_FILE: Final = "store"
"""File of a home that names the store of the copies."""
STORE_ADDRESS: Final = re.compile(r"([a-z][a-z0-9+.-]+):[!-~]+")
LONGEST_ADDRESS: Final = 4_096
T = TypeVar("T")


is_mirror = own_folder.is_mirror


class Home(NamedTuple):
    """The place of a mirror: its folder on this machine, and the workers that fetch, if any."""

    folder: Path
    store: str = ""
    """The address of the store of its copies; empty for what the folder says."""
    workers: "Workers | None" = None


def is_store_address(text: str) -> bool:
    """True if a destination is the address of a store, not a folder."""
    match = STORE_ADDRESS.fullmatch(text)
    return match is not None and ("://" in text or app.plugins.has(app.plugins.STORES, match[1]))


def is_known(address: str) -> bool:
    """True if an address is that of a store."""
    match = STORE_ADDRESS.fullmatch(address)
    return match is not None and app.plugins.has(app.plugins.STORES, match[1])


def store_of(folder: Path) -> str:
    """Return the address of the store that has the copies of a mirror; empty for the folder."""
    file = folder / OWN_FOLDER / STORE_FILE
    try:
        return own_files.read_file(file, LONGEST_ADDRESS).decode("ascii").strip()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""
    except OSError as error:
        raise own_folder.mirror_error(error, f"reading {file}") from error
    except UnicodeDecodeError as error:
        raise errors.ConfigurationError(f"cannot read {file}: {error}") from error


def is_paused(folder: Path) -> bool | None:
    """True if an operator of a service paused a mirror, or its sets; ``None``: it is not there."""
    own = folder / OWN_FOLDER
    return os.path.lexists(own / _PAUSED_FILE) if os.path.lexists(own) else None


def pause(folder: Path, *, is_paused: bool) -> None:
    """Note in the mirror's own folder that services do not pull and audit it, or remove that."""
    path = folder / OWN_FOLDER / _PAUSED_FILE
    try:
        if is_paused:
            own_files.replace_file(path, b"", folder_mode=0o777)
        else:
            own_files.remove_file(path)
    except OSError as error:
        raise own_folder.mirror_error(error, f"writing {path}") from error


def check_mirror(folder: Path) -> None:
    """Refuse a folder that is not a mirror."""
    if not is_mirror(folder):
        raise not_a_mirror_error(folder)


def open_state(folder: Path, *, immutable: bool = False) -> SqliteMirrorState:
    """Open a mirror's state to read it, without a lock; ``immutable`` if nobody writes it."""
    check_mirror(folder)
    return SqliteMirrorState(folder / OWN_FOLDER / STATE_FILE, read_only=True, immutable=immutable)


def is_folder_of_sets(folder: Path) -> bool:
    """True if a folder has a mirror for each set of a Source, even if its state is damaged."""
    try:
        return own_folder.read_sets(folder) is not None
    except errors.StateError:
        return True


def is_present(folder: Path) -> bool:
    """True if a folder is a mirror, or has a mirror for each set of a Source."""
    return is_mirror(folder) or is_folder_of_sets(folder)


def identity_of(folder: Path) -> MirrorIdentity | None:
    """Return the identity of the mirror in a folder; ``None`` before its first pull."""
    if not is_mirror(folder):
        return None
    return read_state(folder, lambda state: SyncState(state).identity)


def source_of(folder: Path) -> str:
    """Return the address that the mirror in a folder follows; empty before its first pull."""
    identity = identity_of(folder)
    return "" if identity is None else identity.source


def read_status(folder: Path, new: MirrorStatus | None = None) -> MirrorStatus:
    """Return a mirror's status from its own state, without a request or a lock.

    If its disk is mounted read-only, no pull can record that it failed: the status says it.
    ``new`` is the status of a folder that is not a mirror yet.
    """
    if new is not None and not is_mirror(folder):
        return new
    found = read_state(folder, partial(_status_of, folder))
    failed = read_only_failure(folder / OWN_FOLDER)
    return found if failed is None else replace(found, state=MirrorState.FAILING, failed_run=failed)


def _status_of(folder: Path, state: SqliteMirrorState) -> MirrorStatus:
    found = status_of(str(folder), state, running=is_locked(folder))
    if SyncState(state).audited_at is None:
        return found
    from resourcesync.destination.audits.reports import recorded_audits  # noqa: PLC0415 - if any

    with suppress(errors.StateError):  # the next audit replaces such records
        for last in [of.report for of in recorded_audits(state) if of.method != "origin"][-1:]:
            damaged = last.doubted + last.damaged
            found = replace(found, audit_accuracy_ratio=last.accuracy, audit_damaged=damaged)
    return found


def read_only_failure(folder: Path) -> LastingFailure | None:
    """Return the failure of each run that must write to a folder, if it is mounted read-only."""
    if not own_files.is_read_only(folder):
        return None
    fault = OSError(errno.EROFS, os.strerror(errno.EROFS))
    return LastingFailure.of(own_folder.mirror_error(fault, f"writing {folder}"))


def read_state(
    folder: Path,
    read: Callable[[SqliteMirrorState], T],
    version_of: Callable[[Path], StateVersion | None] = own_folder.state_version,
) -> T:
    """Return what a function reads of a mirror's state: on a full disk, too, if nobody writes."""
    check_mirror(folder)
    version = version_of(folder)
    if version is not None and not version.log[1]:  # the log is empty: the file is the state
        with suppress(errors.ResourceSyncError):  # the state as it is now says why
            with open_state(folder, immutable=True) as state:
                found = read(state)
            if version_of(folder) == version:
                return found
    try:
        with open_state(folder) as state:
            return read(state)
    except errors.DiskFullError:  # each write begins in the log, which cannot grow
        if version_of is own_folder.latest_version:
            raise
        return read_state(folder, read, own_folder.latest_version)


class OpenChanges(NamedTuple):
    """A mirror's change log, open for reading, and the positions of its readers."""

    folder: Path
    state: SqliteMirrorState
    consumers: "ConsumerFiles"

    def present_uris(self) -> Callable[[str], str]:
        """Return the function from a URI in the mirror to its present address at the Source."""
        return partial(present_uri, moved=SyncState(self.state).moved)

    def reader(
        self,
        consumer: str | None,
        since: ChangeLogPosition | datetime | None = None,
        *,
        touched: bool = False,
        restart: bool = False,
    ) -> "ChangeLogReader":
        """Return a reader of the changes."""
        from resourcesync.destination import change_log_reader  # noqa: PLC0415 - no pull reads changes

        position: ChangeLogPosition | None = None
        if isinstance(since, ChangeLogPosition):
            position = since
        elif consumer is not None and not restart:
            position = self.consumers.position(consumer)
        elif since is None and not restart:
            position = ChangeLogPosition(self.state.change_bounds()[0])  # before the oldest one
        again = "--since start"
        if consumer is not None:
            again = f"--consumer {errors.quoted(consumer, 'NAME')} --restart"
        reader = change_log_reader.ChangeLogReader(
            state=self.state,
            position=position,
            include_touched=touched,
            restart=f"resourcesync changes {errors.quoted(self.folder, 'MIRROR')} {again}",
        )
        if isinstance(since, datetime):
            reader.start_at(since)
        return reader


@contextmanager
def open_changes(folder: Path) -> Iterator[OpenChanges]:
    """Open a mirror's change log without locking the mirror: a pull may go on meanwhile."""
    from resourcesync.adapters.mirror.consumer_positions import ConsumerFiles  # noqa: PLC0415 - no pull has

    with open_state(folder) as state:
        yield OpenChanges(folder, state, ConsumerFiles(folder / OWN_FOLDER))


def audit_files(folder: Path) -> "AuditFiles":
    """Return the store of the findings of a mirror's audits."""
    from resourcesync.adapters.mirror.audit_findings import AuditFiles  # noqa: PLC0415 - no pull has

    return AuditFiles(folder / OWN_FOLDER)


def part_files(folder: Path, scratch: "Callable[[], BinaryIO]") -> "PartFiles":
    """Return the store of the parts of the Resource List that a mirror read last."""
    from resourcesync.adapters.mirror.stored_parts import PartFiles  # noqa: PLC0415 - most have one

    return PartFiles(folder / OWN_FOLDER, scratch)


def findings_of(folder: Path, audit: str) -> "list[AuditFinding]":
    """Return the findings of an audit of a mirror; ``last`` is the newest one."""
    from resourcesync.destination.audits.reports import AuditFinding, FindingKind  # noqa: PLC0415 - no pull has

    return [
        AuditFinding(
            kind=FindingKind(row["kind"]), uri=row["uri"], path=row["path"], reason=row["reason"]
        )
        for row in audit_files(folder).read_findings(audit)
    ]


def last_findings(folder: Path) -> "list[AuditFinding]":
    """Return the findings of the last audit; nothing when there was none."""
    try:
        return findings_of(folder, "last")
    except errors.ConfigurationError:
        return []


def trace_of_source(folder: Path) -> Path | None:
    """Return the catalogue of a Source in a folder, or else a document; ``None``: neither."""
    from resourcesync.source.naming import CAPABILITY_LIST  # noqa: PLC0415 - not for mirrors
    from resourcesync.source.publication_settings import CATALOGUE  # noqa: PLC0415 - not for mirrors

    found = (folder / name for name in (CATALOGUE, CAPABILITY_LIST))
    return next(filter(os.path.lexists, found), None)


def lost_mirror_error(
    source: str, place: Path, chosen: str, moved: str = ""
) -> errors.StorageError:
    """Return the error for a folder that was pulled, and is no mirror now: is its disk away?"""
    return errors.StorageError(
        f"{place} was a mirror, and is none now",
        evidence=(("kept", "nothing was fetched"),),
        hint=f"mount its disk; {moved}to begin anew: resourcesync pull "
        f"{errors.quoted(source, 'URL')} {errors.quoted(place, 'DIR')}{chosen}",
    )


def is_set_present(folder: Path) -> bool:
    """True if the folder of a set is a mirror; refuse one that was pulled and is none."""
    place = folder.absolute()
    known = None if is_mirror(folder) else own_folder.read_sets(place.parent)
    for each in known.sets if known else ():
        if known and each.pulled and each.folder == place.name:
            chosen = f" --set {errors.quoted(each.uri, 'URI')}"
            raise lost_mirror_error(known.source, place, chosen)
    return is_mirror(folder)


def not_a_mirror_error(folder: Path) -> errors.ResourceSyncError:
    """Return the error for a folder that is not a mirror; it lists the mirrors of sets."""
    tried = (("tried", f"{folder / OWN_FOLDER / STATE_FILE}: not found"),)
    message, code = f"{folder} is not a mirror", "not-a-mirror"
    if found := trace_of_source(folder):
        return errors.ConfigurationError(
            f"{folder} is a published folder, not a mirror",
            evidence=(("tried", f"{found}: it is there"),),
            hint=f"check what it publishes: resourcesync validate {errors.quoted(folder, 'URL')}",
            code=code,
        )
    try:
        sets = own_folder.read_sets(folder)
        is_set_present(folder)
    except errors.StorageError as error:
        return error
    if sets is not None and sets.sets:
        names = tuple(
            ("mirror", str(folder / followed_set.folder))
            for followed_set in sets.sets[:_SHOWN_SETS]
        )
        return errors.ConfigurationError(
            f"{folder} has a mirror for each set of {sets.source}",
            evidence=names,
            hint="name one of them",
        )
    hint = _advice_for(folder)
    if not os.path.lexists(folder):
        tried = (("tried", f"{folder}: there is no such folder"),)
    return errors.ConfigurationError(message, evidence=tried, hint=hint, code=code)


def _advice_for(folder: Path) -> str:
    address = with_likely_scheme(str(folder))
    if not address or folder.exists():
        return f"make it one: resourcesync pull https://HOST/ {errors.quoted(folder, 'DIR')}"
    return f"did you mean {address}? resourcesync pull {errors.quoted(address, 'https://HOST/')}"


def is_locked(folder: Path) -> bool:
    """True if a run has locked the mirror in a folder at this moment."""
    try:
        return bool(own_folder.lock_holder(folder))
    except OSError:
        return False  # no run can lock it either


def resource_names(resource: str, mirror: Path) -> list[str]:
    """Return the possible names of a resource in the mirror, the likeliest first."""
    if "://" in resource or "\0" in resource:
        return [resource]
    root = mirror.resolve()
    written = Path(resource)
    inside = mirror / resource.lstrip("/")
    outside = (
        [_below(written, root)] if written.is_absolute() or not os.path.lexists(inside) else []
    )
    return list(dict.fromkeys([*filter(None, outside), resource]))


def _below(path: Path, root: Path) -> str:
    try:
        return (path.parent.resolve() / path.name).relative_to(root).as_posix()
    except (ValueError, OSError, RuntimeError):
        return ""


class SetMirror(msgspec.Struct, frozen=True, kw_only=True):
    """The mirror of one set."""

    uri: str
    folder: Path
    offered: bool = True
    """True if the Source still offers it, as far as known."""


def each_mirror(folder: Path) -> tuple[Path, ...]:
    """Return the mirrors that a folder contains: those of its sets, or itself."""
    try:
        known = own_folder.read_sets(folder)
    except errors.StorageError:
        known = None
    below = () if known is None else mirrors_of(folder, known)
    return tuple(dict.fromkeys(mirror.folder for mirror in below)) or (folder,)


def pulled_mirrors(folder: Path) -> tuple[Path, ...]:
    """Return those of the mirrors that a folder contains that were pulled before."""
    return tuple(filter(is_mirror, each_mirror(folder)))


def mirrors_of(folder: Path, followed: FollowedSets) -> tuple[SetMirror, ...]:
    """Return the mirrors of a folder of sets."""
    return tuple(
        SetMirror(uri=each.uri, folder=folder / each.folder, offered=not each.withdrawn)
        for each in followed.sets
    )
