"""Record of a table that is published without a catalogue (ADR 0067), and the table's documents.

The table itself is the state of the resources; this record is stored beside it. It is one value
that is stored as a whole: the pending publication before its documents are written, the public one
after. The lists are named by their content.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync.documents.writer import closing, opening
from resourcesync.errors import ConfigurationError
from resourcesync.model.capabilities import Header, Part
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource, ResourceRun
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import MAX_ENTRIES, Capability, ChangeKind
from resourcesync.source import change_list, description, naming
from resourcesync.source.document_writer import DocumentWriter
from resourcesync.source.paging import Block, PageLimits, Paginator
from resourcesync.source.plan import (
    ChangeLists,
    DocumentRecord,
    Policy,
    PublicationPlan,
    Span,
    SupersededList,
    retain,
)

_REBASE_SHARE: Final = 2
"""A Resource List is written when more than one in so many resources changed since the last."""


class ChangeRows(msgspec.Struct, frozen=True, kw_only=True):
    """A file of changes, in the order of their times.

    Attributes:
        file: Its name.
        count: Number of changes in it.
        before: The number of the change before its first; numbers continue from file to file.
        since: The moment that its first list begins at, in microseconds.
        at: The time of its last change; each one before is a microsecond earlier.
    """

    file: str
    count: int
    before: int
    since: int
    at: int


class RowDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document made of rows of a file.

    Attributes:
        name: Its name, derived from its content.
        file: The file of the rows.
        start: The number of its first row in the file, from 0.
        rows: Number of its rows.
    """

    name: str
    file: str
    start: int
    rows: int
    known: DocumentRecord


class PendingPublication(msgspec.Struct, frozen=True, kw_only=True):
    """A publication that was begun; its result does not depend on when it is carried out.

    Attributes:
        name: A name that no other task has.
        at: Its moment, in microseconds.
        table: The file of the table.
        rows: Number of resources in it.
        told: Identifies the input of the table.
        changes: The changes since the table before; ``None`` for none.
        created, updated, deleted: Number of changes of each kind.
        rebases: True if a Resource List is written.
        begins: True if the lists start over.
        base_uri: The URI of the resources' root.
        limits: The limits of one document.
        keep: Microseconds for which closed Change Lists stay; 0 retains them all.
        described_by: The URI of a document about the resources; empty writes one.
    """

    name: str
    at: int
    table: str
    rows: int
    told: str
    changes: ChangeRows | None
    created: int
    updated: int
    deleted: int
    rebases: bool
    begins: bool
    base_uri: str
    limits: PageLimits
    keep: int
    described_by: str


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """A published table.

    Attributes:
        settings: The settings of its publication, as its owner stores them.
        under_way: The publication that was begun and has not ended.
        plan: The public lists.
        table: The file of the table.
        rows: Number of resources in it.
        told: Identifies its input.
        pages: The Resource List's documents.
        lists: The Change Lists' documents.
        changes: The files of changes that these are made of.
        heads: All other documents.
        orphans: Unreferenced documents, and since when.
    """

    settings: str = ""
    under_way: PendingPublication | None = None
    plan: PublicationPlan | None = None
    table: str = ""
    rows: int = 0
    told: str = ""
    pages: tuple[RowDocument, ...] = ()
    lists: tuple[RowDocument, ...] = ()
    changes: tuple[ChangeRows, ...] = ()
    heads: dict[str, DocumentRecord] = msgspec.field(default_factory=dict)
    orphans: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def documents(self) -> dict[str, DocumentRecord]:
        """Return all documents by name."""
        return {
            **{document.name: document.known for document in (*self.pages, *self.lists)},
            **self.heads,
        }

    @property
    def latest(self) -> int:
        """Return the newest time that was used, in microseconds; 0 before the first."""
        return 0 if self.plan is None else self.plan.open.reached

    @property
    def files(self) -> frozenset[str]:
        """Return the files of rows that are needed."""
        task = self.under_way
        later = (
            () if task is None else (task.table, *((task.changes.file,) if task.changes else ()))
        )
        return frozenset({self.table, *later, *(change.file for change in self.changes)} - {""})


def policy_of(task: PendingPublication) -> Policy:
    """Return the policy of a publication, for the planner."""
    return Policy(keep=task.keep)


def is_rebase_worthwhile(plan: PublicationPlan, rows: int, changed: int) -> bool:
    """True if enough changed since the Resource List for a new one."""
    since = sum(span.entries for span in plan.closed if span.reached > plan.at)
    return (since + changed) * _REBASE_SHARE > rows


