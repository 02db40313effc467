"""The lock of a publisher: advisory, one at a time; the system releases it after a crash."""

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from resourcesync.errors import LockedError, StorageError
from resourcesync.model.timestamps import format_w3c
from resourcesync.own_files import LOCK, open_path
from resourcesync.ports import Clock

_MOST: Final = 1_024


class PublishLock:
    """A lock from construction to ``close``, or to the end of the process in any way."""

    def __init__(self, path: Path, clock: Clock) -> None:
        try:
            self._descriptor = open_path(path, LOCK)
        except OSError as error:
            raise StorageError(f"cannot make the lock {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            content = os.pread(self._descriptor, _MOST, 0)
            os.close(self._descriptor)
            raise LockedError(
                f"another run is publishing this tree: {_describe(content)}",
                evidence=(("lock", str(path)), ("kept", "nothing was changed")),
                hint="wait for it to end",
            ) from error
        holder = {"pid": os.getpid(), "host": os.uname().nodename, "since": format_w3c(clock.now())}
        with suppress(OSError):  # on a full disk the lock holds without its note
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(holder).encode(), 0)

    def close(self) -> None:
        """Release the lock, also when a signal arrives just now."""
        try:
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
        finally:
            os.close(self._descriptor)


def _describe(content: bytes) -> str:
    try:
        known = json.loads(content)
        return f"process {known['pid']} on {known['host']} since {known['since']}"
    except (ValueError, KeyError, TypeError):
        return "it did not say which"
