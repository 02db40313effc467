"""The documents of a table: lists that are named by what they say, and what leads to them."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from resourcesync.documents import writer
from resourcesync.errors import ConfigurationError
from resourcesync.model.capabilities import Header, Part
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource, ResourceRun
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import MAX_ENTRIES, Capability, ChangeKind
from resourcesync.source import change_lists, description, naming
from resourcesync.source.inventory import ChangeRows, Inventory, RowDocument, start_of, time_of
from resourcesync.source.ledger import PublicationPlan
from resourcesync.source.paging import Block, PageLimits, Paginator
from resourcesync.source.policy import ChangeLists
from resourcesync.source.shelf import DocumentWriter

Kinds = Sequence[str]


def write_pages(
    shelf: DocumentWriter,
    runs: Iterable[ResourceRun],
    file: str,
    start: int,
    *,
    at: int,
    limits: PageLimits,
) -> list[RowDocument]:
    """Write resources as parts of a Resource List: one document, or more where one is too small.

    Args:
        shelf: Takes them.
        runs: The resources, in URI order.
        file: The file they are rows of.
        start: The number of the first row.
        at: The moment that they are of, in microseconds.
        limits: The most that a document holds.

    Raises:
        StorageError: One could not be written, or does not read back.
    """
    header = _resource_header(shelf, at, description.index_link(shelf.naming, naming.RESOURCE_LIST))
    pages = Paginator.of_runs(runs, shelf.renderer(header), limits)
    return _write(shelf, pages, _FirstRow(file, start), header, lambda *_: header)


def write_changes(
    shelf: DocumentWriter,
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
        return change_lists.header_of(
            shelf, from_microseconds(since), from_microseconds(until), is_part=True
        )

    # The longest header there is: times to the microsecond.
    latest = from_microseconds(rows.at).replace(microsecond=1)
    widest = change_lists.header_of(shelf, latest, latest, is_part=True)
    pages = Paginator(_changes(told, rows, start), shelf.renderer(widest), limits)
    return _write(shelf, pages, _FirstRow(rows.file, start), widest, header_of)


def write_heads(shelf: DocumentWriter, inventory: Inventory, described_by: str) -> frozenset[str]:
    """Write what leads to the lists and is not there: indexes, then what leads to these.

    Args:
        shelf: Takes them; it knows the documents of the inventory.
        inventory: What is to be public.
        described_by: The URI of a document about the resources; empty writes one.

    Returns:
        The names of all of these.

    Raises:
        ConfigurationError: One index cannot name so many lists.
        StorageError: One could not be written; what was public is still there.
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
    key = hashlib.sha256("\n".join(it.name for it in inventory.pages).encode()).hexdigest()
    if not shelf.has(naming.RESOURCE_LIST, key):
        header = replace(_resource_header(shelf, plan.at), is_index=True)
        parts = (Part(uri=shelf.naming.uri(it.name), at=header.at) for it in inventory.pages)
        shelf.put_entries(naming.RESOURCE_LIST, key, header, parts)
    if plan.closed:
        change_lists.write_index(shelf, plan, ChangeLists.PER_RUN)
    else:
        _write_empty(shelf, plan)
    offered = {
        Capability.RESOURCE_LIST: naming.RESOURCE_LIST,
        Capability.CHANGE_LIST: naming.CHANGE_LIST,
    }
    description.publish(shelf, offered, described_by)
    about = () if described_by else (naming.ABOUT,)
    return frozenset({*offered.values(), *about, naming.CAPABILITY_LIST, naming.DESCRIPTION})


def _write_empty(shelf: DocumentWriter, plan: PublicationPlan) -> None:
    """Write a Change List that says nothing changed yet: who has it follows what comes."""
    key = f"nothing since {plan.open.start}"
    if not shelf.has(naming.CHANGE_LIST, key):
        since = from_microseconds(plan.open.start)
        header = change_lists.header_of(shelf, since, None, is_part=False)
        shelf.put_entries(naming.CHANGE_LIST, key, header, ())


def _resource_header(shelf: DocumentWriter, at: int, *links: Link) -> Header:
    return Header(
        capability=Capability.RESOURCE_LIST,
        at=from_microseconds(at),
        links=(description.up_link(shelf.naming, naming.CAPABILITY_LIST), *links),
    )


def _changes(
    told: Iterable[tuple[Kinds, ResourceRun]], rows: ChangeRows, start: int
) -> Iterator[Change]:
    moment = time_of(rows, start)
    for kinds, run in told:
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
    shelf: DocumentWriter,
    pages: Paginator[Any],
    rows: _FirstRow,
    widest: Header,
    header_of: Callable[[int, int], Header],
) -> list[RowDocument]:
    """Write documents until there are no more entries; at least one, even if it is empty.

    Args:
        shelf: Takes them.
        pages: Their entries.
        rows: The rows that these are.
        widest: A header that is as long as any of theirs.
        header_of: Gives the header of a document with the rows from one up to before another.
    """
    around, start = shelf.overhead(widest), rows.start
    sheets: list[RowDocument] = []
    while pages or not sheets:
        body = list(pages.page(around))
        stop = start + sum(len(block.entries) for block in body)
        header = header_of(start, stop)
        name = _content_name(header, body)
        shelf.put(name, name, header, body)
        known = shelf.known[name]
        sheets.append(
            RowDocument(name=name, file=rows.file, start=start, rows=stop - start, known=known)
        )
        start = stop
    return sheets


def _content_name(header: Header, body: Sequence[Block[Any]]) -> str:
    """Return the name of a document, which has the SHA-256 of its bytes in it."""
    running = hashlib.sha256(writer.opening(header))
    for block in body:
        running.update(block.text)
    running.update(writer.closing(header))
    assert header.capability is not None
    return naming.named_by_content(header.capability, running.hexdigest())
