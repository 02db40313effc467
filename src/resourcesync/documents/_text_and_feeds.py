"""Sitemaps as text files and as feeds: the other formats of sitemaps.org, as raw entries.

The entries are those that the same addresses and times would give in a sitemap in XML, so all rules
for entries apply. A feed lists recent pages only, and a text has no mark at its end: what such a
sitemap lacks may exist all the same.
"""

import codecs
import re
from io import IncrementalNewlineDecoder
from typing import Final
from urllib.parse import urljoin

from resourcesync.documents import expat
from resourcesync.documents._raw_entries import EntryAssembler, EntryColumns, RawEntry
from resourcesync.documents._values import BLANKS
from resourcesync.documents.blocks import TEXT_HINT
from resourcesync.errors import MalformedDocumentError
from resourcesync.model.leniencies import Leniency
from resourcesync.model.timestamps import format_w3c, parse_loosely

_ADDRESS: Final = re.compile(r"https?://[^\s<>]+", re.IGNORECASE)


class TextSitemapScanner:
    """A scanner of a text sitemap: one address on each line (sitemaps.org, "Text file").

    ``lists_all``: the last line has an end, and each is an address. A text that was cut has no end,
    as a rule, and a program that fails in the middle prints its error.
    """

    form = expat.SitemapForm.TEXT
    header_place = (0, 0)
    is_between_entries = False

    def __init__(
        self, assembler: EntryAssembler, *, limits: expat.Limits, context: expat.ReadingContext
    ) -> None:
        self.context = context
        self.namespaces: dict[str, str] = {}
        self.closed = False
        self.lists_all = False
        self._assembler = assembler
        self._longest = min(limits.uri, limits.text)
        self._decoder = IncrementalNewlineDecoder(
            codecs.getincrementaldecoder("utf-8")(), translate=True
        )
        self._cut = ""
        self._is_sound = True
        self._lines = 0
        context.set_place(1, 1)
        context.tolerate(Leniency.TEXT_FORM)

    def feed(self, block: bytes) -> None:
        self._add(self._decode(block, is_last=False), is_last=False)

    def close(self) -> None:
        if not self.closed:
            self._add(self._decode(b"", is_last=True), is_last=True)
            self.closed = True
            self.lists_all = self._is_sound and not self._cut
            if self._cut:
                self.context.set_place(self._lines, 1)
                self.context.tolerate(Leniency.TEXT_OPEN)

    def place(self) -> tuple[int, int]:
        """Return line and column of what comes next, 1-based."""
        return self._lines + 1, 1

    def _decode(self, block: bytes, *, is_last: bool) -> str:
        try:
            return self._decoder.decode(block, final=is_last)
        except UnicodeDecodeError as error:
            raise MalformedDocumentError(
                "The text sitemap is not in UTF-8",
                uri=self.context.uri,
                line=self._lines + 1 + error.object[: error.start].count(b"\n"),
                column=1,
                hint=TEXT_HINT,
                code="xml-encoding",
            ) from error

    def _add(self, text: str, *, is_last: bool) -> None:
        self._assembler.began = True
        *lines, self._cut = f"{self._cut}{text}".split("\n")
        if is_last:
            lines.append(self._cut)
        elif len(self._cut) > expat.MAX_TOKEN:
            raise expat.limit_error(
                expat.MAX_TOKEN,
                "characters in one line",
                uri=self.context.uri,
                line=self._lines + 1,
            )
        uris: list[str] = []
        numbers: list[int] = []
        for number, line in enumerate(lines, self._lines + 1):
            uri = line.strip(BLANKS)
            if not uri:
                continue
            if len(uri) <= self._longest and uri.isprintable() and _ADDRESS.fullmatch(uri):
                uris.append(uri)
                numbers.append(number)
                continue
            self._flush(uris, numbers)
            uris, numbers = [], []
            self._assembler.items.append(self._unusual_entry(uri, number))
        self._flush(uris, numbers)
        self._lines += len(lines)

    def _flush(self, uris: list[str], numbers: list[int]) -> None:
        if uris:
            columns = EntryColumns(uris, lines=numbers, columns=[1] * len(uris))
            self._assembler.items.append(columns)

    def _unusual_entry(self, uri: str, number: int) -> RawEntry:
        entry = RawEntry(number, 1, texts={expat.LOC: uri[: self._longest + 1]})
        if _ADDRESS.match(uri) is None:
            self._is_sound = False
            entry.mark_faulty("entry-invalid", "The line is not an absolute http or https address")
        return entry


_BASE: Final = f"{expat.XML_NS}{expat.SEPARATOR}base"
_MAX_DEPTH: Final = 256
"""Levels of elements: entries of feeds contain whole pages."""


