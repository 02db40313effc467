"""Change Lists: the log of changes is cut into lists, and these are written (§12)."""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import takewhile

from msgspec.structs import replace

from resourcesync.catalogue.database import CatalogueSnapshot
from resourcesync.model.entries import Change, Header, Link, Part
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source import archives, description, naming
from resourcesync.source.document_writer import DocumentWriter
from resourcesync.source.paging import Block, PageLimits, Paginator
from resourcesync.source.publication_settings import ChangeLists
from resourcesync.source.rotation import close_list
from resourcesync.source.stored_plan import PublicationPlan, Span


def extend(
    plan: PublicationPlan,
    changes: Iterable[tuple[int, Change]],
    writer: DocumentWriter,
    limits: PageLimits,
) -> PublicationPlan:
    """Return the plan with further changes in its open list, and in new ones when that is full.

    A list is closed at the time of its last change, and the next one starts there: since every
    change has a time of its own, none is in neither. A closed list never changes again, nor does
    the order: a change is listed only when every earlier one is.
    """
    # The longest header that such a list can have: closed, in an index, times to the microsecond.
    latest = from_microseconds(plan.open.start).replace(microsecond=1)
    header = header_of(writer, latest, latest, is_part=True)
    render = writer.renderer(header)
    pages = Paginator(changes, lambda numbered: render([change for _, change in numbered]), limits)
    while pages:
        for block in pages.page(writer.overhead(header) + plan.open.size, plan.open.entries):
            plan = replace(plan, open=_extended(plan.open, block))
        if pages:
            plan = close_list(plan)
    return plan


def _extended(span: Span, block: Block[tuple[int, Change]]) -> Span:
    number, newest = block.entries[-1]
    assert newest.time is not None
    return replace(
        span,
        last=number,
        reached=to_microseconds(newest.time),
        entries=span.entries + len(block.entries),
        size=span.size + len(block.text),
    )


def open_name(plan: PublicationPlan) -> str:
    """Return the name of the open list; the name of the head until there are several lists."""
    return naming.change_list(plan.number) if plan.closed else naming.CHANGE_LIST


def names_of(plan: PublicationPlan, shape: ChangeLists) -> Iterator[str]:
    """Yield the names of the lists themselves."""
    yield from (span.name for span in (*plan.retired, *plan.closed))
    if shape is ChangeLists.APPEND:
        yield open_name(plan)


def offered(plan: PublicationPlan, shape: ChangeLists) -> dict[Capability, str]:
    """Return the documents that lead to the lists; none before the first list of a run."""
    found: dict[Capability, str] = {}
    if shape is ChangeLists.APPEND or (plan.closed and shape is ChangeLists.PER_RUN):
        found[Capability.CHANGE_LIST] = naming.CHANGE_LIST
    if plan.retired or (plan.closed and shape is ChangeLists.ARCHIVE):
        archive = Capability.CHANGE_LIST_ARCHIVE
        found[archive] = naming.ARCHIVES[archive]
    return found


def publish(
    writer: DocumentWriter, plan: PublicationPlan, snapshot: CatalogueSnapshot, shape: ChangeLists
) -> None:
    """Write the planned Change Lists that are missing, oldest first, and then their head."""
    is_part = shape is not ChangeLists.ARCHIVE and len(plan.closed) > 0
    for span in (*plan.retired, *plan.closed):
        if not writer.has(span.name, _closed_key(span, is_part=is_part)):
            start, until = from_microseconds(span.start), from_microseconds(span.reached)
            header = header_of(writer, start, until, is_part=is_part)
            _write(writer, snapshot, span, span.name, header)
    listed = (*plan.retired, *plan.closed) if shape is ChangeLists.ARCHIVE else plan.retired
    if listed:
        parts = (_part(writer, span) for span in listed)
        archives.write_archive(writer, Capability.CHANGE_LIST_ARCHIVE, parts)
    if shape is ChangeLists.ARCHIVE:
        return
    header = header_of(writer, from_microseconds(plan.open.start), None, is_part=is_part)
    name = open_name(plan)
    if shape is ChangeLists.APPEND and not writer.has(name, _key(plan.open)):
        _write(writer, snapshot, plan.open, name, header)
    if plan.closed:
        write_index(writer, plan, shape)


def _write(
    writer: DocumentWriter, snapshot: CatalogueSnapshot, span: Span, name: str, header: Header
) -> None:
    is_part = header.link(Relation.INDEX) is not None
    key = _key(span) if header.until is None else _closed_key(span, is_part=is_part)
    body = _key((span.after, span.start))
    for source in (name, naming.CHANGE_LIST):
        base = writer.body(source, body)
        if base is not None and base.last <= span.last:
            more = _changes(snapshot, span, after=base.last)
            if writer.put_extended(name, key, header, more, source=source, last=span.last):
                return
    changes = _changes(snapshot, span, after=span.after)
    writer.put_growing(name, key, header, changes, body=body, last=span.last)


def write_index(writer: DocumentWriter, plan: PublicationPlan, shape: ChangeLists) -> None:
    """Write the index of the planned Change Lists, one of them closed, if it is missing."""
    has_open, has_archive = shape is ChangeLists.APPEND, bool(plan.retired)
    spans = [(span.start, span.reached, span.name) for span in plan.closed]
    key = _key((spans, has_open, has_archive))
    if writer.has(naming.CHANGE_LIST, key):
        return
    first = from_microseconds(plan.closed[0].start)
    header = replace(header_of(writer, first, None, is_part=False), is_index=True)
    if has_archive:
        header = archives.with_archive_link(writer, header)
    parts = [_part(writer, span) for span in plan.closed]
    if has_open:
        uri = writer.naming.uri(open_name(plan))
        parts.append(Part(uri=uri, from_=from_microseconds(plan.open.start)))
    writer.put_entries(naming.CHANGE_LIST, key, header, parts)


def _part(writer: DocumentWriter, span: Span) -> Part:
    return Part(
        uri=writer.naming.uri(span.name),
        from_=from_microseconds(span.start),
        until=from_microseconds(span.reached),
    )


def _changes(snapshot: CatalogueSnapshot, span: Span, *, after: int) -> Iterator[Change]:
    numbered = snapshot.changes(after=after)
    return (change for _, change in takewhile(lambda item: item[0] <= span.last, numbered))


def header_of(
    writer: DocumentWriter, start: datetime, until: datetime | None, *, is_part: bool
) -> Header:
    """Return the header of a Change List."""
    links: tuple[Link, ...] = (description.up_link(writer.naming, naming.CAPABILITY_LIST),)
    if is_part:
        links = (*links, description.index_link(writer.naming, naming.CHANGE_LIST))
    return Header(capability=Capability.CHANGE_LIST, from_=start, until=until, links=links)


def _closed_key(span: Span, *, is_part: bool) -> str:
    return _key((span, "closed", is_part))


def _key(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()
