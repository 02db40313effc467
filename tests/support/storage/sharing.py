"""Processes that put, replace and move the same keys of a shared folder, or hold it and die."""

import hashlib
import os
import random
import sys
import time
from io import BytesIO
from pathlib import Path

from resourcesync.backends.shared_folder import FolderStore
from resourcesync.errors import StorageError
from resourcesync.ports.stores import ObjectContent

COUNTERS = ("one/counter", "other/counter")
KEYS = ("a", "b/c", "b/d/e")
SECONDS = 1.0
ENOUGH = 4


def count(store: FolderStore, key: str, lot: random.Random) -> bool:
    """Read a number and put the next one; say so, and return it, when that was done."""
    there = store.stat(key)
    stream = store.open(key)
    number = 0
    if stream is not None:
        with stream:
            number = int(stream.read().split()[0])
    body = b"%d %s" % (number + 1, b"x" * lot.randrange(20))
    version = None if there is None else there.version
    if store.stat(key) == there and store.put(
        key, ObjectContent(BytesIO(body), len(body), ()), version
    ):
        print(f"+{key}", flush=True)
        return True
    return False


def shuffle(store: FolderStore, key: str, lot: random.Random) -> None:
    """Put, replace, move or remove something whose bytes say what they are."""
    rest = lot.randbytes(lot.randrange(100_000))
    body = hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest
    there = store.stat(key)
    match lot.randrange(4):
        case 0 if there is not None:
            store.move(key, f"{key}.moved", there.version)
        case 1:
            store.remove(f"{key}.moved")
        case _:
            version = None if there is None else there.version
            store.put(key, ObjectContent(BytesIO(body), len(body), ()), version)


def hold(store: FolderStore, *, fork: bool) -> None:
    """Hold it until we are killed; a process that was forked meanwhile lives on."""
    with store.lock("who is killed"):
        if not fork:
            print("held", flush=True)
        elif not os.fork():
            print(os.getpid(), flush=True)
        time.sleep(30)


def main() -> None:
    """Do what is named, or work on the folder for a while, and until enough was counted."""
    store = FolderStore(Path(sys.argv[2]))
    if sys.argv[1] in ("hold", "fork"):
        hold(store, fork=sys.argv[1] == "fork")
        return
    lot, until = random.Random(sys.argv[1]), time.monotonic() + SECONDS
    left = dict.fromkeys(COUNTERS, ENOUGH)
    while time.monotonic() < until or max(left.values()) > 0:
        key = lot.choice(COUNTERS)
        left[key] -= count(store, key, lot)
        try:
            shuffle(store, lot.choice(KEYS), lot)
        except StorageError as error:
            if "exists already" not in error.message:
                raise


if __name__ == "__main__":
    main()
