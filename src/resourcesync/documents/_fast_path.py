"""The fast path: plain entries are extracted from the text, many at a time, as columns of strings.

Programs write lists, so nearly every entry is plain: the elements in the order of the schema, the
attributes in double quotes, blanks between, and nothing else. One regular expression matches such
entries. Everything else is read by expat (`_scanner`, `_raw_entries`).

The rules of `_values` are applied to columns of values. Every function returns what its counterpart
in `_values` returns for each text alone. It first tests whether the whole column is in canonical
form, which is cheap when all texts are joined; if so, C code does the rest. If not, each text is
read by its own rule. If a text is refused or needs a notice, `RefusalError` is raised: then the
entries are to be read one by one.

This is exact, for four reasons. The expression is only used where expat is directly below the root
and nothing is unfinished. What it matches is well-formed, declares no namespace, and has each
element and attribute once; so it means what these names mean in the namespaces of the root. Its
values are characters that XML allows, and its references are the five that need no declaration. And
in place of the extracted text expat reads as many blanks and line feeds, so that all its positions
are right, and it still sees a whole document, or finds that it is cut short.

Names that are not in the first entries, and attributes in another order, are learnt from the
entries that expat reads. They decide only how many entries are extracted, never what they mean.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate, islice, repeat
from operator import sub
from typing import Any, Final, TypeVar

import msgspec

from resourcesync.documents import _values, expat
from resourcesync.documents._raw_entries import (
    ATTRIBUTE_FIELDS,
    MAX_LINKS,
    TEXT_FIELDS,
    Column,
    EntryAssembler,
    EntryColumns,
    RawEntry,
    text_element,
)
from resourcesync.documents._scanner import EntryScanner
from resourcesync.model.digests import Digest, are_sha256, format_digests, many_digests
from resourcesync.model.entries import Change, Foreign, Link, Resource, ResourceRun, many_resources
from resourcesync.model.leniencies import Leniency
from resourcesync.model.timestamps import parse_w3c
from resourcesync.model.vocabulary import SITEMAP_NS, ChangeKind

SHORTEST: Final = 8_192
"""Bytes of a block for which it is worth to compile an expression."""

# Possessive throughout, so that no character is read twice.
_ASCII: Final = "[ !#-%'-;=?-~]"
"""Printable ASCII without ``" & < >``, which alone could end a value or mean something else."""
_BEYOND_ASCII: Final = "[\x80-\ufffd\U00010000-\U0010ffff]++"
_ESCAPED: Final = f"{_ASCII}*+(?:(?:{_BEYOND_ASCII}|&(?:amp|lt|gt|quot|apos);){_ASCII}*+)*+"
"""The text of an address: it may have letters beyond ASCII, and references."""
_BLANKS: Final = r"[ \n\t]*+(?:\r\n[ \n\t]*+)*+"
_LONGEST_GAP: Final = 99
_GAP: Final = rf"[ \n\t]{{1,{_LONGEST_GAP}}}+"
_TAG_END: Final = rf"[ \n\t]{{0,{_LONGEST_GAP}}}+"
_REFERENCES: Final = (
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", '"'),
    ("&apos;", "'"),
    ("&amp;", "&"),  # the last, so that nothing is replaced twice
)
_ELEMENTS: Final = {
    expat.LASTMOD: "lastmod",
    expat.CHANGEFREQ: "changefreq",
    expat.PRIORITY: "priority",
}
"""Elements that a plain entry may have behind its ``loc``, in the order of the schema."""
_ATTRIBUTE: Final = re.compile('([a-z]+)="([^"]*)"')
_MAX_BUFFERED: Final = 16_384
"""Characters that wait for the rest of their entry."""
_MAX_LESSONS: Final = 64
_FILLING: Final = 65_536


class PlainForm(msgspec.Struct, frozen=True):
    """What plain entries of a document may have; only names that expat has met."""

    elements: frozenset[int] = frozenset()
    attributes: tuple[str, ...] = ()
    links: frozenset[str] = frozenset()

    def widened(self, entry: RawEntry, known: frozenset[str]) -> "PlainForm":
        """Return the form that allows the parts of this entry, too."""
        if entry.fault or entry.given or entry.foreign:
            return self
        names = [name for name in (entry.metadata or ())[::2] if name in known]
        return PlainForm(
            elements=self.elements | (entry.texts.keys() & _ELEMENTS.keys()),
            attributes=_merge(self.attributes, names),
            links=self.links.union(*(link[::2] for link in entry.links)) & _values.LINK_KNOWN,
        )


