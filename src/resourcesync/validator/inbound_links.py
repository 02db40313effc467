"""Validation of links to a Source: in pages, HTTP headers and robots.txt (§6.3)."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import chain
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from resourcesync import errors
from resourcesync.discovery import links as discovered
from resourcesync.discovery.document_fetcher import DocumentProvider, fetch
from resourcesync.discovery.links import PageLink, find_target, head_of, named_sitemaps
from resourcesync.documents.blocks import pieces_of
from resourcesync.model.settings import RuleProfile
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.validator.crawl import join_reference
from resourcesync.validator.examination import Examination, is_full
from resourcesync.validator.rule import AppliedRules, RuleFinding
from resourcesync.validator.sample import MOST_READ, Unreached
from resourcesync.validator.served_responses import bare_type, judge_link, judge_robots
from resourcesync.validator.summaries import DocumentSummary

_MOST_FETCHED: Final = 100
_MAX_LINKS: Final = 100_000
_MOST_LINKS: Final = 10
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_CLIENT_ERRORS: Final = range(400, 500)
_LISTS: Final = frozenset({Capability.RESOURCE_LIST.value, Capability.CHANGE_LIST.value})


class _InboundLink(NamedTuple):
    uri: str
    target: str
    is_header: bool
    in_head: bool = True


class InboundLinks:
    """Collects links to a Source and checks their targets."""

    def __init__(
        self,
        source: str,
        documents: DocumentProvider,
        profile: RuleProfile,
        known: Mapping[str, DocumentSummary],
    ) -> None:
        self._source = source
        self._documents = documents
        self._profile = profile
        self._known = known
        self._ways: list[_InboundLink] = []
        self._fetched: dict[str, DocumentSummary | None] = {}
        self._sets: dict[str, set[int] | None] = {}

    def add(self, uri: str, headers: Mapping[str, str], start: bytes, base: str = "") -> None:
        """Add an answer: its header fields, names in lower case, and the start of its body."""
        if len(self._ways) >= _MAX_LINKS:
            return
        base = base or uri
        linked = find_target(headers.get("link", ""), Relation.RESOURCESYNC, base)
        if linked is not None:
            self._ways.append(_InboundLink(uri, linked, is_header=True))
        is_page = bare_type(headers.get("content-type", "")) in _HTML
        if is_page and not headers.get("content-encoding"):
            for link in page_links(start):
                target = join_reference(base, link.href)
                self._ways.append(_InboundLink(uri, target, is_header=False, in_head=link.in_head))

    def fetch_page(self, address: str) -> Iterator[Unreached]:
        """Fetch and add the page at an address, if there is one that is not a document."""
        if address in self._known:
            return
        try:
            with fetch(self._documents, address) as page:
                if page.final_uri in self._known:
                    return
                page.stream.seek(0)
                headers = {"link": page.links, "content-type": page.media_type}
                self.add(address, headers, page.stream.read(MOST_READ), page.final_uri)
        except (errors.SourceError, errors.StorageError) as error:
            if not _is_missing(error):
                yield Unreached(uri=address, error=error)

    def judge(self) -> Iterator[RuleFinding | AppliedRules | Unreached]:
        """Check the links that were added (§6.3.3), each once."""
        applied: set[str] = set()
        for way in dict.fromkeys(self._ways):
            target = self._target(way.target)
            if isinstance(target, Unreached):
                yield target
                continue
            if target is _NO_SUMMARY:
                continue
            is_listed = (
                target is None or _is_folder(way.uri) or self._listed_in_set(way.uri, target)
            )
            applied.add("DI02" if way.is_header else "DI01")
            yield from judge_link(
                way.uri, target, is_header=way.is_header, in_head=way.in_head, is_listed=is_listed
            )
        yield AppliedRules(self._source, frozenset(applied))
        self._ways.clear()
        self._sets.clear()

    def judge_robots(self, address: str) -> Iterator[RuleFinding | AppliedRules | Unreached]:
        """Check the documents that the robots.txt of an address's origin names (§6.3.4)."""
        robots = urljoin(address, "/robots.txt")
        try:
            with fetch(self._documents, robots) as fetched:
                named = named_sitemaps(fetched)
        except (errors.SourceError, errors.StorageError) as error:
            if not _is_missing(error):
                yield Unreached(uri=robots, error=error)
            return
        targets: list[DocumentSummary] = []
        for uri in named:
            target = self._target(uri)
            if isinstance(target, Unreached):
                yield target
            elif target is not None and target is not _NO_SUMMARY:
                targets.append(target)
        if any(target.label for target in targets):
            yield AppliedRules(robots, frozenset({"DI03"}))
        yield from judge_robots(robots, targets)

    def _target(self, uri: str) -> DocumentSummary | Unreached | None:
        if uri in self._known:
            return self._known[uri]
        if uri not in self._fetched:
            if len(self._fetched) >= _MOST_FETCHED:
                return _NO_SUMMARY
            self._fetched[uri] = None
            try:
                self._fetched[uri] = self._read(uri)
            except errors.ResourceMissingError:
                return None
            except (errors.SourceError, errors.StorageError) as error:
                return Unreached(uri=uri, error=error)
        return self._fetched[uri]

    def _read(self, uri: str) -> DocumentSummary | None:
        with fetch(self._documents, uri) as fetched:
            fetched.stream.seek(0)
            examination = Examination(pieces_of(fetched.stream), uri=uri, profile=self._profile)
            for _ in examination:
                pass  # its faults do not matter: it is not one of the Source's own documents
            return examination.summary if examination.summary.label else None

    def _listed_in_set(self, page: str, target: DocumentSummary) -> bool:
        if target.uri not in self._sets:
            lists = self._lists_of(target) or []
            has_list = any(summary.capability is Capability.RESOURCE_LIST for summary in lists)
            pages = {hash(way.uri) for way in self._ways}
            marks = chain.from_iterable(summary.resources for summary in lists)
            self._sets[target.uri] = pages.intersection(marks) if has_list else None
        listed = self._sets[target.uri]
        return listed is None or hash(page) in listed

    def _lists_of(self, target: DocumentSummary) -> list[DocumentSummary] | None:
        lists: list[DocumentSummary] = []
        waiting = [target.uri for target in target.targets if target.label in _LISTS]
        seen: set[str] = set()
        while waiting:
            uri = join_reference(target.uri, waiting.pop())
            if uri in seen:
                continue
            seen.add(uri)
            document = self._known.get(uri)
            if document is None or not document.complete or is_full(document):
                return None
            if document.is_index:
                waiting += [join_reference(uri, target.uri) for target in document.targets]
            else:
                lists.append(document)
        return lists


def page_links(page: bytes) -> list[PageLink]:
    """Return the first ten ``resourcesync`` links in a page, resolved with its ``base``."""
    base, links = discovered.page_links(head_of(BytesIO(page)))
    return [link._replace(href=join_reference(base, link.href)) for link in links[:_MOST_LINKS]]


_NO_SUMMARY: Final = DocumentSummary(uri="")
"""Placeholder for a document that was not fetched because of a limit."""


def _is_folder(uri: str) -> bool:
    """True if an address is of a folder: its page may be listed under a name (``index.html``)."""
    return urlsplit(uri).path.endswith("/") or not urlsplit(uri).path


def _is_missing(error: errors.SourceError | errors.StorageError) -> bool:
    is_late = isinstance(error, errors.SourceUnavailableError)
    return isinstance(error, errors.SourceError) and error.status in _CLIENT_ERRORS and not is_late
