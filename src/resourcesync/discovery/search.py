"""The search for the first document of a Source from any address of it (§6.3)."""

from collections.abc import Callable, Iterable, Iterator
from io import SEEK_END
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from resourcesync import errors
from resourcesync.discovery.document_fetcher import DocumentProvider, FetchedDocument, fetch
from resourcesync.discovery.sets import ANY, OfferedSet, choose
from resourcesync.discovery.uris import is_at_home, join, origin_if_any
from resourcesync.model.entries import Part
from resourcesync.model.vocabulary import WELL_KNOWN_PATH, Relation

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document

__all__ = ["DocumentProvider", "Search", "fetch", "use_first"]

_HINT: Final = "give the list's own address"
_SOME_LIST: Final = "https://HOST/PATH/list.xml"
_OTHER_ORIGIN: Final = "not requested: another origin, which is not allowed"
_FORMAT_HINT: Final = (
    "give the address of a sitemap (XML, text, RSS 2.0 or Atom) or of a ResourceSync document;"
    " where the site has neither, its operator can publish one"
)
_NO_FEEDS: Final = "; its feeds list recent pages only, and are not read"
_NO_SITEMAPS: Final = ("/robots.txt", "/llms.txt")
_FORMAT: Final = "format"
_DOCUMENT_ENDINGS: Final = (".xml", ".xml.gz", ".txt", ".txt.gz", "/resourcesync")
_WELL_KNOWN: Final = "well-known URI of "
_ROBOTS: Final = "robots.txt of "
_USUAL: Final = "usual place of a sitemap at "
_SITEMAPS: Final = ("/sitemap.xml", "/sitemap_index.xml", "/sitemap.xml.gz")
_NOT_FOR_DOTS: Final = 403
_CLIENT_ERRORS: Final = range(400, 500)
_MAX_HOPS: Final = 4
_MAX_PROBED: Final = 20
_MAX_BYTES: Final = 256 * 1024 * 1024

T = TypeVar("T")
Use = Callable[["Document", FetchedDocument], T]
"""Use of the first document; it must not return ``None``. The document is closed afterwards."""
UseSeveral = Callable[[tuple[OfferedSet, ...]], T]
"""Handler for several documents of which none is the first."""


def use_first(
    documents: DocumentProvider, address: str, use: Use[T], search: "Search | None" = None
) -> T:
    """Return what ``use`` makes of the first document of an address, or of a local path."""
    if "://" in address:
        return (search or Search(documents)).find(address, use)
    with fetch(documents, address) as fetched:
        return use(fetched.open(), fetched)


class _Try(NamedTuple):
    """One failed try, with its reason."""

    uri: str
    outcome: str
    error: errors.ResourceSyncError | None = None


