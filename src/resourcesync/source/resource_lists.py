"""Write the Resource List, in one document or in parts under an index (§10)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Final

from resourcesync.model.capabilities import Header, Part
from resourcesync.model.links import Link
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import CatalogueSnapshot
from resourcesync.source import archives, description, naming
from resourcesync.source.paging import Block, PageLimits, Paginator
from resourcesync.source.shelf import DocumentWriter
from resourcesync.source.stable_pages import NewPage, Page, PageRebase, format_page

_PARTS: Final = naming.RESOURCE_LIST.removesuffix(".xml") + "-"


class _TooManyResourcesError(Exception):
    """The resources do not fit into one document."""


def is_resource_list_complete(shelf: DocumentWriter, at: int, parts: tuple[str, ...]) -> bool:
    """Whether the Resource List of the moment ``at``, with these parts, is there and unharmed."""
    key = str(at)
    return all(shelf.has(name, key) for name in (*parts, naming.RESOURCE_LIST))


def publish_resource_list(
    shelf: DocumentWriter,
    snapshot: CatalogueSnapshot,
    limits: PageLimits,
    *,
    has_archive: bool = False,
) -> tuple[str, ...]:
    """Write the Resource List of a snapshot; return the names of its parts, none for one document.

    What the last list says and is still true is copied, see ``stable_pages``. Parts have names of
    their own for each snapshot and are written first; the head is replaced last, so that a reader
    finds the old list or the new one, whole.

    Args:
        shelf: Takes it.
        snapshot: Has the resources.
        limits: The most that a document holds.
        has_archive: Whether there is an archive of former ones to lead to.

    Raises:
        StorageError: It could not be written; the old list is still there.
    """
    last = _last_pages(shelf)
    header = head = _header(shelf, snapshot.at)
    if has_archive:
        header = head = archives.with_archive_link(shelf, head)
    if snapshot.count(limits.max_entries + 1) <= limits.max_entries:
        try:
            page = PageRebase(shelf, snapshot, header, limits).only_page(last)
            _put(
                shelf,
                naming.RESOURCE_LIST,
                header,
                page or _only_page(shelf, snapshot, header, limits),
            )
        except _TooManyResourcesError:
            pass
        else:
            return ()
        last = ()  # there is little to be gained
    header = _header(shelf, snapshot.at, description.index_link(shelf.naming, naming.RESOURCE_LIST))
    rebase = PageRebase(shelf, snapshot, header, limits)
    return _write_parts(
        shelf, head, header, rebase.pages(last) if len(last) > 1 else rebase.format_all()
    )


def _last_pages(shelf: DocumentWriter) -> tuple[Page, ...]:
    """Return the pages of the last Resource List, none when they are not known."""
    head = shelf.known.get(naming.RESOURCE_LIST)
    if head is None or not head.key.isdigit():  # of an older version of the format
        return ()
    parts = [
        Page(name, known)
        for name, known in shelf.known.items()
        if known.key == head.key and name.startswith(_PARTS)
    ]
    if not parts:
        return (Page(naming.RESOURCE_LIST, head),)
    parts.sort(key=attrgetter("known.start"))
    is_whole = len({part.known.start for part in parts}) == len(parts) == head.entries
    return tuple(parts) if is_whole else ()


def _only_page(
    shelf: DocumentWriter, snapshot: CatalogueSnapshot, header: Header, limits: PageLimits
) -> NewPage:
    """Return all resources as one page; reading it fails when they do not fit into one."""
    resources = Paginator.of_runs(snapshot.batches(), shelf.renderer(header), limits)
    page = format_page(resources, shelf.overhead(header))

    def blocks(found: Iterable[Block[object]]) -> Iterator[Block[object]]:
        yield from found
        if resources:
            raise _TooManyResourcesError  # the store keeps what was there

    page.blocks = blocks(page.blocks)
    return page


def _write_parts(
    shelf: DocumentWriter, head: Header, header: Header, pages: Iterable[NewPage]
) -> tuple[str, ...]:
    assert header.at is not None
    at = header.at
    names: list[str] = []
    for page in pages:
        names.append(naming.resource_list_part(at, len(names) + 1))
        _put(shelf, names[-1], header, page)
    shelf.put_entries(
        naming.RESOURCE_LIST,
        _key(at),
        replace(head, is_index=True),
        (Part(uri=shelf.naming.uri(name), at=at) for name in names),
    )
    return tuple(names)


def _put(shelf: DocumentWriter, name: str, header: Header, page: NewPage) -> None:
    assert header.at is not None
    shelf.put(name, _key(header.at), header, page.blocks)
    shelf.mark_page(name, page.start, is_plain=page.is_plain)


def _header(shelf: DocumentWriter, at: datetime, *links: Link) -> Header:
    return Header(
        capability=Capability.RESOURCE_LIST,
        at=at,
        links=(description.up_link(shelf.naming, naming.CAPABILITY_LIST), *links),
    )


def _key(at: datetime) -> str:
    return str(to_microseconds(at))
