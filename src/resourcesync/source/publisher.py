"""Publisher of the lists: the change log is recorded first, heads are written last (§8-§12)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import CatalogueSnapshot, SourceCatalogue
from resourcesync.model.entries import Change
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability, ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.source import archives, change_list, description, naming, resource_list, rotation
from resourcesync.source.document_writer import DocumentWriter, WrittenDocument
from resourcesync.source.publication_settings import Policy, PublicationSettings
from resourcesync.source.stored_plan import (
    OFFERS,
    PLAN,
    RECORD,
    Offer,
    PublicationPlan,
    PublicationRecord,
    PublicationStep,
    Span,
    SupersededList,
)

_MOST_FORGETS: Final = 50
"""Batches of some thousand changes that one publication forgets at most, so that it ends."""


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a publication: the documents in their order, and the changes now listed first.

    ``is_anew``: the lists begin again, with no changes.
    """

    written: tuple[WrittenDocument, ...] = ()
    created: int = 0
    updated: int = 0
    deleted: int = 0
    first: bool = False  # nothing had been published from this catalogue before
    is_anew: bool = False
    removed: tuple[str, ...] = ()  # names of documents that are no longer offered

    def after(self, earlier: "Publication") -> "Publication":
        """Return the result of this publication and an earlier one together."""
        names = {document.name for document in self.written}
        kept = (document for document in earlier.written if document.name not in names)
        return Publication(
            written=(*kept, *self.written),
            created=earlier.created + self.created,
            updated=earlier.updated + self.updated,
            deleted=earlier.deleted + self.deleted,
            first=earlier.first or self.first,
            removed=(*earlier.removed, *self.removed),
        )


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    planned: PublicationPlan | None
    public: PublicationRecord | None  # ``None`` if all must be written again
    before: PublicationPlan | None  # the plan to continue; ``None`` starts a new one
    is_first: bool
    closes: bool  # a Change List is closed now
    rebases: bool  # a Resource List of the present state is written in any case
    follows_changes: bool  # one is written with changes, too, while it is small
    moment: int  # microseconds
    offers: tuple[Offer, ...]
    withdrawn: tuple[Offer, ...]


class _WrittenLists(NamedTuple):
    parts: tuple[str, ...]
    archived: dict[Capability, str]
    pages: tuple[str, ...]


class OpenSource(msgspec.Struct, frozen=True, kw_only=True):
    """A Source that is open to be published: its catalogue, and the place of its documents."""

    catalogue: SourceCatalogue
    documents: DocumentStore
    settings: PublicationSettings
    clock: Clock