class Search:
    """One search, with all tries and their outcomes.

    ``found_by`` is the way to the first document, in words. ``is_of_site``: it is not at the
    address nor below it, but the site's own.
    """

    def __init__(self, documents: DocumentProvider, allowed: Iterable[str] = ()) -> None:
        self.found_by, self.is_of_site = "", False
        self._documents = documents
        self._allowed = tuple(allowed)
        self._tried: list[_Try] = []

    def find(self, address: str, use: Use[T], several: UseSeveral[T] | None = None) -> T:
        """Return what ``use`` makes of the first document that answers at ``address``.

        The root of a site: the well-known URI; the ``Link`` field, then the links in the head, of
        the page; the sitemaps that ``robots.txt`` names; ``/sitemap.xml`` and its two like. A page:
        the page itself, then the same. An address that ends like a document's is that document and
        nothing else. Only what is not there, or is a page, lets the search go on: a list that is
        broken, refused or late must not be replaced by a weaker one.
        """
        if not origin_if_any(address):
            raise errors.ConfigurationError(
                f"not an http or https address: {address}",
                hint="write the whole address, such as https://HOST/: "
                "resourcesync pull https://HOST/",
            )
        errand = _SearchGoal(address, use, several)
        for road, candidate in _candidates(address):
            if any(candidate == tried.uri for tried in self._tried):
                continue
            self.found_by, self.is_of_site = road, not candidate.startswith(address)
            if self.is_of_site and self._is_missing(address):
                raise self._missing(address)
            if road.startswith(_ROBOTS):
                found = self._search_robots(candidate, errand)
            else:
                found = self._probe(candidate, errand)
            if found is not None:
                return found
        raise self._failure(address)

    def note(self, uri: str, error: errors.ResourceSyncError) -> None:
        """Remember a try that led to nothing, as evidence."""
        self._tried.append(_Try(uri, _brief(error), error))

    def _note(self, uri: str, outcome: str) -> None:
        self._tried.append(_Try(uri, outcome))

    def _probe(self, uri: str, errand: "_SearchGoal[T]", hops: int = 0) -> T | None:
        """Follow one address; ``None`` when there is nothing to follow."""
        fetched = self._get(uri)
        if fetched is None:
            return None
        with fetched:
            leads_on = Relation.RESOURCESYNC in fetched.links  # as a resource of any type may
            is_page = uri == errand.address and (leads_on or not _is_document(uri))
            try:
                document = _open(fetched, is_page=is_page)
            except errors.NotAListError as error:
                roads = self._page_links(uri, fetched, error)
            else:
                return errand.use(document, fetched)
        for road, targets in roads:
            found = self._follow(road, targets, errand, hops + 1)
            if found is not None:
                return found
        return None

    def _get(self, uri: str) -> FetchedDocument | None:
        """Fetch what may be there; ``None``, and noted, when nothing is."""
        try:
            return fetch(self._documents, uri)
        except (
            errors.ResourceMissingError,
            errors.SourceRefusedError,
            errors.BadResponseError,
        ) as error:
            if not _is_absence(error):
                raise
            self.note(uri, error)
            return None

    def _page_links(
        self, uri: str, page: FetchedDocument, error: errors.NotAListError
    ) -> list[tuple[str, tuple[str, ...]]]:
        """Return where a page leads: by its ``Link`` field, then by the links in its head."""
        from resourcesync.discovery.links import (  # noqa: PLC0415 - rarely needed
            find_targets,
            head_of,
            is_html,
            linked_sets,
        )

        fields = find_targets(page.links, Relation.RESOURCESYNC, page.final_uri)
        head = head_of(page.stream)
        links = linked_sets(head, page.final_uri) if is_html(head) else ()
        roads = [(f"Link header of {uri}", fields), (f"HTML link of {uri}", links)]
        roads = [road for road in roads if road[1]]
        what = "HTML" if is_html(head) else error.message
        how = "leads on" if roads else f'no link rel="{Relation.RESOURCESYNC}"'
        self._tried.append(_Try(uri, f"{what}, {how}", error))
        homes = (uri, page.final_uri)
        return [
            (road, targets if targets is fields else self._allowed_of(targets, homes))
            for road, targets in roads
        ]

    def _allowed_of(self, targets: Iterable[str], homes: Iterable[str]) -> tuple[str, ...]:
        """Return the targets that a page or ``robots.txt`` may lead to; note the others.

        The fields of an answer are its server's own; a page or a ``robots.txt`` may be somebody
        else's on the same host.
        """
        homes = (*homes, *self._allowed)
        for target in targets:
            if not is_at_home(target, homes):
                self._note(target, _OTHER_ORIGIN)
        return tuple(target for target in targets if is_at_home(target, homes))

    def _follow(
        self, road: str, targets: tuple[str, ...], errand: "_SearchGoal[T]", hops: int
    ) -> T | None:
        """Go where a page leads; ``None`` when nothing is there."""
        self.found_by = road
        if len(targets) > 1:
            return errand.use_several(tuple(OfferedSet(uri=uri) for uri in targets))
        for target in targets:
            if hops > _MAX_HOPS:
                self._note(target, "not requested: too many pages in between")
            elif not any(target == tried.uri for tried in self._tried):
                return self._probe(target, errand, hops)
        return None

    def _search_robots(self, uri: str, errand: "_SearchGoal[T]") -> T | None:
        """Follow the ``Sitemap`` lines of ``robots.txt``; ``None`` when they lead nowhere.

        Nothing shows which of them are ResourceSync's: those with a capability win (§6.3.4).
        """
        from resourcesync.discovery.links import named_sitemaps  # noqa: PLC0415 - rarely needed

        fetched = self._get(uri)
        if fetched is None:
            return None
        with fetched:
            named = named_sitemaps(fetched.stream, fetched.final_uri)
        self._note(uri, _robots_outcome(named))
        homes = (errand.address, uri, fetched.final_uri)
        targets = [
            target
            for target in self._allowed_of(named, homes)
            if not any(target == tried.uri for tried in self._tried)
        ]
        if len(targets) == 1:
            return self._probe(targets[0], errand, 1)
        offered = self._sort(targets)
        if len(offered) == 1:
            return self._probe(offered[0].uri, errand, 1)
        return errand.use_several(offered) if offered else None

    def _sort(self, targets: list[str]) -> tuple[OfferedSet, ...]:
        """Return those with a capability; if none has one, the sitemaps that no other one lists.

        Those beyond the budget are not read: the operator has to choose then, so none is lost.
        """
        marked, plain, feeds = list[str](), list[str](), list[str]()
        listed, size = set[str](), 0
        for number, target in enumerate(targets):
            if number >= _MAX_PROBED or size >= _MAX_BYTES:
                plain += targets[number:]
                break
            fetched = self._get(target)
            if fetched is None:
                continue
            with fetched:
                size += fetched.stream.seek(0, SEEK_END)
                try:
                    document = _open(fetched)
                except (errors.NotAListError, errors.UnexpectedDocumentError) as error:
                    self.note(target, error)
                    continue
                if document.form.is_feed:  # the sitemaps list what it lists, and more
                    feeds.append(target)
                elif document.header.capability is None:
                    plain.append(target)
                    listed |= _parts_among(targets, document)
                else:
                    marked.append(target)
        if feeds and (marked or plain):
            self.found_by += _NO_FEEDS
        whole = [uri for uri in plain if uri not in listed] or plain or feeds
        return tuple(OfferedSet(uri=uri, is_sitemap=not marked) for uri in marked or whole)

    def _is_missing(self, address: str) -> bool:
        return any(
            item.uri == address and isinstance(item.error, errors.ResourceMissingError)
            for item in self._tried
        )

    def _missing(self, address: str) -> errors.SourceNotFoundError:
        return errors.SourceNotFoundError(
            f"the server does not have {address}",
            uri=address,
            evidence=self._evidence(),
            hint="check the address, or follow the whole site: "
            f"resourcesync pull {errors.quoted(urljoin(address, '/'), 'https://HOST/')}",
        )

    def _evidence(self) -> errors.Evidence:
        return tuple(("tried", f"{item.uri}  {item.outcome}") for item in self._tried)

    def _failure(self, address: str) -> errors.ResourceSyncError:
        """Return the error that best explains why nothing was found."""
        tried = self._evidence()
        for item in self._tried:
            # A fault of the very document that the operator named explains it best.
            if item.uri == address and isinstance(item.error, errors.SourceRefusedError):
                item.error.evidence = (*item.error.evidence, *tried)
                return item.error
            if (
                item.uri == address
                and isinstance(item.error, errors.NotAListError)
                and (_is_document(address) or _FORMAT in dict(item.error.evidence))
            ):
                return item.error
        is_other = any(item.error and _FORMAT in dict(item.error.evidence) for item in self._tried)
        elsewhere = [item.uri for item in self._tried if item.outcome == _OTHER_ORIGIN]
        hint = f"{_HINT}: resourcesync pull {_SOME_LIST}"
        if is_other:
            hint = _FORMAT_HINT
        elif elsewhere:
            other = errors.quoted(urljoin(elsewhere[0], "/"), "URL")
            hint = f"{_HINT}, or allow the other origin: --allow-origin {other}"
        return errors.SourceNotFoundError(
            f"no ResourceSync documents and no sitemap at {address}",
            uri=address,
            evidence=tried,
            hint=hint,
        )


