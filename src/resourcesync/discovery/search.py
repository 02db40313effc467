"""Find the first document of a Source from any address of it (§6.3)."""

from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeVar
from urllib.parse import urljoin, urlsplit

from resourcesync.discovery.documents import FetchedDocument
from resourcesync.discovery.links import find_target
from resourcesync.documents.reading import Document
from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    NotAListError,
    ResourceMissingError,
    ResourceSyncError,
    SourceError,
    SourceNotFoundError,
    SourceRefusedError,
)
from resourcesync.model.vocabulary import WELL_KNOWN_PATH, Relation
from resourcesync.ports import Purpose

_DOCUMENT_ENDINGS: Final = (".xml", ".xml.gz", "/resourcesync")
_NOT_FOR_DOTS: Final = 403
_CLIENT_ERRORS: Final = range(400, 500)

T = TypeVar("T")
Use = Callable[[Document, FetchedDocument], T]
"""What is done with the first document, never to return ``None``; it is closed afterwards."""


class Documents(Protocol):
    """Gets documents: over the network, or from a folder."""

    def get(self, uri: str, *, purpose: Purpose = Purpose.DOCUMENT) -> FetchedDocument | None:
        """Return one document, to be closed after use.

        Raises:
            SourceError: It could not be had.
            StorageError: It could not be kept or read.
        """
        ...


def fetch(documents: Documents, uri: str) -> FetchedDocument:
    """Return one document; an unconditional request is never answered with 304.

    Raises:
        SourceError: It could not be had.
        StorageError: It could not be kept or read.
    """
    fetched = documents.get(uri, purpose=Purpose.DOCUMENT)
    assert fetched is not None, "an unconditional request is never answered with 304"
    return fetched


def use_first(documents: Documents, address: str, use: Use[T], search: "Search | None" = None) -> T:
    """Return what ``use`` makes of the first document of an address, or of a local path.

    Args:
        documents: Gets documents.
        address: An http or https URI, or, where ``documents`` knows files, a path.
        use: Takes the document.
        search: Remembers what was tried; ``None`` takes a new one.

    Raises:
        SourceError: There is none, or it cannot be had.
        DocumentError: It cannot be used.
        StorageError: It could not be kept or read.
        ConfigurationError: The address is no http or https URI.
    """
    if "://" in address:
        return (search or Search(documents)).find(address, use)
    with fetch(documents, address) as fetched:
        return use(fetched.open(), fetched)


class Search:
    """One search: what was tried, and how each try ended.

    Args:
        documents: Gets documents.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._tried: list[tuple[str, ResourceSyncError]] = []

    def find(self, address: str, use: Use[T]) -> T:
        """Return what ``use`` makes of the first document that answers at ``address``.

        The root of a site: the well-known URI, a ``Link`` field of the page, ``/sitemap.xml``. A
        page: its ``Link`` field, then the same. An address that ends like a document's is that
        document and nothing else. Only what is not there, or is a page of HTML, lets the search go
        on: a list that is broken, refused or late must not be replaced by a weaker one.

        Raises:
            SourceNotFoundError: Nothing usable was found; the evidence lists what was tried.
            SourceError: There is something, and it cannot be had.
            DocumentError: There is something, and it cannot be used.
            ConfigurationError: The address is no http or https URI.
        """
        parts = urlsplit(address)
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                f"not an http or https address: {address}",
                hint="write the whole address: resourcesync pull https://HOST/",
            )
        for candidate in _candidates(address):
            found = self._look(candidate, use)
            if found is not None:
                return found
        raise self._failure(address)

    def note(self, uri: str, error: ResourceSyncError) -> None:
        """Remember a try that led to nothing, as evidence."""
        self._tried.append((uri, error))

    def _look(self, uri: str, use: Use[T]) -> T | None:
        """Follow one candidate; ``None`` when there is nothing to follow."""
        try:
            fetched = fetch(self._documents, uri)
        except (ResourceMissingError, SourceRefusedError, BadResponseError) as error:
            if not _is_absence(error):
                raise
            self.note(uri, error)
            return None
        with fetched:
            try:
                document = fetched.open()
            except NotAListError as error:
                self.note(uri, error)
                linked = find_target(fetched.links, Relation.RESOURCESYNC, fetched.final_uri)
            else:
                return use(document, fetched)
        if linked is not None and all(linked != tried for tried, _ in self._tried):
            return self._look(linked, use)
        return None

    def _failure(self, address: str) -> ResourceSyncError:
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
