"""Rotation of lists: which are due again, closed, superseded, archived, dropped and removed."""

import logging
from collections.abc import Callable, Container, Iterable, Mapping
from itertools import chain, count
from typing import Final

from msgspec.structs import replace

from resourcesync.model.timestamps import SECOND, from_microseconds
from resourcesync.ports.documents import DocumentStore
from resourcesync.source import naming
from resourcesync.source.publication_settings import Policy
from resourcesync.source.stored_plan import PublicationPlan, Span, SupersededList

_log: Final = logging.getLogger(__name__)
GRACE: Final = 24 * 3_600 * 1_000_000
"""Delay before unlisted documents are removed, for those still reading them; microseconds."""
COALESCED: Final = 3_600 * 1_000_000
"""Resource Lists that are closer in time than this are superseded as one; microseconds."""
MOST_LISTS: Final = 10_000
"""Change Lists that one index or archive leads to; the specification allows 50,000 entries."""


def is_rebase_due(plan: PublicationPlan, policy: Policy, now: int) -> bool:
    """True if the Resource List must be written again: it is old, or pins the Change Lists.

    It pins them when none can be dropped since it, and one is too old, or they are too many.
    """
    if not policy.resource_list:
        return False
    if policy.rebase_every and now - plan.at >= policy.rebase_every * SECOND:
        return True
    if not plan.closed[1:] or plan.closed[0].reached <= plan.at:
        return False
    return _is_old(plan.closed[0], policy, now) or len(plan.closed) >= MOST_LISTS


def _is_old(closed: Span, policy: Policy, now: int) -> bool:
    return 0 < policy.keep_seconds * SECOND < now - closed.reached


def is_rotation_due(plan: PublicationPlan, policy: Policy, now: int) -> bool:
    """True if the open Change List has reached its age; an empty one never does."""
    return (
        policy.rotate > 0
        and plan.open.entries > 0
        and now - plan.open.start >= policy.rotate * SECOND
    )


def close_list(plan: PublicationPlan) -> PublicationPlan:
    """Return the plan with its open list closed at its newest change, and a new one after it."""
    done = replace(plan.open, name=naming.change_list(plan.number))
    return replace(
        plan, number=plan.number + 1, closed=(*plan.closed, done), open=_after(done, done.reached)
    )


def close_list_at(plan: PublicationPlan, moment: int, taken: Iterable[str]) -> PublicationPlan:
    """Return the plan with all its changes in closed lists; the last ends at ``moment``."""
    name = naming.dated(naming.CHANGE_LIST, from_microseconds(moment))
    alternatives = (name.replace(".xml", f"-{number}.xml") for number in count(2))
    in_use = {*taken, *(span.name for span in plan.closed)}
    free = next(name for name in chain((name,), alternatives) if name not in in_use)
    done = replace(plan.open, reached=moment, name=free)
    return replace(plan, closed=(*plan.closed, done), open=_after(done, moment))


def _after(span: Span, start: int) -> Span:
    return Span(after=span.last, last=span.last, start=start, reached=start)


def supersede(
    plan: PublicationPlan, at: int, former: SupersededList, public: int | None
) -> PublicationPlan:
    """Return the plan with the Resource List of another moment, and the superseded ones.

    A run that could not write the planned one, or ended before it recorded it, leaves the one
    before in place, possibly for long. Whoever starts from that, or from one that was planned
    since, needs the changes since.
    """
    superseded = plan.superseded
    if public is not None and public < plan.at:
        known = next((one for one in superseded if one.at == public), None)
        public_list = replace(known or SupersededList(at=public, since=0), since=former.since)
        superseded = (*(one for one in superseded if one is not known), public_list)
    elif at != plan.at:
        superseded = _superseded_by(superseded, former)
    return replace(plan, at=at, superseded=superseded)


def _superseded_by(
    superseded: tuple[SupersededList, ...], former: SupersededList
) -> tuple[SupersededList, ...]:
    """Two may count as one, of the earlier moment: some lists are written with each change."""
    last = superseded[-1] if superseded else None
    is_same = last is not None and not (last.name or former.name)
    if last is not None and is_same and 0 <= former.at - last.at < COALESCED:
        return (*superseded[:-1], replace(last, since=former.since))
    return (*superseded, former)


def retain(
    plan: PublicationPlan, policy: Policy, offered: Iterable[int], now: int
) -> PublicationPlan:
    """Return the plan without the lists that are too old.

    There is always a Change List that reaches back to the oldest state that somebody may start from
    now, or may just have started from. One closed list stays, so that an index stays one. Where
    there is no Resource List, nobody starts from a state.
    """
    longest = max(GRACE, int(policy.archive * SECOND))
    superseded = tuple(
        one if policy.archive or not (one.name or one.parts) else replace(one, name="", parts=())
        for one in plan.superseded
        if now - one.since <= longest
    )
    recent = (one.at for one in superseded if now - one.since <= GRACE)
    reach = min((plan.at if policy.resource_list else now, *recent, *offered))
    closed = plan.closed
    while len(closed) > 1 and closed[0].reached <= reach:
        if not _is_old(closed[0], policy, now) and len(closed) <= MOST_LISTS:
            break
        closed = closed[1:]
    retired: tuple[Span, ...] = ()
    if policy.archive:
        dropped = plan.closed[: len(plan.closed) - len(closed)]
        oldest = now - int((policy.keep_seconds + policy.archive) * SECOND)
        retired = tuple(span for span in (*plan.retired, *dropped) if span.reached >= oldest)
    return replace(
        plan, superseded=superseded[-MOST_LISTS:], closed=closed, retired=retired[-MOST_LISTS:]
    )


def find_orphans(
    documents: DocumentStore,
    wanted: Container[str],
    known: Container[str],
    before: Mapping[str, int],
    now: int,
    is_ours: Callable[[str], bool],
) -> dict[str, int]:
    """Return our own stored documents that nothing refers to, and since when."""
    return {
        name: min(before.get(name, now), now)
        for name in documents.names()
        if name not in wanted and (name in known or name in before or is_ours(name))
    }


def remove_orphans(documents: DocumentStore, found: Mapping[str, int], now: int) -> dict[str, int]:
    """Remove the documents that were unreferenced for a day; return the rest.

    Till then somebody may still be reading one. A head that is no longer offered is removed at
    once: to its followers it would say for ever that nothing is new. A follower that finds it gone
    starts discovery again, and the documents below it still exist.
    """
    left = dict(found)
    for name, since in found.items():
        if name not in naming.REMOVABLE_HEADS and now - since <= GRACE:
            continue
        _log.info("removing %s, which is no longer listed anywhere", name)
        documents.delete(name)
        del left[name]
    return left
