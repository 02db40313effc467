"""The plain twin of the Resource List: a sitemap that search engines read without complaint."""

from collections.abc import Iterator
from dataclasses import replace

from resourcesync.model.capabilities import Header, Part
from resourcesync.model.resources import Resource
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports import CatalogueSnapshot
from resourcesync.source import naming
from resourcesync.source.paging import Block, PageLimits, Paginator
from resourcesync.source.shelf import DocumentWriter

_SITEMAP_HEADER = Header(capability=None)


def is_sitemap_complete(shelf: DocumentWriter, at: int, parts: tuple[str, ...]) -> bool:
    """Whether the sitemap of the moment ``at``, with these parts, is there and unharmed."""
    return all(shelf.has(name, str(at)) for name in (*parts, naming.SITEMAP))


def publish_sitemap(
    shelf: DocumentWriter, at: int, snapshot: CatalogueSnapshot, limits: PageLimits
) -> tuple[str, ...]:
    """Write ``loc`` and ``lastmod`` of each resource; return the names of the parts, if any.

    Search engines read it with the next crawl, so nothing depends on its parts being of one moment:
    each is replaced in its place.

    Args:
        shelf: Takes it.
        at: Which Resource List it belongs to.
        snapshot: Has the resources.
        limits: The most that a document holds.

    Raises:
        StorageError: It could not be written.
    """
    key = str(at)
    pages = Paginator(
        snapshot.resources(), shelf.renderer(_SITEMAP_HEADER, Dialect.SITEMAP), limits
    )
    size = shelf.overhead(_SITEMAP_HEADER, Dialect.SITEMAP)
    first = list(pages.page(size))
    if not pages:
        shelf.put(naming.SITEMAP, key, _SITEMAP_HEADER, first, dialect=Dialect.SITEMAP)
        return ()
    names: list[str] = []

    def put(body: list[Block[Resource]] | Iterator[Block[Resource]]) -> None:
        names.append(naming.sitemap_part(len(names) + 1))
        shelf.put(names[-1], key, _SITEMAP_HEADER, body, dialect=Dialect.SITEMAP)

    put(first)
    while pages:
        put(pages.page(size))
    parts = [Part(uri=shelf.naming.uri(name)) for name in names]
    header = replace(_SITEMAP_HEADER, is_index=True)
    shelf.put_entries(naming.SITEMAP, key, header, parts, dialect=Dialect.SITEMAP)
    return tuple(names)
