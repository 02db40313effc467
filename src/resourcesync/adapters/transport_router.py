"""Routing of requests to the transport of their scheme, with checks on plug-in transports.

A plug-in transport may answer wrongly, never answer, or raise: then its requests have failed, and
the bytes that it delivered count only as far as the lists' digests prove them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import structs

from resourcesync.errors import (
    BadResponseError,
    Evidence,
    Remedy,
    ResourceSyncError,
    SourceError,
    SourceUnavailableError,
    StorageError,
)
from resourcesync.ports import Fetcher, FetchFailure, FetchRequest, FetchResponse, Purpose, Sink

_HTTP: Final = frozenset({"http", "https"})
_NOT_MODIFIED: Final = 304
_OK: Final = 200
_MOST_FIELDS: Final = 100


class Transports:
    """A fetcher that routes each request to the transport of its scheme.

    Consecutive requests for the same transport are one ``fetch`` of it.

    Args:
        http: The transport for http and https.
        open_other: Opens the transport for another scheme; raises if there is none.
        limits: Most bytes of a body, by purpose.
    """

    def __init__(
        self, http: Fetcher, open_other: Callable[[str], Fetcher], limits: Mapping[Purpose, int]
    ) -> None:
        self._http = http
        self._open = open_other
        self._limits = limits
        self._plugins: dict[str, _CheckedTransport] = {}

    @property
    def traffic(self) -> tuple[int, int]:
        """Number of requests to plug-in transports, and of bytes from them."""
        others = self._plugins.values()
        return sum(other.requests for other in others), sum(other.received for other in others)

    def fetch(self, requests: Iterable[FetchRequest]) -> Iterator[FetchResponse | FetchFailure]:
        """Carry out the requests; yield each outcome as it comes."""
        coming = _PeekableRequests(iter(requests))
        while (scheme := coming.scheme()) is not None:
            fetcher = self._http if scheme in _HTTP else self._plugin_transport(scheme)
            if isinstance(fetcher, ResourceSyncError):
                yield from (_failure(request, fetcher) for request in coming.same_scheme())
                continue
            first = coming.first
            yield from fetcher.fetch(coming.same_scheme())
            if coming.first is first is not None:  # the transport did not read the request
                yield _failure(coming.take(), _broken(scheme, first.uri, "it read no request"))

    def _plugin_transport(self, scheme: str) -> "Fetcher | ResourceSyncError":
        if scheme not in self._plugins:
            try:
                fetcher = self._open(scheme)
            except ResourceSyncError as error:
                return error
            self._plugins[scheme] = _CheckedTransport(scheme, fetcher, self._limits)
        return self._plugins[scheme]

    def close(self) -> None:
        """Close the plug-in transports."""
        while self._plugins:
            self._plugins.popitem()[1].close()


class _PeekableRequests:
    """Requests, read ahead by one to know the next transport."""

    def __init__(self, requests: Iterator[FetchRequest]) -> None:
        self._requests = requests
        self.first: FetchRequest | None = None

    def scheme(self) -> str | None:
        """Return the scheme of the next request; ``None`` if there is none."""
        if self.first is None:
            self.first = next(self._requests, None)
        return None if self.first is None else self.first.uri.partition(":")[0].lower()

    def take(self) -> FetchRequest:
        """Return the next request, which must exist."""
        found, self.first = self.first, None
        assert found is not None
        return found

    def same_scheme(self) -> Iterator[FetchRequest]:
        """Yield requests as long as they have the scheme of the next one."""
        scheme = self.scheme()
        while self.scheme() == scheme and self.first is not None:
            yield self.take()


class _CheckedTransport:
    """A plug-in transport whose responses are checked.

    Args:
        scheme: Its scheme.
        fetcher: The transport.
        limits: Most bytes of a body, by purpose.
    """

    def __init__(self, scheme: str, fetcher: Fetcher, limits: Mapping[Purpose, int]) -> None:
        self._scheme = scheme
        self._fetcher = fetcher
        self._limits = limits
        self.requests = 0
        self.received = 0

    def fetch(self, requests: Iterable[FetchRequest]) -> Iterator[FetchResponse | FetchFailure]:
        """Carry out the requests; those left unanswered are failures."""
        waiting: dict[int, _PluginRequest] = {}
        crash: list[Exception] = []
        why = "it left the request unanswered"
        try:
            for outcome in self._fetcher.fetch(self._wrap_requests(requests, waiting, crash)):
                errand = waiting.pop(id(getattr(outcome, "request", None)), None)
                if errand is None:
                    why = "it answered an unknown request"
                    break
                self.received += errand.sink.length
                if errand.sink.crash is not None:
                    crash.append(errand.sink.crash)
                    break
                yield self._check_outcome(errand, outcome)
        except GeneratorExit:
            raise
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything
            why = f"{type(error).__name__}: {error}"[:500]
        crashes = [
            *crash,
            *(request.sink.crash for request in waiting.values() if request.sink.crash),
        ]
        if crashes:
            raise crashes[0]
        for errand in waiting.values():
            self.received += errand.sink.length
            yield _failure(errand.request, errand.sink.refused or self._broken(errand, why))

    def _wrap_requests(
        self,
        requests: Iterable[FetchRequest],
        waiting: "dict[int, _PluginRequest]",
        crash: list[Exception],
    ) -> Iterator[FetchRequest]:
        """Yield the requests to the transport; errors of our own side are not blamed on it."""
        try:
            for request in requests:
                limit = self._limits[request.purpose] if request.limit is None else request.limit
                if request.part is not None:
                    request.sink.restart()
                sink = _LimitedSink(request.sink, limit, request.uri)
                asked = structs.replace(request, sink=sink, limit=limit, part=None, on_start=None)
                waiting[id(asked)] = _PluginRequest(request, asked, sink)
                self.requests += 1
                yield asked
        except Exception as error:
            crash.append(error)
            raise

    def _check_outcome(
        self, errand: "_PluginRequest", outcome: object
    ) -> FetchResponse | FetchFailure:
        try:
            return self._read(errand, outcome)
        except Exception as error:  # noqa: BLE001 - an answer may be anything, too
            return _failure(errand.request, self._broken(errand, repr(error)[:500]))

    def _read(self, errand: "_PluginRequest", outcome: object) -> FetchResponse | FetchFailure:
        request, sink = errand.request, errand.sink
        if sink.refused is not None:
            return _failure(request, sink.refused)
        if isinstance(outcome, FetchFailure) and isinstance(
            outcome.error, SourceError | StorageError
        ):
            return FetchFailure(request=request, error=outcome.error, tries=int(outcome.tries))
        if not isinstance(outcome, FetchResponse):
            return _failure(request, self._broken(errand, f"it answered {outcome!r:.200}"))
        asks = bool(request.etag or request.last_modified)
        if outcome.status != _OK and (outcome.status != _NOT_MODIFIED or not asks or sink.length):
            return _failure(request, self._broken(errand, f"it answered {outcome.status!r:.20}"))
        fields = [(str(name).lower(), str(text)) for name, text in outcome.headers.items()]
        return FetchResponse(
            request=request,
            status=outcome.status,
            uri=outcome.uri if self._is_ours(outcome.uri) else request.uri,
            headers=dict(fields[:_MOST_FIELDS]),
            received=sink.length,
            tries=int(outcome.tries),
        )

    def _is_ours(self, uri: object) -> bool:
        return isinstance(uri, str) and uri.lower().startswith(f"{self._scheme}:")

    def _broken(self, errand: "_PluginRequest", why: str) -> SourceError:
        return _broken(self._scheme, errand.request.uri, why)

    def close(self) -> None:
        """Close the transport, if it can be closed; ignore errors."""
        close = getattr(self._fetcher, "close", None)
        if callable(close):
            try:
                close()
            except Exception:  # noqa: BLE001 - everything is fetched
                return


class _PluginRequest:
    """A request that a plug-in transport is carrying out."""

    __slots__ = ("request", "sink", "wrapped")

    def __init__(self, request: FetchRequest, asked: FetchRequest, sink: "_LimitedSink") -> None:
        self.request = request
        self.wrapped = asked  # referenced, so no other request gets its id meanwhile
        self.sink = sink


class _LimitedSink:
    """A sink that enforces the limit, and records errors of our own side.

    Attributes:
        length: Bytes accepted since the last restart.
        refused: The reason that no more is accepted.
        crash: An error that must survive the transport, such as a stop of the run.
    """

    def __init__(self, sink: Sink, limit: int, uri: str) -> None:
        self._sink = sink
        self._limit = limit
        self._uri = uri
        self.length = 0
        self.refused: SourceError | StorageError | None = None
        self.crash: Exception | None = None

    def write(self, chunk: bytes) -> None:
        """Write the next bytes.

        Raises:
            StorageError: They cannot be written.
            BadResponseError: There are too many.
        """
        if self.length + len(chunk) > self._limit:
            evidence: Evidence = (("limit", f"{self._limit} bytes"),)
            self.refused = BadResponseError(
                "the response is larger than allowed",
                uri=self._uri,
                evidence=evidence,
                code="too-big",
            )
        if self.refused is not None:
            raise self.refused
        self._call_sink(lambda: self._sink.write(bytes(chunk)))
        self.length += len(chunk)

    def restart(self) -> None:
        """Discard all bytes so far."""
        self._call_sink(self._sink.restart)
        self.length = 0

    def _call_sink(self, deed: Callable[[], None]) -> None:
        try:
            deed()
        except StorageError as error:
            self.refused = error
            raise
        except Exception as error:
            self.crash = error
            raise


def _broken(scheme: str, uri: str, why: str) -> SourceError:
    return SourceUnavailableError(
        f"the transport for {scheme} failed",
        uri=uri,
        evidence=(("got", why),),
        hint="see the plug-in's own documentation, which the list of plug-ins names",
        remedy=Remedy("list-plugins"),
        code="transport",
    )


def _failure(request: FetchRequest, error: ResourceSyncError) -> FetchFailure:
    if not isinstance(error, SourceError | StorageError):
        error = SourceUnavailableError(
            error.message,
            uri=request.uri,
            evidence=error.evidence,
            hint=error.hint,
            code=error.code,
            remedy=error.remedy,
        )
    return FetchFailure(request=request, error=error)