class FeedEntryHandler:
    """A handler of the elements of a feed, below its root: entries as those of a sitemap."""

    def __init__(
        self,
        form: expat.SitemapForm,
        root: tuple[str, list[str]],
        driver: expat.XmlDriver,
        assembler: EntryAssembler,
        limits: expat.Limits,
        context: expat.ReadingContext,
    ) -> None:
        name, attributes = root
        namespace = name.rpartition(expat.SEPARATOR)[0]
        prefix = f"{namespace}{expat.SEPARATOR}" if namespace else ""
        self._is_rss = form is expat.SitemapForm.RSS
        self._entry_name = f"{prefix}{'item' if self._is_rss else 'entry'}"
        self._link = f"{prefix}link"
        self._guid = f"{prefix}guid" if self._is_rss else ""
        self._time = f"{prefix}{'pubDate' if self._is_rss else expat.ATOM_NAMESPACES[namespace]}"
        self._entry_depth = 3 if self._is_rss else 2
        self._driver = driver
        self._assembler = assembler
        self._limits = limits
        self._context = context
        self._depth = 1
        self._bases = [self._base(context.uri, attributes)]
        self._entry: RawEntry | None = None
        self._found: dict[str, str] = {}
        self._leaf = ""
        self._pieces: list[str] = []
        self._length = 0

    def start(self, name: str, attributes: list[str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._driver.over(_MAX_DEPTH, "levels of elements")
        if len(name) > self._limits.text:
            raise self._driver.over(self._limits.text, "characters in one name")
        if len(attributes) > 2 * self._limits.attributes:
            raise self._driver.over(self._limits.attributes, "attributes in one element")
        if self._depth <= self._entry_depth + 1:
            self._bases.append(self._base(self._bases[-1], attributes))
        if self._depth == self._entry_depth and name == self._entry_name:
            self._assembler.began = True
            self._entry = RawEntry(*self._driver.place())
            self._found = {}
        elif self._depth == self._entry_depth + 1 and self._entry is not None:
            self._start_part(name, attributes)

    def end(self, _name: str) -> None:
        entry = self._entry
        if self._depth <= self._entry_depth + 1:
            self._bases.pop()
        if entry is not None and self._depth == self._entry_depth + 1 and self._leaf:
            self._end_part(entry)
        elif entry is not None and self._depth == self._entry_depth:
            self._add(entry)
        self._depth -= 1
        if not self._depth:
            self._assembler.depth = 0

    def text(self, text: str) -> None:
        """Add text of the element that is open, if its value matters."""
        if self._leaf:
            self._length += len(text)
            if self._length > expat.MAX_TOKEN:
                raise self._driver.over(expat.MAX_TOKEN, "characters in one text")
            self._pieces.append(text)

    def _start_part(self, name: str, attributes: list[str]) -> None:
        self._pieces, self._length = [], 0
        given = dict(zip(attributes[::2], attributes[1::2], strict=True))
        if name == self._link and not self._is_rss:
            href = given.get("href", "").strip(BLANKS)
            if given.get("rel", "alternate").strip().lower() == "alternate" and href:
                self._found.setdefault(self._link, self._resolved(href))
        elif name in (self._link, self._time):
            self._leaf = name
        elif name == self._guid:
            self._leaf = name if given.get("isPermaLink", "true").strip() == "true" else ""

    def _end_part(self, entry: RawEntry) -> None:
        text = "".join(self._pieces).strip(BLANKS)
        if len(text) > self._limits.text and self._leaf == self._time:
            self._context.set_place(entry.line, entry.column)
            self._context.drop_value(Leniency.VALUE_LONG, about=text)
        elif text and self._leaf != self._time:
            self._found.setdefault(self._leaf, self._resolved(text))
        elif text:
            self._found.setdefault(self._leaf, text)
        self._leaf = ""

    def _add(self, entry: RawEntry) -> None:
        self._entry = None
        address = self._found.get(self._link) or self._found.get(self._guid, "")
        if not address:
            self._context.set_place(entry.line, entry.column)
            self._context.tolerate(Leniency.FEED_UNLINKED)
            return
        entry.texts[expat.LOC] = address
        time = self._found.get(self._time, "")
        if time:
            try:
                entry.texts[expat.LASTMOD] = (
                    format_w3c(parse_loosely(time)) if self._is_rss else time
                )
            except ValueError:
                entry.texts[expat.LASTMOD] = time
        self._assembler.items.append(entry)

    def _resolved(self, address: str) -> str:
        base = self._bases[-1]
        return address if base == self._context.uri else _joined(base, address)

    def _base(self, outer: str, attributes: list[str]) -> str:
        for name, value in zip(attributes[::2], attributes[1::2], strict=True):
            if name == _BASE and len(value) <= self._limits.uri:
                return _joined(outer, value.strip(BLANKS))
        return outer


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:  # the rules for a loc refuse it
        return address
