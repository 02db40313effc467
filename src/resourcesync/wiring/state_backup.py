"""A mirror's memory beside its copies: a copy of it is put into the store, and begun with again.

The memory itself is on a disk of this machine. Who loses that machine has the copies, and without
this would read all of them to know what they are.
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

from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.adapters.mirror.mirror_folder import STATE_FILE, MirrorFolder, is_mirror
from resourcesync.adapters.mirror.state import copy_state, detach_state
from resourcesync.adapters.mirror.tabled_state import TabledState
from resourcesync.adapters.stored_copies import guard_store
from resourcesync.durable_folders import make_folder, sync_name
from resourcesync.errors import LockedError, StateError
from resourcesync.model.digests import Digest
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.mirror import MirrorStateStore, StateTransaction
from resourcesync.ports.stores import ObjectContent, Store

BACKUP_KEY: Final = ".resourcesync/memory.db.gz"
"""Where it is in the store."""
_BACKUP_NOTE: Final = "store-memory"
_PARTS_NOTE: Final = "store-tables"
"""The note that has the names of the parts that the memory in the store may name."""
_BACKUP_INTERVAL: Final = timedelta(days=1)
_BLOCK: Final = 1 << 20
_MIN_LIMIT: Final = 64 << 20
_MOST_GROWTH: Final = 100
"""Times; memories grow by 5 to 20."""


def back_up(store: Store, mirror: MirrorFolder, clock: Clock) -> None:
    """Put a copy of the memory into the store, when copies changed or the last one is a day old.

    Raises:
        StorageError: It cannot be made or put; the next run does it.
        LockedError: Somebody else put one: the store has another holder now.
    """
    state = mirror.state
    assert state is not None
    change, now = state.change_bounds()[1], clock.now()
    names, before = _parts_of(state), parts_named(state)
    if names == before and _is_backed_up(state, change, to_microseconds(now)):
        return
    if names != before:  # first: killed in the middle, nobody could tell which are named there
        state.commit(StateTransaction(notes={_PARTS_NOTE: " ".join(sorted(names | before))}))
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
    notes = {_BACKUP_NOTE: f"{change} {to_microseconds(now)}"}
    if names != before:
        notes[_PARTS_NOTE] = " ".join(sorted(names))
    state.commit(StateTransaction(notes=notes))


def parts_named(state: MirrorStateStore) -> set[str]:
    """Return the names of the parts of a table that the memory in the store may name.

    Who begins with that memory needs them: they stay as long as it is there.
    """
    return set((state.note(_PARTS_NOTE) or "").split())


def _parts_of(state: MirrorStateStore) -> set[str]:
    return {part.name for part in state.parts} if isinstance(state, TabledState) else set()


def _is_backed_up(state: MirrorStateStore, change: int, now: int) -> bool:
    known, _, moment = (state.note(_BACKUP_NOTE) or "").partition(" ")
    if known != str(change) or not moment.isdecimal():
        return False
    age = from_microseconds(now) - from_microseconds(int(moment))
    return timedelta(0) <= age < _BACKUP_INTERVAL


def _put(store: Store, stream: BinaryIO, length: int, digest: Digest) -> None:
    with guard_store("putting the mirror's memory there"):
        there = store.stat(BACKUP_KEY)
        replaces = None if there is None else there.version
        if store.put(BACKUP_KEY, ObjectContent(stream, length, (digest,)), replaces) is None:
            raise LockedError(
                "somebody else put a mirror's memory into the store",
                evidence=(("kept", "all copies, and the memory here"),),
                hint="see that one machine alone keeps this mirror",
            )


def restore(store: Store, folder: Path) -> bool:
    """Begin with the memory that is in a store, where a folder has none yet.

    Args:
        store: It; nothing is written there.
        folder: The mirror's home, which may not be there yet.

    Returns:
        Whether there was one.

    Raises:
        StateError: What is there is damaged, or from a newer version.
        StorageError: The store or the folder fails.
    """
    if is_mirror(folder):
        return False
    own = folder / OWN_FOLDER
    with ExitStack() as held, guard_store("reading the mirror's memory there"):
        there, stream = store.stat(BACKUP_KEY), store.open(BACKUP_KEY)
        if stream is None:
            return False
        held.enter_context(stream)
        most = _MIN_LIMIT + _MOST_GROWTH * (0 if there is None else there.length)
        make_folder(own, 0o700)
        place = own / f"restored-{secrets.token_hex(8)}"
        try:
            with place.open("xb") as out:
                _unpack(stream, out, most)
            detach_state(place)
            with suppress(FileExistsError):  # another run was quicker
                os.link(place, own / STATE_FILE)
            sync_name(own / STATE_FILE)
        finally:
            place.unlink(missing_ok=True)
    return True


def _unpack(stream: BinaryIO, out: BinaryIO, most: int) -> None:
    """Unpack a memory; what grows as no memory does would only fill the disk.

    Raises:
        StateError: It is damaged, or grows to more than ``most`` bytes.
    """
    try:
        with gzip.open(stream) as unpacked:
            left = most
            while block := cast("BinaryIO", unpacked).read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise _damaged(f"it grows to more than {most:,} bytes")
                out.write(block)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(f"{error}") from error


def _damaged(why: str) -> StateError:
    return StateError(
        f"the mirror's memory in the store is damaged: {why}",
        evidence=(("key", BACKUP_KEY), ("kept", "all copies")),
        hint="remove that key from the store and pull again: good copies are kept",
    )
