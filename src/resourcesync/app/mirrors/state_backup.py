"""Backup of a mirror's state beside its copies in a store, and its restoration.

The state itself is on a disk of this machine. Without a backup, a new machine would have to
read all copies.
"""

import gzip
import hashlib
import os
import secrets
import shutil
import zlib
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, Final, cast

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.adapters.mirror.own_folder import STATE_FILE, is_mirror
from resourcesync.adapters.mirror.state import copy_state, detach_state
from resourcesync.adapters.stored_copies import guard_store
from resourcesync.durable_folders import make_folder, sync_name
from resourcesync.errors import LockedError, StateError
from resourcesync.model.digests import Digest
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.mirror import MirrorStateStore, StateTransaction
from resourcesync.ports.stores import ObjectContent, Store

BACKUP_KEY: Final = ".resourcesync/memory.db.gz"
"""Its name in the store."""
_BACKUP_NOTE: Final = "store-memory"
_BACKUP_INTERVAL: Final = timedelta(days=1)
_BLOCK: Final = 1 << 20
MIN_LIMIT: Final = 64 << 20
"""Bytes that a restored state may always have, however small its backup is."""
_MOST_GROWTH: Final = 100
"""Greatest compression ratio; real ones are 5 to 20."""


def back_up(store: Store, mirror: MirrorFolder, clock: Clock) -> None:
    """Back up the state into the store, when copies changed or the last backup is a day old.

    Raises:
        StorageError: It cannot be made or stored; the next run tries again.
        LockedError: Another machine stored one: the store has another owner now.
    """
    state = mirror.state
    assert state is not None
    change, now = state.change_bounds()[1], clock.now()
    if _is_backed_up(state, change, to_microseconds(now)):
        return
    own = mirror.root / OWN_FOLDER / "tmp"
    plain, packed = (own / f"{secrets.token_hex(8)}-{name}" for name in ("memory", "packed"))
    try:
        copy_state(mirror.root / OWN_FOLDER / STATE_FILE, plain)
        with plain.open("rb") as stream, gzip.open(packed, "wb", compresslevel=1) as out:
            shutil.copyfileobj(stream, out, _BLOCK)
        with packed.open("rb") as stream:
            digest = Digest("sha-256", hashlib.file_digest(stream, "sha256").hexdigest())
            stream.seek(0)
            _put(store, stream, packed.stat().st_size, digest)
    finally:
        plain.unlink(missing_ok=True)
        packed.unlink(missing_ok=True)
    note = {_BACKUP_NOTE: f"{change} {to_microseconds(now)}"}
    state.commit(StateTransaction(notes=note))


def _is_backed_up(state: MirrorStateStore, change: int, now: int) -> bool:
    known, _, moment = (state.note(_BACKUP_NOTE) or "").partition(" ")
    if known != str(change) or not moment.isdecimal():
        return False
    age = from_microseconds(now) - from_microseconds(int(moment))
    return timedelta(0) <= age < _BACKUP_INTERVAL


def _put(store: Store, stream: BinaryIO, length: int, digest: Digest) -> None:
    with guard_store("storing the mirror's state there"):
        stored = store.stat(BACKUP_KEY)
        replaces = None if stored is None else stored.version
        if store.put(BACKUP_KEY, ObjectContent(stream, length, (digest,)), replaces) is None:
            raise LockedError(
                "another machine stored a mirror's state in the store",
                evidence=(("kept", "all copies, and the local state"),),
                hint="use this mirror on one machine only",
            )


def restore(store: Store, folder: Path) -> bool:
    """Restore the state from a store, where a folder has none yet.

    Args:
        store: The store; nothing is written there.
        folder: The mirror's home, which need not exist.

    Returns:
        True if there was one.

    Raises:
        StateError: It is damaged, or from another version.
        StorageError: The store or the folder fails.
    """
    if is_mirror(folder):
        return False
    own = folder / OWN_FOLDER
    with ExitStack() as stack, guard_store("reading the mirror's state there"):
        stored, stream = store.stat(BACKUP_KEY), store.open(BACKUP_KEY)
        if stream is None:
            return False
        stack.enter_context(stream)
        most = MIN_LIMIT + _MOST_GROWTH * (0 if stored is None else stored.length)
        make_folder(own, 0o700)
        place = own / f"restored-{secrets.token_hex(8)}"
        try:
            with place.open("xb") as out:
                _unpack(stream, out, most)
            detach_state(place)
            with suppress(FileExistsError):  # another run was faster
                os.link(place, own / STATE_FILE)
            sync_name(own / STATE_FILE)
        finally:
            place.unlink(missing_ok=True)
    return True


def _unpack(stream: BinaryIO, out: BinaryIO, most: int) -> None:
    """Decompress a state; a compression bomb would only fill the disk.

    Raises:
        StateError: It is damaged, or has more than ``most`` bytes.
    """
    try:
        with gzip.open(stream) as unpacked:
            left = most
            while block := cast("BinaryIO", unpacked).read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise _damaged(f"it has more than {most:,} bytes")
                out.write(block)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(f"{error}") from error


def _damaged(why: str) -> StateError:
    return StateError(
        f"the mirror's state in the store is damaged: {why}",
        evidence=(("key", BACKUP_KEY), ("kept", "all copies")),
        hint="remove that key from the store and pull again: good copies stay",
    )
