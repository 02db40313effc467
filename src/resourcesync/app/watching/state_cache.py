"""Values that were read from the states of mirrors, until the states change."""

from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, final

from resourcesync.adapters.mirror.own_folder import StateVersion, state_version
from resourcesync.app.mirrors import mirror_state
from resourcesync.destination.reports import MirrorStatus

T = TypeVar("T")
_MOST_VALUES = 4
_ABSENT: Any = object()


@final
class StateCache:
    """A cache of values of mirrors; it may be used by several threads.

    A value is read again once the state file has changed, so it is as true as a new one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[Path, tuple[StateVersion, dict[Hashable, Any]]] = {}

    def read(self, folder: Path, key: Hashable, read: Callable[[], T]) -> T:
        """Return a value of a mirror.

        Args:
            folder: The mirror.
            key: What the value depends on, besides the mirror's state.
            read: Reads the value.
        """
        before = state_version(folder)
        with self._lock:
            known = self._known.get(folder)
        if before is not None and known is not None and known[0] == before:
            # One step: another thread may remove the value between two.
            value: T = known[1].get(key, _ABSENT)
            if value is not _ABSENT:
                return value
        found = read()
        if before is not None and state_version(folder) == before:
            self._store(folder, before, key, found)
        return found

    def status(self, folder: Path) -> MirrorStatus:
        """Return the status of a mirror (``mirror_state.read_status``)."""
        return self.read(
            folder,
            ("status", mirror_state.is_locked(folder)),
            lambda: mirror_state.read_status(folder),
        )

    def _store(self, folder: Path, version: StateVersion, key: Hashable, value: object) -> None:
        with self._lock:
            known = self._known.get(folder)
            if known is None or known[0] != version:
                known = self._known[folder] = (version, {})
            values = known[1]
            if len(values) >= _MOST_VALUES:
                del values[next(iter(values))]
            values[key] = value
