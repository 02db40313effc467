"""The publisher's bookkeeping, in the catalogue's notes: what is public, and where it is cut.

The plan is stored before the documents that follow from it are written, and the record of the
documents after them. So a run that was killed anywhere leaves a plan, which the next one carries
out: the same changes go into the same lists.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import msgspec

from resourcesync.errors import StateError
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import CatalogueStore
from resourcesync.source import naming

T = TypeVar("T")

_PLAN: Final = "publication-plan"
_RECORD: Final = "publication-record"
_OFFERS: Final = "publication-offers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The changes in one Change List.

    Attributes:
        after, last: It lists the changes numbered above ``after``, up to ``last``.
        start: Its ``from``, in microseconds.
        reached: The time of its newest change, or ``start``; its ``until`` once it is closed.
        entries: Changes in it.
        size: Bytes of its entries.
        name: What the list is called; empty for the one that takes further changes.
    """

    after: int
    last: int
    start: int
    reached: int
    entries: int = 0
    size: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersededList:
    """A Resource List that a newer one took the place of.

    Attributes:
        at: Its ``at``, in microseconds.
        since: When the newer one was planned, in microseconds.
        name: What it is called in the archive; empty when it is not kept.
        parts: The names of its parts, when it has any.
    """

    at: int
    since: int
    name: str = ""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationPlan:
    """What follows from the catalogue, so that it follows again after a crash.

    Attributes:
        base_uri, documents_uri: Where it is published.
        at: The ``at`` of the Resource List, in microseconds.
        number: The number that the open Change List has, or will have, among several.
        closed: The Change Lists that are complete, oldest first.
        open: The Change List that takes further changes.
        superseded: Former Resource Lists that somebody may still start from, or that are kept in
            an archive, oldest first.
        retired: Change Lists that are kept in the archive only, oldest first.
    """

    base_uri: str
    documents_uri: str
    at: int
    number: int
    closed: tuple[Span, ...]
    open: Span
    superseded: tuple[SupersededList, ...] = ()
    retired: tuple[Span, ...] = ()

    @property
    def start(self) -> int:
        """The moment that the Change Lists reach back to, in microseconds."""
        return (self.closed[0] if self.closed else self.open).start

    @property
    def known_after(self) -> int:
        """The number of the change after which all are in one of these lists."""
        return min(span.after for span in (*self.retired, *self.closed, self.open))


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the Capability List leads to besides the lists of this publisher, such as dumps.

    Attributes:
        capability: What is offered.
        name: The document that the Capability List leads to.
        documents: The names of all that belongs to it: never cleared away while it is offered.
        at: The oldest state that a Destination can start from with it, in microseconds: Change
            Lists reach back that far. ``None`` for what no one starts from.
        base_uri: The URI of the resources' root; empty where it was not remembered.
    """

    capability: Capability
    name: str
    documents: tuple[str, ...] = ()
    at: int | None = None
    base_uri: str = ""

    def goes_with(self, plan: PublicationPlan) -> bool:
        """Whether the Change Lists of a plan go on from it: not when they were started over."""
        is_reached = self.at is None or self.at >= plan.start
        return is_reached and self.base_uri in ("", plan.base_uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """What is known of a document that was written.

    Attributes:
        key: Stands for its content: it is to be written again when it should have another.
        signature: What the store said of it then.
        digest: The sha-256 of its bytes.
        size: Its bytes.
        entries: Its entries.
        opening: Bytes before its first entry.
        body: Stands for what the entries are the beginning of; empty when they are not to be
            copied.
        start: Of a part of the Resource List, the URI that its range begins with.
        is_plain: Of the same, whether its entries can be told apart by their bytes.
        last: The number of the last change in it, where ``body`` is told.
    """

    key: str
    signature: str
    digest: str
    size: int
    entries: int
    opening: int = 0
    body: str = ""
    start: str = ""
    is_plain: bool = False
    last: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationRecord:
    """What was published last.

    Attributes:
        listed: The number of the newest change that is listed.
        base_uri, documents_uri: Where it was published.
        parts: The names of the Resource List's parts, when it has any.
        sitemap: The names of the plain sitemap's parts, when it has any.
        documents: Every document that belongs to it.
        orphans: Documents that no longer do, and when that was first seen, in microseconds.
    """

    listed: int
    base_uri: str = ""
    documents_uri: str = ""
    parts: tuple[str, ...] = ()
    sitemap: tuple[str, ...] = ()
    documents: dict[str, DocumentRecord] = field(default_factory=dict)
    orphans: dict[str, int] = field(default_factory=dict)

    @property
    def public_at(self) -> int | None:
        """The ``at`` of the Resource List, in microseconds; ``None`` where it is not known."""
        known = self.documents.get(naming.RESOURCE_LIST)
        return int(known.key) if known is not None and known.key.isdigit() else None


def read_plan(catalogue: CatalogueStore) -> PublicationPlan | None:
    """Return the last plan, or ``None`` before the first.

    Raises:
        StateError: The note is damaged.
    """
    return read_note(catalogue, _PLAN, _plan)


def read_record(catalogue: CatalogueStore) -> PublicationRecord | None:
    """Return what was published last, or ``None`` when nothing ever was.

    Raises:
        StateError: The note is damaged.
    """
    return read_note(catalogue, _RECORD, _record)


def read_offers(catalogue: CatalogueStore) -> tuple[Offer, ...]:
    """Return what is offered besides the lists, in the order it was stored.

    Raises:
        StateError: The note is damaged.
    """
    return read_note(catalogue, _OFFERS, _offers) or ()


def write_offers(catalogue: CatalogueStore, offers: Iterable[Offer]) -> None:
    """Store durably what is offered besides the lists; the next publication leads to it."""
    catalogue.write_notes({_OFFERS: encode(tuple(offers))})


def write_plan(catalogue: CatalogueStore, plan: PublicationPlan) -> None:
    """Store the plan durably."""
    catalogue.write_notes({_PLAN: encode(plan)})


def forget_plan(catalogue: CatalogueStore) -> None:
    """Forget the plan durably: the next publication starts over."""
    catalogue.write_notes({_PLAN: "null"})


def write_record(catalogue: CatalogueStore, record: PublicationRecord) -> None:
    """Store the record durably."""
    catalogue.write_notes({_RECORD: encode(record)})


def encode(value: object) -> str:
    """Return what a note says, as text."""
    return msgspec.json.encode(value).decode()


def _plan(fields: dict[str, Any]) -> PublicationPlan:
    closed = tuple(Span(**span) for span in fields.pop("closed"))
    number = fields.pop("number")
    if any(not span.name for span in closed):  # written when numbers alone made the names
        closed = tuple(
            replace(span, name=naming.change_list(number + position))
            for position, span in enumerate(closed)
        )
        number += len(closed)
    superseded = tuple(
        SupersededList(parts=tuple(one.pop("parts")), **one) for one in fields.pop("superseded", ())
    )
    return PublicationPlan(
        number=number,
        closed=closed,
        open=Span(**fields.pop("open")),
        superseded=superseded,
        retired=tuple(Span(**span) for span in fields.pop("retired", ())),
        **fields,
    )


def _offers(found: list[dict[str, Any]]) -> tuple[Offer, ...]:
    return tuple(
        Offer(
            capability=Capability(one.pop("capability")),
            documents=tuple(one.pop("documents")),
            **one,
        )
        for one in found
    )


def _record(fields: dict[str, Any]) -> PublicationRecord:
    documents = {name: DocumentRecord(**known) for name, known in fields.pop("documents").items()}
    return PublicationRecord(
        parts=tuple(fields.pop("parts")),
        sitemap=tuple(fields.pop("sitemap", ())),
        documents=documents,
        **fields,
    )


def read_note(catalogue: CatalogueStore, key: str, make: Callable[[Any], T]) -> T | None:
    """Return what is made of a note; ``None`` where there is none.

    Raises:
        StateError: The note is damaged.
    """
    text = catalogue.note(key)
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text)
        return None if found is None else make(found)
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise StateError(
            f"the publisher's note {key!r} in the catalogue is damaged: {error}",
            hint="delete the catalogue: the next publish starts a new Resource List",
        ) from error