def conclude(
    inventory: Inventory,
    task: PendingPublication,
    sheets: tuple[RowDocument, ...],
    documents_uri: str,
    now: int,
) -> Inventory:
    """Return the record of a publication whose documents were written.

    The heads are still those of before.

    Args:
        inventory: The record before.
        task: The publication.
        sheets: Its documents: of the Resource List if it rebases, and of the changes.
        documents_uri: The URI of the documents' folder.
        now: The present moment, in microseconds.
    """
    fresh = tuple(sheet for sheet in sheets if sheet.file != task.table)
    plan = _plan(inventory, task, fresh, documents_uri, now)
    plan = retain(plan, policy_of(task), (), now)
    names = {span.name for span in plan.closed}
    lists = tuple(document for document in (*inventory.lists, *fresh) if document.name in names)
    used = {document.file for document in lists}
    changes = (*inventory.changes, *((task.changes,) if task.changes else ()))
    return replace(
        inventory,
        under_way=None,
        plan=plan,
        table=task.table,
        rows=task.rows,
        told=task.told,
        pages=tuple(sheet for sheet in sheets if sheet.file == task.table) or inventory.pages,
        lists=lists,
        changes=tuple(change for change in changes if change.file in used),
    )


def span_of(sheet: RowDocument, rows: ChangeRows) -> Span:
    """Return the span of changes in a document."""
    last = sheet.start + sheet.rows
    return Span(
        after=rows.before + sheet.start,
        last=rows.before + last,
        start=start_of(rows, sheet.start),
        reached=time_of(rows, last - 1),
        entries=sheet.rows,
        size=sheet.known.size,
        name=sheet.name,
    )


def time_of(rows: ChangeRows, row: int) -> int:
    """Return the time of a change, in microseconds."""
    return rows.at - rows.count + 1 + row


def start_of(rows: ChangeRows, row: int) -> int:
    """Return the ``from`` of a list that begins with this change."""
    return time_of(rows, row - 1) if row else rows.since


def row_ranges(rows: int, limits: PageLimits) -> list[tuple[int, int]]:
    """Return ranges of rows, each one unit of work: as many rows as a document has at most."""
    most = limits.max_entries
    return [(start, min(start + most, rows)) for start in range(0, max(rows, 1), most)]


def _plan(
    inventory: Inventory,
    task: PendingPublication,
    fresh: tuple[RowDocument, ...],
    documents_uri: str,
    now: int,
) -> PublicationPlan:
    before = inventory.plan
    if before is None or task.begins:
        number = 0 if before is None else before.open.last
        return PublicationPlan(
            base_uri=task.base_uri,
            documents_uri=documents_uri,
            at=task.at,
            number=1,
            closed=(),
            open=Span(after=number, last=number, start=task.at, reached=task.at),
        )
    plan = before
    if task.changes is not None:
        last = task.changes.before + task.changes.count
        spans = tuple(span_of(document, task.changes) for document in fresh)
        opened = Span(after=last, last=last, start=task.at, reached=task.at)
        plan = replace(plan, closed=(*plan.closed, *spans), open=opened)
    if task.rebases:
        former = SupersededList(at=plan.at, since=now)
        opened = replace(plan.open, reached=task.at)  # the next list begins where the last ends
        plan = replace(plan, at=task.at, superseded=(*plan.superseded, former), open=opened)
    return plan


Kinds = Sequence[str]


def write_pages(
    writer: DocumentWriter,
    runs: Iterable[ResourceRun],
    file: str,
    start: int,
    *,
    at: int,
    limits: PageLimits,
) -> list[RowDocument]:
    """Write resources as parts of a Resource List: one document, or more where one is too small.

    Args:
        writer: The document writer.
        runs: The resources, in URI order.
        file: The file of the rows.
        start: The number of the first row.
        at: The moment of the list, in microseconds.
        limits: The limits of one document.

    Raises:
        StorageError: One could not be written, or does not read back.
    """
    header = _resource_header(
        writer, at, description.index_link(writer.naming, naming.RESOURCE_LIST)
    )
    pages = Paginator.of_runs(runs, writer.renderer(header), limits)
    return _write(writer, pages, _FirstRow(file, start), header, lambda *_: header)


def write_changes(
    writer: DocumentWriter,
    told: Iterable[tuple[Kinds, ResourceRun]],
    rows: ChangeRows,
    start: int,
    *,
    limits: PageLimits,
) -> list[RowDocument]:
    """Write changes as closed Change Lists, as ``write_pages`` does.

    Raises:
        StorageError: One could not be written, or does not read back.
    """

    def header_of(first: int, last: int) -> Header:
        since, until = start_of(rows, first), time_of(rows, last - 1)
        return change_list.header_of(
            writer, from_microseconds(since), from_microseconds(until), is_part=True
        )

    # The longest possible header: times to the microsecond.
    latest = from_microseconds(rows.at).replace(microsecond=1)
    widest = change_list.header_of(writer, latest, latest, is_part=True)
    pages = Paginator(_changes(told, rows, start), writer.renderer(widest), limits)
    return _write(writer, pages, _FirstRow(rows.file, start), widest, header_of)


