"""The search for a Source's first document from any address of it, and no wider one (§6.3)."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from io import SEEK_END
from itertools import groupby
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from resourcesync import errors
from resourcesync.discovery import uris
from resourcesync.discovery.document_fetcher import (
    DocumentFetcher,
    DocumentProvider,
    FetchedDocument,
    fetch,
    is_of_document,
)
from resourcesync.discovery.sets import ANY, OfferedSet, choose
from resourcesync.model.entries import Part
from resourcesync.model.vocabulary import WELL_KNOWN_PATH, Capability, Relation

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document


_HINT: Final = "give the list's own address"
_SOME_LIST: Final = "https://HOST/PATH/list.xml"
_OTHER_ORIGIN: Final = "not requested: another origin, which is not allowed"
_NO_FEEDS: Final = "; its feeds list recent pages only, and are not read"
_ROBOTS_NAME: Final = "robots.txt"
_WELL_KNOWN: Final = "well-known URI of "
_ROBOTS: Final = "robots.txt of "
_USUAL: Final = "usual place of a sitemap at "
_SITEMAPS: Final = (
    *("sitemap.xml", "sitemap_index.xml", "sitemap-index.xml"),
    *("sitemap.xml.gz", "sitemap_index.xml.gz", "sitemap-index.xml.gz", "sitemap.txt"),
)
"""The usual names of sitemaps; the others are requested together, where there is no first."""
_SITEMAP_LINK: Final = "sitemap"
_SETS: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST})
_NOT_FOR_DOTS: Final = 403
_CLIENT_ERRORS: Final = range(400, 500)
_FAULTY: Final = frozenset({500, 501, 505})
"""Answers of servers that fail for an address whenever it is requested."""
_MAX_HOPS: Final = 4
_MAX_PROBED: Final = 20
_MAX_BYTES: Final = 256 * 1024 * 1024

_Road = tuple[str, tuple[str, ...]]
T = TypeVar("T")
Use = Callable[["Document", FetchedDocument], T]
"""Use of the first document; it must not return ``None``. The document is closed afterwards."""
UseSeveral = Callable[[tuple[OfferedSet, ...]], T]
"""Handler for several documents of which none is the first."""


def use_first(
    documents: DocumentProvider, address: str, use: Use[T], search: "Search[T] | None" = None
) -> T:
    """Return what ``use`` makes of the first document of an address, or of a local path."""
    if "://" in address:
        return (search or Search(documents)).find(address, use)
    with fetch(documents, address) as fetched:
        return use(fetched.open(), fetched)


class _Try(NamedTuple):
    uri: str
    outcome: str
    error: errors.ResourceSyncError | None = None


class Search(Generic[T]):
    """One search, with all tries and their outcomes.

    ``found_by`` is the way to the first document, in words. ``names_set``: the user has named the
    set of a Source, which may be offered above the address.
    """

    _goal: "_SearchGoal[T]"

    def __init__(
        self, documents: DocumentProvider, allowed: Iterable[str] = (), *, names_set: bool = False
    ) -> None:
        self.found_by = ""
        self._names_set = names_set
        self._documents = documents
        self._allowed = tuple(allowed)
        self._tried: list[_Try] = []
        self._folders: list[str] = []
        self._linked: tuple[str, ...] = ()
        self._above = self._robots_above = ""

    def find(self, address: str, use: Use[T], several: UseSeveral[T] | None = None) -> T:
        """Return what ``use`` makes of the first document that answers at ``address``.

        A page: its ``Link`` field, then the links in its head; the well-known URIs of its folder
        and of the host; the sitemaps that ``robots.txt`` names; those of links ``sitemap``; the
        usual places of sitemaps in its folder. At the root of a site its page is the second. An
        address that ends like a document's is that document and nothing else. What is found above
        the folder of the address is of more than what was given: it is named, and not used. Only
        what is not there, or is a page, lets the search go on: a list that is broken, refused or
        late must not be replaced by a weaker one.
        """
        if not uris.origin_if_any(address):
            raise errors.ConfigurationError(
                f"not an http or https address: {address}",
                hint="write the whole address, such as https://HOST/: "
                "resourcesync pull https://HOST/",
            )
        self._goal = _SearchGoal(address, use, several)
        self._folders = [uris.folder_of(address)]
        found = next((found for found in self._search() if found is not None), None)
        if found is None:
            raise self._failure(address)
        return found

    def _search(self) -> Iterator[T | None]:
        address, home = self._goal.address, self._folders[0]
        if uris.is_document(address):
            is_robots = address.endswith(f"/{_ROBOTS_NAME}")
            yield (self._search_robots(address) if is_robots else self._probe(address, is_own=True))
            return
        is_root = address.rstrip("/") == home.rstrip("/") == urljoin(home, "/").rstrip("/")
        if not is_root:
            yield self._probe(address, is_own=True)
            self._check_present(is_page=not home.startswith(address.rstrip("/")))
        for folder in dict.fromkeys((home, urljoin(home, "/"))):
            self.found_by = _WELL_KNOWN + folder.rstrip("/")
            yield self._probe(urljoin(folder, WELL_KNOWN_PATH.lstrip("/")))
        if is_root:
            yield self._probe(address, is_own=True)
        self.found_by = _ROBOTS + urljoin(home, "/").rstrip("/")
        yield self._search_robots(urljoin(home, f"/{_ROBOTS_NAME}"))
        self.found_by = f"HTML link of {address}"
        yield self._follow_sitemaps(self._linked)
        for folder in self._folders:
            yield from self._search_usual(folder)
        self._check_present()
        yield from self._search_above()

    def _search_above(self) -> Iterator[T | None]:
        *between, root = uris.folders_above(self._folders[0]) or ("",)
        for folder in filter(None, (*between, "" if self._robots_above else root)):
            if not self._above:
                yield from self._search_usual(folder)
        found = self._above or self._robots_above
        if found:
            raise self._whole_site(found)

    def _search_usual(self, folder: str) -> Iterator[T | None]:
        first, *others = (urljoin(folder, name) for name in _SITEMAPS)
        self.found_by = _USUAL + folder.rstrip("/")
        yield self._probe(first)
        wanted = [] if self._above else [uri for uri in others if not self._was_tried(uri)]
        failed: dict[str, errors.ResourceSyncError] = {}
        fetcher = self._documents
        assert isinstance(fetcher, DocumentFetcher), "what has an address is fetched"
        with ExitStack() as held:
            answers = {
                fetched.uri: held.enter_context(fetched)
                for fetched in fetcher.get_all(dict.fromkeys(wanted), failed.__setitem__)
            }
            for uri in wanted:
                if uri in failed:
                    self._pass_over(uri, failed[uri])
                else:
                    yield self._use(answers[uri])

    @property
    def unanswered(self) -> str:
        """The first address that could not be looked at, with the reason; empty if none."""
        failed = (f"{uri} ({why})" for uri, why, error in self._tried if _is_faulty(error))
        return next(failed, "")

    def note(self, uri: str, error: errors.ResourceSyncError) -> None:
        """Remember a try that led to nothing, as evidence."""
        self._tried.append(_Try(uri, _outcome_of(error), error))

    def _note(self, uri: str, outcome: str) -> None:
        self._tried.append(_Try(uri, outcome))

    def _was_tried(self, uri: str) -> bool:
        return any(uri == tried.uri for tried in self._tried)

    def _probe(self, uri: str, hops: int = 0, *, is_own: bool = False) -> T | None:
        """Follow an address, ``is_own`` if given or led to by its page; ``None``: nothing."""
        fetched = None if self._was_tried(uri) else self._get(uri, is_named=hops > 0)
        if fetched is None:
            return None
        with fetched:
            if uri == self._goal.address:
                self._land(fetched.final_uri)
            return self._use(fetched, hops, is_own=is_own)

    def _use(self, fetched: FetchedDocument, hops: int = 0, *, is_own: bool = False) -> T | None:
        is_given = fetched.uri == self._goal.address
        try:
            document = _open(fetched, is_given=is_given)
        except errors.NotAListError as error:
            roads = self._page_links(fetched, error, is_own=is_given)
            return self._take_roads(roads, hops, is_own=is_own)
        if is_own or self._is_below(fetched.uri):
            return self._goal.use(document, fetched)
        if self._leads_below(document):
            return self._goal.use(fetched.open(), fetched)
        self._above = self._above or fetched.uri
        self._note(fetched.uri, f"a {document.header.phrase.lower()}, of more than that folder")
        return None

    def _take_roads(self, roads: list[_Road], hops: int, *, is_own: bool) -> T | None:
        for road, targets in roads:
            self.found_by = road
            if len(targets) > 1:
                return self._goal.use_several(tuple(OfferedSet(uri=uri) for uri in targets))
            if hops >= _MAX_HOPS:
                self._note(targets[0], "not requested: too many pages in between")
            elif (found := self._probe(targets[0], hops + 1, is_own=is_own)) is not None:
                return found
        return None

    def _land(self, uri: str) -> None:
        folder, home = uris.folder_of(uri), self._folders[0]
        if not urlsplit(home).path.startswith(urlsplit(folder).path):
            self._folders.append(folder)

    def _is_below(self, uri: str) -> bool:
        path = urlsplit(uri).path
        return any(path.startswith(urlsplit(folder).path) for folder in self._folders)

    def _leads_below(self, document: "Document") -> bool:
        return document.header.capability in _SETS and (
            self._names_set
            or any(
                self._is_below(uris.join(document.uri, entry.uri) or "")
                for entry in document.entries()
            )
        )

    def _get(self, uri: str, *, is_named: bool = False) -> FetchedDocument | None:
        try:
            return fetch(self._documents, uri)
        except errors.SourceError as error:
            self._pass_over(uri, error, is_named=is_named)
            return None

    def _pass_over(
        self, uri: str, error: errors.ResourceSyncError, *, is_named: bool = False
    ) -> None:
        is_refused = is_named and isinstance(error, errors.SourceRefusedError)
        is_absence = _is_absence(error) and not is_refused
        if not (is_absence or (_is_faulty(error) and not uri.endswith(_ROBOTS_NAME))):
            raise error
        self.note(uri, error)

    def _page_links(
        self, page: FetchedDocument, error: errors.NotAListError, *, is_own: bool
    ) -> list[_Road]:
        from resourcesync.discovery.links import (  # noqa: PLC0415 - rarely needed
            find_targets,
            head_links,
            head_of,
            is_html,
        )

        uri, homes, head = page.uri, (page.uri, page.final_uri), head_of(page.stream)
        html = head if is_html(head) else ""
        fields = find_targets(page.links, Relation.RESOURCESYNC, page.final_uri)
        links = self._allowed_of(head_links(html, page.final_uri), homes)
        roads = [(f"Link header of {uri}", fields), (f"HTML link of {uri}", links)]
        roads = [road for road in roads if road[1]]
        how = "leads on" if roads else f'no link rel="{Relation.RESOURCESYNC}"'
        self._tried.append(_Try(uri, f"{'HTML' if html else error.message}, {how}", error))
        if is_own:
            self._linked = self._allowed_of(head_links(html, page.final_uri, _SITEMAP_LINK), homes)
        return roads

    def _allowed_of(self, targets: Iterable[str], homes: Iterable[str]) -> tuple[str, ...]:
        """Return the targets that a page or ``robots.txt`` may lead to; note the others."""
        homes = (*homes, *self._allowed)
        for target in targets:
            if not uris.is_at_home(target, homes):
                self._note(target, _OTHER_ORIGIN)
        return tuple(target for target in targets if uris.is_at_home(target, homes))

    def _search_robots(self, uri: str) -> T | None:
        """Plain sitemaps are one list together, of which ``robots.txt`` is the index."""
        from resourcesync.discovery.links import named_sitemaps  # noqa: PLC0415 - rarely needed

        robots = self._get(uri)
        if robots is None:
            return None
        with robots:
            named = named_sitemaps(robots)
            lines = "a Sitemap line" if len(named) == 1 else f"{len(named) or 'no'} Sitemap lines"
            self._note(uri, f"200, {lines}")
            allowed = self._allowed_of(named, (self._goal.address, uri, robots.final_uri))
            below = [target for target in allowed if self._is_below(target)]
            self._robots_above = uri if len(below) < len(allowed) else ""
            if self._robots_above and len(below) > 1:
                return None
            return self._follow_sitemaps(below, robots)

    def _follow_sitemaps(
        self, targets: Iterable[str], index: FetchedDocument | None = None
    ) -> T | None:
        """Nothing shows which of them are ResourceSync's: those with a capability win (§6.3.4)."""
        named = [uri for uri in targets if not self._was_tried(uri)]
        if len(named) == 1:
            return self._probe(named[0], 1, is_own=True)
        marked, plain, unread = self._sort(named)
        best = marked or plain
        is_list = index is not None and not marked and plain and len(plain) + len(unread) > 1
        for uri, error in unread.items():
            if marked or is_list:  # it is no part of what is found, or the list's reader reports it
                self._note(uri, _outcome_of(error))
            else:
                self._pass_over(uri, error, is_named=True)
        if index is not None and is_list:
            return self._goal.use(index.open(), index)
        if len(best) == 1:
            return self._probe(best[0], 1, is_own=True)
        return self._goal.use_several(tuple(OfferedSet(uri=uri) for uri in best)) if best else None

    def _sort(
        self, targets: list[str]
    ) -> tuple[list[str], list[str], dict[str, errors.ResourceSyncError]]:
        """Return those with a capability, plain sitemaps that no other lists, and unread ones."""
        marked, plain, feeds = list[str](), list[str](), list[str]()
        unread = dict[str, errors.ResourceSyncError]()
        listed, size = set[str](), 0
        for number, target in enumerate(targets):
            if number >= _MAX_PROBED or size >= _MAX_BYTES:
                plain += targets[number:]
                break
            try:
                with fetch(self._documents, target) as fetched:
                    size += fetched.stream.seek(0, SEEK_END)
                    document = _open(fetched)
                    if document.form.is_feed:  # the sitemaps list what it lists, and more
                        feeds.append(target)
                    elif document.header.capability is None:
                        plain.append(target)
                        listed |= _parts_among(targets, document)
                    else:
                        marked.append(target)
            except (errors.SourceError, errors.DocumentError) as error:
                if not is_of_document(error):
                    raise
                unread[target] = error
        if feeds and (marked or plain):
            self.found_by += _NO_FEEDS
        plain = [uri for uri in plain if uri not in listed] or plain or feeds
        return marked, plain, {uri: unread[uri] for uri in unread if uri not in listed}

    def _check_present(self, *, is_page: bool = True) -> None:
        address = self._goal.address
        is_missing = any(
            item.uri == address and isinstance(item.error, errors.ResourceMissingError)
            for item in self._tried
        )
        if is_page and is_missing and urlsplit(address).path not in ("", "/"):
            raise errors.SourceNotFoundError(
                f"the server does not have {address}",
                uri=address,
                evidence=self.evidence(),
                hint="check the address, or follow the whole site: "
                f"resourcesync pull {errors.quoted(urljoin(address, '/'), 'https://HOST/')}",
            )

    def _whole_site(self, uri: str) -> errors.SourceNotFoundError:
        home = self._folders[0]
        is_of_host = uri.endswith((_ROBOTS_NAME, WELL_KNOWN_PATH))
        site = errors.quoted(urljoin(uri, "/" if is_of_host else "."), "https://HOST/")
        below = errors.quoted(f"{urlsplit(home).path}**", "GLOB")
        return errors.SourceNotFoundError(
            f"there is no list of {home} alone: {uri} is of more",
            uri=self._goal.address,
            evidence=(
                *self.evidence(),
                ("run", f"resourcesync pull {site} --include {below}"),
                ("run", f"resourcesync pull {site}"),
            ),
            hint="take from it what is in the folder, or all of it",
            code="whole-site",
        )

    def evidence(self) -> errors.Evidence:
        """Return what was tried and the outcomes; names in one folder, of one outcome, together."""
        groups = groupby(self._tried, lambda item: (item.uri.rpartition("/")[0], item.outcome))
        lines: list[tuple[str, str]] = []
        for (folder, outcome), items in groups:
            names = ", ".join(item.uri.rpartition("/")[2] for item in items)
            lines.append(("tried", f"{folder}/{names}  {outcome}"))
        return tuple(lines)

    def _failure(self, address: str) -> errors.ResourceSyncError:
        tried = self.evidence()
        for uri, _, error in self._tried:
            # A fault of the very document that the operator named explains it best; what a server
            # that fails has may be had later.
            is_refused = uri == address and isinstance(error, errors.SourceRefusedError)
            if error is not None and (is_refused or _is_faulty(error)):
                error.evidence = (*error.evidence, *tried)
                return error
            if uri == address and isinstance(error, errors.NotAListError) and uris.is_document(uri):
                return error
        elsewhere = [item.uri for item in self._tried if item.outcome == _OTHER_ORIGIN]
        hint = f"{_HINT}: resourcesync pull {_SOME_LIST}"
        if elsewhere:
            other = errors.quoted(urljoin(elsewhere[0], "/"), "URL")
            hint = f"{_HINT}, or allow the other origin: --allow-origin {other}"
        return errors.SourceNotFoundError(
            f"no ResourceSync documents and no sitemap at {address}",
            uri=address,
            evidence=tried,
            hint=hint,
        )


