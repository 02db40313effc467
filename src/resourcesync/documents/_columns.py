"""Columns of values: the rules of `_values`, applied to many entries at a time.

Every function returns what its counterpart in `_values` returns for each text alone. It first tests
whether the whole column is in canonical form, which is cheap when all texts are joined; if so, C
code does the rest. If not, each text is read by its own rule. If a text is refused or needs a
notice, `RefusalError` is raised: then the entries are to be read one by one.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import islice, repeat
from typing import Final, TypeVar

from resourcesync.documents._context import ReadingContext, RefusalError, is_absolute
from resourcesync.documents._entries import priority_element
from resourcesync.documents._raw_entries import Column, EntryColumns
from resourcesync.documents._values import (
    BLANKS,
    change_moment,
    clean_uri,
    digests,
    element_moment,
    lacks_zone,
    length_of,
    read_links,
)
from resourcesync.model.digests import Digest, are_sha256, format_digests, many_digests
from resourcesync.model.leniencies import Leniency
from resourcesync.model.links import Foreign, Link
from resourcesync.model.resources import Change, Resource, ResourceRun, many_resources
from resourcesync.model.timestamps import parse_w3c
from resourcesync.model.vocabulary import ChangeKind

T = TypeVar("T")

_HTTP: Final = "http://"
_HTTPS: Final = "https://"
_MAX_DIGITS: Final = 18  # all such numbers are lengths
_PUNCTUATION: Final = {
    len("2013-01-03T09:00:00Z"): {4: "-", 7: "-", 10: "T", 13: ":", 16: ":", 19: "Z"},
    len("2013-01-03T09:00:00.000000Z"): {
        4: "-",
        7: "-",
        10: "T",
        13: ":",
        16: ":",
        19: ".",
        26: "Z",
    },
}
"""Positions of the punctuation in the usual forms of times, by their length."""
_UNWANTED: Final = BLANKS + "\x7f"  # of the ASCII characters of XML


def resources_of(run: EntryColumns, context: ReadingContext) -> list[Resource]:
    """Return the resources of the entries."""
    found = _resources(run, context)
    _count_naive(run, context)
    return found


def _resources(run: EntryColumns, context: ReadingContext) -> list[Resource]:
    return many_resources(
        len(run.lines),
        {
            "uri": uris_of(run.uris),
            "lastmod": _lastmods(run.lastmods, context),
            "length": _each(_lengths, run.lengths, None),
            "digests": _each(_digests, run.hashes, ()),
            "media_type": _each(_stripped, run.media_types, ""),
            "encoding": _each(_stripped, run.encodings, ""),
            "changefreq": _each(_stripped, run.changefreqs, ""),
            "path": _each(iter, run.paths, ""),
            "links": repeat(()) if run.links is None else _links(run.links, context),
            "foreign": _each(_foreigns, run.priorities, ()),
        },
    )


def plain_resources_of(run: EntryColumns, context: ReadingContext) -> Sequence[Resource]:
    """Return the same as `resources_of`, as columns if these suffice for the entries."""
    others = (run.encodings, run.changefreqs, run.priorities, run.links)
    if any(column is not None for column in others):
        return resources_of(run, context)
    count = len(run.lines)
    found = ResourceRun(
        uris=uris_of(run.uris),
        lastmods=list(islice(_lastmods(run.lastmods, context), count)),
        lengths=list(islice(_each(_lengths, run.lengths, None), count)),
        hashes=list(islice(_each(_hashes, run.hashes, ""), count)),
        media_types=list(islice(_each(_stripped, run.media_types, ""), count)),
        paths=() if run.paths is None else list(_each(iter, run.paths, "")),
    )
    _count_naive(run, context)
    return found


def changes_of(run: EntryColumns, kinds: list[ChangeKind], context: ReadingContext) -> list[Change]:
    """Return the changes of the entries."""
    resources = _resources(run, context)
    times: Iterable[datetime | None] = [resource.lastmod for resource in resources]
    if run.datetimes is not None:
        read = partial(_moments, read=change_moment, context=context)
        found = _each(read, run.datetimes, None)
        times = [time or lastmod for time, lastmod in zip(found, times, strict=False)]
    _count_naive(run, context)
    return [
        Change(kind=kind, time=time, resource=resource)
        for kind, time, resource in zip(kinds, times, resources, strict=True)
    ]


def _each(
    read: Callable[[Sequence[str]], Iterable[T]], column: Column | None, absent: T
) -> Iterable[T]:
    """Return the value of each text; ``absent`` for an entry that lacks it."""
    if column is None:
        return repeat(absent)
    texts = [text for text in column if text is not None]
    values = read(texts)
    if len(texts) == len(column):
        return values
    found = iter(values)
    return [absent if text is None else next(found) for text in column]


def uris_of(column: Sequence[str]) -> Sequence[str]:
    """Return the URIs without the blanks around them."""
    found = _without_blanks(column)
    low, high = min(found), max(found)
    # A text between two with the same prefix has that prefix, too.
    prefix = _HTTPS if low.startswith(_HTTPS) else _HTTP
    if not (low.startswith(prefix) and high.startswith(prefix)) and not all(
        map(is_absolute, found)
    ):
        raise RefusalError("uri-relative", "A loc is relative")
    return found


def _without_blanks(column: Sequence[str]) -> Sequence[str]:
    joined = "".join(column)
    if (
        joined.isascii()
        and not any(character in joined for character in _UNWANTED)
        and "" not in column
    ):
        return column
    return [clean_uri(text) for text in column]


def _stripped(column: Sequence[str]) -> list[str]:
    """Return the texts without the blanks around them: few values, many entries."""
    made = {text: text.strip(BLANKS) for text in set(column)}
    return [made[text] for text in column]


def _foreigns(column: Sequence[str]) -> list[Foreign]:
    """Return the XML of each entry's sitemap priority: few values, many entries."""
    made: dict[str, Foreign] = {text: (priority_element(text),) for text in set(column)}
    return [made[text] for text in column]


