"""Rows of XML from resources, changes and references: column by column, mostly in C code."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import repeat
from typing import Final

from resourcesync.documents import _values
from resourcesync.documents._raw_entries import split_priority
from resourcesync.documents._xml_output import (
    attribute,
    escape,
    extra_attributes,
    interval,
    length_text,
    link_element,
    moment_text,
)
from resourcesync.model.digests import format_digests
from resourcesync.model.entries import (
    CapabilityEntry,
    Change,
    DocumentChange,
    DocumentPointer,
    Package,
    Part,
    Resource,
    ResourceRun,
)

_SPECIAL: Final = bytes((*range(0x20), 0x7F, *b'&<>"'))
"""The ASCII characters that `escape` replaces."""
_TWO: Final = tuple(f"{number:02d}" for number in range(60))
_PLACES: Final = (frozenset[str](), frozenset({"path"}))


class ColumnTexts:
    """The texts of columns of values, as they are given; a subclass may check them."""

    def uris(self, column: Sequence[str]) -> Sequence[str]:
        uris = _escaped(column)
        if "" in uris:
            raise ValueError("an entry needs a URI")
        return uris

    def times(self, column: Sequence[datetime | None]) -> Sequence[str]:
        return _moments(column)

    def frequencies(self, column: Sequence[str]) -> Sequence[str]:
        return _escaped(column)

    def hashes(self, column: Sequence[str]) -> Sequence[str]:
        return _escaped(column)

    def lengths(self, column: Sequence[int | None]) -> Sequence[str]:
        return _lengths(column)

    def media_types(self, column: Sequence[str]) -> Sequence[str]:
        return _escaped(column)

    def check_pointer(self, entry: DocumentPointer) -> None:
        """Check an entry that is no column: a document, or a package."""


AS_GIVEN: Final = ColumnTexts()


def resource_rows(
    resources: Sequence[Resource], *, in_package: bool = False, texts: ColumnTexts = AS_GIVEN
) -> list[str]:
    if isinstance(resources, ResourceRun):
        table = _RowColumns()
        table.add_element("loc", texts.uris(resources.uris))
        table.add_element("lastmod", _moments(resources.lastmods))
        table.add_attribute("hash", texts.hashes(resources.hashes))
        table.add_attribute("length", texts.lengths(resources.lengths))
        table.add_attribute("type", texts.media_types(resources.media_types))
        if in_package:
            table.add_attribute("path", _escaped(resources.paths))
        return table.rows()
    return _rows(_RowColumns(), resources, _values.REPRESENTATION | _PLACES[in_package], texts)


def change_rows(
    changes: Sequence[Change],
    *,
    in_package: bool = False,
    dated: bool = True,
    texts: ColumnTexts = AS_GIVEN,
) -> list[str]:
    table = _RowColumns()
    table.add_attribute("change", [change.kind.value for change in changes])
    if dated:
        table.add_attribute("datetime", texts.times([change.time for change in changes]))
    known = _values.CHANGE_KNOWN | _PLACES[in_package]
    return _rows(table, [change.resource for change in changes], known, texts)


def _rows(
    table: "_RowColumns", resources: Sequence[Resource], known: frozenset[str], texts: ColumnTexts
) -> list[str]:
    table.add_element("loc", texts.uris([resource.uri for resource in resources]))
    table.add_element("lastmod", _moments([resource.lastmod for resource in resources]))
    table.add_element(
        "changefreq", texts.frequencies([resource.changefreq for resource in resources])
    )
    table.add_attribute("hash", texts.hashes(_hashes(resources)))
    table.add_attribute("length", texts.lengths([resource.length for resource in resources]))
    table.add_attribute("type", texts.media_types([resource.media_type for resource in resources]))
    table.add_attribute("encoding", _escaped([resource.encoding for resource in resources]))
    if "path" in known:
        table.add_attribute("path", _escaped([resource.path for resource in resources]))
    extras = [resource.extra for resource in resources]
    if any(extras):
        table.attributes.append(("", [extra_attributes(extra, known) for extra in extras], ""))
    return table.rows(*_surroundings(resources))


class _RowColumns:
    def __init__(self) -> None:
        self.attributes: list[_Column] = []
        self._elements: list[_Column] = []

    def add_element(self, name: str, texts: Sequence[str]) -> None:
        """Add an element; where its text is empty it is left out."""
        self._elements.append((f"<{name}>", texts, f"</{name}>"))

    def add_attribute(self, name: str, texts: Sequence[str]) -> None:
        """Add an attribute of ``rs:md``; where its text is empty it is left out."""
        self.attributes.append((f' {name}="', texts, '"'))

    def rows(self, heads: Sequence[str] = (), tails: Sequence[str] = ()) -> list[str]:
        columns = (*self._elements, ("", heads, ""), *self._metadata(), ("", tails, ""))
        return _joined([("<url>", (), ""), *columns, ("</url>\n", (), "")])

    def _metadata(self) -> list["_Column"]:
        told = [column for column in self.attributes if any(column[1])]
        if any(all(texts) for _, texts, _ in told):
            return [("<rs:md", (), ""), *told, ("/>", (), "")]
        return [("<rs:md", _joined(told), "/>")] if told else []


_Column = tuple[str, Sequence[str], str]
"""Text before, values, and text after; an empty value has neither.