class _SearchGoal(msgspec.Struct, Generic[T], frozen=True):
    address: str
    use: Use[T]
    several: UseSeveral[T] | None

    def use_several(self, offered: tuple[OfferedSet, ...]) -> T:
        if self.several is None:
            choose(offered, ANY, self.address)
        assert self.several is not None, "several and none chosen is an error"
        return self.several(offered)


def _open(fetched: FetchedDocument, *, is_given: bool = False) -> "Document":
    """Begin to read a document. What was given may be a page, and any resource may lead on."""
    try:
        return fetched.open()
    except errors.DocumentError as error:
        from resourcesync.discovery.links import head_of, is_html  # noqa: PLC0415 - rarely needed

        head = head_of(fetched.stream)
        if isinstance(error, errors.NotAListError):
            raise
        leads_on = Relation.RESOURCESYNC in fetched.links
        is_page = is_given and (leads_on or not uris.is_document(fetched.uri))
        is_blank = not head.strip() and "text/html" in fetched.media_type.lower()
        may_be_xml = head.lstrip(" \t\r\n")[:1] in ("<", "\x1f", "") and not is_blank
        if is_html(head) or (is_page and not may_be_xml):
            what = "HTML" if is_html(head) else "neither XML nor HTML, nor a list of addresses"
            raise errors.NotAListError(
                f"The document is not a list: it is {what}", uri=fetched.final_uri, hint=error.hint
            ) from error
        raise


def _parts_among(targets: Iterable[str], document: "Document") -> set[str]:
    if not document.header.is_index:
        return set()
    parts = (
        uris.join(document.uri, entry.uri)
        for entry in document.entries()
        if isinstance(entry, Part)
    )
    return set(targets).intersection(parts)


def _outcome_of(error: errors.ResourceSyncError) -> str:
    status = error.status if isinstance(error, errors.SourceError) else None
    return str(status or error.message)


def _is_absence(error: errors.ResourceSyncError) -> bool:
    """True if an answer means that no list is there: 403 is how some servers hide dot files."""
    if isinstance(error, errors.SourceRefusedError):
        return error.status == _NOT_FOR_DOTS
    is_refused = isinstance(error, errors.BadResponseError) and error.status in _CLIENT_ERRORS
    is_other = isinstance(error, errors.NotAListError | errors.UnexpectedDocumentError)
    return is_refused or is_other or isinstance(error, errors.ResourceMissingError)


def _is_faulty(error: errors.ResourceSyncError | None) -> bool:
    if not isinstance(error, errors.SourceError):
        return False
    return error.status in _FAULTY or error.code == "robots"