def _merge(known: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    merged = list(names)
    for before, name in zip(("", *known), known, strict=False):
        if name not in merged:
            merged.insert(merged.index(before) + 1 if before else 0, name)
    return tuple(merged)


class EntryPattern:
    """A regular expression that matches the plain entries of a document.

    ``opening`` is the start of every plain entry; empty if the document has none. The first group
    of ``expression`` is the entry with the blanks behind it; ``fields`` are the columns of the
    others.
    """

    def __init__(self, form: PlainForm, namespaces: Mapping[str, str]) -> None:
        sitemap = _prefix_of(expat.SITEMAP_NAMESPACES, namespaces)
        self.opening = "" if sitemap is None else f"<{sitemap}url>"
        self.fields = ["uris"]
        parts = [_element(f"{sitemap}loc", f"({_ESCAPED})")]
        for mark, name in _ELEMENTS.items():
            if mark in form.elements:
                parts.append(_optional(_element(f"{sitemap}{name}", f"({_ASCII}++)")))
                self.fields.append(TEXT_FIELDS[mark])
        own = _prefix_of(expat.ALL_RS_NAMESPACES, namespaces)
        if own is not None and form.attributes:
            parts.append(_optional(_metadata(f"{own}md", form.attributes)))
            self.fields += (ATTRIBUTE_FIELDS[name] for name in form.attributes)
        if own is not None and form.links:
            parts.append(f"({_link(f'{own}ln', form.links)}*+)")
            self.fields.append("links")
        entry = _element(f"{sitemap}url", _BLANKS + "".join(parts))
        self.expression = re.compile(f"({entry})")


def _prefix_of(wanted: Iterable[str], namespaces: Mapping[str, str]) -> str | None:
    prefixes = sorted(prefix for prefix, uri in namespaces.items() if uri in wanted)
    return next((f"{prefix}:" if prefix else "" for prefix in prefixes), None)


def _element(name: str, content: str) -> str:
    escaped = re.escape(name)
    return f"<{escaped}>{content}</{escaped}>{_BLANKS}"


def _metadata(name: str, attributes: Iterable[str]) -> str:
    escaped = re.escape(name)
    values = "".join(
        _optional(f'{_GAP}{attribute}="({_ESCAPED if attribute == "path" else f"{_ASCII}*+"})"')
        for attribute in attributes
    )
    return f"<{escaped}{values}{_TAG_END}(?:/>|></{escaped}>){_BLANKS}"


def _link(name: str, attributes: Iterable[str]) -> str:
    escaped = re.escape(name)
    value = f'(?:{_GAP}(?:{"|".join(sorted(attributes))})="{_ESCAPED}")*+'
    return f"(?:<{escaped}{value}{_TAG_END}(?:/>|></{escaped}>){_BLANKS})"


def _optional(expression: str) -> str:
    return f"(?:{expression})?+"


class FastPathReader:
    """A reader that gives plain entries to an assembler as columns, and all else to a scanner."""

    def __init__(
        self,
        scanner: EntryScanner,
        assembler: EntryAssembler,
        known: frozenset[str] | None,
        limits: expat.Limits,
    ) -> None:
        self._scanner = scanner
        self._assembler = assembler
        self._known = known or frozenset()
        self._longest = min(limits.uri, limits.text)
        self._form = PlainForm()
        self._lessons = 0
        self._pattern: EntryPattern | None = None
        # The first entry has shown that the depth is allowed.
        self._is_off = known is None or limits.attributes < max(len(known), len(_values.LINK_KNOWN))
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._buffered = ""  # what may be the start of an entry
        # End of the extracted entries; ``None`` if the scanner has reached it.
        self._reached: tuple[int, int] | None = None
        self._learn(assembler.items)

    def feed(self, block: bytes) -> None:
        cut, _ = self._decoder.getstate()
        held, self._buffered = self._buffered, ""
        is_worth = self._pattern is not None or len(block) >= SHORTEST
        if self._is_off or not is_worth or not self._lessons:
            self._decoder.reset()
            self._feed_scanner(held.encode() + cut + block)
            return
        try:
            text = held + self._decoder.decode(block)
        except UnicodeDecodeError:  # expat reports the fault
            self._decoder.reset()
            self._feed_scanner(held.encode() + cut + block)
            return
        while text:
            text = self._process(text)

    def finish(self) -> None:
        """Let the scanner read what waits: nothing more comes."""
        cut, _ = self._decoder.getstate()
        self._decoder.reset()
        self._catch_up()
        self._feed_scanner(self._buffered.encode() + cut)
        self._buffered = ""

    def _process(self, text: str) -> str:
        pattern = self._pattern
        if pattern is None:
            pattern = self._pattern = EntryPattern(self._form, self._scanner.namespaces)
            self._is_off = not pattern.opening
        start = -1 if self._is_off else text.find(pattern.opening)
        if start < 0:
            return self._buffer(text)
        self._feed_scanner(text[:start].encode())
        if self._reached is None and not self._scanner.is_between_entries:
            self._feed_scanner(text[start:].encode())  # the next block may be outside of it
            return ""
        return self._extract(text[start:], pattern)

    def _extract(self, text: str, pattern: EntryPattern) -> str:
        width = 2 + len(pattern.fields)
        pieces = pattern.expression.split(text)
        *gaps, rest = pieces[::width]
        entries = pieces[1::width]
        columns: dict[str, Sequence[Any]] = {
            field: pieces[place::width] for place, field in enumerate(pattern.fields, start=2)
        }
        if not self._is_within(entries, columns.values()) or not _read_addresses(columns, text):
            self._feed_scanner(text.encode())
            return ""
        first = at = 0
        for index in (*(index for index, gap in enumerate(gaps) if gap), len(gaps)):
            at += self._append(entries[first:index], columns, slice(first, index))
            first = index
            if index < len(gaps):
                self._feed_scanner(gaps[index].encode())
                at += len(gaps[index])
                if not self._scanner.is_between_entries:
                    return text[at:]
        return self._buffer(rest)

    def _is_within(self, entries: list[str], columns: Iterable[Sequence[str | None]]) -> bool:
        longest = self._longest
        return max(map(len, entries), default=0) <= longest or all(
            len(text) <= longest for column in columns for text in column if text
        )

    def _append(self, entries: list[str], columns: Mapping[str, Sequence[Any]], part: slice) -> int:
        if not entries:
            return 0
        line, column = self._reached or self._scanner.place()
        lines, places, self._reached = _places(entries, line, column)
        found: dict[str, Any] = {field: _present(texts[part]) for field, texts in columns.items()}
        self._assembler.items.append(EntryColumns(**found, lines=lines, columns=places))
        return sum(map(len, entries))

    def _buffer(self, text: str) -> str:
        if len(text) > _MAX_BUFFERED or self._is_off:
            self._feed_scanner(text.encode())
        else:
            self._buffered = text
        return ""

    def _feed_scanner(self, data: bytes) -> None:
        if data:
            self._catch_up()
            before = len(self._assembler.items)
            self._scanner.feed(data)
            self._learn(self._assembler.items[before:])

    def _learn(self, items: Iterable[EntryColumns | RawEntry]) -> None:
        for entry in islice(items, _MAX_LESSONS - self._lessons):
            if isinstance(entry, RawEntry) and entry.fault is None:
                self._lessons += 1
                form = self._form.widened(entry, self._known)
                if form != self._form:
                    self._form, self._pattern = form, None

    def _catch_up(self) -> None:
        if self._reached is not None:
            for filling in _padding(self._scanner.place(), self._reached):
                self._scanner.feed(filling)
            self._reached = None


def _present(column: Sequence[Any]) -> Sequence[Any] | None:
    is_absent = column[0] is None and column.count(None) == len(column)
    return None if is_absent else column


def _read_addresses(columns: dict[str, Sequence[Any]], text: str) -> bool:
    if "&" in text:
        for field in columns.keys() & {"uris", "paths"}:
            columns[field] = [value and _unescaped(value) for value in columns[field]]
    if "links" in columns:
        found = columns["links"] = list(map(_attributes_of_links, columns["links"]))
        return all(
            len(links) <= MAX_LINKS and all(len(set(link[::2])) * 2 == len(link) for link in links)
            for links in filter(None, found)
        )
    return True


def _attributes_of_links(text: str) -> list[list[str]] | None:
    return [
        [_unescaped(part) for pair in _ATTRIBUTE.findall(tag) for part in pair]
        for tag in text.split("<")[1:]
        if not tag.startswith("/")
    ] or None


def _unescaped(text: str) -> str:
    if "&" in text:
        for reference, character in _REFERENCES:
            text = text.replace(reference, character)
    return text


def _places(
    entries: Sequence[str], line: int, column: int
) -> tuple[list[int], list[int], tuple[int, int]]:
    feeds = list(map(str.count, entries, repeat("\n")))
    lines = list(accumulate(feeds, initial=line))
    if all(feeds):
        columns = [column, *map(sub, map(len, entries), map(str.rfind, entries, repeat("\n")))]
    else:
        columns = list(accumulate(entries, _column_behind, initial=column))
    return lines, columns, (lines.pop(), columns.pop())


def _column_behind(column: int, entry: str) -> int:
    return len(entry) - entry.rfind("\n") if "\n" in entry else column + len(entry)


def _padding(start: tuple[int, int], end: tuple[int, int]) -> Iterator[bytes]:
    lines, columns = end[0] - start[0], end[1] - start[1]
    if lines:
        columns = end[1] - 1
    for mark, count in ((b"\n", lines), (b" ", columns)):
        for done in range(0, count, _FILLING):
            yield mark * min(_FILLING, count - done)


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
_UNWANTED: Final = _values.BLANKS + "\x7f"  # of the ASCII characters of XML


def resources_of(run: EntryColumns, context: expat.ReadingContext) -> list[Resource]:
    found = _resources(run, context)
    _count_naive(run, context)
    return found


def _resources(run: EntryColumns, context: expat.ReadingContext) -> list[Resource]:
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


def plain_resources_of(run: EntryColumns, context: expat.ReadingContext) -> Sequence[Resource]:
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


def changes_of(
    run: EntryColumns, kinds: list[ChangeKind], context: expat.ReadingContext
) -> list[Change]:
    resources = _resources(run, context)
    times: Iterable[datetime | None] = [resource.lastmod for resource in resources]
    if run.datetimes is not None:
        read = partial(_moments, read=_values.change_moment, context=context)
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
        map(expat.is_absolute, found)
    ):
        raise expat.RefusalError("uri-relative", "A loc is relative")
    return found