def _links(
    column: Iterable[list[list[str]] | None], context: ReadingContext
) -> list[tuple[Link, ...]]:
    """Return the links of each entry, if none of them needs a notice."""
    trial = context.trial()
    found = [read_links(links, trial) if links else () for links in column]
    if trial.tolerated:
        raise RefusalError("link-attribute", "A link needs a notice")
    context.version_marks |= trial.version_marks
    return found


def _lastmods(column: Column | None, context: ReadingContext) -> Iterable[datetime | None]:
    return _each(partial(_moments, read=element_moment, context=context), column, None)


def _moments(
    column: Sequence[str], read: Callable[[str], T], context: ReadingContext
) -> Iterable[datetime | T]:
    try:
        if _is_canonical(column):
            return list(map(datetime.fromisoformat, column))
        found: list[datetime | T] = list(map(parse_w3c, column))
    except ValueError:
        found = [read(text) for text in column]
    if Leniency.TIME_ZONE not in context.tolerated and any(
        lacks_zone(text.strip(BLANKS)) for text in column
    ):
        raise RefusalError("time-zone", "A time has no time zone")
    return found


def _count_naive(run: EntryColumns, context: ReadingContext) -> None:
    """Count the times without a zone, in columns that were read without a fault."""
    if Leniency.TIME_ZONE in context.tolerated:
        for column in filter(None, (run.lastmods, run.datetimes)):
            naive = sum(lacks_zone(text.strip(BLANKS)) for text in column if text)
            context.counts[Leniency.TIME_ZONE] += naive


def _is_canonical(column: Sequence[str]) -> bool:
    """True if all times have one of the two forms of which fromisoformat and W3C think alike."""
    sizes = set(map(len, column))
    size = sizes.pop()
    if sizes or size not in _PUNCTUATION:
        return False
    joined = "".join(column)
    # Newer Pythons know an hour 24, the W3C profile does not.
    return "T24" not in joined and all(
        joined[place::size].count(mark) == len(column) for place, mark in _PUNCTUATION[size].items()
    )


def _lengths(column: Sequence[str]) -> Iterable[int]:
    joined = "".join(column)
    if (
        joined.isascii()
        and joined.isdigit()
        and "" not in column
        and max(map(len, column)) <= _MAX_DIGITS
    ):
        return map(int, column)
    return [length_of(text) for text in column]


def _digests(column: Sequence[str]) -> Iterable[tuple[Digest, ...]]:
    return many_digests(column) if are_sha256(column) else [digests(text) for text in column]


def _hashes(column: Sequence[str]) -> Sequence[str]:
    """Return the digests as text in our form."""
    return column if are_sha256(column) else [format_digests(digests(text)) for text in column]
