"""Units that ask a server as they may, and what its log says of all of them together."""

from random import Random
from typing import NamedTuple

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.adapters.system import SystemClock
from resourcesync.ports import FetchRequest, FetchResponse
from resourcesync_cluster.ports import HostShare, UnitOutcome


class Batch(NamedTuple):
    """A unit: so many resources below an address."""

    name: str  # its name, which is a folder of the server's
    host: str
    wanted: int


class Nothing:
    def write(self, chunk: bytes) -> None:
        """Take no note."""

    def restart(self) -> None:
        """Take no note."""


def fetch_batch(batch: Batch, share: HostShare) -> UnitOutcome:
    origin = f"http://{batch.host}"
    jobs = share.jobs or 100
    settings = FetchSettings(
        rate=share.rate,
        jobs=jobs,
        per_host=jobs,
        robots="ignore",
        trusted_origins=frozenset({origin}),
    )
    requests = (
        FetchRequest(uri=f"{origin}/{batch.name}/{number}", sink=Nothing())
        for number in range(batch.wanted)
    )
    fetcher = CurlFetcher(settings, SystemClock(), Random(7))
    try:
        rows = sum(isinstance(item, FetchResponse) for item in fetcher.fetch(requests))
    finally:
        fetcher.close()
    return UnitOutcome(name=batch.name, rows=rows)


class Busiest(NamedTuple):
    asked: int
    allowed: float  # how many may be at most


JITTER = 0.25
"""Seconds by which a busy machine writes down a request late, and the next in time."""


def busiest(moments: list[tuple[float, str]], rate: float, lanes: int) -> Busiest:
    begun: dict[str, float] = {}
    for moment, target in moments:
        begun.setdefault(target.split("/")[1], moment)
    worst = Busiest(0, rate)
    for moment, _ in moments:
        asked = sum(moment <= other < moment + 1 for other, _ in moments)
        starts = sum(moment <= other < moment + 1 for other in begun.values())
        allowed = rate * (1 + JITTER) + lanes + starts
        if asked - allowed > worst.asked - worst.allowed:
            worst = Busiest(asked, allowed)
    return worst