def _without_blanks(column: Sequence[str]) -> Sequence[str]:
    joined = "".join(column)
    if (
        joined.isascii()
        and not any(character in joined for character in _UNWANTED)
        and "" not in column
    ):
        return column
    return [_values.clean_uri(text) for text in column]


def _stripped(column: Sequence[str]) -> list[str]:
    made = {text: text.strip(_values.BLANKS) for text in set(column)}
    return [made[text] for text in column]


def _foreigns(column: Sequence[str]) -> list[Foreign]:
    made: dict[str, Foreign] = {
        text: (text_element(SITEMAP_NS, "priority", text),) for text in set(column)
    }
    return [made[text] for text in column]


def _links(
    column: Iterable[list[list[str]] | None], context: expat.ReadingContext
) -> list[tuple[Link, ...]]:
    trial = context.trial()
    found = [_values.read_links(links, trial) if links else () for links in column]
    if trial.tolerated:
        raise expat.RefusalError("link-attribute", "A link needs a notice")
    context.version_marks |= trial.version_marks
    return found


def _lastmods(column: Column | None, context: expat.ReadingContext) -> Iterable[datetime | None]:
    return _each(partial(_moments, read=_values.element_moment, context=context), column, None)


def _moments(
    column: Sequence[str], read: Callable[[str], T], context: expat.ReadingContext
) -> Iterable[datetime | T]:
    try:
        if _is_canonical(column):
            return list(map(datetime.fromisoformat, column))
        found: list[datetime | T] = list(map(parse_w3c, column))
    except ValueError:
        found = [read(text) for text in column]
    if Leniency.TIME_ZONE not in context.tolerated and any(
        _values.lacks_zone(text.strip(_values.BLANKS)) for text in column
    ):
        raise expat.RefusalError("time-zone", "A time has no time zone")
    return found


def _count_naive(run: EntryColumns, context: expat.ReadingContext) -> None:
    if Leniency.TIME_ZONE in context.tolerated:
        for column in filter(None, (run.lastmods, run.datetimes)):
            naive = sum(_values.lacks_zone(text.strip(_values.BLANKS)) for text in column if text)
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
    return [_values.length_of(text) for text in column]


def _digests(column: Sequence[str]) -> Iterable[tuple[Digest, ...]]:
    return (
        many_digests(column) if are_sha256(column) else [_values.digests(text) for text in column]
    )


def _hashes(column: Sequence[str]) -> Sequence[str]:
    return (
        column if are_sha256(column) else [format_digests(_values.digests(text)) for text in column]
    )