class _SearchGoal(msgspec.Struct, Generic[T], frozen=True):
    """The goal of a search, and the use of its result."""

    address: str
    use: Use[T]
    several: UseSeveral[T] | None

    def use_several(self, offered: tuple[OfferedSet, ...]) -> T:
        """Use several documents; raise if no handler was given."""
        if self.several is None:
            choose(offered, ANY, self.address)
        assert self.several is not None, "several and none chosen is an error"
        return self.several(offered)


def _open(fetched: FetchedDocument, *, is_page: bool = False) -> "Document":
    """Begin to read a document."""
    try:
        return fetched.open()
    except errors.DocumentError as error:
        from resourcesync.discovery.links import head_of, is_html, is_markup, unsupported_format  # noqa: PLC0415 - rarely needed

        head = head_of(fetched.stream)
        if named := unsupported_format(head):
            raise errors.NotAListError(
                f"The document is {named}, which is not supported yet",
                uri=fetched.final_uri,
                evidence=((_FORMAT, named),),
                hint=_FORMAT_HINT,
            ) from error
        if isinstance(error, errors.NotAListError):
            raise
        if is_html(head) or (is_page and not is_markup(head)):
            what = "HTML" if is_html(head) else "neither XML nor HTML, nor a list of addresses"
            raise errors.NotAListError(
                f"The document is not a list: it is {what}", uri=fetched.final_uri, hint=error.hint
            ) from error
        raise


