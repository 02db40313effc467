"""Write a document: entries in, bytes out, in the order and form that the specification gives.

Writing is exact where reading is liberal: what would not be a valid document raises `ValueError`,
for it is a fault of the program, not of any input. The same input gives the same bytes.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from resourcesync.documents._attributes import extra_attributes, interval, link_element
from resourcesync.documents._rows import capability_row, change_rows, part_row, resource_rows
from resourcesync.documents._values import ROOT_KNOWN
from resourcesync.model.capabilities import CapabilityEntry, Entry, Header, Part
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS, Capability

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
            below zero, a time without a zone, or a text that XML cannot carry.
    """
    return "".join(_renderer(header)([entry])).encode()


def _opening(header: Header) -> str:
    if header.capability is Capability.RESOURCE_LIST and header.at is None:
        raise ValueError("a Resource List needs its at (§10.1)")
    if header.capability is Capability.CHANGE_LIST and header.from_ is None:
        raise ValueError("a Change List needs its from (§12.1)")
    _check_times(header, header)
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
    return "\n".join(lines) + "\n"


def _closing(header: Header) -> str:
    return f"</{_root(header)}>\n"


def _root(header: Header) -> str:
    return "sitemapindex" if header.is_index else "urlset"


def _check_times(told: Header | Part, header: Header) -> None:
    """Check the times of a root or of an entry of an index against Appendix A."""
    kind = header.capability
    if (told.at or told.completed) and not (kind and kind.is_snapshot):
        raise ValueError(f"a {header.phrase} has no at and no completed (Appendix A)")
    if (told.from_ or told.until) and not (kind and kind.is_log):
        raise ValueError(f"a {header.phrase} has no from and no until (Appendix A)")
    for start, end in ((told.at, told.completed), (told.from_, told.until)):
        if start and end and end < start:
            raise ValueError("an interval ends before it starts")


def _renderer(header: Header) -> Callable[[list[Entry]], list[str]]:
    """Return the function that writes entries of such a document, several at a time."""
    kind, rows = _kind_of(header)

    def checked(batch: list[Entry]) -> list[str]:
        for entry in batch:
            if not isinstance(entry, kind):
                name = type(entry).__name__
                raise ValueError(f"a {header.phrase} has no {name} in it")  # noqa: TRY004
            if isinstance(entry, Part):
                _check_times(entry, header)
        return rows(batch)

    return checked


def _kind_of(header: Header) -> tuple[type, Callable[[list[Any]], list[str]]]:
    """Return the kind of the entries, and what writes them."""
    if header.is_index:
        return Part, lambda parts: [part_row(part) for part in parts]
    if header.capability in {None, Capability.RESOURCE_LIST}:
        return Resource, resource_rows
    if header.capability is Capability.CHANGE_LIST:
        return Change, change_rows
    return CapabilityEntry, lambda entries: [capability_row(entry) for entry in entries]
