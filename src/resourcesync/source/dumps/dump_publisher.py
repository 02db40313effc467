"""Publish dumps: packages of the resources themselves, and what lists them (§11, §13)."""

import logging
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import CatalogueSnapshot
from resourcesync.documents.packages.planning import PackageSize
from resourcesync.errors import StorageError
from resourcesync.model.entries import Header, Part
from resourcesync.model.timestamps import SECOND, from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports.documents import SecondProcess
from resourcesync.ports.originals import ResourceContents
from resourcesync.source import archives, description, dump_record, naming
from resourcesync.source.document_writer import DocumentWriter, WrittenDocument
from resourcesync.source.dump_record import ArchivedDump, DumpRecord, PublishedPackage
from resourcesync.source.dumps import dump_packages
from resourcesync.source.dumps.dump_packages import PackedUntil
from resourcesync.source.dumps.package_writer import Packager
from resourcesync.source.foreign_documents import refuse_foreign_dumps
from resourcesync.source.publisher import OpenSource
from resourcesync.source.read_back import BAD_ROW_CODES
from resourcesync.source.rotation import MOST_LISTS, find_orphans, remove_orphans
from resourcesync.source.stored_plan import OFFERS, PLAN, Offer, PublicationPlan

_MOST_ENTRIES: Final = 10_000
"""Most files of one package: a change of one file must not repack all small files."""
_log = logging.getLogger(__name__)
_HEADS: Final = {
    Capability.RESOURCE_DUMP: naming.RESOURCE_DUMP,
    Capability.CHANGE_DUMP: naming.CHANGE_DUMP,
}
_OFFERED: Final = frozenset({*_HEADS, *(head.archive for head in _HEADS)})


class DumpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the dumps."""

    resources: bool = True
    changes: bool = False
    may_fork: bool = False  # into a copy that packs, too; a program may not want to be copied


class DumpOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a dump.

    ``lost`` changes are in no package, since their bytes are gone: the Change Dump starts over
    after them. ``harmed`` packages were gone or altered. ``error``: why the dumps stay as before.
    """

    packages: tuple[PublishedPackage, ...] = ()
    reused: int = 0
    written: tuple[WrittenDocument, ...] = ()
    lost: int = 0
    harmed: int = 0
    error: StorageError | None = None


