"""The service of mirrors: its loop and pages, what it stores, and the requests of commands to it.

A service listens on a socket in the folder of its state, which only its user may open. So a command
finds every service of that user, needs no address, and learns from the reply who has the mirror.
"""

import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, Final, TypeVar, final

import msgspec
from msgspec.structs import replace

from resourcesync.adapters.mirror.own_folder import StateVersion, state_version
from resourcesync.app.mirrors import mirror_state
from resourcesync.destination.reports import FailedRun, MirrorState, MirrorStatus
from resourcesync.errors import StorageError
from resourcesync.own_files import make_folder
from resourcesync.ports import Clock
from resourcesync.server.admin import AdminApplication, MetricsSource, OperationsApplication
from resourcesync.server.dashboard.views import MirrorOperations, Views
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.watch.loop import JobRunner, OnJobEnd, WatchLoop
from resourcesync.watch.scheduler import Scheduler

_LOG: Final = logging.getLogger(__name__)
_PREFIX: Final = "watch-"
_SUFFIX: Final = ".sock"
_SECONDS: Final = 10.0
_PAUSE: Final = 1.0
_MOST_BYTES: Final = 1024 * 1024
_PATIENCE: Final = 3.0
_LONGEST_ADDRESS: Final = 100
"""Bytes of an address that fit on every system; the limit is 104 or 108."""


class PullRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to pull mirrors now; the reply has those of them that will be.

    Attributes:
        folders: The folders of the mirrors, with all links resolved.
    """

    folders: tuple[str, ...]


PullNow = Callable[[Sequence[str]], Sequence[str]]
"""Pulls the mirrors in some folders soon; returns the folders of those that the service has."""


@contextmanager
def accept_requests(folder: Path, pull_now: PullNow) -> Iterator[None]:
    """Accept requests of this user's commands while the block runs.

    Without a place for the socket there is a warning, and all else works.
    """
    path = folder / f"{_PREFIX}{os.getpid()}{_SUFFIX}"
    try:
        make_folder(folder)
        _remove_stale(folder)
        listener = _listen(path)
    except OSError as error:
        _LOG.warning("no requests to pull now: cannot listen on %s: %s", path, error.strerror)
        yield
        return
    is_over = threading.Event()
    thread = threading.Thread(
        target=_serve, args=(listener, pull_now, is_over), name="resourcesync-requests", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        with suppress(OSError):
            _connect(path).close()  # wakes the thread
        thread.join(_SECONDS)
        listener.close()
        path.unlink(missing_ok=True)


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short_address(path) as address:
            listener.bind(address)
        path.chmod(0o600)  # before it listens: nobody else can have connected
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


@contextmanager
def _short_address(path: Path) -> Iterator[str]:
    """Yield an address of a socket that the system accepts, however long its path is."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS or not sys.platform.startswith("linux"):
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_SECONDS)
    try:
        with _short_address(path) as address:
            connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def _serve(listener: socket.socket, pull_now: PullNow, is_over: threading.Event) -> None:
    while not is_over.is_set():
        try:
            connection, _ = listener.accept()
        except OSError as error:  # too many files are open; it may pass
            _LOG.warning("a request to pull now cannot be accepted: %s", error.strerror)
            is_over.wait(_PAUSE)
            continue
        with connection:
            if is_over.is_set():
                return
            connection.settimeout(_SECONDS)
            try:
                message = _read_all(connection)
                if not message:  # another service only looked whether this one is alive
                    continue
                request = msgspec.json.decode(message, type=PullRequest)
                connection.sendall(msgspec.json.encode(tuple(pull_now(request.folders))))
            except (OSError, msgspec.MsgspecError) as error:
                _LOG.warning("a request to pull now is not valid: %s", error)


def _read_all(connection: socket.socket) -> bytes:
    """Return what the other end sends until it ends its stream."""
    parts = bytearray()
    while len(parts) <= _MOST_BYTES and (part := connection.recv(65_536)):
        parts += part
    return bytes(parts)


def _sockets(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}"))


def _remove_stale(folder: Path) -> None:
    """Remove the sockets of services that were killed."""
    for path in _sockets(folder):
        try:
            _connect(path).close()
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError as error:
            _LOG.debug("%s: %s", path, error)


