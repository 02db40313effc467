"""A network in memory: a fetcher that asks a function, and what stands between it and a Source."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from resourcesync.errors import (
    BadResponseError,
    ResourceMissingError,
    SourceError,
    SourceRefusedError,
    SourceUnavailableError,
    StorageError,
)
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Outcomes

BASE: Final = "http://source.example/"
"""Where a Source in memory is."""


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    uri: str = ""


Serve = Callable[[FetchRequest], Answer | Exception]
Route = Callable[[FetchRequest, Serve], Answer | Exception]
"""Answers a request, with what answers what comes through."""


class Network:
    """What stands between a mirror and its Source: the Source answers, unless a test says else."""

    def __init__(self, route: Route | None = None) -> None:
        self.answers: dict[str, Answer | Exception | Serve] = {}
        self.origin: Serve = lambda _: Answer(status=404)
        self._route = route

    def serve(self, request: FetchRequest) -> Answer | Exception:
        return self._answer(request) if self._route is None else self._route(request, self._answer)

    def _answer(self, request: FetchRequest) -> Answer | Exception:
        answer = self.answers.get(request.uri)
        if callable(answer):
            return answer(request)
        return self.origin(request) if answer is None else answer


class MemoryFetcher:
    def __init__(self, serve: Serve) -> None:
        self.serve = serve
        self.asked: list[str] = []
        self.requests = 0
        self.received = 0

    def fetch(self, requests: Iterable[FetchRequest]) -> Outcomes:
        for request in requests:
            self.asked.append(request.uri)
            self.requests += 1
            yield self._fetch(request)

    def _fetch(self, request: FetchRequest) -> FetchResponse | FetchFailure:
        answer = self.serve(request)
        if isinstance(answer, SourceError | StorageError):
            return FetchFailure(request=request, error=answer)
        if isinstance(answer, BaseException):
            raise answer
        error = _error(answer.status, request.uri)
        if error is not None:
            return FetchFailure(request=request, error=error)
        headers = {"etag": f'"{hashlib.sha256(answer.body).hexdigest()[:16]}"'} | answer.headers
        is_dated = not request.etag and request.last_modified == headers.get("last-modified", "-")
        is_same = is_dated or (request.etag and request.etag == headers["etag"])
        if answer.status == 304 or is_same:
            return FetchResponse(request=request, status=304, uri=request.uri, headers=headers)
        if request.limit is not None and len(answer.body) > request.limit:
            too_big = BadResponseError("more bytes than allowed", uri=request.uri, code="too-big")
            return FetchFailure(request=request, error=too_big)
        try:
            if request.part is not None:
                request.sink.restart()
            half = len(answer.body) // 2
            for chunk in (answer.body[:half], answer.body[half:]):
                if chunk:
                    self.received += len(chunk)
                    request.sink.write(chunk)
        except StorageError as storage:
            return FetchFailure(request=request, error=storage)
        return FetchResponse(
            request=request,
            status=200,
            uri=answer.uri or request.uri,
            headers=headers,
            received=len(answer.body),
        )


def _error(status: int, uri: str) -> SourceError | None:
    if status in (200, 304):
        return None
    if status in (404, 410):
        return ResourceMissingError(f"{status}", uri=uri, status=status)
    if status in (401, 403):
        return SourceRefusedError(f"{status}", uri=uri, status=status)
    if status >= 500:
        return SourceUnavailableError(f"{status}", uri=uri, status=status)
    return BadResponseError(f"{status}", uri=uri, status=status)
