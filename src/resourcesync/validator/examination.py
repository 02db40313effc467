"""The examination of one document while it streams by, in bounded memory (§6 to §14)."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from resourcesync.documents import blocks
from resourcesync.documents.reader import Limits
from resourcesync.errors import DocumentError, DocumentLimitError
from resourcesync.model.digests import parse_digests, usable
from resourcesync.model.settings import RuleProfile
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import MAX_BYTES, MAX_ENTRIES, Dialect
from resourcesync.validator import _entry_checks, summaries
from resourcesync.validator._elements import ElementNode, ElementParser, StopError
from resourcesync.validator._examined_document import (
    DOCUMENTS,
    DocumentKind,
    ExaminedDocument,
    capability_of,
)
from resourcesync.validator._kind_checks import EntryChecks
from resourcesync.validator._root_checks import RootChecks, modernise
from resourcesync.validator.marks import Marks, MarkStore
from resourcesync.validator.rule import DRAFTS, RuleFinding

_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ENTRY: Final = {False: "url", True: "sitemap"}
_DUMPS: Final = frozenset({DocumentKind.RD, DocumentKind.CD})
_CHANGED: Final = frozenset({DocumentKind.CH, DocumentKind.CDM, DocumentKind.NT})


class Examination(Iterator[RuleFinding]):
    """The findings of one document, in order; its summary is complete after the last one.

    Nothing is read before the first finding is requested.
    """

    def __init__(
        self,
        chunks: Iterable[bytes],
        *,
        uri: str,
        profile: RuleProfile = "rs-1.1",
        on_resource: Callable[[summaries.ListedResource], None] | None = None,
        store: MarkStore | None = None,
    ) -> None:
        self.summary = summaries.DocumentSummary(
            uri=uri, resources=Marks(store), changes=Marks(store), change_times=Marks(store)
        )
        self._limits = Limits()
        self._parser = ElementParser(self._limits)
        self._subject = ExaminedDocument(
            profile=profile, window=self._parser.window, summary=self.summary
        )
        self._on_resource = on_resource
        self._header = RootChecks()
        self._entries: EntryChecks | None = None
        self._descriptions = _entry_checks.DescriptionLinks()
        self._timed = False
        self._undated = 0
        self._going = True
        self._findings = self._run(chunks)

    def __next__(self) -> RuleFinding:
        return next(self._findings)

    def _run(self, chunks: Iterable[bytes]) -> Iterator[RuleFinding]:
        subject = self._subject
        pieces = filter(None, chunks)
        try:
            first = next(pieces, b"")
            octets = chain((first,), pieces)
            for block in blocks.document_blocks(octets, limits=self._limits, uri=self.summary.uri):
                self._read(block)
                yield from subject.drain()
                if not self._going:
                    return
            self._parser.close()
            self._read_children()
            self._finish(is_utf16=first.startswith(_UTF16))
        except StopError as stop:
            self._read_children()
            subject.report_at("G01", stop.message, stop.spot)
        except DocumentError as error:
            spot = subject.root
            if error.line:
                spot = summaries.DocumentPlace(line=error.line, column=error.column)
            if not isinstance(error, DocumentLimitError):
                subject.report_at("G01", error.message, spot)
            elif self.summary.size <= MAX_BYTES:
                subject.report_at("G20", f"{error.message}; the rest is not checked", spot)
        self.summary.flush()
        yield from subject.drain()

    def _read(self, block: bytes) -> None:
        before = self.summary.size
        self._parser.feed(block)
        self.summary.size += len(block)
        self._read_children()
        if before <= MAX_BYTES < self.summary.size:
            message = f"the document has more than {MAX_BYTES:,} bytes"
            self._subject.report_at("G20", message, self._subject.root)

    def _read_children(self) -> None:
        parser = self._parser
        if parser.root is None or not self._going:
            return
        if not self._subject.root.line:
            self._going = self._header.start(self._subject, parser.root)
        for node in parser.drain():
            if self._going:
                self._read_child(node)

    def _read_child(self, node: ElementNode) -> None:
        subject = self._subject
        if subject.is_sitemap(node) and node.name not in ("md", "ln"):
            if node.name == _ENTRY[self.summary.is_index]:
                self._entry(node)
            else:
                root = "sitemapindex" if self.summary.is_index else "urlset"
                subject.report("G03", f"<{node.name[:64]}> under <{root}>", node)
        elif subject.profile != "sitemap" and _entry_checks.is_rs(subject, node):
            if node.name not in ("md", "ln"):
                return
            if subject.profile in DRAFTS:
                modernise(node, subject.profile)
            if self._entries is not None:
                subject.report("G22", f"{node.name} of the root comes after an entry", node)
            if node.name == "md":
                self._header.metadata(subject, node)
            else:
                self._header.link(subject, node)

    def _entry(self, node: ElementNode) -> None:
        subject, summary = self._subject, self.summary
        if self._entries is None:
            self._entries = EntryChecks(subject.kind)
        summary.entries += 1
        if summary.entries == MAX_ENTRIES + 1:
            subject.report("G19", f"the document has more than {MAX_ENTRIES:,} entries", node)
        if summary.entries > self._limits.entries:
            message = f"more than {self._limits.entries:,} entries; the rest is not checked"
            raise StopError(message, subject.window.spot(node))
        entry = _entry_checks.read_entry(subject, node)
        if subject.profile != "sitemap":
            _entry_checks.check_links(subject, entry)
            self._descriptions.add(subject, entry)
            self._entries.check(subject, entry)
        self._add_to_summary(entry)

    def _add_to_summary(self, entry: _entry_checks.ParsedEntry) -> None:
        kind = self._subject.kind
        if is_full(self.summary):
            return
        if kind in DOCUMENTS or self.summary.is_index:
            self.summary.targets.append(_target(entry, is_package=kind in _DUMPS))
        else:
            self.summary.resources.append(hash(entry.uri))
            self._add_part(entry)
        if kind in _CHANGED:
            moment = entry.times.get("datetime") or entry.lastmod
            time = -1 if moment is None else to_microseconds(moment.first)
            self._timed |= entry.has("datetime")
            self._undated += entry.lastmod is None
            self.summary.changes.append(hash((entry.uri, entry.change, time)))
            self.summary.change_times.append(time)
        is_package = kind in _DUMPS
        if self._on_resource is not None and entry.uri and (is_package or kind not in DOCUMENTS):
            self._on_resource(_listed(entry, self.summary.uri))

    def _add_part(self, entry: _entry_checks.ParsedEntry) -> None:
        targets, kind = self.summary.targets, self._subject.kind
        if kind in (DocumentKind.RL, DocumentKind.CH) and len(targets) == self.summary.entries - 1:
            if entry.is_part if kind is DocumentKind.RL else entry.is_change_list:
                targets.append(_target(entry))
            else:
                targets.clear()

    def _finish(self, *, is_utf16: bool) -> None:
        subject, summary = self._subject, self.summary
        if not self._going:
            return
        declared = self._parser.encoding or ("UTF-16" if is_utf16 else "")
        if declared:
            message = f"the document is in {declared}, not in UTF-8"
            subject.report_at("G01", message, summaries.DocumentPlace(line=1, column=1))
        if summary.entries and not self._timed and not self._undated and summary.changes:
            summary.dialect = Dialect.V1_0
        if subject.profile != "sitemap":
            if self._entries is None:
                self._entries = EntryChecks(subject.kind)
            self._entries.finish(subject)
            self._descriptions.finish(subject)
            self._header.finish(subject)
        if subject.md is None:
            summary.dialect = Dialect.SITEMAP
        summary.complete = True


def is_full(summary: summaries.DocumentSummary) -> bool:
    """True if a summary has as many entries as a document may have."""
    return max(len(summary.targets), len(summary.resources)) >= MAX_ENTRIES


def _place(entry: _entry_checks.ParsedEntry) -> summaries.DocumentPlace:
    return summaries.DocumentPlace(
        line=entry.node.line, column=entry.node.column, length=len(entry.node.name) + 1
    )


def _target(
    entry: _entry_checks.ParsedEntry, *, is_package: bool = False
) -> summaries.ListedTarget:
    first = {name: moment.first for name, moment in entry.times.items()}
    contents = entry.linked("contents")
    return summaries.ListedTarget(
        uri=entry.uri,
        place=_place(entry),
        label=entry.value("capability"),
        capability=capability_of(entry.value("capability")),
        at=first.get("at"),
        from_=first.get("from"),
        until=first.get("until"),
        contents=contents[0].href if contents else "",
        media_type=entry.value("type"),
        length=_length(entry) if is_package else None,
        digests=usable(parse_digests(entry.value("hash"))) if is_package else (),
    )


def _length(entry: _entry_checks.ParsedEntry) -> int | None:
    length = entry.value("length")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else None  # noqa: PLR2004 - 64 bits


def _listed(entry: _entry_checks.ParsedEntry, document: str) -> summaries.ListedResource:
    return summaries.ListedResource(
        uri=entry.uri,
        document=document,
        place=_place(entry),
        change=entry.change,
        length=_length(entry),
        media_type=entry.value("type"),
        encoding=entry.value("encoding"),
        hashes=dict(usable(parse_digests(entry.value("hash")))),
        lastmod=None if entry.lastmod is None else entry.lastmod.first,
        path=entry.value("path"),
    )
