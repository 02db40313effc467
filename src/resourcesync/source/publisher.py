"""Publish what the catalogue says: event log first, heads last, healed by the next run (§8-§12)."""

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from resourcesync.model.resources import Change
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Catalogue, Clock, DocumentStore, Snapshot
from resourcesync.source import change_lists, description, naming, resource_lists
from resourcesync.source.ledger import (
    Plan,
    Record,
    Span,
    read_plan,
    read_record,
    write_plan,
    write_record,
)
from resourcesync.source.naming import Naming
from resourcesync.source.paging import Limits
from resourcesync.source.shelf import Shelf, Written

__all__ = ["Publication", "Publisher", "Written"]

_log = logging.getLogger(__name__)
_GRACE: Final = 24 * 3_600 * 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What a publisher did.

    Attributes:
        written: The documents it put in place, in this order; none when all was as it should be.
        created, updated, deleted: Changes that are listed now and were not before.
        first: Whether nothing had been published from this catalogue before.
    """

    written: tuple[Written, ...] = ()
    created: int = 0
    updated: int = 0
    deleted: int = 0
    first: bool = False


class Publisher:
    """Keeps a Source's documents in step with its catalogue.

    A reader that follows links finds a consistent set at every moment, also when a run is killed:
    documents are put in place children first, and only heads are ever replaced (open Change
    List, indexes, Capability List, Source Description). The next run writes what is missing, and
    what somebody altered.

    Args:
        catalogue: What is published; nothing else may write it meanwhile.
        documents: Where the documents go.
        base_uri: The URI of the resources' root.
        documents_uri: The URI of the documents' folder; empty for ``resourcesync/`` below the
            base.
        clock: Tells how long documents have been out of use.
        limits: The most that one document holds.
        described_by: The URI of a document about the resources; empty writes one (§8, §9).

    Raises:
        ConfigurationError: A URI cannot be a base.
    """

    def __init__(  # noqa: PLR0913 - what is published, where, and how
        self,
        catalogue: Catalogue,
        documents: DocumentStore,
        *,
        base_uri: str,
        documents_uri: str = "",
        clock: Clock,
        limits: Limits | None = None,
        described_by: str = "",
    ) -> None:
        self._catalogue = catalogue
        self._documents = documents
        self._naming = Naming(base_uri=base_uri, documents_uri=documents_uri)
        self._clock = clock
        self._limits = limits or Limits()
        self._described_by = described_by

    def publish(self, *, anew: bool = False) -> Publication:
        """Bring the documents in step with the catalogue; write nothing when they are.

        The first time this writes a Resource List, an empty Change List, the Capability List and
        the Source Description; later the changes since then go into the Change List. A Resource
        List that is lost or altered is replaced by one of the present state. Another base than the
        last time starts anew, with a Resource List and an empty Change List.

        Args:
            anew: Write a Resource List of the present state in any case.

        Raises:
            StateError: Nothing was recorded yet, or the catalogue is damaged.
            StorageError: A document could not be written. What is public is consistent, and the
                next run goes on from there.
        """
        with self._catalogue.snapshot() as snapshot:
            planned, record = read_plan(self._catalogue), read_record(self._catalogue)
            first = record is None
            if planned is not None and not self._is_here(planned):
                record = None  # every document is to be written anew, at its new place
            plan = self._plan(planned, snapshot)
            counts: Counter[ChangeKind] = Counter()
            listed = plan.open.last if record is None else record.listed
            fresh = _fresh(snapshot, plan.open.last, listed, counts)
            plan = change_lists.extend(plan, fresh, self._naming, self._limits)
            record = record or Record(listed=listed)
            shelf = Shelf(self._documents, self._naming, record.documents)
            is_complete = not anew and resource_lists.is_complete(shelf, plan.at, record.parts)
            if not is_complete:
                plan = replace(plan, at=to_microseconds(snapshot.at))
            if plan != planned:
                write_plan(self._catalogue, plan)
            parts = record.parts
            if not is_complete:
                parts = resource_lists.publish(shelf, snapshot, self._limits)
            change_lists.publish(shelf, plan, snapshot)
            description.publish(shelf, self._described_by)
        self._conclude(record, shelf, plan, parts)
        return Publication(
            written=tuple(shelf.written),
            created=counts[ChangeKind.CREATED],
            updated=counts[ChangeKind.UPDATED],
            deleted=counts[ChangeKind.DELETED],
            first=first,
        )

    def _is_here(self, plan: Plan) -> bool:
        return (plan.base_uri, plan.documents_uri) == (
            self._naming.base_uri,
            self._naming.documents_uri,
        )

    def _plan(self, planned: Plan | None, snapshot: Snapshot) -> Plan:
        """Return the plan to go on from.

        To a Destination the log of a change of base is the deletion of resources of another
        origin, which no Source may speak for. So nothing of it is listed: the new base starts
        with a Resource List of its own.
        """
        if planned is None:
            return self._new_plan(snapshot, 1)
        if planned.base_uri != self._naming.base_uri:
            return self._new_plan(snapshot, planned.number + len(planned.closed) + 1)
        return replace(planned, documents_uri=self._naming.documents_uri)

    def _new_plan(self, snapshot: Snapshot, number: int) -> Plan:
        """Return a plan that starts with the present state, its numbers at ``number`` or above."""
        at, last = to_microseconds(snapshot.at), snapshot.last_change()
        numbers = (naming.change_list_number(name) + 1 for name in self._documents.names())
        return Plan(
            base_uri=self._naming.base_uri,
            documents_uri=self._naming.documents_uri,
            at=at,
            number=max((number, *numbers)),  # names that were in use are not used again
            closed=(),
            open=Span(after=last, last=last, start=at, reached=at),
        )

    def _conclude(self, before: Record, shelf: Shelf, plan: Plan, parts: tuple[str, ...]) -> None:
        """Remember what is public now, and remove what has been out of use for a day."""
        positions = range(len(plan.closed) + 1)
        wanted = {
            naming.RESOURCE_LIST,
            *parts,
            *(change_lists.name_of(plan, position) for position in positions),
            naming.CHANGE_LIST,
            naming.ABOUT,
            naming.CAPABILITY_LIST,
            naming.DESCRIPTION,
        }
        now = to_microseconds(self._clock.now())
        orphans = {
            name: before.orphans.get(name, now)
            for name in self._documents.names()
            if name not in wanted and naming.is_replaceable(name)
        }
        for name in [name for name, since in orphans.items() if now - since > _GRACE]:
            _log.info("removing %s, which is no longer listed anywhere", name)
            self._documents.delete(name)
            del orphans[name]
        after = Record(
            listed=plan.open.last,
            parts=parts,
            documents={name: known for name, known in shelf.known.items() if name in wanted},
            orphans=orphans,
        )
        if after != before:
            write_record(self._catalogue, after)


def _fresh(
    snapshot: Snapshot, planned: int, listed: int, counts: Counter[ChangeKind]
) -> Iterator[tuple[int, Change]]:
    """Yield the changes after those that are planned; count all after those that are listed."""
    for number, change in snapshot.changes(after=min(planned, listed)):
        if number > listed:
            counts[change.kind] += 1
        if number > planned:
            yield number, change
