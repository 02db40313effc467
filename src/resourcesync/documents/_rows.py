"""Entries become rows of XML, many at a time: column by column, in code that is mostly C."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import repeat
from typing import Final

from resourcesync.documents._attributes import (
    extra_attributes,
    interval,
    length_text,
    link_element,
    moment_text,
)
from resourcesync.documents._escaping import escape
from resourcesync.documents._values import CHANGE_KNOWN, RESOURCE_KNOWN, capability
from resourcesync.model.capabilities import CapabilityEntry, Part
from resourcesync.model.digests import format_digests
from resourcesync.model.resources import Change, Resource

_SPECIAL: Final = bytes((*range(0x20), 0x7F, *b'&<>"'))
"""The ASCII characters that `escape` looks for."""
_TWO: Final = tuple(f"{number:02d}" for number in range(60))


def resource_rows(resources: Sequence[Resource]) -> list[str]:
    """Return the entry of each resource.

    Raises:
        ValueError: One of them cannot be written.
    """
    return _rows(resources, repeat(""), RESOURCE_KNOWN)


def change_rows(changes: Sequence[Change]) -> list[str]:
    """Return the entry of each change.

    Raises:
        ValueError: One of them cannot be written.
    """
    kinds = _attributes("change", [change.kind.value for change in changes])
    times = _attributes("datetime", _moments([change.time for change in changes]))
    leads = map(str.__add__, kinds, times)
    return _rows([change.resource for change in changes], leads, CHANGE_KNOWN)


def part_row(part: Part) -> str:
    """Return the entry of a document in an index.

    Raises:
        ValueError: It cannot be written.
    """
    times = interval(part)
    metadata = f"<rs:md{times}/>" if times else ""
    return f"<sitemap>{_place(part)}{metadata}</sitemap>\n"


def capability_row(entry: CapabilityEntry) -> str:
    """Return the entry of a document in a Capability List or Source Description.

    Raises:
        ValueError: It cannot be written.
    """
    label = entry.label or (entry.capability.value if entry.capability else "")
    if capability(label) is not entry.capability:
        raise ValueError(f"the label {label!r} does not name {entry.capability!r}")
    metadata = f'<rs:md capability="{escape(label)}"/>' if label else ""
    return f"<url>{_place(entry)}{metadata}{''.join(map(link_element, entry.links))}</url>\n"


def _place(entry: Part | CapabilityEntry) -> str:
    if not entry.uri:
        raise ValueError("an entry needs a URI")
    lastmod = f"<lastmod>{moment_text(entry.lastmod)}</lastmod>" if entry.lastmod else ""
    return f"<loc>{escape(entry.uri)}</loc>{lastmod}"


def _rows(resources: Sequence[Resource], leads: Iterable[str], known: frozenset[str]) -> list[str]:
    """Return the entries; each lead is what the ``rs:md`` of its entry starts with."""
    uris = _escaped([resource.uri for resource in resources])
    if "" in uris:
        raise ValueError("an entry needs a URI")
    attributes = zip(
        leads,
        _attributes("hash", _escaped(_hashes(resources))),
        _lengths([resource.length for resource in resources]),
        _attributes("type", _escaped([resource.media_type for resource in resources])),
        _attributes("encoding", _escaped([resource.encoding for resource in resources])),
        [
            extra_attributes(extra, known) if (extra := resource.extra) else ""
            for resource in resources
        ],
        strict=False,
    )
    columns = zip(
        uris,
        _elements("lastmod", _moments([resource.lastmod for resource in resources])),
        _elements("changefreq", _escaped([resource.changefreq for resource in resources])),
        map("".join, attributes),
        [
            "".join(map(link_element, found)) if (found := resource.links) else ""
            for resource in resources
        ],
        strict=False,
    )
    return [
        f"<url><loc>{uri}</loc>{lastmod}{changefreq}<rs:md{metadata}/>{links}</url>\n"
        if metadata
        else f"<url><loc>{uri}</loc>{lastmod}{changefreq}{links}</url>\n"
        for uri, lastmod, changefreq, metadata, links in columns
    ]


# --- columns of texts --------------------------------------------------------------------------


def _hashes(resources: Sequence[Resource]) -> Sequence[str]:
    return [
        ":".join(found[0]) if len(found) == 1 else format_digests(found)
        for resource in resources
        for found in (resource.digests,)
    ]


def _lengths(column: Sequence[int | None]) -> Iterable[str]:
    told = [length for length in column if length is not None]
    if not told:
        return repeat("")
    length_text(min(told))  # the two that can be out of range
    length_text(max(told))
    return [f' length="{length}"' if length is not None else "" for length in column]


def _attributes(name: str, column: Sequence[str]) -> Iterable[str]:
    """Return each text as an attribute, or nothing where it is empty."""
    if not any(column):
        return repeat("")
    return [f' {name}="{text}"' if text else "" for text in column]


def _elements(name: str, column: Sequence[str]) -> Iterable[str]:
    """Return each text as an element, or nothing where it is empty."""
    if not any(column):
        return repeat("")
    return [f"<{name}>{text}</{name}>" if text else "" for text in column]


def _escaped(column: Sequence[str]) -> Sequence[str]:
    """Escape all texts, after one look at all of them together, for few need it."""
    joined = "".join(column)
    if joined.isascii() and len(joined.encode().translate(None, _SPECIAL)) == len(joined):
        return column
    return [escape(text) for text in column]


def _moments(column: Sequence[datetime | None]) -> Sequence[str]:
    """Return what `moment_text` returns for each, in half its time."""
    return [
        f"{_day(when.toordinal())}T{_TWO[when.hour]}:{_TWO[when.minute]}:{_TWO[when.second]}"
        f"{f'.{fraction:06d}' if (fraction := when.microsecond) else ''}Z"
        if when is not None and when.tzinfo is UTC
        else moment_text(when)
        for when in column
    ]


@lru_cache(maxsize=4096)  # eleven years of days
def _day(ordinal: int) -> str:
    return date.fromordinal(ordinal).isoformat()
