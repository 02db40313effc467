"""Plan and record of a publication, stored as notes of the catalogue, and the operator's policy.

The plan is stored before the documents that follow from it are written, and the record of the
documents after them. So a run that was killed at any point leaves a plan, which the next run
carries out: the same changes go into the same lists.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import damaged_note_error
from resourcesync.model.timestamps import SECOND
from resourcesync.model.vocabulary import Capability
from resourcesync.source import naming
from resourcesync.source.publication_settings import Policy

T = TypeVar("T")


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in one Change List: those numbered above ``after``, up to ``last``."""

    after: int
    last: int
    start: int  # its ``from``, microseconds
    reached: int  # the time of its newest change, or ``start``; once closed its ``until``
    entries: int = 0
    size: int = 0  # bytes of its entries
    name: str = ""  # empty for the open one


class SupersededList(msgspec.Struct, frozen=True, kw_only=True):
    """A Resource List that was superseded by a newer one, planned at ``since``."""

    at: int  # microseconds
    since: int  # microseconds
    name: str = ""  # that in the archive; empty when it is not there
    parts: tuple[str, ...] = ()


class PublicationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The lists to publish from the catalogue, stored so that a run after a crash writes the same.

    ``monitored_since`` is the ``at`` of the last Resource List that was not written because of
    listed changes alone. ``superseded`` are former Resource Lists that somebody may still start
    from, or that are archived; ``retired`` Change Lists are in the archive only. All are the oldest
    first.
    """

    base_uri: str
    documents_uri: str
    at: int  # of the Resource List, microseconds
    number: int  # of the open Change List, among several
    closed: tuple[Span, ...]
    open: Span
    monitored_since: int  # microseconds
    superseded: tuple[SupersededList, ...] = ()
    retired: tuple[Span, ...] = ()

    @property
    def start(self) -> int:
        """Return the start of the oldest Change List, in microseconds."""
        return (self.closed[0] if self.closed else self.open).start

    @property
    def changed_at(self) -> int:
        """Return a moment that the newest change in the lists is no later than; 0 without any.

        In microseconds: its own time, or the end of its list.
        """
        lists = (*self.closed, self.open)
        return max((span.reached for span in lists if span.entries), default=0)

    @property
    def known_after(self) -> int:
        """Return the number of the change after which all are in one of these lists."""
        return min(span.after for span in (*self.retired, *self.closed, self.open))


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A document that the Capability List leads to besides the lists, such as a dump.

    ``documents`` are never removed while it is offered. ``at`` is the oldest state that a
    Destination can start from with it, in microseconds: Change Lists reach back that far.
    """

    capability: Capability
    name: str
    documents: tuple[str, ...] = ()
    at: int | None = None
    base_uri: str

    def goes_with(self, plan: PublicationPlan) -> bool:
        """True if the Change Lists of a plan continue from it: not when they were started over."""
        is_reached = self.at is None or self.at >= plan.start
        return is_reached and self.base_uri == plan.base_uri


class DocumentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a document that was written.

    ``body`` identifies the sequence that the entries are the beginning of; empty when they must not
    be copied. ``last`` is the number of the last change then. ``start`` is the URI that the range
    of a Resource List's part begins with; ``is_plain`` if its entries can be separated by their
    bytes.
    """

    key: str  # of its content: if it differs, the document must be written again
    signature: str  # the store's at that time
    digest: str  # the sha-256 of its bytes
    size: int
    entries: int
    opening: int = 0  # bytes before its first entry
    body: str = ""
    start: str = ""
    is_plain: bool = False
    last: int = 0


class PublicationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Record of the last publication.

    ``parts`` and ``sitemap`` are the names of parts, if there are any. ``orphans`` no longer belong
    to it since a moment, in microseconds.
    """

    listed: int  # the number of the newest change that is listed
    base_uri: str
    documents_uri: str
    parts: tuple[str, ...] = ()
    sitemap: tuple[str, ...] = ()
    documents: dict[str, DocumentRecord] = msgspec.field(default_factory=dict)
    orphans: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def public_at(self) -> int | None:
        """Return the ``at`` of the Resource List, in microseconds; ``None`` if unknown."""
        known = self.documents.get(naming.RESOURCE_LIST)
        return int(known.key) if known is not None and known.key.isdigit() else None


