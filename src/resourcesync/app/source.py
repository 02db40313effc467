"""The lists of a Source and their content, read without a mirror."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime

import msgspec

from resourcesync import errors
from resourcesync.adapters.system import SystemClock
from resourcesync.app.document_access import network_documents
from resourcesync.app.fetchers import checked_network, open_fetcher
from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.discovery.links import own_sitemaps
from resourcesync.discovery.resolver import absolute
from resourcesync.discovery.resolver import discover as discover_lists
from resourcesync.discovery.resolver import offered_sets as find_sets
from resourcesync.discovery.sets import OfferedSet, SetChoice, SourceLists
from resourcesync.documents.reader import Document
from resourcesync.model.entries import Change, Part, Resource
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import convert_argument


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A Source and the addresses of its lists; a list is read when it is requested.

    Attributes:
        address: The address that was given.
        lists: The lists that were found there.
        network: Settings for requests to it.
    """

    address: str
    lists: SourceLists
    network: Network = msgspec.field(default_factory=Network)

    def resources(self) -> Iterator[Resource]:
        """Yield the entries of the Resource List, as they come over the network.

        All parts of a list with an index are read, one after the other; any size is fine. `changes`
        yields what changed since the list was written. Entries that cannot be used are left out;
        `read` reports them.

        Raises:
            SourceNotFoundError: The Source offers no Resource List.
            SourceError: A document cannot be fetched.
            DocumentError: A document cannot be used.
        """
        for document in self._documents(self.lists.resource_list, "Resource List", None):
            for entry in document.entries():
                if not isinstance(entry, Resource):
                    raise errors.UnexpectedDocumentError(
                        f"a {document.header.phrase} lists no resources", uri=document.uri
                    )
                yield entry

    def changes(self, since: datetime | None = None) -> Iterator[Change]:
        """Yield the entries of the Change Lists, oldest first, in the Source's order.

        Args:
            since: Only later changes, and those without a time; an aware moment.

        Raises:
            SourceNotFoundError: The Source offers no Change List.
            SourceError: A document cannot be fetched.
            DocumentError: A document cannot be used.
            ConfigurationError: ``since`` has no time zone.
        """
        if since is not None and since.tzinfo is None:
            raise errors.ConfigurationError(
                "since has no time zone", hint="since=datetime(…, tzinfo=UTC)"
            )
        for document in self._documents(self.lists.change_list, "Change List", since):
            for entry in document.entries():
                if not isinstance(entry, Change):
                    raise errors.UnexpectedDocumentError(
                        f"a {document.header.phrase} lists no changes", uri=document.uri
                    )
                if since is None or entry.time is None or entry.time > since:
                    yield entry

    def _documents(
        self, uri: str | None, phrase: str, since: datetime | None
    ) -> Iterator[Document]:
        if uri is None:
            raise errors.SourceNotFoundError(f"the Source offers no {phrase}", uri=self.lists.entry)
        with _open_network(self.address, self.network) as documents:
            waiting, may_lack = [uri], set[str]()
            while waiting:
                address = waiting.pop()
                with ExitStack() as held:
                    try:
                        document = held.enter_context(_open_document(documents, address))
                    except errors.ResourceMissingError:
                        if address in may_lack:
                            continue
                        raise
                    is_archive = document.header.capability is Capability.CHANGE_LIST_ARCHIVE
                    if not (document.header.is_index or is_archive):
                        yield document
                    elif document.is_robots:
                        named = own_sitemaps(document, self.network.allow_origins)
                        may_lack.update(named)
                        waiting += reversed(named)
                    else:
                        waiting += reversed([*_parts(document, since)])


def _parts(index: Document, since: datetime | None) -> Iterator[str]:
    for entry in index.entries():
        if isinstance(entry, Part):
            is_before = since is not None and entry.until is not None and entry.until <= since
            if not is_before:
                yield absolute(index, entry.uri)


@contextmanager
def _open_network(address: str, network: Network) -> Iterator[DocumentFetcher]:
    cancel = CancelToken(SystemClock())
    with open_fetcher(address, network, cancel) as fetcher:
        yield network_documents(fetcher)


@contextmanager
def _open_document(documents: DocumentFetcher, uri: str) -> Iterator[Document]:
    fetched = documents.get(uri)
    assert fetched is not None, "an unconditional request is never answered with 304"
    with fetched:
        yield fetched.open()


def discover(address: str, *, set_name: str | int = "", network: Network | None = None) -> Source:
    """Find the lists of a Source from any address of it.

    Args:
        address: Address of a site, a Source Description, a Capability List, any list, or a sitemap.
        set_name: One of several sets: its URI, name or number.
        network: Settings for requests to the Source.

    Raises:
        SourceNotFoundError: Nothing usable was found; the evidence lists what was tried.
        SourceUnavailableError: The Source does not answer now.
        SourceRefusedError: It refuses to answer.
        ConfigurationError: The address is not an http or https URI, or offers several sets of
            resources of which none is chosen; then the evidence lists them.

    Example:
        >>> source = discover("https://museum.example")
        >>> [resource.uri for resource in source.resources()]
        ['https://museum.example/objects/1.txt', 'https://museum.example/objects/2.txt']
    """
    requested = str(convert_argument("set_name", set_name, int | str))
    chosen, choice = checked_network(network), SetChoice(requested=requested)
    with _open_network(address, chosen) as documents:
        lists = discover_lists(documents, address, choice=choice, allowed=chosen.allow_origins)
        return Source(address=address, lists=lists, network=chosen)


def offered_sets(address: str, *, network: Network | None = None) -> tuple[OfferedSet, ...]:
    """Return the sets of resources that a Source offers, in its order; at least one.

    Args:
        address: As for `discover`.
        network: Settings for requests to the Source.

    Raises:
        SourceError: Nothing usable was found, or a document cannot be fetched.
        DocumentError: A document cannot be used.
        ConfigurationError: The address is not an http or https URI.
    """
    chosen = checked_network(network)
    with _open_network(address, chosen) as documents:
        return find_sets(documents, address, allowed=chosen.allow_origins)
