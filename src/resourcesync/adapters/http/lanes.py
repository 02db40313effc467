"""The requests of one ``fetch`` to one origin, in order, with those that wait for another try."""

from collections import deque
from heapq import heappop, heappush
from itertools import count
from math import inf

from resourcesync.adapters.http.errand import RequestState
from resourcesync.adapters.http.origins import OriginState


class OriginQueue:
    """A queue to one origin.

    Attributes:
        origin: Which.
        in_flight: Transfers under way.
        asking: Whether ``robots.txt`` is being fetched.
    """

    def __init__(self, origin: OriginState) -> None:
        self.origin = origin
        self.in_flight = 0
        self.awaits_rules = False
        self._urgent: list[tuple[float, int, RequestState]] = []
        self._queue: deque[RequestState] = deque()
        self._later: list[tuple[float, int, RequestState]] = []
        self._order = count()

    def add(self, errand: RequestState) -> None:
        """Put a new errand last."""
        self._queue.append(errand)

    def add_retry(self, errand: RequestState, moment: float) -> None:
        """Put an errand before all new ones, but not before ``moment``, in seconds of the clock."""
        waiting = self._urgent if errand.for_robots else self._later
        heappush(waiting, (moment, next(self._order), errand))

    def pop(self, now: float) -> RequestState | None:
        """Return the next errand that may start, ``None`` when there is none now.

        While the rules are being asked for, that can only be one that asks for rules.
        """
        if self._urgent and self._urgent[0][0] <= now:
            return heappop(self._urgent)[2]
        if self.awaits_rules:
            return None
        if self._later and self._later[0][0] <= now:
            return heappop(self._later)[2]
        return self._queue.popleft() if self._queue else None

    def pop_all(self) -> list[RequestState]:
        """Return all errands that wait, those that ask for rules first."""
        waiting = [errand for _, _, errand in (*self._urgent, *self._later)]
        waiting.extend(self._queue)
        self._urgent.clear()
        self._later.clear()
        self._queue.clear()
        return waiting

    @property
    def idle(self) -> bool:
        """Whether nothing waits here and nothing is under way."""
        return not (
            self.in_flight or self.awaits_rules or self._queue or self._later or self._urgent
        )

    def wake_at(self) -> float | None:
        """Return the moment at which an errand may start, ``None`` when that is not about time."""
        politeness = self.origin.politeness
        if self.in_flight >= politeness.allowance:
            return None
        heaps = [self._urgent] if self.awaits_rules else [self._urgent, self._later]
        due = [heap[0][0] for heap in heaps if heap]
        if self._queue and not self.awaits_rules:
            due.append(-inf)
        return max(min(due), politeness.not_before) if due else None