class CatalogueNote(Generic[T]):
    """One value among the notes of a catalogue, as JSON."""

    def __init__(self, key: str, kind: type[T]) -> None:
        self._key, self._kind = key, kind

    def read(self, catalogue: SourceCatalogue) -> T | None:
        """Return the value; ``None`` if there is none."""
        text = catalogue.note(self._key)
        if text in (None, "null"):
            return None
        try:
            return msgspec.json.decode(text, type=self._kind)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise damaged_note_error(self._key, error) from error

    def write(self, catalogue: SourceCatalogue, value: T | None) -> None:
        """Store the value durably; ``None`` forgets it."""
        catalogue.write_notes({self._key: encode(value)})


def encode(value: object) -> str:
    """Return a value as the text of a note."""
    return msgspec.json.encode(value).decode()


PLAN: Final = CatalogueNote("publication-plan", PublicationPlan)
"""The last plan; without it the next publication starts over."""
RECORD: Final = CatalogueNote("publication-record", PublicationRecord)
"""The record of the last publication."""
OFFERS: Final = CatalogueNote("publication-offers", tuple[Offer, ...])
"""The offers besides the lists, in their order; the next publication leads to them."""

GRACE: Final = 24 * 3_600 * 1_000_000
"""Delay before unlisted documents are removed, for those still reading them; microseconds."""
COALESCED: Final = 3_600 * 1_000_000
"""Resource Lists that are closer in time than this are superseded as one; microseconds."""
MOST_LISTS: Final = 10_000
"""Change Lists that one index or archive leads to; the specification allows 50,000 entries."""


class PublicationStep(StrEnum):
    """The requested step of a publication.

    ``DUE``: what is due. ``INITIALISE``: start over with a Resource List. ``UPDATE``: list the
    changes. ``REBASE``: list the changes, and write a Resource List of the present state.
    """

    DUE = "due"
    INITIALISE = "initialise"
    UPDATE = "update"
    REBASE = "rebase"


def is_rebase_due(plan: PublicationPlan, policy: Policy, now: int) -> bool:
    """True if the Resource List must be written again: it is old, or pins the Change Lists.

    It pins them when none can be dropped since it, and one is too old, or they are too many.
    """
    if not policy.resource_list:
        return False
    if policy.rebase_every and now - plan.at >= policy.rebase_every * SECOND:
        return True
    oldest, many = (plan.closed[0].reached, len(plan.closed)) if plan.closed else (0, 0)
    is_old = 0 < policy.keep * SECOND < now - oldest and many > 1
    return oldest > plan.at and (is_old or many >= MOST_LISTS)


def is_rotation_due(plan: PublicationPlan, policy: Policy, now: int) -> bool:
    """True if the open Change List has reached its age; an empty one never does."""
    return (
        policy.rotate > 0
        and plan.open.entries > 0
        and now - plan.open.start >= policy.rotate * SECOND
    )


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
        known = next(
            (superseded_list for superseded_list in superseded if superseded_list.at == public),
            None,
        )
        public_list = replace(known or SupersededList(at=public, since=0), since=former.since)
        superseded = (
            *(superseded_list for superseded_list in superseded if superseded_list is not known),
            public_list,
        )
    elif at != plan.at:
        superseded = _superseded_by(superseded, former)
    return replace(plan, at=at, superseded=superseded)


def _superseded_by(
    superseded: tuple[SupersededList, ...], former: SupersededList
) -> tuple[SupersededList, ...]:
    """Return the superseded lists with another one, which may count as the one before it.

    A list that is written with each change would otherwise add thousands a day. The earlier moment
    stays: Change Lists reach back to it.
    """
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
        superseded_list
        if policy.archive or not (superseded_list.name or superseded_list.parts)
        else replace(superseded_list, name="", parts=())
        for superseded_list in plan.superseded
        if now - superseded_list.since <= longest
    )
    recent = (
        superseded_list.at for superseded_list in superseded if now - superseded_list.since <= GRACE
    )
    reach = min((plan.at if policy.resource_list else now, *recent, *offered))
    closed = plan.closed
    while len(closed) > 1 and closed[0].reached <= reach:
        is_old = policy.keep > 0 and now - closed[0].reached > policy.keep * SECOND
        if not is_old and len(closed) <= MOST_LISTS:
            break
        closed = closed[1:]
    retired: tuple[Span, ...] = ()
    if policy.archive:
        dropped = plan.closed[: len(plan.closed) - len(closed)]
        oldest = now - int((policy.keep + policy.archive) * SECOND)
        retired = tuple(span for span in (*plan.retired, *dropped) if span.reached >= oldest)
    return replace(
        plan, superseded=superseded[-MOST_LISTS:], closed=closed, retired=retired[-MOST_LISTS:]
    )
