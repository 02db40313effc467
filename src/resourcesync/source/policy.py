"""When lists are closed, kept, archived and written anew: what the operator chooses."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from resourcesync.errors import ConfigurationError
from resourcesync.model.vocabulary import Dialect
from resourcesync.source.ledger import PublicationPlan, Span, SupersededList

GRACE: Final = 24 * 3_600 * 1_000_000
"""How long what is no longer listed stays for those who are still reading it, microseconds."""
MOST_LISTS: Final = 10_000
"""Change Lists that one index or archive leads to; the specification allows 50,000 entries."""
DIALECTS: Final = (
    Dialect.V1_1,
    Dialect.V1_0,
    Dialect.V0_9_1,
    Dialect.V0_9,
    Dialect.V0_6,
    Dialect.V0_5,
)
"""The versions that can be published; the first three know open Change Lists."""
_NOTIFYING: Final = frozenset({Dialect.V1_1, Dialect.V1_0})
_HUB_ADDRESS: Final = re.compile(r"https?://[!$-;=?-\[\]_a-z~]+", re.IGNORECASE)


class ChangeLists(StrEnum):
    """How changes are listed (§12).

    ``APPEND``: in one open Change List, which is closed when it is full, or old.
    ``PER_RUN``: each run that updates writes a closed Change List, possibly empty, and adds it to
    the Change List Index.
    ``ARCHIVE``: the same, with a Change List Archive in the place of the index, as in 2013.
    """

    APPEND = "append"
    PER_RUN = "per-run"
    ARCHIVE = "archive"


class PublicationStep(StrEnum):
    """What a publication is to do.

    ``DUE``: what is due. ``INITIALISE``: start over with a Resource List. ``UPDATE``: list the
    changes. ``REBASE``: list the changes, and write a Resource List of the present state.
    """

    DUE = "due"
    INITIALISE = "initialise"
    UPDATE = "update"
    REBASE = "rebase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the operator chooses. Times are in microseconds; 0 is never.

    Attributes:
        change_lists: How changes are listed.
        rotate: Age at which an open Change List is closed.
        keep: Age at which closed Change Lists are dropped, once no one needs them to go on from
            the oldest Resource List or dump that is offered. 0 keeps them all.
        rebase: Age at which the Resource List is written anew.
        archive: How long superseded lists are kept in archives; 0 keeps no archive.
        sitemap: Whether a plain sitemap is written too, for search engines.
        dialect: The version of the format that is written.
        hubs: Where the channels of notifications can be subscribed to; empty for no channels.

    Raises:
        ConfigurationError: A time is below zero, or the dialect is none that is written, or
            knows no open Change Lists, no archives of Resource Lists or no notifications, and
            they are asked for; or a hub is at no address.
    """

    change_lists: ChangeLists = ChangeLists.APPEND
    rotate: int = 0
    keep: int = 0
    rebase: int = 0
    archive: int = 0
    sitemap: bool = False
    dialect: Dialect = Dialect.V1_1
    hubs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if min(self.rotate, self.keep, self.rebase, self.archive) < 0:
            raise ConfigurationError("an age is never below zero")
        if self.dialect not in DIALECTS:
            known = ", ".join(DIALECTS)
            raise ConfigurationError(f"{self.dialect} cannot be published; one can be of {known}")
        if self.dialect in DIALECTS[3:] and not self.is_per_run:
            raise ConfigurationError(
                f"version {self.dialect} knows no Change List that is open",
                hint="--change-lists per-run, or archive",
            )
        if self.archive and self.dialect is Dialect.V0_5:
            raise ConfigurationError("version 0.5 has no archives of Resource Lists")
        if self.hubs and self.dialect not in _NOTIFYING:
            raise ConfigurationError(f"version {self.dialect} knows no notifications")
        for hub in self.hubs:
            if _HUB_ADDRESS.fullmatch(hub) is None:
                raise ConfigurationError(
                    f"{hub[:200]!r} is no address of a hub", hint="such as https://HOST/hub"
                )

    @property
    def is_per_run(self) -> bool:
        """Whether each update writes a Change List of its own."""
        return self.change_lists is not ChangeLists.APPEND


def is_rebase_due(plan: PublicationPlan, policy: Policy, now: int) -> bool:
    """Whether the Resource List is to be written anew: it is old, or stands in the way.

    It does when there are so many Change Lists since that none can be dropped.
    """
    if policy.rebase and now - plan.at >= policy.rebase:
        return True
    return len(plan.closed) >= MOST_LISTS and plan.closed[0].reached > plan.at


def is_rotation_due(plan: PublicationPlan, policy: Policy, now: int) -> bool:
    """Whether the open Change List has reached its age; an empty one never does."""
    return policy.rotate > 0 and plan.open.entries > 0 and now - plan.open.start >= policy.rotate


def supersede(
    plan: PublicationPlan, at: int, former: SupersededList, public: int | None
) -> PublicationPlan:
    """Return the plan with the Resource List of another moment, and what it takes the place of.

    A run that could not write the planned one, or did not come to note that it had, leaves the one
    before in place, for however long. Whoever starts from that, or from one that was planned since,
    needs the changes since.

    Args:
        plan: The plan.
        at: Of what moment its Resource List is to be, in microseconds; its own for the same.
        former: Its own Resource List, as one that another takes the place of now.
        public: The ``at`` of the one that is recorded as public, in microseconds; ``None`` where
            that is not known, or is the planned one.
    """
    superseded = plan.superseded
    if public is not None and public < plan.at:
        known = next((one for one in superseded if one.at == public), None)
        held = replace(known or SupersededList(at=public, since=0), since=former.since)
        superseded = (*(one for one in superseded if one is not known), held)
    elif at != plan.at:
        superseded = (*superseded, former)
    return replace(plan, at=at, superseded=superseded)


def retain(
    plan: PublicationPlan, policy: Policy, offered: Iterable[int], now: int
) -> PublicationPlan:
    """Return the plan without the lists that are too old.

    There is always a Change List that reaches back to the oldest state that somebody may start
    from now, or may just have started from. One closed list stays, so that an index stays one.

    Args:
        plan: The plan.
        policy: Says what is too old.
        offered: The states that Destinations can start from besides the Resource List's.
        now: The present moment, in microseconds.
    """
    longest = max(GRACE, policy.archive)
    superseded = tuple(
        one if policy.archive or not (one.name or one.parts) else replace(one, name="", parts=())
        for one in plan.superseded
        if now - one.since <= longest
    )
    recent = (one.at for one in superseded if now - one.since <= GRACE)
    reach = min((plan.at, *recent, *offered))
    closed = plan.closed
    while len(closed) > 1 and closed[0].reached <= reach:
        is_old = policy.keep > 0 and now - closed[0].reached > policy.keep
        if not is_old and len(closed) <= MOST_LISTS:
            break
        closed = closed[1:]
    retired: tuple[Span, ...] = ()
    if policy.archive:
        dropped = plan.closed[: len(plan.closed) - len(closed)]
        oldest = now - policy.keep - policy.archive
        retired = tuple(one for one in (*plan.retired, *dropped) if one.reached >= oldest)
    return replace(
        plan,
        superseded=superseded[-MOST_LISTS:],
        closed=closed,
        retired=retired[-MOST_LISTS:],
    )
