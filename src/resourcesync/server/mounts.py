"""Mounted applications: dispatch by path, and their common lifespan.

``root_path`` is what ASGI calls the path below which an application was mounted; ``path`` and
``raw_path`` begin with it, as Starlette, FastAPI and uvicorn have it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, final
from urllib.parse import quote, unquote_to_bytes

from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.server.paths import is_plain, without_authority

_LOG: Final = logging.getLogger(__name__)

PATIENCE: Final = 10.0
"""Seconds that an application has to end."""

STOPPING: Final = "resourcesync.stopping"
"""Key in ASGI's state of an ``asyncio.Event`` that is set when the server stops.

Our own server sets it; endless answers end then.
"""

State = dict[str, Any]
"""State that an application passes from its start to its requests, as ASGI defines it."""


def path_within(scope: Scope) -> bytes:
    """Return the raw path of a request below the place where the application is mounted.

    It begins with a slash, or is empty when the request names that very place. A path that does not
    begin with ``root_path`` is returned as it is: some servers remove it themselves.
    """
    raw = scope.get("raw_path")
    if raw is None:
        # An old ASGI server: it provides only the decoded path.
        raw = quote(scope["path"], safe="/").encode()
    root = scope.get("root_path", "")
    path = raw if raw.startswith(b"/") else without_authority(raw)
    return path if root in {"", "/"} else _cut(path, _names(root))


def _cut(path: bytes, names: tuple[bytes, ...]) -> bytes:
    """Return the rest of a raw path after ``names``; the whole path when it begins otherwise."""
    parts = path.split(b"/", len(names) + 1)
    if tuple(map(unquote_to_bytes, parts[1 : len(names) + 1])) != names:
        return path
    return b"/" + parts[-1] if len(parts) > len(names) + 1 else b""


def _names(path: str) -> tuple[bytes, ...]:
    return tuple(path.strip("/").encode("utf-8", "surrogateescape").split(b"/"))


@final
class MountedApplications:
    """Further applications, each below a path of its own.

    Args:
        applications: By path, such as ``/hub``.

    Raises:
        ConfigurationError: A path is invalid.
    """

    def __init__(self, applications: Mapping[str, ASGIApp]) -> None:
        self._applications: list[tuple[tuple[bytes, ...], str, ASGIApp]] = []
        self._states: dict[str, State] = {}
        for path, application in applications.items():
            names = _names(path)
            if not path.startswith("/") or not all(map(is_plain, names)):
                raise ConfigurationError(
                    f"{path[:64]!r} is not a path to mount an application at", hint="such as /hub"
                )
            self._applications.append((names, "/" + path.strip("/"), application))
        # The deepest path is tried first.
        self._applications.sort(key=lambda mount: -len(mount[0]))
        self._first = {names[0] for names, _, _ in self._applications}

    def find(self, scope: Scope, path: bytes) -> tuple[ASGIApp, Scope] | None:
        """Return the application that a request is for, and the scope for it.

        Args:
            scope: The scope of the request.
            path: The result of ``path_within``.
        """
        if not self._first:
            return None
        if unquote_to_bytes(path.split(b"/", 2)[1] if path else b"") not in self._first:
            return None
        for names, prefix, application in self._applications:
            parts = tuple(map(unquote_to_bytes, path.split(b"/")[1 : len(names) + 1]))
            if parts == names:
                root = scope.get("root_path", "").rstrip("/") + prefix
                state = {**scope.get("state", {}), **self._states.get(prefix, {})}
                return application, {**scope, "root_path": root, "state": state}
        return None

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Start all the applications; end them with the block, the last one first.

        Raises:
            ConfigurationError: One of them cannot start; those that did are ended.
            ResourceSyncError: The same, raised by the application itself.
        """
        async with contextlib.AsyncExitStack() as stack:
            for _, prefix, application in self._applications:
                self._states[prefix] = await stack.enter_async_context(run_lifespan(application))
            yield


@contextlib.asynccontextmanager
async def run_lifespan(application: ASGIApp) -> AsyncIterator[State]:
    """Start an application and end it with the block, as ASGI's ``lifespan`` has it.

    An application without a lifespan is not started.

    Yields:
        Its state.

    Raises:
        ConfigurationError: It reports that it cannot start.
        ResourceSyncError: The same.
    """
    life = _Lifespan(application)
    await life.start()
    try:
        yield life.state
    finally:
        await life.end()


@final
class _Lifespan:
    """Task of one application from start to end."""

    def __init__(self, application: ASGIApp) -> None:
        self.state: State = {}
        self._application = application
        self._to_application: asyncio.Queue[Message] = asyncio.Queue()
        self._from_application: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }
        self._task = asyncio.create_task(self._run(scope))
        self._to_application.put_nowait({"type": "lifespan.startup"})
        message = await self._receive_startup()
        if message is not None and message["type"] == "lifespan.startup.failed":
            await self._finish()
            if isinstance(error := self._failure(), ResourceSyncError):
                raise error
            raise ConfigurationError(
                "an application that is served cannot start",
                evidence=(("said", str(message.get("message", ""))),),
            )

    async def end(self) -> None:
        await self._finish()
        if (error := self._failure()) is not None:
            _LOG.warning("an application did not end cleanly: %r", error)

    async def _finish(self) -> None:
        """Wait for the task's end, up to a limit."""
        assert self._task is not None
        self._to_application.put_nowait({"type": "lifespan.shutdown"})
        _, late = await asyncio.wait((self._task,), timeout=PATIENCE)
        if late:
            _LOG.warning("an application does not end and is cancelled")
            self._task.cancel()
            await asyncio.wait((self._task,))

    def _failure(self) -> BaseException | None:
        """Return the error that the task ended with, if any."""
        assert self._task is not None
        return None if self._task.cancelled() else self._task.exception()

    async def _run(self, scope: Scope) -> None:
        await self._application(scope, self._to_application.get, self._from_application.put)

    async def _receive_startup(self) -> Message | None:
        """Return the application's answer to its start; ``None`` when it has no lifespan."""
        assert self._task is not None
        answer = asyncio.create_task(self._from_application.get())
        await asyncio.wait((answer, self._task), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        answer.cancel()
        error = self._failure()
        if isinstance(error, ResourceSyncError):
            raise error
        _LOG.debug("an application has no lifespan: %r", error)
        self._task = asyncio.create_task(asyncio.sleep(0))
        return None


async def serve_lifespan(
    receive: Receive, send: Send, start: Callable[[], None], end: Callable[[], None]
) -> None:
    """Run the lifespan of an application: answer a server's start and stop.

    Args:
        receive: The receiver of ASGI.
        send: The sender of ASGI.
        start: Called at the start; a ``ResourceSyncError`` of it prevents the start.
        end: Called at the end, in a thread: it may block.
    """
    await receive()
    try:
        start()
    except ResourceSyncError as error:
        await send({"type": "lifespan.startup.failed", "message": error.message})
        return
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await to_thread.run_sync(end)
    await send({"type": "lifespan.shutdown.complete"})