class DumpPublisher:
    """Publisher of a Source's dumps from its catalogue.

    The documents that the Capability List must lead to are stored with the catalogue; the publisher
    of the lists adds them at its next run, and retains the Change Lists that continue from them.
    """

    def __init__(
        self,
        source: OpenSource,
        contents: ResourceContents,
        size: PackageSize | None = None,
        second: SecondProcess | None = None,
    ) -> None:
        self._catalogue, self._documents = source.catalogue, source.documents
        self._settings, self._naming = source.settings, source.settings.names
        self._clock = source.clock
        self._size = size or PackageSize()
        self._archive = int(source.settings.archive * SECOND)
        self._packager = Packager(source.documents, contents, second)
        self._lost = 0

    def publish(
        self, *, resources: bool = True, changes: bool = False, oldest: int = 0
    ) -> DumpOutcome:
        """Pack what is not packed yet, and list it."""
        with self._catalogue.snapshot() as snapshot:
            plan, before = PLAN.read(self._catalogue), dump_record.read_dumps(self._catalogue)
            after, dialect = self._offered(before), self._settings.dialect
            found = self._documents, self._naming, after.documents
            writer = DocumentWriter(*found, dialect=dialect, moment=snapshot.at)
            since = self._now() - self._archive
            kept = (dump for dump in after.former if self._archive and dump.since >= since)
            after = replace(after, former=tuple(kept)[-MOST_LISTS:])
            if plan is not None and plan.base_uri != self._naming.base_uri:
                plan = None
            if resources:
                # Lists that were started over continue from no older dump.
                start = 0 if plan is None else plan.start
                after = self._resources(snapshot, writer, after, max(oldest, start))
            if changes:
                after = self._changes(snapshot, writer, after, plan, oldest)
        self._conclude(before, after, writer)
        known = {package.name for package in (*before.resources, *before.changes)}
        packages = (*(after.resources * resources), *(after.changes * changes))
        new = tuple(package for package in packages if package.name not in known)
        return DumpOutcome(
            packages=new,
            reused=len(packages) - len(new),
            written=tuple(writer.written),
            lost=self._lost,
            harmed=self._packager.harmed,
        )

    def _offered(self, record: DumpRecord) -> DumpRecord:
        """Return the record; an empty one if its dumps are not offered: the lists started over."""
        base, taken = self._naming.base_uri, {package.name: 0 for package in record.resources}
        if any(offer.base_uri == base for offer in OFFERS.read(self._catalogue) or ()):
            return record
        return DumpRecord(base_uri=base, number=record.number, orphans=record.orphans | taken)

    def _resources(
        self, snapshot: CatalogueSnapshot, writer: DocumentWriter, record: DumpRecord, oldest: int
    ) -> DumpRecord:
        found, at = (snapshot, record.resources, self._packager), snapshot.at
        taken = {*_names(record.resources), *record.orphans}
        packages = dump_packages.pack_resources(
            *found, writer=writer, size=self._size, taken=taken, oldest=oldest
        )
        self._record_renewed()
        since = min((from_microseconds(package.since) for package in packages), default=at)
        header = Header(capability=Capability.RESOURCE_DUMP, at=since, completed=at)
        former = record.former
        is_new = _names(packages) != _names(record.resources)
        if self._archive and is_new and not self._packager.harmed:
            head = naming.RESOURCE_DUMP
            parts = [name for name in writer.known if _is_part(name, head, writer)]
            dump = archives.archive_resource_dump(writer, record.resources, parts, self._now())
            former = former if dump is None else (*former, dump)
        self._list(writer, naming.RESOURCE_DUMP, header, packages, former)
        return replace(record, resources=packages, former=former)

    def _changes(
        self,
        snapshot: CatalogueSnapshot,
        writer: DocumentWriter,
        record: DumpRecord,
        plan: PublicationPlan | None,
        oldest: int,
    ) -> DumpRecord:
        record = self._unharmed(record, plan)
        # A number that no package ever had.
        numbers = (naming.change_package_number(name) + 1 for name in self._documents.names())
        reached = replace(_reached(snapshot, plan, record), number=max((record.number, *numbers)))
        lost = dump_packages.find_lost_changes(snapshot, reached.last, self._packager.contents)
        if lost is not None:
            _log.info("the bytes of %d changes are gone: the Change Dump starts over", lost.count)
            self._lost = lost.count
            record = replace(record, changes=())
            reached = replace(reached, last=lost.last, until=lost.time + 1)
        found = snapshot, reached, self._packager
        new = dump_packages.pack_changes(*found, writer=writer, size=self._size)
        self._record_renewed()
        ends = (*record.changes, *new)
        retained = tuple(end for end in ends if end.until >= oldest or end is ends[-1])
        since = retained[0].since if retained else reached.until
        header = Header(capability=Capability.CHANGE_DUMP, from_=from_microseconds(since))
        former = record.former
        if self._archive:
            gone = [change for change in record.changes if change not in retained]
            now = self._now()
            closed = (archives.close_change_dump(writer, some, now) for some in self._groups(gone))
            former = (*former, *closed)
        self._list(writer, naming.CHANGE_DUMP, header, retained, former)
        return replace(record, changes=retained, former=former, number=reached.number + len(new))

    def _unharmed(self, record: DumpRecord, plan: PublicationPlan | None) -> DumpRecord:
        """Return the record with the newest changes without a gap, if lists continue from them."""
        found = [self._packager.confirm(change) for change in record.changes]
        while found and not (found[-1] and found[-1].last):
            found.pop()
        start = max((number for number, each in enumerate(found, 1) if each is None), default=0)
        whole = tuple(filter(None, found[start:]))
        has_gap = plan is not None and whole and whole[-1].last < plan.known_after
        return replace(record, changes=() if has_gap else whole)

    def _record_renewed(self) -> None:
        """Record resources that differ in a package: the next scan may see no change."""
        renewed = self._packager.renewed
        if not renewed:
            return
        with self._catalogue.snapshot() as snapshot:
            known = {uri: next(snapshot.resources(uri, uri + "\0"), None) for uri in renewed}
        with self._catalogue.record(self._clock.now()) as recording:
            for uri, found in sorted(renewed.items()):
                before = known[uri]
                if before is None:
                    continue
                if found is None:
                    recording.deleted(before)
                elif found.digests != before.digests:
                    recording.updated(found, "")  # the next scan reads it again
        renewed.clear()

    def _list(
        self,
        writer: DocumentWriter,
        head: str,
        header: Header,
        packages: Sequence[PublishedPackage],
        former: Sequence[ArchivedDump],
    ) -> None:
        header = archives.write_dump_archive(writer, header, former)
        key = dump_record.dump_key(header, packages)
        if writer.has(head, key):
            return
        links = (description.up_link(self._naming, naming.CAPABILITY_LIST),)
        header = replace(header, links=(*links, *header.links))
        entries = (dump_record.package_entry(self._naming, packed, header) for packed in packages)
        if len(packages) <= self._settings.max_entries:
            writer.put_entries(head, key, header, entries)
            return
        inner = replace(header, links=(*links, description.index_link(self._naming, head)))
        parts: list[Part] = []
        for number, some in enumerate(self._groups(packages), 1):
            name = naming.dump_part(head, key, number)
            root = dump_record.spanning_header(inner, some)
            within = (dump_record.package_entry(self._naming, package, inner) for package in some)
            writer.put_entries(name, key, root, within)
            times = {time: getattr(root, time) for time in ("at", "completed", "from_", "until")}
            parts.append(Part(uri=self._naming.uri(name), **times))
        writer.put_entries(head, key, replace(header, is_index=True), parts)

    def _groups(self, packages: Sequence[PublishedPackage]) -> Iterator[Sequence[PublishedPackage]]:
        most = self._settings.max_entries
        return (packages[at : at + most] for at in range(0, len(packages), most))

    def _conclude(self, before: DumpRecord, after: DumpRecord, writer: DocumentWriter) -> None:
        offers = list(self._offers(after, writer))
        wanted = {name for offer in offers for name in (offer.name, *offer.documents)}
        now = self._now()
        known, former = before.documents, before.orphans
        orphans = find_orphans(self._documents, wanted, known, former, now, naming.is_dump_name)
        remaining = remove_orphans(self._documents, orphans, now)
        documents = {name: known for name, known in writer.known.items() if name in wanted}
        record = replace(after, documents=documents, orphans=remaining)
        if record != before:
            dump_record.DUMPS.write(self._catalogue, record)
        offered = OFFERS.read(self._catalogue) or ()
        others = (offer for offer in offered if offer.capability not in _OFFERED)
        if (now_offered := (*others, *offers)) != offered:
            OFFERS.write(self._catalogue, now_offered)

    def _now(self) -> int:
        return to_microseconds(self._clock.now())

    def _offers(self, record: DumpRecord, writer: DocumentWriter) -> Iterator[Offer]:
        yield from archives.archive_offers(record.former, record.base_uri)
        listed = dict(zip(_HEADS, (record.resources, record.changes), strict=True))
        for capability, head in _HEADS.items():
            if head not in writer.known:
                continue
            parts = [name for name in writer.known if _is_part(name, head, writer)]
            at = min((package.since for package in listed[capability]), default=None)
            yield Offer(
                capability=capability,
                name=head,
                documents=(*parts, *archives.package_documents(listed[capability])),
                at=at if capability is Capability.RESOURCE_DUMP else None,
                base_uri=self._naming.base_uri,
            )


