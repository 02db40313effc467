"""Plan and record of a publication, stored as notes of the catalogue.

The plan is stored before the documents that follow from it are written, and the record of the
documents after them. So a run that was killed at any point leaves a plan, which the next run
carries out: the same changes go into the same lists.
"""

from enum import StrEnum
from typing import Final, Generic, TypeVar

import msgspec

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import damaged_note_error
from resourcesync.model.vocabulary import Capability
from resourcesync.source import naming

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
        """Return a moment that the newest change in the lists is no later than; 0 without any."""
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
        return self.base_uri == plan.base_uri and (self.at is None or self.at >= plan.start)


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


SYSTEM_NOTE: Final = "account.system"
"""The note of the address of the system, or the folder, that a catalogue follows."""
PLAN: Final = CatalogueNote("publication-plan", PublicationPlan)
"""The last plan; without it the next publication starts over."""
RECORD: Final = CatalogueNote("publication-record", PublicationRecord)
"""The record of the last publication."""
OFFERS: Final = CatalogueNote("publication-offers", tuple[Offer, ...])
"""The offers besides the lists, in their order; the next publication leads to them."""


class PublicationStep(StrEnum):
    """The requested step of a publication.

    ``DUE``: what is due. ``INITIALISE``: start over with a Resource List. ``UPDATE``: list the
    changes. ``REBASE``: list the changes, and write a Resource List of the present state.
    """

    DUE = "due"
    INITIALISE = "initialise"
    UPDATE = "update"
    REBASE = "rebase"
