"""A small client for Elasticsearch and OpenSearch: JSON over HTTP on one connection, by urllib3.

The official clients refuse each other's servers. The requests used here work with both.
"""

import base64
import logging
import ssl
from collections.abc import Mapping
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import msgspec
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, ProtocolError

from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    SourceError,
    SourceNotFoundError,
    SourceRefusedError,
    SourceUnavailableError,
)
from resourcesync.ports import Clock

MAX_ANSWER: Final = 32 << 20
"""The most bytes of one response."""
_TIMEOUT: Final = 60.0
_LONGEST: Final = 300.0
_CHUNK: Final = 1 << 16
_RETRIES: Final = 3
_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_BUSY: Final = frozenset({429, 502, 503, 504})
_REFUSED: Final = frozenset({401, 403})
_NOT_FOUND: Final = 404
_OK: Final = range(200, 300)
_MAX_SHOWN: Final = 300
_LOST_VIEW: Final = "search_context_missing"

_log = logging.getLogger(__name__)


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a server, and the credentials for it.

    Attributes:
        scheme: ``http`` or ``https``.
        host: Host name or address.
        port: The port.
        path: A prefix of index names, behind a reverse proxy; no slash at the end.
        user: The user of ``password``.
        password: The user's password.
        api_key: An API key in place of both.
        ca_file: A file of trusted certificate authorities, in place of the system's.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    user: str = ""
    password: str = ""
    api_key: str = ""
    ca_file: str = ""

    def __repr__(self) -> str:
        server = f"scheme={self.scheme!r}, host={self.host!r}, port={self.port!r}"
        return f"ServerSettings({server}, path={self.path!r}, user={self.user!r})"

    @property
    def authorization(self) -> str:
        """The value of ``Authorization``; empty for none."""
        if self.api_key:
            return f"ApiKey {self.api_key}"
        if not self.user:
            return ""
        pair = f"{self.user}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


class RequestRefusedError(BadResponseError):
    """The server accepted the credentials, and refused the request."""

    def __init__(self, message: str, *, uri: str, status: int, kind: str, reason: str) -> None:
        super().__init__(message, uri=uri, status=status, evidence=(("got", f"{kind}: {reason}"),))
        self.kind = kind
        self.reason = reason


class AnswerTooLargeError(BadResponseError):
    """A response has more bytes than are read; fewer documents in a request may help."""


