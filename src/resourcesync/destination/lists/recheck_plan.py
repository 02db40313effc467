"""Plan of the rechecks: which copies without a listed hash are requested again, and when. Pure.

A date that does not move proves little: in about half of the producers of sitemaps it does not move
with the page. So a walk in URI order goes over all copies that no hash proves, a few in each pull,
and is through within the period; then it begins again. The position of the walk is all that is
stored: the copy next in the walk is always the one requested longest ago, unless it was fetched
since.
"""

from math import ceil
from typing import Final

from msgspec.structs import replace

from resourcesync.mirror_state.rows import Copy, RecheckState
from resourcesync.model.timestamps import DAY

SITEMAP_PERIOD: Final = 7 * DAY
LIST_PERIOD: Final = 30 * DAY
LONGEST_PERIOD: Final = 90 * DAY
DOUBLING: Final = 200
"""Rechecks without a stale copy after which the period doubles."""
_MOST: Final = 20
"""One of so many copies is requested in one pull, at most."""
_TIME: Final = 10
"""One part of so many of the time from pull to pull is for rechecks, at most."""
_SAMPLE: Final = 100
"""One of so many copies without a validator is requested: each costs all its bytes."""


def base_period(seconds: float | None, *, is_sitemap: bool) -> int:
    """Return the period in microseconds: the one that was chosen, or the default."""
    if seconds is not None:
        return round(seconds * 1_000_000)
    return SITEMAP_PERIOD if is_sitemap else LIST_PERIOD


def first_state(base: int, now: int) -> RecheckState:
    """Return the state after the first pull: all copies were requested just now."""
    return RecheckState(base=base, period=base, began=now, paced=now, pulled=now)


def with_base(state: RecheckState, base: int) -> RecheckState:
    """Return the state with the chosen period; another one than before is learnt anew."""
    return state if base == state.base else replace(state, base=base, period=base, clean=0)


def pace(state: RecheckState, copies: int, now: int) -> tuple[int, RecheckState]:
    """Return how many copies the walk goes on in this pull, and the state with that pace.

    Each pull catches up with the time since the last one. A round is to end one pull early, since
    a copy may have been requested just before its turn. At most 5 % of the copies are for one
    pull, but at least one.
    """
    interval = max(0, now - state.pulled)
    round_time = max(state.period - interval, state.period // 2, 1)
    paced = max(min(state.paced, now), now - round_time)
    most = max(1, copies // _MOST)
    due = min((now - paced) * copies // round_time, most) if state.period and copies else 0
    paced += ceil(due * round_time / copies) if copies else 0
    return due, replace(state, paced=paced, pulled=now)


def time_limit(state: RecheckState, now: int, max_duration: float | None) -> float:
    """Return the seconds that the rechecks of a pull may take: a tenth of the time for it.

    That is the time since the last pull, or the limit of the run, whichever is less.
    """
    interval = max(0, now - state.pulled) / 1_000_000
    return min(interval, interval if max_duration is None else max_duration) / _TIME


def with_visit(state: RecheckState, copy: Copy) -> tuple[bool, RecheckState]:
    """Return whether a copy is requested on the walk, and the state after it.

    A copy with a validator is: the Source can confirm it without its bytes. Of the others a sample
    is: another one in each round, and at least one of them.
    """
    state = replace(state, after=copy.uri)
    if copy.etag or copy.last_modified:
        return True, state
    turn = state.rounds % min(_SAMPLE, max(1, state.unvalidated_before))
    is_chosen = state.unvalidated % _SAMPLE == turn
    return is_chosen, replace(state, unvalidated=state.unvalidated + 1)


def with_next_round(state: RecheckState, now: int) -> RecheckState:
    """Return the state at the start of the next round."""
    return replace(
        state,
        began=now,
        after="",
        rounds=state.rounds + 1,
        lasted=now - state.began,
        unvalidated=0,
        unvalidated_before=state.unvalidated,
    )


def with_result(state: RecheckState, same: int, stale: int) -> RecheckState:
    """Return the state after rechecks."""
    if stale:
        return replace(state, period=state.base, clean=0)
    clean = state.clean + same
    if clean < DOUBLING:
        return replace(state, clean=clean)
    return replace(state, period=min(2 * state.period, max(state.base, LONGEST_PERIOD)), clean=0)
