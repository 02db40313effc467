"""Resources and changes become rows of XML: column by column, in code that is mostly C."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import repeat
from typing import Final

from resourcesync.documents._attributes import (
    extra_attributes,
    length_text,
    link_element,
    moment_text,
)
from resourcesync.documents._escaping import escape
from resourcesync.documents._foreign import parted
from resourcesync.documents._values import CHANGE_KNOWN, REPRESENTATION
from resourcesync.model.digests import format_digests
from resourcesync.model.links import Extra
from resourcesync.model.resources import Change, Resource, ResourceRun

_SPECIAL: Final = bytes((*range(0x20), 0x7F, *b'&<>"'))
"""The ASCII characters that `escape` looks for."""
_PLACES: Final = (frozenset[str](), frozenset({"path"}))
_TWO: Final = tuple(f"{number:02d}" for number in range(60))


def resource_rows(resources: Sequence[Resource], *, in_package: bool = False) -> list[str]:
    """Return the entry of each resource.

    Args:
        resources: The resources.
        in_package: Whether the document is a manifest.

    Raises:
        ValueError: One of them cannot be written.
    """
    if isinstance(resources, ResourceRun) and not in_package:
        return _run_rows(resources)
    return _rows(resources, repeat(""), REPRESENTATION | _PLACES[in_package])


def change_rows(
    changes: Sequence[Change], *, in_package: bool = False, dated: bool = True
) -> list[str]:
    """Return the entry of each change.

    Args:
        changes: The changes.
        in_package: Whether the document is a manifest.
        dated: Whether to write ``datetime``, which is new in 1.1.

    Raises:
        ValueError: One of them cannot be written.
    """
    kinds = _attributes("change", [change.kind.value for change in changes])
    moments = _moments([change.time for change in changes]) if dated else ()
    times = _attributes("datetime", moments)
    leads = map(str.__add__, kinds, times)
    known = CHANGE_KNOWN | _PLACES[in_package]
    return _rows([change.resource for change in changes], leads, known)


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
        _paths(resources) if "path" in known else repeat(""),
        _extras([resource.extra for resource in resources], known),
        strict=False,
    )
    heads, tails = _surroundings(resources)
    columns = zip(
        uris,
        _elements("lastmod", _moments([resource.lastmod for resource in resources])),
        _elements("changefreq", _escaped([resource.changefreq for resource in resources])),
        heads,
        map("".join, attributes),
        tails,
        strict=False,
    )
    return [
        f"<url><loc>{uri}</loc>{lastmod}{changefreq}{head}<rs:md{metadata}/>{tail}</url>\n"
        if metadata
        else f"<url><loc>{uri}</loc>{lastmod}{changefreq}{head}{tail}</url>\n"
        for uri, lastmod, changefreq, head, metadata, tail in columns
    ]


def _run_rows(run: ResourceRun) -> list[str]:
    """Return the entries of resources that are columns already."""
    uris = _escaped(run.uris)
    if "" in uris:
        raise ValueError("an entry needs a URI")
    columns = zip(
        uris,
        _elements("lastmod", _moments(run.lastmods)),
        _attributes("hash", _escaped(run.hashes)),
        _lengths(run.lengths),
        _attributes("type", _escaped(run.media_types)),
        strict=False,
    )
    return [
        f"<url><loc>{uri}</loc>{lastmod}<rs:md{digests}{length}{media_type}/></url>\n"
        if digests or length or media_type
        else f"<url><loc>{uri}</loc>{lastmod}</url>\n"
        for uri, lastmod, digests, length, media_type in columns
    ]


# --- columns of texts --------------------------------------------------------------------------


def _hashes(resources: Sequence[Resource]) -> Sequence[str]:
    return [
        ":".join(found[0]) if len(found) == 1 else format_digests(found)
        for resource in resources
        for found in (resource.digests,)
    ]


def _paths(resources: Sequence[Resource]) -> Iterable[str]:
    return _attributes("path", _escaped([resource.path for resource in resources]))


def _extras(column: Sequence[Extra], known: frozenset[str]) -> Iterable[str]:
    if not any(column):
        return repeat("")
    return [extra_attributes(extra, known) for extra in column]


def _surroundings(resources: Sequence[Resource]) -> tuple[Iterable[str], Iterable[str]]:
    """Return what stands before and after ``rs:md``: links, and elements of other communities."""
    heads: Iterable[str] = repeat("")
    tails: Iterable[str] = repeat("")
    links = [resource.links for resource in resources]
    if any(links):
        tails = ["".join(map(link_element, found)) for found in links]
    foreigns = [resource.foreign for resource in resources]
    if any(foreigns):
        pairs = [parted(foreign) for foreign in foreigns]
        heads = [before for before, _ in pairs]
        tails = [tail + after for tail, (_, after) in zip(tails, pairs, strict=False)]
    return heads, tails


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
