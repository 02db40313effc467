"""Find a Source's lists from any address of it (§6.3)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urljoin, urlsplit

from resourcesync.discovery.documents import DocumentFetcher, FetchedDocument
from resourcesync.discovery.links import find_target
from resourcesync.documents.reading import Document
from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DocumentError,
    NotAListError,
    ResourceMissingError,
    ResourceSyncError,
    SourceError,
    SourceNotFoundError,
    SourceRefusedError,
)
from resourcesync.model.capabilities import CapabilityEntry, Part
from resourcesync.model.vocabulary import WELL_KNOWN_PATH, Capability, Dialect, Relation
from resourcesync.ports import Purpose

_MAX_SETS: Final = 1_000
_MAX_HOPS: Final = 4
_DOCUMENT_ENDINGS: Final = (".xml", ".xml.gz", "/resourcesync")
_NOT_FOR_DOTS: Final = 403
_CLIENT_ERRORS: Final = range(400, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """What discovery found.

    Attributes:
        entry: The document that answered first, after redirects.
        dialect: How that document is written.
        description: The Source Description, if there is one.
        capability_list: The Capability List of the set, if there is one.
        resource_list: The Resource List, its index, or a plain sitemap; ``None`` if there is none.
        change_list: The Change List or its index; ``None`` if there is none.
        is_sitemap: Whether ``resource_list`` is a plain sitemap: it promises less.
    """

    entry: str
    dialect: Dialect
    description: str | None = None
    capability_list: str | None = None
    resource_list: str | None = None
    change_list: str | None = None
    is_sitemap: bool = False


def discover(documents: DocumentFetcher, address: str) -> Discovered:
    """Return the lists of the Source at ``address``.

    The root of a site: the well-known URI, a ``Link`` field of the page, ``/sitemap.xml``. A page:
    its ``Link`` field, then the same. An address that ends like a document's is that document and
    nothing else. Only what is not there, or is a page of HTML, lets the search go on: a list that
    is broken, refused or late must not be replaced by a weaker one.

    Args:
        documents: Gets documents.
        address: Any absolute http or https URI of the Source.

    Raises:
        SourceNotFoundError: Nothing usable was found; the evidence lists what was tried.
        SourceUnavailableError: The Source does not answer now.
        SourceRefusedError: It refuses to answer.
        ConfigurationError: The address is no http or https URI, or offers several sets.
    """
    parts = urlsplit(address)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"not an http or https address: {address}",
            hint="write the whole address: resourcesync pull https://HOST/",
        )
    search = _Search(documents)
    for candidate in _candidates(address):
        found = search.look(candidate)
        if found is not None:
            return found
    raise search.failure(address)


def _candidates(address: str) -> Iterator[str]:
    if urlsplit(address).path.lower().endswith(_DOCUMENT_ENDINGS):
        yield address
        return
    well_known = urljoin(address, WELL_KNOWN_PATH)
    tried = [well_known, address] if _is_root(address) else [address, well_known]
    if not _is_root(address) and address.endswith("/"):
        tried.insert(1, urljoin(address, WELL_KNOWN_PATH.lstrip("/")))
    tried.append(urljoin(address, "/sitemap.xml"))
    yield from dict.fromkeys(tried)


def _is_root(address: str) -> bool:
    parts = urlsplit(address)
    return parts.path in ("", "/") and not parts.query


class _Search:
    """One search: what was tried, and how each try ended."""

    def __init__(self, documents: DocumentFetcher) -> None:
        self._documents = documents
        self._tried: list[tuple[str, ResourceSyncError]] = []

    def look(self, uri: str) -> Discovered | None:
        """Follow one candidate; ``None`` when there is nothing to follow.

        Raises:
            SourceError: There is something, and it cannot be had.
            DocumentError: There is something, and it cannot be used.
        """
        try:
            fetched = self._get(uri)
        except (ResourceMissingError, SourceRefusedError, BadResponseError) as error:
            if not _is_absence(error):
                raise
            self._tried.append((uri, error))
            return None
        with fetched:
            try:
                document = fetched.open()
            except NotAListError as error:
                self._tried.append((uri, error))
                linked = find_target(fetched.links, Relation.RESOURCESYNC, fetched.final_uri)
            else:
                return self._interpret(document, fetched, hops=0)
        if linked is not None and all(linked != tried for tried, _ in self._tried):
            return self.look(linked)
        return None

    def _get(self, uri: str) -> FetchedDocument:
        fetched = self._documents.get(uri, purpose=Purpose.DOCUMENT)
        assert fetched is not None, "an unconditional request is never answered with 304"
        return fetched

    def _interpret(self, document: Document, fetched: FetchedDocument, *, hops: int) -> Discovered:
        found = Discovered(entry=fetched.final_uri, dialect=document.dialect)
        uri = fetched.uri
        match document.header.capability:
            case None:
                return replace(found, resource_list=uri, is_sitemap=True)
            case Capability.DESCRIPTION:
                return self._from_description(document, replace(found, description=uri), hops)
            case Capability.CAPABILITY_LIST:
                return _from_capability_list(document, replace(found, capability_list=uri))
            case Capability.RESOURCE_LIST:
                found = replace(found, resource_list=self._head(document, uri))
            case Capability.CHANGE_LIST:
                found = replace(found, change_list=self._head(document, uri))
            case other:
                return self._beside(document, found, other.phrase)
        return self._climb(document, found)

    def _beside(self, document: Document, found: Discovered, phrase: str) -> Discovered:
        """Climb from a dump, manifest, archive or notification to the lists of its set."""
        climbed = self._climb(document, found)
        if climbed.resource_list is None and climbed.change_list is None:
            raise NotAListError(f"this {phrase} leads to no list", uri=document.uri)
        return climbed

    def _head(self, document: Document, uri: str) -> str:
        index = document.header.link(Relation.INDEX)
        return uri if index is None else urljoin(document.uri, index)

    def _climb(self, document: Document, found: Discovered) -> Discovered:
        """From a list up to its Capability List, which knows the other lists (§6.2)."""
        up = document.header.link(Relation.UP)
        if up is None:
            return found
        try:
            with self._get(urljoin(document.uri, up)) as fetched:
                above = fetched.open()
                if above.header.capability is not Capability.CAPABILITY_LIST:
                    return found
                whole = _from_capability_list(above, replace(found, capability_list=fetched.uri))
        except (SourceError, DocumentError) as error:
            self._tried.append((up, error))
            return found
        return whole

    def _from_description(self, document: Document, found: Discovered, hops: int) -> Discovered:
        sets = [urljoin(document.uri, entry) for entry in _targets(document)]
        if not sets:
            raise NotAListError("this Source Description lists nothing", uri=document.uri)
        if document.header.is_index and hops < _MAX_HOPS:
            inner = [self._follow(uri, hops + 1) for uri in sets]
            sets = [one.capability_list for one in inner if one.capability_list is not None]
        if len(set(sets)) != 1:
            raise ConfigurationError(
                f"this Source offers {len(set(sets))} sets of resources",
                evidence=tuple(("set", uri) for uri in dict.fromkeys(sets)),
                hint="give the address of one of these Capability Lists instead",
                code="several-sets",
            )
        inner_found = self._follow(sets[0], hops + 1)
        return replace(inner_found, entry=found.entry, description=found.description)

    def _follow(self, uri: str, hops: int) -> Discovered:
        if hops > _MAX_HOPS:
            raise NotAListError("descriptions that point to descriptions, too deep", uri=uri)
        with self._get(uri) as fetched:
            return self._interpret(fetched.open(), fetched, hops=hops)

    def failure(self, address: str) -> ResourceSyncError:
        """Return the error that tells best why nothing was found."""
        for uri, error in self._tried:
            # What is wrong with the very address that the operator named says more than the list.
            refused = isinstance(error, SourceRefusedError)
            if uri == address and (refused or not _is_root(address)) and _is_telling(error):
                return error
        return SourceNotFoundError(
            f"no ResourceSync documents and no sitemap at {address}",
            uri=address,
            evidence=tuple(("tried", f"{uri}  {_brief(error)}") for uri, error in self._tried),
            hint="give the list's own address: resourcesync pull https://HOST/PATH/list.xml",
        )


def _is_telling(error: ResourceSyncError) -> bool:
    return not isinstance(error, ResourceMissingError)


def _is_absence(error: SourceError) -> bool:
    """Whether an answer means that nothing is there: 403 is how some servers hide dot files."""
    gone = isinstance(error, ResourceMissingError) or error.status == _NOT_FOR_DOTS
    return gone or (isinstance(error, BadResponseError) and error.status in _CLIENT_ERRORS)


def _brief(error: ResourceSyncError) -> str:
    if isinstance(error, SourceError) and error.status:
        return str(error.status)
    return error.message


def _targets(document: Document) -> list[str]:
    targets: list[str] = []
    for entry in document.entries():
        if isinstance(entry, CapabilityEntry | Part):
            targets.append(entry.uri)
        if len(targets) >= _MAX_SETS:
            break
    return targets


def _from_capability_list(document: Document, found: Discovered) -> Discovered:
    lists: dict[Capability, str] = {}
    for entry in document.entries():
        if isinstance(entry, CapabilityEntry) and entry.capability is not None:
            lists.setdefault(entry.capability, urljoin(document.uri, entry.uri))
    resource_list = lists.get(Capability.RESOURCE_LIST, found.resource_list)
    change_list = lists.get(Capability.CHANGE_LIST, found.change_list)
    if resource_list is None and change_list is None:
        raise NotAListError(
            "this Capability List offers neither a Resource List nor a Change List",
            uri=document.uri,
        )
    up = document.header.link(Relation.UP)
    return replace(
        found,
        description=found.description or (urljoin(document.uri, up) if up else None),
        resource_list=resource_list,
        change_list=change_list,
    )