class ListPublisher:
    """Publisher of a Source's lists from its catalogue.

    A reader that follows links finds a consistent set at every moment, also when a run is killed:
    documents are put in place children first, and only heads are ever replaced (open Change List,
    indexes, archives, Capability List, Source Description). Each is read back before it takes its
    place. The next run writes missing and altered documents.
    """

    def __init__(self, source: OpenSource) -> None:
        self._source = source
        self._catalogue = source.catalogue
        self._clock = source.clock

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
        Without one, the first Change List is written in any case: else nothing would be offered.
        Another base than the last time starts over, as ``Step.INITIALISE`` does: with a Resource
        List, and no changes.
        """
        task = self._task(step, now or self._clock.now(), anew=anew)
        with self._catalogue.snapshot() as snapshot:
            run = _PublicationRun(self._source, task, snapshot)
            plan = run.next_plan()
            if plan != task.planned:
                PLAN.write(self._catalogue, plan)  # before the first document
            lists = run.write_lists(plan)
            record = run.record(plan, lists, run.write_heads(plan, lists), self._clock)
            last_edit = snapshot.last_edit()
        removed = tuple(name for name in record.orphans if name in naming.REMOVABLE_HEADS)
        ended = to_microseconds(self._clock.now())
        orphans = rotation.remove_orphans(self._source.documents, record.orphans, ended)
        record = replace(record, orphans=orphans)
        if record != task.public:
            RECORD.write(self._catalogue, record)
        for _ in range(_MOST_FORGETS):
            if not self._catalogue.forget_changes(min(plan.known_after, record.listed)):
                break
        done = replace(run.result(), removed=removed)
        written = {document.name for document in done.written}
        if naming.RESOURCE_LIST in written or not self._source.settings.resource_list:
            self._catalogue.forget_edits(last_edit)
        return done

    def foresee(self, step: PublicationStep, now: datetime, *, anew: bool = False) -> Publication:
        """Return what `publish` would list of what is recorded; no document is written."""
        if RECORD.read(self._catalogue) is None:
            return Publication(first=True, is_anew=True)
        task = self._task(step, now, anew=anew)
        with self._catalogue.snapshot() as snapshot:
            run = _PublicationRun(self._source, task, snapshot)
            run.next_plan()
            return run.result()

    def starts_over(self, step: PublicationStep) -> bool:
        """True if this step discards what was published before; a dump comes after it then.

        To a Destination the log of a change of base is the deletion of resources of another origin,
        which no Source may speak for. So nothing of it is listed: the new base starts with a
        Resource List of its own.
        """
        planned = PLAN.read(self._catalogue)
        if planned is None:
            return RECORD.read(self._catalogue) is not None
        is_left = planned.base_uri != self._source.settings.names.base_uri
        return is_left or step is PublicationStep.INITIALISE

    def _task(self, step: PublicationStep, now: datetime, *, anew: bool) -> _Task:
        """Return the task of this run; if a list is closed now, ensure no change comes earlier."""
        planned, record = PLAN.read(self._catalogue), RECORD.read(self._catalogue)
        moment, policy = to_microseconds(now), self._source.settings
        place = policy.names
        is_known = planned is not None and record is not None
        before, offers = planned, OFFERS.read(self._catalogue) or ()
        if starts_over := self.starts_over(step):
            before = None
            OFFERS.write(self._catalogue, ())  # the next dump begins with the new lists
        public = record
        present = (place.base_uri, place.documents_uri)
        if record and planned and (record.base_uri, record.documents_uri) != present:
            public = None  # every document must be written again, at its new place
        task = _Task(
            planned=planned,
            public=public,
            before=before,
            is_first=record is None,
            closes=policy.is_per_run and (not policy.resource_list if before is None else is_known),
            rebases=anew or _is_rebased(before, policy, step, moment),
            follows_changes=step is PublicationStep.DUE,
            moment=moment,
            offers=() if starts_over else offers,
            withdrawn=offers if starts_over else (),
        )
        if is_known and (task.closes or task.rebases or before is None):
            with self._catalogue.record(now) as recording:
                recording.advance_time()
        return task


def _is_rebased(
    before: PublicationPlan | None, policy: Policy, step: PublicationStep, moment: int
) -> bool:
    if step is PublicationStep.REBASE or before is None:
        return step is PublicationStep.REBASE
    is_due = step is PublicationStep.DUE and rotation.is_rebase_due(before, policy, moment)
    return is_due or (not policy.archive and any(former.name for former in before.superseded))


class _PublicationRun:
    def __init__(self, source: OpenSource, task: _Task, snapshot: CatalogueSnapshot) -> None:
        self._documents, self._naming = source.documents, source.settings.names
        self._policy = source.settings
        self._task, self._snapshot = task, snapshot
        self._public = task.public
        self._parts = () if task.public is None else task.public.parts
        self._counts: Counter[ChangeKind] = Counter()
        self._writer = DocumentWriter(
            self._documents,
            self._naming,
            {} if task.public is None else task.public.documents,
            dialect=self._policy.dialect,
            moment=snapshot.at,
        )

    def next_plan(self) -> PublicationPlan:
        task, at = self._task, to_microseconds(self._snapshot.at)
        plan = task.before or self._new_plan(at)
        plan = replace(plan, documents_uri=self._naming.documents_uri)
        if task.before is not None and rotation.is_rotation_due(plan, self._policy, task.moment):
            plan = rotation.close_list(plan)
        planned = plan.open.last
        listed = planned if self._public is None or task.before is None else self._public.listed
        fresh = _unplanned_changes(self._snapshot, planned, listed, self._counts)
        plan = change_list.extend(plan, fresh, self._writer, self._policy)
        if task.closes:
            plan = rotation.close_list_at(plan, at, self._documents.names())
        if task.before is not None and self._policy.resource_list:
            plan = self._with_resource_list(plan, at)
        offered = [offer.at for offer in self._offers(plan) if offer.at is not None]
        return rotation.retain(plan, self._policy, offered, task.moment)

    def _offers(self, plan: PublicationPlan) -> tuple[Offer, ...]:
        return tuple(offer for offer in self._task.offers if offer.goes_with(plan))

    def _new_plan(self, at: int) -> PublicationPlan:
        last, planned = self._snapshot.last_change(), self._task.planned
        numbers = (naming.change_list_number(name) + 1 for name in self._documents.names())
        return PublicationPlan(
            base_uri=self._naming.base_uri,
            documents_uri=self._naming.documents_uri,
            at=at,
            monitored_since=at,
            # Numbers in use are not used again.
            number=max((1 if planned is None else planned.number + 1, *numbers)),
            closed=(),
            open=Span(after=last, last=last, start=at, reached=at),
        )

    def _with_resource_list(self, plan: PublicationPlan, at: int) -> PublicationPlan:
        task, parts, public = self._task, self._parts, self._public
        is_complete = resource_list.is_complete(self._writer, naming.RESOURCE_LIST, plan.at, parts)
        name, public_at = "", None if public is None or is_complete else public.public_at
        if self._policy.archive and is_complete:
            name = naming.dated(naming.RESOURCE_LIST, from_microseconds(plan.at))
        former = SupersededList(at=plan.at, since=task.moment, name=name, parts=parts)
        since = plan.monitored_since
        if task.rebases or not is_complete:
            since = at
        elif not (task.follows_changes and plan.at < plan.changed_at and self._is_small(parts)):
            at = plan.at
        return replace(rotation.supersede(plan, at, former, public_at), monitored_since=since)

    def _is_small(self, parts: tuple[str, ...]) -> bool:
        most = min(self._policy.rebase_up_to, self._policy.max_entries)
        if not most or parts or self._policy.archive:
            return False
        return self._snapshot.count(most + 1) <= most

    def write_lists(self, plan: PublicationPlan) -> _WrittenLists:
        """Write the planned lists that are missing.

        Change Lists come before a Resource List that they lead up to from the public one: if this
        run dies between the two, that one leads to the same state. Otherwise nothing would document
        the changes between the two.
        """
        shape = self._policy.change_lists
        public = None if self._public is None else self._public.public_at
        writer, snapshot, parts = self._writer, self._snapshot, self._parts
        leads_up = plan.start < plan.at and (public is None or plan.start <= public)
        if leads_up:
            change_list.publish(writer, plan, snapshot, shape)
        archived = self._archive(plan)
        if not self._policy.resource_list:
            parts = ()
        elif not resource_list.is_complete(writer, naming.RESOURCE_LIST, plan.at, parts):
            parts = resource_list.publish_resource_list(
                writer, snapshot, self._policy, has_archive=bool(archived)
            )
        if not leads_up:
            change_list.publish(writer, plan, snapshot, shape)
        return _WrittenLists(parts, archived, self._write_sitemap(plan))

    def _archive(self, plan: PublicationPlan) -> dict[Capability, str]:
        archive, writer = Capability.RESOURCE_LIST_ARCHIVE, self._writer
        available = {
            former.at
            for former in plan.superseded
            if former.name and archives.archive_resource_list(writer, former)
        }
        was_there = self._policy.archive and naming.ARCHIVES[archive] in writer.known
        if not available and not was_there:
            return {}
        archives.write_archive(
            writer, archive, archives.resource_list_parts(writer, plan, available)
        )
        return {archive: naming.ARCHIVES[archive]}

    def _write_sitemap(self, plan: PublicationPlan) -> tuple[str, ...]:
        pages = () if self._public is None else self._public.sitemap
        if not self._policy.sitemap:
            return ()
        if resource_list.is_complete(self._writer, naming.SITEMAP, plan.at, pages):
            return pages
        return resource_list.publish_sitemap(self._writer, plan.at, self._snapshot, self._policy)

    def write_heads(self, plan: PublicationPlan, lists: _WrittenLists) -> dict[Capability, str]:
        """Write Capability List and Source Description; return what they lead to."""
        listed = {Capability.RESOURCE_LIST: naming.RESOURCE_LIST}
        offered = {
            **(listed if self._policy.resource_list else {}),
            **lists.archived,
            **change_list.offered(plan, self._policy.change_lists),
            **{offer.capability: offer.name for offer in self._offers(plan)},
        }
        has_monitor = self._policy.has_monitor and self._is_small(lists.parts)
        since = plan.monitored_since if has_monitor else None
        description.publish(
            self._writer,
            offered,
            self._policy.described_by,
            self._policy.hubs,
            monitored_since=since,
        )
        return offered

    def record(
        self,
        plan: PublicationPlan,
        lists: _WrittenLists,
        heads: Mapping[Capability, str],
        clock: Clock,
    ) -> PublicationRecord:
        known = self._writer.known
        wanted = {*lists.parts, *lists.pages, *heads.values(), *self._further_names(plan)}
        now = to_microseconds(clock.now())
        gone = (name for offer in self._task.withdrawn for name in (offer.name, *offer.documents))
        former = dict.fromkeys(gone, now) | ({} if self._public is None else self._public.orphans)
        return PublicationRecord(
            listed=plan.open.last,
            base_uri=plan.base_uri,
            documents_uri=plan.documents_uri,
            parts=lists.parts,
            sitemap=lists.pages,
            documents={name: written for name, written in known.items() if name in wanted},
            orphans=rotation.find_orphans(
                self._documents, wanted, known, former, now, naming.is_replaceable
            ),
        )

    def _further_names(self, plan: PublicationPlan) -> Iterator[str]:
        for former in plan.superseded:
            if former.name:
                yield from (former.name, *former.parts)
        yield from change_list.names_of(plan, self._policy.change_lists)
        for offer in self._offers(plan):
            yield from offer.documents
        if self._policy.sitemap:
            yield naming.SITEMAP
        yield from (naming.ABOUT, naming.CAPABILITY_LIST, naming.DESCRIPTION)

    def result(self) -> Publication:
        return Publication(
            written=tuple(self._writer.written),
            created=self._counts[ChangeKind.CREATED],
            updated=self._counts[ChangeKind.UPDATED],
            deleted=self._counts[ChangeKind.DELETED],
            first=self._task.is_first,
            is_anew=self._task.before is None,
        )


def _unplanned_changes(
    snapshot: CatalogueSnapshot, planned: int, listed: int, counts: Counter[ChangeKind]
) -> Iterator[tuple[int, Change]]:
    for number, change in snapshot.changes(after=min(planned, listed)):
        if number > listed:
            counts[change.kind] += 1
        if number > planned:
            yield number, change