class SearchServer:
    """A server, with one request after the other.

    Requests must be repeatable: they are retried when the server is busy, and when a reused
    connection turns out to be closed.
    """

    def __init__(self, settings: ServerSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._pool = _pool(settings)
        self.is_closed = False

    @property
    def address(self) -> str:
        """The server's address, for messages."""
        settings = self._settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        return f"{settings.scheme}://{host}:{settings.port}{settings.path}"

    def close(self) -> None:
        """Close the connection; no more requests may follow."""
        self.is_closed = True
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def request(
        self, method: str, path: str, body: object = None, *, query: Mapping[str, str] | None = None
    ) -> Any:
        """Send a request, again while the server is busy; return the decoded response."""
        target = f"{self._settings.path}{path}" + (f"?{urlencode(query)}" if query else "")
        content, kind = _encoded(body)
        status, after, answer = self._exchange(method, target, content, kind)
        for attempt in range(_RETRIES):
            if status not in _BUSY:
                break
            pause = after if after is not None else _PAUSE * 2.0**attempt
            _log.info("%s answers %d; asked again in %.1f s", self.address, status, pause)
            self._clock.sleep(min(pause, _LONGEST_PAUSE))
            status, after, answer = self._exchange(method, target, content, kind)
        if status not in _OK:
            raise self._error(status, answer, path)
        try:
            return msgspec.json.decode(answer) if answer else {}
        except (msgspec.DecodeError, RecursionError) as error:  # nested without end
            raise BadResponseError(
                f"{self.address} does not answer with JSON",
                uri=self.address,
                evidence=(("got", _printable(answer)),),
                hint="is that the address of an Elasticsearch or OpenSearch server?",
            ) from error

    def _exchange(
        self, method: str, target: str, content: bytes | None, kind: str
    ) -> tuple[int, float | None, bytes]:
        """Send a request and read the response: status, ``Retry-After``, body."""
        try:
            try:
                return self._exchange_once(method, target, content, kind)
            except ProtocolError:  # as of a connection that the server has closed
                return self._exchange_once(method, target, content, kind)
        except (HTTPError, OSError) as error:
            raise self._unreachable(error) from error

    def _exchange_once(
        self, method: str, target: str, content: bytes | None, kind: str
    ) -> tuple[int, float | None, bytes]:
        until = self._clock.monotonic() + _LONGEST
        fields = {"Accept": "application/json", "User-Agent": "resourcesync"}
        if content is not None:
            fields["Content-Type"] = kind
        if self._settings.authorization:
            fields["Authorization"] = self._settings.authorization
        response = self._pool.urlopen(
            method, target, content, fields,
            retries=False, redirect=False, preload_content=False, decode_content=False,
        )  # fmt: skip
        try:
            answer = self._read(response, until)
        except BaseException:
            response.close()  # the rest of it must not be read as the next one
            raise
        after = response.headers.get("Retry-After", "")
        return response.status, float(after) if after.isdecimal() else None, answer

    def _read(self, response: BaseHTTPResponse, until: float) -> bytes:
        answer = bytearray()
        while part := response.read1(_CHUNK):
            answer += part
            if len(answer) > MAX_ANSWER:
                raise AnswerTooLargeError(
                    f"an answer of {self.address} has more than {MAX_ANSWER >> 20} MiB",
                    uri=self.address,
                )
            if self._clock.monotonic() > until:
                raise TimeoutError(f"more than {_LONGEST:g} s for one answer")
        return bytes(answer)

    def _unreachable(self, error: Exception) -> SourceError:
        cause = error.__cause__ or next(iter(error.args), None)  # urllib3 has wrapped it
        error = cause if isinstance(cause, Exception) else error
        if isinstance(error, ssl.SSLCertVerificationError):
            return SourceRefusedError(
                f"the certificate of {self.address} is not trusted",
                uri=self.address,
                evidence=(("got", error.verify_message),),
                hint="name the authority's file by the option ca_file: --with ca_file=FILE",
                code="tls",
            )
        reason = str(error) or type(error).__name__
        is_plain = isinstance(error, ssl.SSLError) and "WRONG_VERSION" in reason
        return SourceUnavailableError(
            f"{self.address} does not answer",
            uri=self.address,
            evidence=(("got", reason[:_MAX_SHOWN]),),
            hint="the port does not use TLS: write http:// in the address" if is_plain else "",
        )

    def _error(self, status: int, answer: bytes, path: str) -> SourceError:
        kind, reason = _reason_of(answer)
        evidence = (("got", f"{status} {kind}: {reason}"), ("asked", path[:_MAX_SHOWN]))
        if status in _REFUSED:
            return self._refused(status, kind, path)
        if status in _BUSY:
            return SourceUnavailableError(
                f"{self.address} is temporarily unavailable",
                uri=self.address,
                status=status,
                evidence=evidence,
            )
        if _LOST_VIEW in kind or _LOST_VIEW in reason:
            return SourceUnavailableError(
                f"{self.address} has lost the point in time that was being read",
                uri=self.address,
                status=status,
                evidence=(*evidence, ("kept", "what was recorded before")),
                hint="run again; what was read of it is not used",
                code="lost-view",
            )
        if status == _NOT_FOUND:
            return SourceNotFoundError(
                f"{self.address} has no {path.split('/')[1] or 'such thing'}",
                uri=self.address,
                status=status,
                evidence=evidence,
                code="no-index",
            )
        message = f"{self.address} refused the request"
        return RequestRefusedError(
            message, uri=self.address, status=status, kind=kind, reason=reason
        )

    def _refused(self, status: int, kind: str, path: str) -> SourceRefusedError:
        return SourceRefusedError(
            f"{self.address} refuses",
            uri=self.address,
            status=status,
            evidence=(("got", f"{status} {kind}"), ("asked", path[:_MAX_SHOWN])),
            hint="give a user and a password, or an api_key; reading needs the privileges read and"
            " view_index_metadata: "
            "--with user=NAME --with password=env:NAME, or --with api_key=env:NAME",
        )


def segment(name: str) -> str:
    """Return a name as one part of a path."""
    return quote(name, safe="")


def _pool(settings: ServerSettings) -> HTTPConnectionPool:
    if settings.scheme == "http":
        return HTTPConnectionPool(settings.host, settings.port, timeout=_TIMEOUT)
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
    except OSError as error:  # unreadable, or no certificate
        raise ConfigurationError(
            f"ca_file={settings.ca_file} cannot be used",
            evidence=(("got", str(error)[:_MAX_SHOWN]),),
        ) from error
    return HTTPSConnectionPool(settings.host, settings.port, timeout=_TIMEOUT, ssl_context=context)


def _encoded(body: object) -> tuple[bytes | None, str]:
    if body is None:
        return None, ""
    if isinstance(body, bytes):
        return body, "application/x-ndjson"
    return msgspec.json.encode(body), "application/json"


def _reason_of(answer: bytes) -> tuple[str, str]:
    """Return the innermost type and message of an error, as far as there are any."""
    try:
        said: Any = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        return "no JSON", _printable(answer)
    error = said.get("error") if isinstance(said, dict) else None
    if not isinstance(error, dict):
        return "error", _printable(str(error or said).encode())
    causes = [error]
    if isinstance(error.get("root_cause"), list):
        causes = [item for item in error["root_cause"] if isinstance(item, dict)] or causes
    kind, reason = causes[0].get("type", "error"), causes[0].get("reason", "")
    return _printable(str(kind).encode()), _printable(str(reason).encode())


def _printable(content: bytes) -> str:
    text = content[: 4 * _MAX_SHOWN].decode(errors="replace")
    return "".join(name if name.isprintable() else " " for name in text)[:_MAX_SHOWN]
