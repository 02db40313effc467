"""The service of mirrors: its loop and pages, and what it knows of them."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar, final

from msgspec.structs import replace

from resourcesync.adapters.mirror.own_folder import StateVersion, state_version
from resourcesync.app import mirror_home
from resourcesync.destination.reports import MirrorState, MirrorStatus
from resourcesync.errors import StorageError
from resourcesync.server.admin import MetricsSource, OperationsApplication
from resourcesync.server.dashboard.views import EndedPull, Operate, Views
from resourcesync.server.uvicorn_server import ServerThread

_PATIENCE: Final = 3.0
T = TypeVar("T")
_MOST_VALUES = 4
_MOST_PULLS = 50
_ABSENT: Any = object()


def _set_result(outcome: Future[T], read: Callable[[], T]) -> None:
    try:
        outcome.set_result(read())
    except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is awaited
        outcome.set_exception(error)


def _hanging_error(place: Hashable) -> StorageError:
    return StorageError(
        f"the disk of {place} does not answer",
        evidence=(("mirror", str(place)), ("kept", "all complete copies")),
        hint="check its disk and what is in its folder .resourcesync",
    )


@final
class StateCache:
    """What a service knows of its mirrors; it may be used by several threads.

    A value is read again once the state file has changed, so it is as true as a new one. It has the
    last pulls, too: no full or missing disk records that they failed.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._lock = Lock()
        self._known: dict[Path, tuple[StateVersion, dict[Hashable, Any]]] = {}
        self._patience = patience
        self._hanging: dict[Hashable, threading.Thread] = {}
        self._pulls: dict[Path, deque[EndedPull]] = {}

    def apart(self, place: Hashable, read: Callable[[], T]) -> T:
        """Return what a function reads of a mirror; one that hangs is not waited for."""
        before = self._hanging.get(place)
        if before is not None and before.is_alive():
            raise _hanging_error(place)
        outcome: Future[T] = Future()
        thread = threading.Thread(
            target=_set_result, args=(outcome, read), name="resourcesync-read", daemon=True
        )
        thread.start()
        try:
            return outcome.result(self._patience)
        except TimeoutError:
            if outcome.done():  # it was raised by the function itself
                raise
            self._hanging[place] = thread
            raise _hanging_error(place) from None

    def add_pull(self, folder: Path, pull: EndedPull) -> None:
        """Remember a pull that ended."""
        self._pulls.setdefault(folder, deque(maxlen=_MOST_PULLS)).appendleft(pull)

    def pulls(self, folder: Path) -> tuple[EndedPull, ...]:
        """Return the last pulls of a mirror, the newest first."""
        return tuple(self._pulls.get(folder, ()))

    def read(self, folder: Path, key: Hashable, read: Callable[[], T]) -> T:
        """Return a value of a mirror."""
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

    def status(self, folder: Path, new: MirrorStatus | None = None) -> MirrorStatus:
        """Return the status of a mirror (``mirror_home.read_status``)."""
        key = "status", mirror_home.is_locked(folder)
        found = self.read(folder, key, lambda: mirror_home.read_status(folder, new))
        failed = list(takewhile(lambda pull: pull.failed is not None, self.pulls(folder)))
        if not failed or (found.last_run is not None and found.last_run >= failed[0].started):
            return found
        which = "left" if found.state is MirrorState.SYNCING else "state"
        told: dict[str, Any] = {"failed_run": failed[0].failed, which: MirrorState.FAILING}
        told |= {"outcome": failed[0].outcome, "last_run": failed[0].ended}
        return replace(found, failing_since=found.failing_since or failed[-1].ended, **told)

    def _store(self, folder: Path, version: StateVersion, key: Hashable, value: object) -> None:
        with self._lock:
            known = self._known.get(folder)
            if known is None or known[0] != version:
                known = self._known[folder] = (version, {})
            values = known[1]
            if len(values) >= _MOST_VALUES:
                del values[next(iter(values))]
            values[key] = value


@contextmanager
def serve_operators(
    address: tuple[str, int],
    views: Views,
    status: Callable[[], bytes],
    figures: MetricsSource,
    check_health: Callable[[], None],
    operator: tuple[str, Operate] | None = None,
) -> Iterator[str]:
    """Serve the operators' pages, their status as JSON and the metrics, while the block runs."""
    from resourcesync.server.dashboard.app import mirror_pages  # noqa: PLC0415 - only with --admin
    from resourcesync.server.dashboard.operator_actions import (  # noqa: PLC0415 - the same
        OperatorApplication,
    )

    host, port = address
    health = OperationsApplication(look=check_health, counts=[figures], status=status)
    actions = None if operator is None else OperatorApplication(*operator)
    with ServerThread(mirror_pages(views, health, actions), host=host, port=port) as server:
        yield server.uri