def write_heads(writer: DocumentWriter, inventory: Inventory, described_by: str) -> frozenset[str]:
    """Write the missing documents that lead to the lists: indexes, then the ones above.

    Args:
        writer: The document writer, with the records of the inventory.
        inventory: The inventory to publish.
        described_by: The URI of a document about the resources; empty writes one.

    Returns:
        The names of all of these.

    Raises:
        ConfigurationError: One index cannot name so many lists.
        StorageError: One could not be written; the public documents are still in place.
    """
    plan = inventory.plan
    assert plan is not None
    most = max(len(inventory.pages), len(plan.closed))
    if most > MAX_ENTRIES:
        raise ConfigurationError(
            f"an index names at most {MAX_ENTRIES:,} lists, not {most:,}",
            evidence=(("kept", "what was published before"),),
            hint="publish the table as several Sources, each with a part of the URIs",
        )
    key = hashlib.sha256("\n".join(page.name for page in inventory.pages).encode()).hexdigest()
    if not writer.has(naming.RESOURCE_LIST, key):
        header = replace(_resource_header(writer, plan.at), is_index=True)
        parts = (Part(uri=writer.naming.uri(page.name), at=header.at) for page in inventory.pages)
        writer.put_entries(naming.RESOURCE_LIST, key, header, parts)
    if plan.closed:
        change_list.write_index(writer, plan, ChangeLists.PER_RUN)
    else:
        _write_empty(writer, plan)
    offered = {
        Capability.RESOURCE_LIST: naming.RESOURCE_LIST,
        Capability.CHANGE_LIST: naming.CHANGE_LIST,
    }
    description.publish(writer, offered, described_by)
    about = () if described_by else (naming.ABOUT,)
    return frozenset({*offered.values(), *about, naming.CAPABILITY_LIST, naming.DESCRIPTION})


def _write_empty(writer: DocumentWriter, plan: PublicationPlan) -> None:
    """Write a Change List without changes, so that followers of it get the later ones."""
    key = f"nothing since {plan.open.start}"
    if not writer.has(naming.CHANGE_LIST, key):
        since = from_microseconds(plan.open.start)
        header = change_list.header_of(writer, since, None, is_part=False)
        writer.put_entries(naming.CHANGE_LIST, key, header, ())


def _resource_header(writer: DocumentWriter, at: int, *links: Link) -> Header:
    return Header(
        capability=Capability.RESOURCE_LIST,
        at=from_microseconds(at),
        links=(description.up_link(writer.naming, naming.CAPABILITY_LIST), *links),
    )


def _changes(
    runs: Iterable[tuple[Kinds, ResourceRun]], rows: ChangeRows, start: int
) -> Iterator[Change]:
    moment = time_of(rows, start)
    for kinds, run in runs:
        for kind, resource in zip(kinds, run, strict=True):
            change = ChangeKind(kind)
            if change is ChangeKind.DELETED:
                resource = Resource(uri=resource.uri)  # noqa: PLW2901 - that is all there is
            yield Change(kind=change, time=from_microseconds(moment), resource=resource)
            moment += 1


class _FirstRow(NamedTuple):
    file: str
    start: int


def _write(
    writer: DocumentWriter,
    pages: Paginator[Any],
    rows: _FirstRow,
    widest: Header,
    header_of: Callable[[int, int], Header],
) -> list[RowDocument]:
    """Write documents until there are no more entries; at least one, even if it is empty.

    Args:
        writer: The document writer.
        pages: The entries.
        rows: The range of their rows.
        widest: A header of the greatest possible length.
        header_of: Returns the header of a document with the rows from one up to before another.
    """
    around, start = writer.overhead(widest), rows.start
    sheets: list[RowDocument] = []
    while pages or not sheets:
        body = list(pages.page(around))
        stop = start + sum(len(block.entries) for block in body)
        header = header_of(start, stop)
        name = _content_name(header, body)
        writer.put(name, name, header, body)
        known = writer.known[name]
        sheets.append(
            RowDocument(name=name, file=rows.file, start=start, rows=stop - start, known=known)
        )
        start = stop
    return sheets


def _content_name(header: Header, body: Sequence[Block[Any]]) -> str:
    """Return the name of a document, which has the SHA-256 of its bytes in it."""
    running = hashlib.sha256(opening(header))
    for block in body:
        running.update(block.text)
    running.update(closing(header))
    assert header.capability is not None
    return naming.named_by_content(header.capability, running.hexdigest())