def _parts_among(targets: Iterable[str], document: "Document") -> set[str]:
    """Return which of the targets an index lists."""
    if not document.header.is_index:
        return set()
    wanted = set(targets)
    parts = (
        join(document.uri, entry.uri) for entry in document.entries() if isinstance(entry, Part)
    )
    return {part for part in parts if part in wanted}


def _robots_outcome(named: tuple[str, ...]) -> str:
    if not named:
        return "200, no Sitemap line"
    return "200, a Sitemap line" if len(named) == 1 else f"200, {len(named)} Sitemap lines"


def _candidates(address: str) -> Iterator[tuple[str, str]]:
    """Yield the addresses to try, each with its description."""
    if _is_document(address):
        yield "", address
        return
    home, parts = urljoin(address, "/").rstrip("/"), urlsplit(address)
    is_root = parts.path in ("", "/") and not parts.query
    if not is_root:
        yield "", address
        if address.endswith("/"):
            yield _WELL_KNOWN + address, urljoin(address, WELL_KNOWN_PATH.lstrip("/"))
    yield _WELL_KNOWN + home, urljoin(address, WELL_KNOWN_PATH)
    if is_root:
        yield "", address
    yield _ROBOTS + home, urljoin(address, "/robots.txt")
    for path in _SITEMAPS:
        yield _USUAL + home, urljoin(address, path)


def _is_document(address: str) -> bool:
    path = urlsplit(address).path.lower()
    return path.endswith(_DOCUMENT_ENDINGS) and path not in _NO_SITEMAPS


def _is_absence(error: errors.SourceError) -> bool:
    """True if an answer means that nothing is there: 403 is how some servers hide dot files."""
    gone = isinstance(error, errors.ResourceMissingError) or error.status == _NOT_FOR_DOTS
    return gone or (isinstance(error, errors.BadResponseError) and error.status in _CLIENT_ERRORS)


def _brief(error: errors.ResourceSyncError) -> str:
    if isinstance(error, errors.SourceError) and error.status:
        return str(error.status)
    return error.message
