"""Transports of others may do anything: each request has one end, and our own errors are ours."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from resourcesync.adapters.transport_router import Transports
from resourcesync.errors import (
    DiskFullError,
    ResourceMissingError,
    SourceError,
    StoppedError,
    StorageError,
)
from resourcesync.ports import (
    Fetcher,
    FetchFailure,
    FetchRequest,
    FetchResponse,
    PartialBody,
    Purpose,
)
from tests.support.servers.fetching import KeepingSink, kept

LIMITS = dict.fromkeys(Purpose, 10)
Way = Callable[[Iterator[FetchRequest]], Iterator[Any]]


class Told:
    """A transport that does what a test says."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self.closed = 0

    def fetch(self, requests: Iterable[FetchRequest]) -> Iterator[FetchResponse | FetchFailure]:
        return self._way(iter(requests))

    def close(self) -> None:
        self.closed += 1
        raise RuntimeError("nobody should see this")


def good(requests: Iterator[FetchRequest]) -> Iterator[Any]:
    for request in requests:
        request.sink.write(request.uri[-1:].encode())
        yield FetchResponse(request=request, status=200, uri=request.uri, headers={"ETag": "x"})


def raises(requests: Iterator[FetchRequest]) -> Iterator[Any]:
    next(requests)
    raise RuntimeError("no luck today")


def answers_a_stranger(requests: Iterator[FetchRequest]) -> Iterator[Any]:
    next(requests)
    yield FetchResponse(request=asked("shelf://h/zz"), status=200, uri="shelf://h/zz")


def stops(requests: Iterator[FetchRequest]) -> Iterator[Any]:
    return iter(())


def takes_nothing(_: Iterator[FetchRequest]) -> Iterator[Any]:
    return iter(())


def answers_twice(requests: Iterator[FetchRequest]) -> Iterator[Any]:
    request = next(requests)
    for _ in range(2):
        yield FetchResponse(request=request, status=200, uri=request.uri)


def of_status(status: int) -> Way:
    def way(requests: Iterator[FetchRequest]) -> Iterator[Any]:
        for request in requests:
            yield FetchResponse(request=request, status=status, uri=request.uri)

    return way


def does_not_care(requests: Iterator[FetchRequest]) -> Iterator[Any]:
    for request in requests:
        with suppress(Exception):
            request.sink.write(b"x")
        yield FetchResponse(request=request, status=200, uri=request.uri)


def brings_too_much(requests: Iterator[FetchRequest]) -> Iterator[Any]:
    for request in requests:
        with suppress(SourceError):  # it does not care
            request.sink.write(b"x" * 11)
        yield FetchResponse(request=request, status=200, uri=request.uri)


def answers_nonsense(requests: Iterator[FetchRequest]) -> Iterator[Any]:
    for request in requests:
        yield type("Odd", (), {"request": request})()


def answers_without_fields(requests: Iterator[FetchRequest]) -> Iterator[Any]:
    for request in requests:
        nothing: Any = None
        yield FetchResponse(request=request, status=200, uri=request.uri, headers=nothing)


def asked(uri: str, **fields: Any) -> FetchRequest:
    return FetchRequest(uri=uri, sink=KeepingSink(), **fields)


def transports(way: Way, http: Way = good) -> Transports:
    def open_other(scheme: str) -> Fetcher:
        if scheme != "shelf":
            raise SourceError(f"nothing is for {scheme}", code="no-plugin")
        return Told(way)

    return Transports(Told(http), open_other, LIMITS)


@pytest.mark.parametrize(
    "way",
    [
        raises,
        answers_a_stranger,
        stops,
        takes_nothing,
        of_status(304),
        of_status(500),
        brings_too_much,
        answers_nonsense,
        answers_without_fields,
    ],
)
def test_what_a_transport_does_wrongly_is_a_failure_of_its_requests(way: Way) -> None:
    requests = [asked(f"shelf://h/{name}") for name in "abc"]
    outcomes = list(transports(way).fetch(requests))
    assert {type(outcome) for outcome in outcomes} == {FetchFailure}
    assert [outcome.request for outcome in outcomes] == requests


def test_a_request_that_is_answered_twice_has_its_first_answer() -> None:
    outcomes = list(transports(answers_twice).fetch([asked("shelf://h/a")]))
    assert [type(outcome) for outcome in outcomes] == [FetchResponse]


def test_requests_find_the_transport_for_their_scheme_in_their_order() -> None:
    uris = ["http://h/1", "shelf://h/2", "SHELF://h/3", "https://h/4", "none://h/5"]
    fetcher = transports(good)
    outcomes = list(fetcher.fetch(map(asked, uris)))
    assert [outcome.request.uri for outcome in outcomes] == uris
    assert [kept(outcome) for outcome in outcomes] == [b"1", b"2", b"3", b"4", b""]
    assert isinstance(outcomes[-1], FetchFailure)
    assert outcomes[-1].error.code == "no-plugin"
    second = outcomes[1]
    assert isinstance(second, FetchResponse)
    assert (second.headers, second.received) == ({"etag": "x"}, 1)
    assert fetcher.traffic == (2, 2)
    fetcher.close()


class Full(KeepingSink):
    """A sink on a full disk, or of a run that is over."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def write(self, chunk: bytes) -> None:
        raise self._error


def test_a_full_disk_is_told_as_such_and_the_end_of_the_run_ends_it() -> None:
    full = FetchRequest(uri="shelf://h/a", sink=Full(DiskFullError("no room")))
    (outcome,) = transports(good).fetch([full])
    assert isinstance(outcome, FetchFailure)
    assert isinstance(outcome.error, StorageError)
    for way in (good, does_not_care):
        over = FetchRequest(uri="shelf://h/a", sink=Full(StoppedError("enough")))
        with pytest.raises(StoppedError):
            list(transports(way).fetch([over]))


def test_what_the_list_of_requests_raises_is_no_fault_of_the_transport() -> None:
    def requests() -> Iterator[FetchRequest]:
        yield asked("shelf://h/a")
        raise StoppedError("enough")

    outcomes = transports(good).fetch(requests())
    with pytest.raises(StoppedError):
        list(outcomes)


def test_what_it_says_is_missing_is_missing_and_where_it_leads_is_its_own() -> None:
    def way(requests: Iterator[FetchRequest]) -> Iterator[Any]:
        first = next(requests)
        yield FetchFailure(request=first, error=ResourceMissingError("gone", uri=first.uri))
        second = next(requests)
        yield FetchResponse(request=second, status=200, uri="http://evil.example/")

    outcomes = list(transports(way).fetch([asked("shelf://h/a"), asked("shelf://h/b")]))
    assert isinstance(outcomes[0], FetchFailure)
    assert isinstance(outcomes[0].error, ResourceMissingError)
    assert isinstance(outcomes[1], FetchResponse)
    assert outcomes[1].uri == "shelf://h/b"


def test_a_part_of_an_earlier_run_is_not_gone_on_from() -> None:
    sink = KeepingSink()
    sink.write(b"old")
    request = FetchRequest(uri="shelf://h/a", sink=sink, part=PartialBody(length=3, validator="x"))
    (outcome,) = transports(good).fetch([request])
    assert kept(outcome) == b"a"
