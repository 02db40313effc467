"""Mirrors whose copies are in a store, which a plug-in opens."""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from resourcesync import app
from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.mirror.own_folder import is_mirror
from resourcesync.app import mirror_home
from resourcesync.app.mirror_home import LONGEST_ADDRESS, STORE_ADDRESS, STORE_FILE, Home
from resourcesync.errors import ConfigurationError, ResourceSyncError, StorageError
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.own_files import NEW, open_path, read_file, replace_file
from resourcesync.ports import Clock
from resourcesync.settings import environment

if TYPE_CHECKING:
    from resourcesync.adapters.store_copies import StoredCopies
    from resourcesync.ports.stores import StagingStore, Store, StoreFactory

_LEASE_FILE: Final = "holder"
_MAX_LEASE_NAME: Final = 64
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_METHODS: Final = ("put", "stat", "open", "move", "remove", "keys", "lock")


def home_of(address: str, state: str | os.PathLike[str] | None = None) -> Home:
    """Return the mirror in a store."""
    check_plugin_address(address, app.plugins.STORES)
    return Home(_own_folder(address) if state is None else Path(state), address)


def _own_folder(address: str) -> Path:
    name = _NOT_A_NAME.sub("-", address)[:80]
    digest = hashlib.sha256(address.encode()).hexdigest()[:16]
    return environment.state_folder() / "stores" / f"{name}-{digest}"


def check_plugin_address(address: str, group: str) -> None:
    """Refuse an address that no plug-in of a group handles, or that may have a secret."""
    match = STORE_ADDRESS.fullmatch(address)
    if match is None or len(address) > LONGEST_ADDRESS:
        raise ConfigurationError(f"{address[:200]!r} is not the address of a store")
    if "@" in address.partition("://")[2].partition("/")[0]:
        raise ConfigurationError(
            "the address of a store must not contain a user or a password",
            hint="see the plug-in's documentation for its secrets",
        )
    app.plugins.find(group, match[1])


def bind(home: Home) -> None:
    """Record in a folder the store whose home it is."""
    known = mirror_home.store_of(home.folder)
    if known == home.store:
        return
    if known or is_mirror(home.folder):
        raise ConfigurationError(
            f"{home.folder} is the folder of another mirror",
            evidence=(("copies", known or str(home.folder)),),
            hint="name another folder for the state: -o state=DIR",
        )
    own = home.folder / OWN_FOLDER
    try:
        replace_file(own / STORE_FILE, f"{home.store}\n".encode("ascii"), folder_mode=0o700)
    except OSError as error:
        raise ConfigurationError(f"{home.folder} cannot be used: {error.strerror}") from error


@contextmanager
def copies_of(mirror: MirrorFolder, clock: Clock) -> Iterator["FileTreeCopies | StoredCopies"]:
    """Open the copies of a mirror: in its folder, or in its store, which is locked meanwhile."""
    address = mirror_home.store_of(mirror.root)
    if not address:
        yield mirror.copies
        return
    from resourcesync.adapters.store_copies import StoredCopies  # noqa: PLC0415 - rarely

    store = open_store(address)
    copies = StoredCopies(store, mirror.copies.stage, clock)
    with lock_store(store, mirror.root / OWN_FOLDER / _LEASE_FILE):
        copies.check(mirror.state)
        yield copies


def open_staging_store(address: str) -> "StagingStore":
    """Open a store in which workers can stage; nothing is written there."""
    from resourcesync.ports.stores import StagingStore  # noqa: PLC0415 - rarely

    store = open_store(address)
    if isinstance(store, StagingStore):
        return store
    raise ConfigurationError(
        f"workers cannot stage copies in {address}",
        hint="pull without an engine, or into a folder that all workers reach",
    )


@contextmanager
def lock_store(store: "Store", name: Path) -> Iterator[None]:
    """Lock a store for a folder of this machine, which is locked."""
    from resourcesync.adapters.store_copies import lock_store  # noqa: PLC0415 - rarely

    with lock_store(store, f"pid {os.getpid()} on {os.uname().nodename}", _lease_name(name)):
        yield


def _lease_name(file: Path) -> str:
    try:
        with suppress(FileExistsError), os.fdopen(open_path(file, NEW), "wb") as stream:
            stream.write(os.urandom(16).hex().encode())
        return read_file(file, _MAX_LEASE_NAME).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{file} cannot be used: {error}") from error


def open_store(address: str) -> "Store":
    """Open a store; nothing is written there."""
    scheme = address.partition(":")[0]
    factory: StoreFactory = app.plugins.load(app.plugins.STORES, scheme)
    try:
        store: Any = factory(address)
    except ResourceSyncError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"the store {address} cannot be opened: {type(error).__name__}: {error}"[:1_000],
            code="bad-plugin",
        ) from error
    missing = [name for name in _METHODS if not callable(getattr(store, name, None))]
    if missing:
        raise ConfigurationError(
            f"the plug-in for {scheme} did not return a store",
            evidence=(("lacks", ", ".join(missing)),),
            hint="see resourcesync.ports.stores for the methods of a store",
            code="bad-plugin",
        )
    return cast("Store", store)
