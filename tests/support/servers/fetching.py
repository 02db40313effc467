"""What tests of the fetcher share: a sink that keeps, settings that are quick."""

from collections.abc import Iterable
from random import Random
from typing import Any

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.adapters.http.politeness import KnownOrigins
from resourcesync.adapters.http.settings import one_proxy
from resourcesync.adapters.system import SystemClock
from resourcesync.ports import Clock, FetchFailure, FetchRequest, FetchResponse, Purpose


class KeepingSink:
    def __init__(self) -> None:
        self.kept = bytearray()
        self.restarts = 0

    def write(self, chunk: bytes) -> None:
        self.kept += chunk

    def restart(self) -> None:
        self.kept.clear()
        self.restarts += 1


def quick_fetcher(*trusted: str, clock: Clock | None = None, **changes: Any) -> CurlFetcher:
    settings: dict[str, Any] = {
        "timeout": 0.5,
        "connect_timeout": 2.0,
        "backoff": 0.01,
        "max_wait": 2.0,
        "retries": 2,
        "robots": "ignore",
        "trusted_origins": frozenset(trusted),
    }
    proxy, secret = changes.pop("proxy", ""), changes.pop("proxy_secret", None)
    settings |= {"proxies": one_proxy(proxy, secret)}
    known = changes.pop("known_origins", None) or KnownOrigins()
    return CurlFetcher(
        FetchSettings(**settings | changes), clock or SystemClock(), Random(7), known
    )


def request(uri: str, purpose: Purpose = Purpose.RESOURCE, **fields: Any) -> FetchRequest:
    return FetchRequest(uri=uri, sink=KeepingSink(), purpose=purpose, **fields)


def kept(outcome: FetchResponse | FetchFailure) -> bytes:
    sink = outcome.request.sink
    assert isinstance(sink, KeepingSink)
    return bytes(sink.kept)


def fetch_one(fetcher: CurlFetcher, asked: FetchRequest | str) -> FetchResponse | FetchFailure:
    (outcome,) = fetcher.fetch([asked if isinstance(asked, FetchRequest) else request(asked)])
    return outcome


def failure(outcome: FetchResponse | FetchFailure) -> FetchFailure:
    assert isinstance(outcome, FetchFailure), f"{outcome} is no failure"
    return outcome


def response(outcome: FetchResponse | FetchFailure) -> FetchResponse:
    assert isinstance(outcome, FetchResponse), getattr(outcome, "error", outcome)
    return outcome


def fetch_all(fetcher: CurlFetcher, uris: Iterable[str]) -> list[FetchResponse | FetchFailure]:
    return list(fetcher.fetch(request(uri) for uri in uris))
