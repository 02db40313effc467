"""Write a document: entries in, bytes out, in the order and form that the specification gives.

Writing is exact where reading is liberal: what would not be a valid document raises `ValueError`,
for it is a fault of the program, not of any input. The same input gives the same bytes.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from resourcesync.documents._attributes import extra_attributes, interval, link_element
from resourcesync.documents._foreign import foreign_text
from resourcesync.documents._grammar import check_entries, check_header, kind_of
from resourcesync.documents._pointers import (
    capability_row,
    document_change_row,
    package_row,
    part_row,
)
from resourcesync.documents._rows import change_rows, resource_rows
from resourcesync.documents._values import ROOT_KNOWN
from resourcesync.model.capabilities import (
    CapabilityEntry,
    DocumentChange,
    Entry,
    Header,
    Package,
    Part,
)
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS

_CHUNK: Final = 65_536
_BATCH: Final = 128


def write(header: Header, entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yield a whole document in chunks of about 64 KiB, in memory that does not grow with it.

    Args:
        header: What the root says.
        entries: The entries, all of the kind that the header asks for.

    Raises:
        ValueError: The header or an entry would not be valid; see `opening` and `render`.
    """
    text = _opening(header)
    rows = _renderer(header)
    remaining = iter(entries)
    while batch := list(islice(remaining, _BATCH)):
        text += "".join(rows(batch))
        if len(text) >= _CHUNK:
            yield text.encode()
            text = ""
    yield (text + _closing(header)).encode()


def opening(header: Header) -> bytes:
    """Return what comes before the entries.

    Raises:
        ValueError: A time is missing that the capability must have (``at`` of a Resource List,
            ``from`` of a Change List), or is there and must not be (Appendix A), or an interval
            ends before it starts; or a text cannot stand in XML.
    """
    return _opening(header).encode()


def closing(header: Header) -> bytes:
    """Return what comes after the entries."""
    return _closing(header).encode()


def render(entry: Entry, header: Header) -> bytes:
    """Return one entry of a document with this header; entries stand one after the other.

    Raises:
        ValueError: The entry is not of the kind that the header asks for, has no URI, a length
            below zero, a time without a zone, a path where none may be or none where one must be,
            or a text that XML cannot carry.
    """
    return "".join(_renderer(header)([entry])).encode()


def _opening(header: Header) -> str:
    check_header(header)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<{_root(header)} xmlns="{SITEMAP_NS}" xmlns:rs="{RS_NS}">',
        *map(link_element, header.links),
    ]
    if header.capability is not None:
        attributes = interval(header) + extra_attributes(header.extra, ROOT_KNOWN)
        lines.append(f'<rs:md capability="{header.capability.value}"{attributes}/>')
    elif header.extra:
        raise ValueError("a plain sitemap has no rs:md, so nothing extra can be on it")
    if header.foreign:
        lines.append(foreign_text(header.foreign))
    return "\n".join(lines) + "\n"


def _closing(header: Header) -> str:
    return f"</{_root(header)}>\n"


def _root(header: Header) -> str:
    return "sitemapindex" if header.is_index else "urlset"


def _renderer(header: Header) -> Callable[[list[Entry]], list[str]]:
    """Return the function that writes entries of such a document, several at a time."""
    rows = _rows_of(header)

    def checked(batch: list[Entry]) -> list[str]:
        check_entries(batch, header)
        return rows(batch)

    return checked


def _rows_of(header: Header) -> Callable[[list[Any]], list[str]]:
    """Return what writes the entries, of the one kind that such a document has."""
    kind = kind_of(header)
    in_package = header.capability is not None and header.capability.is_manifest
    if kind is Resource:
        return partial(resource_rows, in_package=in_package)
    if kind is Change:
        return partial(change_rows, in_package=in_package)
    if kind is Part:
        element = "sitemap" if header.is_index else "url"
        return lambda parts: [part_row(part, element) for part in parts]
    row = _ROWS[kind]
    return lambda entries: [row(entry) for entry in entries]


_ROWS: Final[dict[type, Callable[[Any], str]]] = {
    Package: package_row,
    CapabilityEntry: capability_row,
    DocumentChange: document_change_row,
}
