"""Write the Resource List, in one document or in parts under an index (§10)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from resourcesync.model.capabilities import Header, Part
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import Snapshot
from resourcesync.source import description, naming
from resourcesync.source.paging import Block, Limits, Pages
from resourcesync.source.shelf import Shelf, overhead, renderer


class _TooMuchError(Exception):
    """The resources do not fit into one document."""


def is_complete(shelf: Shelf, at: int, parts: tuple[str, ...]) -> bool:
    """Whether the Resource List of the moment ``at``, with these parts, is there and unharmed."""
    key = str(at)
    return all(shelf.has(name, key) for name in (*parts, naming.RESOURCE_LIST))


def publish(shelf: Shelf, snapshot: Snapshot, limits: Limits) -> tuple[str, ...]:
    """Write the Resource List of a snapshot; return the names of its parts, none for one document.

    Parts have names of their own for each snapshot and are written first; the head is replaced
    last, so that a reader finds the old list or the new one, whole.

    Raises:
        StorageError: It could not be written; the old list is still there.
    """
    if snapshot.count() <= limits.max_entries:
        try:
            _write_whole(shelf, snapshot, limits)
        except _TooMuchError:
            pass
        else:
            return ()
    return _write_parts(shelf, snapshot, limits)


def _write_whole(shelf: Shelf, snapshot: Snapshot, limits: Limits) -> None:
    header = _header(shelf, snapshot.at)
    pages = Pages(snapshot.resources(), renderer(header), limits)

    def only_page() -> Iterator[Block[Resource]]:
        yield from pages.page(overhead(header))
        if pages:
            raise _TooMuchError  # the store keeps what was there

    shelf.put(naming.RESOURCE_LIST, _key(snapshot.at), header, only_page())


def _write_parts(shelf: Shelf, snapshot: Snapshot, limits: Limits) -> tuple[str, ...]:
    at = snapshot.at
    header = _header(shelf, at, description.index(shelf.naming, naming.RESOURCE_LIST))
    pages = Pages(snapshot.resources(), renderer(header), limits)
    names: list[str] = []
    while pages:
        names.append(naming.resource_list_part(at, len(names) + 1))
        shelf.put(names[-1], _key(at), header, pages.page(overhead(header)))
    shelf.put_entries(
        naming.RESOURCE_LIST,
        _key(at),
        replace(_header(shelf, at), is_index=True),
        (Part(uri=shelf.naming.uri(name), at=at) for name in names),
    )
    return tuple(names)


def _header(shelf: Shelf, at: datetime, *links: Link) -> Header:
    return Header(
        capability=Capability.RESOURCE_LIST,
        at=at,
        links=(description.up(shelf.naming, naming.CAPABILITY_LIST), *links),
    )


def _key(at: datetime) -> str:
    return str(to_microseconds(at))
