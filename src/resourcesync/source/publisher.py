"""Publisher of the lists: the change log is recorded first, heads are written last (§8-§12)."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.catalogue.snapshot import CatalogueSnapshot
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability, ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.source import archives, change_list, description, garbage, naming, resource_list
from resourcesync.source.document_writer import DocumentWriter, WrittenDocument
from resourcesync.source.naming import SourceNaming
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import (
    Offer,
    Policy,
    PublicationPlan,
    PublicationRecord,
    PublicationStep,
    Span,
    SupersededList,
    is_rebase_due,
    is_rotation_due,
    read_offers,
    read_plan,
    read_record,
    retain,
    supersede,
    write_plan,
    write_record,
)

__all__ = ["ListPublisher", "Publication", "WrittenDocument"]

_MOST_FORGETS: Final = 50
"""Batches of some thousand changes that one publication forgets at most, so that it ends."""


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a publication.

    Attributes:
        written: The documents that were written, in this order; none when nothing differed.
        created, updated, deleted: Number of changes that are listed now and were not before.
        first: True if nothing had been published from this catalogue before.
    """

    written: tuple[WrittenDocument, ...] = ()
    created: int = 0
    updated: int = 0
    deleted: int = 0
    first: bool = False


class _PublicationTask(msgspec.Struct, frozen=True, kw_only=True):
    """Task of one publication.

    Attributes:
        before: The plan to continue; ``None`` starts a new one.
        number: The number that a new plan's Change Lists begin with, at least.
        closes: True if a Change List is closed now.
        rebases: True if a Resource List of the present state is written in any case.
        follows_changes: True if one is written with changes, too, while it is small.
        moment: The present moment, in microseconds.
        offers: The offers besides the lists.
    """

    before: PublicationPlan | None
    number: int
    closes: bool
    rebases: bool
    follows_changes: bool
    moment: int
    offers: tuple[Offer, ...]


