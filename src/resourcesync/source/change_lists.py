"""Cut the log of changes into Change Lists, and write them (§12)."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import takewhile

from resourcesync.model.capabilities import Header, Part
from resourcesync.model.links import Link
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import Snapshot
from resourcesync.source import description, naming
from resourcesync.source.ledger import Plan, Span
from resourcesync.source.naming import Naming
from resourcesync.source.paging import Block, Limits, Pages
from resourcesync.source.shelf import Shelf, overhead, renderer


def extend(
    plan: Plan, changes: Iterable[tuple[int, Change]], names: Naming, limits: Limits
) -> Plan:
    """Return the plan with further changes in its open list, and in new ones when that is full.

    A list is closed at the time of its last change, and the next one starts there: since every
    change has a time of its own, none is in neither. What is closed never changes again, nor
    does the order: a change is listed only when every earlier one is.

    Args:
        plan: The plan so far.
        changes: The changes after those of the plan, in order.
        names: Where the lists will be found.
        limits: The most that a list holds.
    """
    # The longest header that such a list can have: closed, in an index, times to the microsecond.
    latest = from_microseconds(plan.open.start).replace(microsecond=1)
    header = _header(names, latest, latest, is_part=True)
    render = renderer(header)
    pages = Pages(changes, lambda numbered: render([change for _, change in numbered]), limits)
    closed, current = list(plan.closed), plan.open
    while pages:
        for block in pages.page(overhead(header) + current.size, current.entries):
            current = _extended(current, block)
        if pages:
            closed.append(current)
            start = current.reached
            current = Span(after=current.last, last=current.last, start=start, reached=start)
    return replace(plan, closed=tuple(closed), open=current)


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


def name_of(plan: Plan, position: int) -> str:
    """Return the name of the list at a position, the oldest at 0; the open one is the last."""
    return naming.change_list(plan.number + position) if plan.closed else naming.CHANGE_LIST


def publish(shelf: Shelf, plan: Plan, snapshot: Snapshot) -> None:
    """Write what is not there of the planned Change Lists, oldest first, and then their index.

    Raises:
        StorageError: One could not be written; the next run goes on from there.
    """
    spans = (*plan.closed, plan.open)
    for position, span in enumerate(spans):
        name, until = name_of(plan, position), None if span is plan.open else span.reached
        key = _key((span, until, bool(plan.closed)))
        if not shelf.has(name, key):
            header = _header(
                shelf.naming,
                from_microseconds(span.start),
                None if until is None else from_microseconds(until),
                is_part=bool(plan.closed),
            )
            shelf.put_entries(name, key, header, _changes(snapshot, span))
    key = _key([(span.start, span.reached) for span in spans[:-1]])
    if plan.closed and not shelf.has(naming.CHANGE_LIST, key):
        first = from_microseconds(spans[0].start)
        header = replace(_header(shelf.naming, first, None, is_part=False), is_index=True)
        shelf.put_entries(naming.CHANGE_LIST, key, header, _parts(shelf.naming, plan))


def _changes(snapshot: Snapshot, span: Span) -> Iterator[Change]:
    numbered = snapshot.changes(after=span.after)
    return (change for _, change in takewhile(lambda item: item[0] <= span.last, numbered))


def _parts(names: Naming, plan: Plan) -> Iterator[Part]:
    for position, span in enumerate(plan.closed):
        yield Part(
            uri=names.uri(name_of(plan, position)),
            from_=from_microseconds(span.start),
            until=from_microseconds(span.reached),
        )
    yield Part(
        uri=names.uri(name_of(plan, len(plan.closed))),
        from_=from_microseconds(plan.open.start),
    )


def _header(names: Naming, start: datetime, until: datetime | None, *, is_part: bool) -> Header:
    links: tuple[Link, ...] = (description.up(names, naming.CAPABILITY_LIST),)
    if is_part:
        links = (*links, description.index(names, naming.CHANGE_LIST))
    return Header(capability=Capability.CHANGE_LIST, from_=start, until=until, links=links)


def _key(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()
