"""Server of the applications: uvicorn within limits, in the foreground or in a thread.

The limits (``ConnectionLimits``) protect against malicious clients: silent or slow ones, endless
headers, endless bodies, too many connections. uvicorn alone waits for ever for the first request of
a connection, and for a client that reads no bytes.
"""

import asyncio
import contextlib
import errno
import logging
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final, Self, cast, final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from resourcesync.errors import ConfigurationError
from resourcesync.server import connection_limits
from resourcesync.server.asgi import refuse

_LOG: Final = logging.getLogger(__name__)

_RESERVED_FILES: Final = 100
_BACKLOG: Final = 1024
_LAST_PORT: Final = 65_535
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


_DEFAULT_LIMITS: Final = connection_limits.ConnectionLimits()


def serve_forever(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    on_ready: Callable[..., None],
    limits: connection_limits.ConnectionLimits = _DEFAULT_LIMITS,
    aside: "ServerThread | None" = None,
) -> None:
    """Serve ``app`` until SIGINT or SIGTERM, then shut down cleanly and return.

    In another thread than the main one no signal is handled, so it does not return. The process may
    open as many files afterwards as the connections may need, if it is allowed to.
    """
    _allow_files(limits.connections)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listen(host, port))
        uris = [_uri_of(listener)]
        if aside is not None:
            uris.append(stack.enter_context(aside).uri)
        server = _UvicornServer(_UvicornConfig(app, limits), lambda: on_ready(*uris))
        server.run(sockets=[listener])


def _allow_files(connections: int) -> None:
    needed = 2 * (connections + connection_limits.EXTRA_CONNECTIONS) + _RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with contextlib.suppress(ValueError, OSError):  # some systems cap the limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < needed:
        _LOG.warning("%d files may be open, %d connections may need %d", most, connections, needed)


@final
class _ShutdownReply:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            response = refuse(503, "The service is stopping.", {"retry-after": "10"})
            try:
                await response(scope, receive, send)
            except RuntimeError:  # already started: the client sees the truncation
                raise asyncio.CancelledError from None


@final
class ServerThread:
    """A server in a thread of its own, for as long as the ``with`` block runs."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: connection_limits.ConnectionLimits = _DEFAULT_LIMITS,
    ) -> None:
        self._address = host, port
        self._is_ready = threading.Event()
        self._server = _UvicornServer(_UvicornConfig(app, limits), self._is_ready.set)
        self._listener: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="resourcesync-server", daemon=True)

    @property
    def uri(self) -> str:
        """Return the server's URI, such as ``http://127.0.0.1:40123/``."""
        assert self._listener is not None, "the server runs only within its with block"
        return self._uri

    def __enter__(self) -> Self:
        self._listener = _listen(*self._address)
        self._uri = _uri_of(self._listener)
        self._thread.start()
        self._is_ready.wait()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        assert self._listener is not None
        try:
            with self._listener:
                self._server.run(sockets=[self._listener])
        finally:
            self._is_ready.set()


def _listen(host: str, port: int) -> socket.socket:
    try:
        if not 0 <= port <= _LAST_PORT:
            # The system would take it modulo 65,536.
            raise OverflowError("a port is a number from 0 to 65535")  # noqa: TRY301 - one way out
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return _bind(family, address)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigurationError(
            f"cannot listen on {host} port {port}",
            evidence=(("got", getattr(error, "strerror", None) or str(error)),),
            hint=_listening_hint(error),
        ) from error


def _listening_hint(error: Exception) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        return "check the name of the host"
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return "use an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them"
    return "choose another port, or 0 for a free one"


def _bind(family: socket.AddressFamily, address: Any) -> socket.socket:
    # The protocol is named because asyncio turns Nagle's delay off only where it is; with it, every
    # answer waits 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _uri_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class _UvicornConfig(uvicorn.Config):
    def __init__(self, app: ASGIApp, limits: connection_limits.ConnectionLimits) -> None:
        super().__init__(
            cast("Any", app),
            http=connection_limits.ConnectionGuard,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            forwarded_allow_ips=[],
            server_header=False,
            workers=1,
            backlog=_BACKLOG,
            limit_concurrency=limits.connections,
            timeout_keep_alive=limits.keep_alive,
            timeout_graceful_shutdown=limits.grace,
            h11_max_incomplete_event_size=limits.header_bytes,
        )
        self.limits = limits
        self.shares = connection_limits.ConnectionShares(
            limits.connections - 1, limits.share, limits.proxies
        )

    def load(self) -> None:
        """Load the application; requests unanswered when the server stops get an answer too."""
        super().load()
        app, proxies = cast("ASGIApp", self.loaded_app), self.limits.proxies
        if proxies:
            shared = cast(
                "Any", connection_limits.RequestShares(app, self.limits.share, self.shares)
            )
            app = cast("ASGIApp", ProxyHeadersMiddleware(shared, list(proxies)))
        self.loaded_app = _ShutdownReply(app)


class _UvicornServer(uvicorn.Server):
    def __init__(self, config: _UvicornConfig, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
            self._on_ready()
        except BaseException:
            for server in getattr(self, "servers", ()):
                server.close()
            raise

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on the first signal, at once on the second SIGINT; uvicorn would raise it again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._handle_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, action in before.items():
                signal.signal(number, action)

    def _handle_signal(self, number: int, _frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and number == signal.SIGINT
        self.should_exit = True