class ListPublisher:
    """Publisher of a Source's lists from its catalogue.

    A reader that follows links finds a consistent set at every moment, also when a run is killed:
    documents are put in place children first, and only heads are ever replaced (open Change List,
    indexes, archives, Capability List, Source Description). Each is read back before it takes its
    place. The next run writes missing and altered documents.
    """

    def __init__(  # noqa: PLR0913 - what is published, where, and how
        self,
        catalogue: SourceCatalogue,
        documents: DocumentStore,
        *,
        base_uri: str,
        documents_uri: str = "",
        clock: Clock,
        limits: PageLimits | None = None,
        policy: Policy | None = None,
        described_by: str = "",
    ) -> None:
        self._catalogue = catalogue
        self._documents = documents
        self._naming = SourceNaming(base_uri=base_uri, documents_uri=documents_uri)
        self._clock = clock
        self._limits = limits or PageLimits()
        self._policy = policy or Policy()
        self._described_by = described_by

    def publish(
        self,
        step: PublicationStep = PublicationStep.DUE,
        *,
        anew: bool = False,
        now: datetime | None = None,
    ) -> Publication:
        """Bring the documents in step with the catalogue; write nothing when they are.

        The first time this writes a Resource List, an empty Change List unless each run writes one,
        the Capability List and the Source Description; later the changes since then go into Change
        Lists. A Resource List that is lost or altered is replaced by one of the present state.
        Another base than the last time starts over, as ``Step.INITIALISE`` does: with a Resource
        List, and no changes.
        """
        planned, record = read_plan(self._catalogue), read_record(self._catalogue)
        task = self._task(planned, record, step, now or self._clock.now(), anew=anew)
        first = record is None
        if record and planned and not self._is_same_location(record):
            record = None  # every document must be written again, at its new place
        counts: Counter[ChangeKind] = Counter()
        with self._catalogue.snapshot() as snapshot:
            writer = DocumentWriter(
                self._documents,
                self._naming,
                {} if record is None else record.documents,
                dialect=self._policy.dialect,
                moment=snapshot.at,
            )
            plan = self._next_plan(task, record, snapshot, writer, counts)
            if plan != planned:
                write_plan(self._catalogue, plan)
            offers = tuple(offer for offer in task.offers if offer.goes_with(plan))
            after = self._write(plan, record, snapshot, writer, offers)
            last_edit = snapshot.last_edit()
        self._conclude(record, after)
        self._forget_changes(plan, after)
        if any(written.name == naming.RESOURCE_LIST for written in writer.written):
            self._catalogue.forget_edits(last_edit)
        return Publication(
            written=tuple(writer.written),
            created=counts[ChangeKind.CREATED],
            updated=counts[ChangeKind.UPDATED],
            deleted=counts[ChangeKind.DELETED],
            first=first,
        )

    @property
    def sitemap_uri(self) -> str:
        """Return the URI of the document for search engines."""
        name = naming.SITEMAP if self._policy.sitemap else naming.RESOURCE_LIST
        return self._naming.uri(name)

    def _task(
        self,
        planned: PublicationPlan | None,
        record: PublicationRecord | None,
        step: PublicationStep,
        now: datetime,
        *,
        anew: bool,
    ) -> _PublicationTask:
        """Return the task of this run; when a list is closed now, ensure no change comes earlier.

        To a Destination the log of a change of base is the deletion of resources of another origin,
        which no Source may speak for. So nothing of it is listed: the new base starts with a
        Resource List of its own.
        """
        moment, policy = to_microseconds(now), self._policy
        is_known = planned is not None and record is not None
        before = planned
        if planned is not None and planned.base_uri != self._naming.base_uri:
            before = None
        if is_known and step is PublicationStep.INITIALISE:
            before = None
        is_due = (
            step is PublicationStep.DUE
            and before is not None
            and is_rebase_due(before, policy, moment)
        )
        unarchived = (
            not policy.archive
            and before is not None
            and any(superseded_list.name for superseded_list in before.superseded)
        )
        task = _PublicationTask(
            before=before,
            number=1 if planned is None else planned.number + 1,
            closes=is_known and before is not None and policy.is_per_run,
            rebases=anew or step is PublicationStep.REBASE or is_due or unarchived,
            follows_changes=step is PublicationStep.DUE,
            moment=moment,
            offers=read_offers(self._catalogue),
        )
        if is_known and (task.closes or task.rebases or before is None):
            with self._catalogue.record(now) as recording:
                recording.advance_time()
        return task

    def _next_plan(
        self,
        task: _PublicationTask,
        record: PublicationRecord | None,
        snapshot: CatalogueSnapshot,
        writer: DocumentWriter,
        counts: Counter[ChangeKind],
    ) -> PublicationPlan:
        """Return the plan that follows from the catalogue and the task."""
        plan = task.before or self._new_plan(snapshot, task.number)
        plan = replace(plan, documents_uri=self._naming.documents_uri)
        if task.before is not None and is_rotation_due(plan, self._policy, task.moment):
            plan = change_list.close(plan)
        planned = plan.open.last
        listed = planned if record is None or task.before is None else record.listed
        fresh = _unplanned_changes(snapshot, planned, listed, counts)
        plan = change_list.extend(plan, fresh, writer, self._limits)
        at = to_microseconds(snapshot.at)
        if task.closes:
            plan = change_list.close_at(plan, at, self._documents.names())
        if task.before is not None:
            plan = self._with_resource_list(plan, task, record, snapshot, writer)
        standing = (offer for offer in task.offers if offer.goes_with(plan))
        offered = [offer.at for offer in standing if offer.at is not None]
        return retain(plan, self._policy, offered, task.moment)

    def _with_resource_list(
        self,
        plan: PublicationPlan,
        task: _PublicationTask,
        record: PublicationRecord | None,
        snapshot: CatalogueSnapshot,
        writer: DocumentWriter,
    ) -> PublicationPlan:
        """Return the plan with the Resource List that is due: the same, or one of this moment."""
        parts = () if record is None else record.parts
        is_complete = resource_list.is_resource_list_complete(writer, plan.at, parts)
        name, public = "", None if record is None or is_complete else record.public_at
        if self._policy.archive and is_complete:
            name = naming.archived_resource_list(from_microseconds(plan.at))
        former = SupersededList(at=plan.at, since=task.moment, name=name, parts=parts)
        at, since = to_microseconds(snapshot.at), plan.monitored_since
        if task.rebases or not is_complete:
            since = at
        elif not (
            task.follows_changes and plan.at < plan.changed_at and self._is_small(snapshot, parts)
        ):
            at = plan.at
        return replace(supersede(plan, at, former, public), monitored_since=since)

    def _is_small(self, snapshot: CatalogueSnapshot, parts: tuple[str, ...]) -> bool:
        """True if the Resource List is written again with each change.

        A list in parts is not: each of its versions would leave its parts for a day.
        """
        most = min(self._policy.rebase_up_to, self._limits.max_entries)
        if not most or parts or self._policy.archive:
            return False
        return snapshot.count(most + 1) <= most

    def _is_same_location(self, record: PublicationRecord) -> bool:
        """True if the addresses are unchanged."""
        recorded = record.base_uri, record.documents_uri
        return recorded == (self._naming.base_uri, self._naming.documents_uri)

    def _new_plan(self, snapshot: CatalogueSnapshot, number: int) -> PublicationPlan:
        """Return a plan that starts with the present state, its numbers at ``number`` or above."""
        at, last = to_microseconds(snapshot.at), snapshot.last_change()
        numbers = (naming.change_list_number(name) + 1 for name in self._documents.names())
        return PublicationPlan(
            base_uri=self._naming.base_uri,
            documents_uri=self._naming.documents_uri,
            at=at,
            monitored_since=at,
            number=max((number, *numbers)),  # numbers that were in use are not used again
            closed=(),
            open=Span(after=last, last=last, start=at, reached=at),
        )

    def _write(
        self,
        plan: PublicationPlan,
        record: PublicationRecord | None,
        snapshot: CatalogueSnapshot,
        writer: DocumentWriter,
        offers: tuple[Offer, ...],
    ) -> PublicationRecord:
        """Write the planned documents that are missing, children first."""
        shape = self._policy.change_lists
        parts, archived = self._write_lists(plan, record, snapshot, writer)
        pages = self._write_sitemap(
            plan, () if record is None else record.sitemap, snapshot, writer
        )
        offered = {
            Capability.RESOURCE_LIST: naming.RESOURCE_LIST,
            **archived,
            **change_list.offered(plan, shape),
            **{offer.capability: offer.name for offer in offers},
        }
        has_monitor = self._policy.has_monitor and self._is_small(snapshot, parts)
        since = plan.monitored_since if has_monitor else None
        description.publish(
            writer, offered, self._described_by, self._policy.hubs, monitored_since=since
        )
        wanted = {*parts, *pages, *offered.values(), *self._further_names(plan, offers)}
        return PublicationRecord(
            listed=plan.open.last,
            base_uri=plan.base_uri,
            documents_uri=plan.documents_uri,
            parts=parts,
            sitemap=pages,
            documents={name: known for name, known in writer.known.items() if name in wanted},
            orphans=garbage.find_orphans(
                self._documents,
                wanted,
                writer.known,
                {} if record is None else record.orphans,
                to_microseconds(self._clock.now()),
            ),
        )

    def _write_lists(
        self,
        plan: PublicationPlan,
        record: PublicationRecord | None,
        snapshot: CatalogueSnapshot,
        writer: DocumentWriter,
    ) -> tuple[tuple[str, ...], dict[Capability, str]]:
        """Write the lists; return the Resource List's parts, and the archives by capability.

        Change Lists come before a Resource List that they lead up to from the public one: if this
        run dies between the two, that one leads to the same state. Otherwise nothing would document
        the changes between the two.
        """
        shape, public = self._policy.change_lists, None if record is None else record.public_at
        leads_up = plan.start < plan.at and (public is None or plan.start <= public)
        if leads_up:
            change_list.publish(writer, plan, snapshot, shape)
        archived = self._archive(plan, writer)
        parts = () if record is None else record.parts
        if not resource_list.is_resource_list_complete(writer, plan.at, parts):
            parts = resource_list.publish_resource_list(
                writer, snapshot, self._limits, has_archive=bool(archived)
            )
        if not leads_up:
            change_list.publish(writer, plan, snapshot, shape)
        return parts, archived

    def _further_names(self, plan: PublicationPlan, offers: tuple[Offer, ...]) -> Iterator[str]:
        """Yield the names besides the Resource List and the targets of the Capability List."""
        for superseded_list in plan.superseded:
            if superseded_list.name:
                yield from (superseded_list.name, *superseded_list.parts)
        yield from change_list.names_of(plan, self._policy.change_lists)
        for offer in offers:
            yield from offer.documents
        if self._policy.sitemap:
            yield naming.SITEMAP
        yield from (naming.ABOUT, naming.CAPABILITY_LIST, naming.DESCRIPTION)

    def _write_sitemap(
        self,
        plan: PublicationPlan,
        pages: tuple[str, ...],
        snapshot: CatalogueSnapshot,
        writer: DocumentWriter,
    ) -> tuple[str, ...]:
        """Write the plain sitemap, if there is one; return its parts."""
        if not self._policy.sitemap:
            return ()
        if resource_list.is_sitemap_complete(writer, plan.at, pages):
            return pages
        return resource_list.publish_sitemap(writer, plan.at, snapshot, self._limits)

    def _archive(self, plan: PublicationPlan, writer: DocumentWriter) -> dict[Capability, str]:
        """Write the archive of Resource Lists, if there is one."""
        archive = Capability.RESOURCE_LIST_ARCHIVE
        available = {
            superseded_list.at
            for superseded_list in plan.superseded
            if superseded_list.name and archives.archive_resource_list(writer, superseded_list)
        }
        if not available and not (
            self._policy.archive and naming.ARCHIVES[archive] in writer.known
        ):
            return {}
        archives.write_archive(
            writer, archive, archives.resource_list_parts(writer, plan, available)
        )
        return {archive: naming.ARCHIVES[archive]}

    def _conclude(self, before: PublicationRecord | None, after: PublicationRecord) -> None:
        """Record the publication, and remove documents unreferenced for a day."""
        now = to_microseconds(self._clock.now())
        after = replace(after, orphans=garbage.remove_orphans(self._documents, after.orphans, now))
        if after != before:
            write_record(self._catalogue, after)

    def _forget_changes(self, plan: PublicationPlan, record: PublicationRecord) -> None:
        """Forget changes that are in no list, in batches so that others may write in between."""
        last = min(plan.known_after, record.listed)
        for _ in range(_MOST_FORGETS):
            if not self._catalogue.forget_changes(last):
                break


def _unplanned_changes(
    snapshot: CatalogueSnapshot, planned: int, listed: int, counts: Counter[ChangeKind]
) -> Iterator[tuple[int, Change]]:
    """Yield the changes after those that are planned; count all after those that are listed."""
    for number, change in snapshot.changes(after=min(planned, listed)):
        if number > listed:
            counts[change.kind] += 1
        if number > planned:
            yield number, change