Without values it is the text before, in each row.
"""


def _joined(columns: Sequence[_Column]) -> list[str]:
    pieces: list[Iterable[str]] = []
    fixed = ""  # the text between two columns in each row
    for before, texts, after in columns:
        if not texts:
            fixed += before
        elif all(texts):
            pieces += (repeat(fixed + before), texts)
            fixed = after
        elif any(texts):
            pieces += (repeat(fixed), [f"{before}{text}{after}" if text else "" for text in texts])
            fixed = ""
    return list(map("".join, zip(*pieces, repeat(fixed), strict=False))) if pieces else []


def _hashes(resources: Sequence[Resource]) -> Sequence[str]:
    column = [resource.digests for resource in resources]
    try:
        return [f"{algorithm}:{value}" for ((algorithm, value),) in column]
    except ValueError:  # one has none, or several
        return [format_digests(digests) for digests in column]


def _surroundings(resources: Sequence[Resource]) -> tuple[Sequence[str], Sequence[str]]:
    heads: Sequence[str] = ()
    tails: Sequence[str] = ()
    links = [resource.links for resource in resources]
    if any(links):
        tails = ["".join(map(link_element, found)) for found in links]
    foreigns = [resource.foreign for resource in resources]
    if any(foreigns):
        pairs = [split_priority(foreign) for foreign in foreigns]
        heads = [before for before, _ in pairs]
        afters = [after for _, after in pairs]
        tails = list(map(str.__add__, tails, afters)) if tails else afters
    return heads, tails


def _lengths(column: Sequence[int | None]) -> Sequence[str]:
    told = [length for length in column if length is not None]
    if not told:
        return ()
    length_text(min(told))  # the two that can be out of range
    length_text(max(told))
    if len(told) == len(column):
        return list(map(str, told))
    return ["" if length is None else str(length) for length in column]


def _escaped(column: Sequence[str]) -> Sequence[str]:
    joined = "".join(column)
    if joined.isascii() and len(joined.encode().translate(None, _SPECIAL)) == len(joined):
        return column
    return [escape(text) for text in column]


def _moments(column: Sequence[datetime | None]) -> Sequence[str]:
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


def part_row(part: Part, element: str) -> str:
    return _row(
        part, element, interval(part) + _representation(part, part.path), _values.PART_KNOWN
    )


def package_row(package: Package) -> str:
    return _row(package, "url", interval(package) + _representation(package), _values.PACKAGE_KNOWN)


def capability_row(entry: CapabilityEntry) -> str:
    return _row(entry, "url", attribute("capability", _label(entry)), _values.CAPABILITY_KNOWN)


def document_change_row(change: DocumentChange, *, dated: bool = True) -> str:
    told = (
        attribute("capability", _label(change))
        + attribute("change", change.kind.value)
        + attribute("datetime", moment_text(change.time) if dated else "")
        + interval(change)
    )
    return _row(change, "url", told, _values.DOCUMENT_KNOWN)


def _label(entry: CapabilityEntry | DocumentChange) -> str:
    if entry.label and _values.capability(entry.label) is not entry.capability:
        raise ValueError(f"the label {entry.label!r} does not name {entry.capability!r}")
    return entry.label or (entry.capability.value if entry.capability else "")


def _representation(told: Part | Package, path: str = "") -> str:
    return (
        attribute("hash", format_digests(told.digests))
        + attribute("length", length_text(told.length))
        + attribute("type", told.media_type)
        + attribute("encoding", told.encoding)
        + attribute("path", path)
    )


def _row(entry: DocumentPointer, element: str, told: str, known: frozenset[str]) -> str:
    if not entry.uri:
        raise ValueError("an entry needs a URI")
    lastmod = f"<lastmod>{moment_text(entry.lastmod)}</lastmod>" if entry.lastmod else ""
    told += extra_attributes(entry.extra, known)
    metadata = f"<rs:md{told}/>" if told else ""
    links = "".join(map(link_element, entry.links))
    before, after = split_priority(entry.foreign)
    return (
        f"<{element}><loc>{escape(entry.uri)}</loc>{lastmod}{before}{metadata}{links}{after}"
        f"</{element}>\n"
    )
