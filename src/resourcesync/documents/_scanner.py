"""The scanner: XML to the elements that matter by expat; what is too long or hostile is dropped.

expat checks well-formedness and resolves namespaces.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from resourcesync.documents import expat
from resourcesync.documents._raw_entries import EntryAssembler, ForeignFragment
from resourcesync.errors import DocumentError, NotAListError
from resourcesync.model.leniencies import Leniency
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS

if TYPE_CHECKING:
    from resourcesync.documents._text_and_feeds import TextSitemapScanner

EntryScanner: TypeAlias = "DocumentScanner | TextSitemapScanner"
"""A scanner that feeds a document of one form into an assembler."""
_DOCTYPE_HTML: Final = re.compile(rb"\s*<!doctype\s+html", re.IGNORECASE)
_TITLE: Final = re.compile(rb"<title[^<>]{0,200}>([^<]{1,200})", re.IGNORECASE)
_HEAD: Final = 4_096
_PAGE_HINT: Final = (
    "open the address in a browser: a page there may ask for a log-in; robots.txt of the site names"
    " its sitemaps"
)
_OWN: Final = frozenset({"", *expat.SITEMAP_NAMESPACES})
"""Namespaces of elements that are not foreign."""
_OURS: Final = tuple(f"{namespace}{expat.SEPARATOR}" for namespace in expat.ALL_RS_NAMESPACES)
_META: Final = f"http://www.w3.org/1999/xhtml{expat.SEPARATOR}meta"


class DocumentScanner:
    """A scanner that feeds one document through expat into an assembler.

    ``form`` is known once the root has started. ``header_place`` is line and column of the root's
    ``rs:md``.
    """

    def __init__(
        self, assembler: EntryAssembler, *, limits: expat.Limits, context: expat.ReadingContext
    ) -> None:
        self.form = expat.SitemapForm.XML
        self.namespaces: dict[str, str] = {}
        self.header_place = (0, 0)
        self._assembler = assembler
        self._limits = limits
        self.context = context
        self._uri = context.uri
        self._marks: Mapping[str, int] = {}
        self._head = b""
        self._keeping: list[str] | None = None  # what the elements of others are added to
        self._room = 0  # characters that it may still get
        self._start_element: Callable[[str, list[str]], None] | None = None  # past the header
        self._in_section = 0  # CDATA
        self._own = _OWN
        self._driver = expat.XmlDriver(self._error_of)
        parser = self._driver.parser
        parser.ordered_attributes = True
        parser.StartNamespaceDeclHandler = self._namespace
        parser.StartElementHandler = self._start_root
        set_section = partial(setattr, self, "_in_section")
        parser.StartCdataSectionHandler = partial(set_section, 1)
        parser.EndCdataSectionHandler = partial(set_section, 0)
        self._parser = parser

    def feed(self, block: bytes) -> None:
        if not self._driver.fed:
            self._head = block[:_HEAD]
            if _DOCTYPE_HTML.match(block):  # HTML may write it in ways that XML does not allow
                raise self._not_a_list("html")
        self._driver.feed(block)

    def close(self) -> None:
        self._driver.close()

    @property
    def closed(self) -> bool:
        """True if the end of the document was reached and found good."""
        return self._driver.closed

    @property
    def lists_all(self) -> bool:
        """True if it is no feed: these list recent pages only."""
        return not self.form.is_feed

    def place(self) -> tuple[int, int]:
        """Return line and column of what comes next, or of what is being read; 1-based."""
        return self._driver.place()

    @property
    def is_between_entries(self) -> bool:
        """True if all bytes so far are read, and the next ones are right under the root."""
        parser = self._parser
        return (
            parser.StartElementHandler is self._start_element
            and parser.CurrentByteIndex == self._driver.fed
            and not self._in_section
            and self._assembler.is_between_entries
        )

    def _error_of(self, fault: expat.XmlFault) -> DocumentError:
        if fault.kind is expat.XmlFaultKind.DOCTYPE and fault.detail.lower() == "html":
            return self._not_a_list("html")
        return expat.document_error(fault, self._uri)

    def _namespace(self, prefix: str | None, uri: str | None) -> None:
        if self._start_element is None:  # it is the root that starts
            self.namespaces[prefix or ""] = uri or ""
        self._driver.check_namespace(prefix, uri, self._limits.text)

    def _start_root(self, name: str, attributes: list[str]) -> None:
        namespace, _, local = name.rpartition(expat.SEPARATOR)
        form = expat.feed_form(name, attributes)
        if form is not None:
            self._start_feed(form, name, attributes)
            return
        if local not in expat.ROOTS:
            raise self._not_a_list(name)
        self._inspect_root(name, self._bounded(expat.FOREIGN, attributes))
        is_index = self._assembler.is_index = expat.ROOTS[local]
        self._marks = expat.marks(is_index=is_index)
        is_misnamed = namespace not in expat.SITEMAP_NAMESPACES
        if is_misnamed:
            self._own |= {namespace}
            self._marks = expat.marks_in(namespace, is_index=is_index)
        self._start_element = start_element = self._make_start()

        def start(inner: str, attributes: list[str]) -> None:
            start_element(inner, attributes)
            if self._assembler.began:
                self._parser.StartElementHandler = start_element
            elif self._marks.get(inner) == expat.MD:
                if is_misnamed and namespace and self._assembler.metadata is not None:
                    raise self._not_a_list(name)  # only a plain sitemap is read in spite of that
                self.header_place = self.place()
                self._inspect_namespace(inner)

        self._parser.StartElementHandler = start
        self._parser.EndElementHandler = self._assembler.end
        self._parser.CharacterDataHandler = self._assembler.add_text

    def _start_feed(self, form: expat.SitemapForm, name: str, attributes: list[str]) -> None:
        from resourcesync.documents._text_and_feeds import FeedEntryHandler  # noqa: PLC0415 - rarely

        self.form = form
        self._tolerate(Leniency(f"{form.lower()}-form"))
        feed = FeedEntryHandler(
            form, (name, attributes), self._driver, self._assembler, self._limits, self.context
        )
        self._parser.StartElementHandler = feed.start
        self._parser.EndElementHandler = feed.end
        self._parser.CharacterDataHandler = feed.text

    def _make_start(self) -> Callable[[str, list[str]], None]:
        mark_of = self._marks.get
        start_entry, start_part = self._assembler.start_entry, self._start_part
        parser = self._parser
        most, longest = 2 * self._limits.attributes, self._limits.text
        rare, bounded = self._start_rare, self._bounded

        def start(name: str, attributes: list[str]) -> None:
            mark = mark_of(name, expat.FOREIGN)
            if attributes and (len(attributes) > most or len("".join(attributes)) > longest):
                attributes = bounded(mark, attributes)
            if expat.LOC <= mark <= expat.LN:
                start_part(mark, attributes)
            elif mark == expat.ENTRY and not attributes:
                start_entry(parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)
            else:
                rare(mark, name, attributes)

        return start

    def _start_part(self, mark: int, attributes: list[str]) -> None:
        assembler = self._assembler
        if assembler.entry is None:
            assembler.start_outside(mark, attributes, *self.place())
        else:
            assembler.start(mark, attributes)

    def _start_rare(self, mark: int, name: str, attributes: list[str]) -> None:
        if mark in (expat.ENTRY, expat.MISPLACED):
            if attributes:
                self._tolerate(Leniency.ENTRY_ATTRIBUTES)
            self._assembler.start_entry(*self.place(), misplaced=mark == expat.MISPLACED)
        elif mark in expat.DRAFT_ELEMENTS:
            if name.startswith(expat.ALL_RS_NAMESPACES):  # expires is in plain sitemaps, too
                self.context.version_marks.add(expat.P1)
                self._inspect_namespace(name)
            self._start_part(mark, attributes)
        else:
            if self._assembler.depth == 1 and name.rpartition(expat.SEPARATOR)[0] in self._own:
                self._assembler.refuse(*self.place())
            self._enter_foreign(name, attributes)

    def _enter_foreign(self, name: str, attributes: list[str]) -> None:
        self._check_name(name)
        self._inspect_meta(name, attributes)
        place = self.place()
        keep = self._assembler.enter_foreign()
        depth = outside = self._assembler.depth + 1
        self._check_depth(depth)
        if keep is not self._keeping:
            self._keeping, self._room = keep, self._limits.foreign
        fragment = ForeignFragment(0 if keep is None else self._room)
        fragment.start(name, attributes)
        parser = self._parser
        before = (parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler)

        def start(name: str, attributes: list[str]) -> None:
            nonlocal depth
            depth += 1
            self._check_depth(depth)
            self._check_name(name)
            fragment.start(name, self._bounded(expat.FOREIGN, attributes))

        def end(_name: str) -> None:
            nonlocal depth
            fragment.end()
            if depth == outside:
                (
                    parser.StartElementHandler,
                    parser.EndElementHandler,
                    parser.CharacterDataHandler,
                ) = before
                self._leave_foreign(fragment, keep, place)
            depth -= 1

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = None if keep is None else fragment.text

    def _leave_foreign(
        self, fragment: ForeignFragment, keep: list[str] | None, place: tuple[int, int]
    ) -> None:
        if keep is not None and not fragment.is_over:
            text = str(fragment)
            keep.append(text)
            self._room -= len(text)
        elif keep is not None:
            self.context.set_place(*place)
            self.context.tolerate(Leniency.FOREIGN_DROPPED)

    def _inspect_root(self, name: str, attributes: list[str]) -> None:
        if not name.startswith(f"{SITEMAP_NS}{expat.SEPARATOR}"):
            self._tolerate(Leniency.SITEMAP_NAMESPACE)
        for key, value in zip(attributes[::2], attributes[1::2], strict=True):
            namespace, _, local = key.rpartition(expat.SEPARATOR)
            if local == "type" and namespace in expat.ALL_RS_NAMESPACES:
                self.context.version_marks.add(expat.P1)
                self._inspect_namespace(key)
                self._assembler.kind = value

    def _inspect_namespace(self, name: str) -> None:
        namespace = name.rpartition(expat.SEPARATOR)[0]
        if namespace in expat.P0_NAMESPACES:
            self.context.version_marks.add(expat.P0)
        elif namespace == expat.P2_NAMESPACE:
            self.context.version_marks.add(expat.P2)
        if namespace in expat.ALL_RS_NAMESPACES and namespace != RS_NS:
            self._tolerate(Leniency.NAMESPACE, namespace)

    def _inspect_meta(self, name: str, attributes: list[str]) -> None:
        assembler = self._assembler
        if name != _META or assembler.depth != 1 or assembler.began:
            return
        told = dict(zip(attributes[::2], attributes[1::2], strict=True))
        if told.get("name", "").lower() == "dcterms.modified":
            self.context.version_marks.add(expat.P1)
            assembler.modified = assembler.modified or told.get("content", "")
            self.header_place = self.place()

    def _tolerate(self, code: Leniency, about: str = "") -> None:
        self.context.set_place(*self.place())
        self.context.tolerate(code, about=about)

    def _check_depth(self, depth: int) -> None:
        if depth > self._limits.depth:
            raise self._driver.over(self._limits.depth, "levels of elements")

    def _check_name(self, name: str) -> None:
        if len(name) > self._limits.text:
            raise self._driver.over(self._limits.text, "characters in one name")

    def _bounded(self, mark: int | None, attributes: list[str]) -> list[str]:
        longest = self._limits.text
        if len(attributes) > 2 * self._limits.attributes:
            raise self._driver.over(self._limits.attributes, "attributes in one element")
        if not any(len(text) > longest for text in attributes):
            return attributes
        if sum(map(len, attributes)) > expat.MAX_TOKEN:  # wherever blocks end
            raise self._driver.over(expat.MAX_TOKEN, "bytes in one tag")
        kept: list[str] = []
        for name, value in zip(attributes[::2], attributes[1::2], strict=True):
            if len(name) <= longest and len(value) <= longest:
                kept += (name, value)
            elif mark in (expat.MD, expat.LN) and (
                expat.SEPARATOR not in name or name.startswith(_OURS)
            ):
                self.context.set_place(*self.place())
                self.context.drop_value(Leniency.VALUE_LONG, about=name)
        return kept

    def _not_a_list(self, root: str) -> NotAListError:
        namespace, _, local = root.rpartition(expat.SEPARATOR)
        line, column = self.place()
        title = _TITLE.search(self._head)
        evidence = [("root", f"<{local[:100]}>")]
        if namespace:
            evidence.append(("namespace", namespace[:200] or "none"))
        if title is not None:
            evidence.append(("title", " ".join(title[1].decode("utf-8", "replace").split())))
        where = f" in the namespace {namespace[:200]}" if namespace else " without a namespace"
        return NotAListError(
            f"The document is not a list: its root is <{local[:100]}>"
            + ("" if local == "html" else where),
            uri=self._uri,
            line=line or 1,
            column=column,
            evidence=tuple(evidence),
            hint=_PAGE_HINT if local.lower() == "html" else "",
        )
