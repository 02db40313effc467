"""Consistency, latency and efficiency of one Destination, measured while time passes.

All is counted from the end of the first pull on, which has figures of its own: a first copy costs
the same whatever follows. Nothing is counted after the end of the run, though some pulls follow to
see the outcome. A figure that was never measured is ``None``, not 0.

- *Consistency*: the share of the resources, of those that the origin or the Destination has, that
  are equal on both sides; the mean over time.
- *Latency* of a change: the seconds from its time at the origin until the Destination has that
  version, or a later one, of the resource; or has removed it, if it was deleted. Changes that did
  not arrive before the end have none: their number is ``changes`` less ``synchronized``. A resource
  that is rolled back with its Source changes, too.
- *Efficiency*: the bytes of installed resources, of all bytes that were received.

These are the three measures of the simulations of 2013 (arXiv:1306.1073), counted as described.
"All bytes received" includes documents, unused parts of packages, and answers without effect.
"""

import msgspec

ABSENT = ""
"""The digest of an absent resource."""


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one run of one Destination.

    Where no first pull had ended, the figures from ``consistency`` to ``useful`` and those from
    ``first`` on are ``None``.

    Attributes:
        consistency: 0 to 1.
        latency, latency_95: Median and 95th percentile, in seconds; ``None`` without an arrived
            change.
        efficiency: 0 to 1; ``None`` where nothing was received.
        requests: Number of requests after the first pull.
        received: Bytes received after it.
        useful: Bytes of these that belong to installed resources.
        changes: Number of changes at the origin after it.
        synchronized: Number of these that the Destination has, themselves or by a later one.
        pulls: Number of pulls that ended, also the first one and those before it.
        failed: Number of pulls that ended with an error.
        crashes: Number of pulls in which the Destination crashed.
        peak: The most requests within one second, in the whole run.
        lies: Number of false "in sync" reports, also after the end: this must be 0.
        outcome: ``converged``, ``waiting`` or ``silently wrong``, after all changes and faults
            ended.
        first: Seconds until the first pull had ended.
        first_requests, first_received: Requests and bytes until the first pull had ended.
    """

    consistency: float | None = None
    latency: float | None = None
    latency_95: float | None = None
    efficiency: float | None = None
    requests: int | None = None
    received: int | None = None
    useful: int | None = None
    changes: int = 0
    synchronized: int = 0
    pulls: int
    failed: int
    crashes: int
    peak: int = 0
    lies: int = 0
    outcome: str = ""
    first: float | None = None
    first_requests: int | None = None
    first_received: int | None = None


class ConsistencyMeter:
    """States of both sides over time."""

    def __init__(self) -> None:
        self._origin: dict[str, str] = {}
        self._copies: dict[str, str] = {}
        self._extra: set[str] = set()
        self.wrong: dict[str, float] = {}
        """Names of unequal resources, and since when they are, in seconds."""
        self.latencies: list[float] = []
        self.changes = 0
        self._waiting: dict[str, list[tuple[float, str]]] = {}
        self._history: dict[str, list[tuple[float, str]]] = {}
        self._since = 0.0
        self.began: float | None = None
        """The end of the first pull, in seconds; ``None`` before it."""
        self._sum = 0.0

    def fill(self, there: dict[str, str]) -> None:
        """Begin with the resources of the origin."""
        self._origin = dict(there)
        self.wrong = dict.fromkeys(there, 0.0)

    def record_origin_change(self, name: str, digest: str, at: float) -> None:
        """Record a change at the origin; ``ABSENT`` for a deletion."""
        self._advance(at)
        self._history.setdefault(name, []).append((at, self._origin.get(name, ABSENT)))
        if self.began is not None:
            self.changes += 1
            self._waiting.setdefault(name, []).append((at, digest))
        self._put(self._origin, name, digest)
        self._judge(name, at)

    def record_copy_change(self, name: str, digest: str, at: float) -> None:
        """Record a change at the Destination; ``ABSENT`` for a deletion."""
        self._advance(at)
        self._put(self._copies, name, digest)
        waiting = self._waiting.get(name, [])
        places = [place for place, (_, wanted) in enumerate(waiting) if wanted == digest]
        if places:
            done = waiting[: places[-1] + 1]
            self.latencies.extend(at - since for since, _ in done)
            self._waiting[name] = waiting[places[-1] + 1 :]
        self._judge(name, at)

    def begin(self, at: float) -> None:
        """Start to count: the first pull has ended."""
        self._advance(at)
        self.began = at

    def is_true(self, as_of: float, at: float) -> bool:
        """True if all copies equal the origin at some time from ``as_of`` until now."""
        return all(self._was(name, as_of) for name in self.wrong) and at >= as_of

    def consistency(self, at: float) -> float | None:
        """Return the mean share of equal resources, from the end of the first pull until now.

        ``None`` where it has not ended, or ends now.
        """
        self._advance(at)
        if self.began is None or at <= self.began:
            return None
        return self._sum / (at - self.began)

    def _was(self, name: str, as_of: float) -> bool:
        """True if a copy equals the origin at ``as_of`` or later."""
        here = self._copies.get(name, ABSENT)
        # Each item has the end of a version's time.
        return any(
            until >= as_of and before == here for until, before in self._history.get(name, ())
        )

    def _put(self, side: dict[str, str], name: str, digest: str) -> None:
        if digest == ABSENT:
            side.pop(name, None)
        else:
            side[name] = digest

    def _judge(self, name: str, at: float) -> None:
        if self._origin.get(name, ABSENT) == self._copies.get(name, ABSENT):
            self.wrong.pop(name, None)
        else:
            self.wrong.setdefault(name, at)
        if name in self._copies and name not in self._origin:
            self._extra.add(name)
        else:
            self._extra.discard(name)

    @property
    def share(self) -> float:
        """Return the share of equal resources now."""
        everything = len(self._origin) + len(self._extra)
        return 1.0 if not everything else 1.0 - len(self.wrong) / everything

    def _advance(self, at: float) -> None:
        if at <= self._since:
            return
        if self.began is not None:
            self._sum += self.share * (at - self._since)
        self._since = at


def percentile(values: list[float], share: float) -> float | None:
    """Return the value below which a share of the values lies; ``None`` of none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[round(share * (len(ordered) - 1))]