def request_pulls(folder: Path, mirrors: Sequence[Path]) -> frozenset[Path]:
    """Request the running services to pull mirrors now; return those that one of them will."""
    accepted: set[Path] = set()
    message = msgspec.json.encode(PullRequest(folders=tuple(map(str, mirrors))))
    for path in _sockets(folder):
        try:
            connection = _connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            continue  # a service that was killed, or has just ended
        except OSError as error:
            raise StorageError(f"cannot reach the service at {path}: {error.strerror}") from error
        with connection:
            try:
                connection.sendall(message)
                connection.shutdown(socket.SHUT_WR)
                found = msgspec.json.decode(_read_all(connection), type=tuple[str, ...])
            except (OSError, msgspec.MsgspecError) as error:
                raise StorageError(f"the service at {path} does not answer: {error}") from error
        accepted.update(map(Path, found))
    return frozenset(accepted)


T = TypeVar("T")
_MOST_VALUES = 4
_ABSENT: Any = object()


def _settle(outcome: Future[T], read: Callable[[], T]) -> None:
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

    A value is read again once the state file has changed, so it is as true as a new one. A failure
    that a full disk could not record is remembered until another pull ends.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._lock = Lock()
        self._known: dict[Path, tuple[StateVersion, dict[Hashable, Any]]] = {}
        self._patience = patience
        self._hanging: dict[Hashable, threading.Thread] = {}
        self._failures: dict[Path, tuple[FailedRun, datetime]] = {}

    def apart(self, place: Hashable, read: Callable[[], T]) -> T:
        """Return what a function reads of a mirror; one that hangs is not waited for."""
        before = self._hanging.get(place)
        if before is not None and before.is_alive():
            raise _hanging_error(place)
        outcome: Future[T] = Future()
        thread = threading.Thread(
            target=_settle, args=(outcome, read), name="resourcesync-read", daemon=True
        )
        thread.start()
        try:
            return outcome.result(self._patience)
        except TimeoutError:
            if outcome.done():  # it was raised by the function itself
                raise
            self._hanging[place] = thread
            raise _hanging_error(place) from None

    def remember_failure(self, folder: Path, failed: FailedRun, ended: datetime) -> None:
        """Remember a failed pull that the mirror's state could not record."""
        self._failures[folder] = failed, ended

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

    def status(self, folder: Path) -> MirrorStatus:
        """Return the status of a mirror (``mirror_state.read_status``)."""
        found = self.read(
            folder,
            ("status", mirror_state.is_locked(folder)),
            lambda: mirror_state.read_status(folder),
        )
        remembered = self._failures.get(folder)
        if remembered is None:
            return found
        failed, ended = remembered
        if found.last_run is not None and found.last_run >= ended:
            return found
        running = found.state is MirrorState.SYNCING
        left = {"left": MirrorState.FAILING} if running else {"state": MirrorState.FAILING}
        return replace(found, **left, failed_run=failed, outcome=failed.code, last_run=ended)

    def _store(self, folder: Path, version: StateVersion, key: Hashable, value: object) -> None:
        with self._lock:
            known = self._known.get(folder)
            if known is None or known[0] != version:
                known = self._known[folder] = (version, {})
            values = known[1]
            if len(values) >= _MOST_VALUES:
                del values[next(iter(values))]
            values[key] = value


def open_loop(run: JobRunner, report_done: OnJobEnd, clock: Clock, parallel: int) -> WatchLoop:
    """Return the loop that runs the jobs of mirrors when they are due."""
    scheduler = Scheduler(Random())  # noqa: S311 - jitter
    return WatchLoop(scheduler, run, report_done, clock, parallel)


@contextmanager
def serve_operators(
    address: tuple[str, int],
    views: Views,
    status: Callable[[], bytes],
    figures: MetricsSource,
    check_health: Callable[[], None],
    operator: tuple[str, MirrorOperations] | None = None,
) -> Iterator[str]:
    """Serve the operators' pages, their status as JSON and the metrics, while the block runs."""
    from resourcesync.server.dashboard.app import mirror_pages  # noqa: PLC0415 - only with --admin
    from resourcesync.server.dashboard.operator_actions import (  # noqa: PLC0415 - the same
        OperatorApplication,
    )

    host, port = address
    health = OperationsApplication(look=check_health, counts=[figures])
    actions = None if operator is None else OperatorApplication(*operator)
    application = AdminApplication(status, mirror_pages(views, health, actions))
    with ServerThread(application, host=host, port=port) as server:
        yield server.uri