def _names(packages: Sequence[PublishedPackage]) -> list[str]:
    return [package.name for package in packages]


def _reached(
    snapshot: CatalogueSnapshot, plan: PublicationPlan | None, record: DumpRecord
) -> PackedUntil:
    if record.changes:
        newest = record.changes[-1]
        return PackedUntil(last=newest.last, until=newest.until)
    if plan is None:
        return PackedUntil(last=snapshot.last_change(), until=to_microseconds(snapshot.at))
    start = plan.closed[0] if plan.closed else plan.open
    return PackedUntil(last=start.after, until=start.start)


def _is_part(name: str, head: str, writer: DocumentWriter) -> bool:
    return name.startswith(head.removesuffix(".xml") + "-") and (
        writer.known[name].key == writer.known[head].key
    )


def dump(
    asked: DumpRequest,
    source: OpenSource,
    contents: ResourceContents,
    second: SecondProcess | None = None,
) -> DumpOutcome:
    """Pack what is not packed yet; an error is in the outcome, unless a bad row may cause it."""
    settings, clock = source.settings, source.clock
    refuse_foreign_dumps(source.catalogue, source.documents)
    keep = int(settings.keep_seconds * SECOND)
    oldest = to_microseconds(clock.now()) - keep if keep else 0
    most = settings.max_package or PackageSize().max_bytes
    size = PackageSize(max_bytes=most, max_entries=min(_MOST_ENTRIES, settings.max_entries))
    publisher = DumpPublisher(source, contents, size, second)
    try:
        return publisher.publish(resources=asked.resources, changes=asked.changes, oldest=oldest)
    except StorageError as error:
        if error.code in BAD_ROW_CODES:
            raise
        return DumpOutcome(error=error)
