"""The ``Account`` port on a site: its sitemaps are read completely before anything is published."""

import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

from resourcesync.backends.sitemap.measurements import (
    METHODS,
    Listing,
    MeasurementStore,
    Measurer,
    SitemapEntry,
)
from resourcesync.discovery.addresses import origin_of
from resourcesync.discovery.discover import offered_sets
from resourcesync.discovery.document_fetcher import DocumentFetcher, FetchedDocument, fetch
from resourcesync.discovery.link_header import decode_links
from resourcesync.discovery.pages import MAX_SITEMAPS, named_sitemaps
from resourcesync.discovery.uris import own_entries
from resourcesync.documents.reader import Document
from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DocumentLimitError,
    Remedy,
    ResourceMissingError,
    UnexpectedDocumentError,
)
from resourcesync.model.capabilities import Part, RefusedEntry
from resourcesync.model.digests import format_digests, parse_digests
from resourcesync.model.leniencies import Leniency, LeniencyTally, leniency_fields
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import from_microseconds, lastmod_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import Fetcher
from resourcesync.ports.accounts import AccountOptions, ChangeBatch

SCHEME: Final = "sitemap:"
_LISTS: Final = frozenset({None, Capability.RESOURCE_LIST})
_BEGINNING: Final = 1_024
_ENDINGS: Final = (".xml", ".gz", ".txt", ".rss", ".atom")
_NO_SITEMAPS: Final = ("/robots.txt", "/llms.txt")
_MAX_DOCUMENTS: Final = 50_000
_AT_ONCE: Final = 1_000
_FEW: Final = 10
_PART: Final = 10

_log = logging.getLogger(__name__)


@contextmanager
def open_account(options: AccountOptions) -> Iterator["SitemapAccount"]:
    """Open the account of ``sitemap:URL``: a sitemap, its index, or the address of a site.

    The option ``measure=head`` requests the length and type of each resource, ``measure=get`` also
    computes a digest.

    Raises:
        ConfigurationError: The address or a value is invalid.
    """
    address = options.address.removeprefix(SCHEME)
    if origin_of(address) is None:
        raise ConfigurationError(
            f"{address[:200]!r} is not the address of a sitemap",
            hint="sitemap:https://HOST/sitemap.xml",
        )
    unknown = sorted(options.values.keys() - {"measure"})
    how = options.values.get("measure", "")
    if unknown or how not in ("", *METHODS):
        told = unknown[0] if unknown else f"measure={how}"
        raise ConfigurationError(
            f"{told}: unknown option of a sitemap", hint="measure=head or measure=get"
        )
    yield SitemapAccount(options, address, how)


class SitemapAccount:
    """An account of the sitemaps of a site (``Account``). It has no change log.

    Args:
        address: The address of a sitemap, or of a site.
        how: The method of measuring resources; empty for none.
    """

    can_list_resources = True
    lists_all = True

    def __init__(self, options: AccountOptions, address: str, how: str) -> None:
        self._options = options
        self._address = address
        self._how = how
        self._tally = LeniencyTally()

    def position(self) -> str:
        """Return nothing: sitemaps have no change log."""
        return ""

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield nothing."""
        del after, wait
        return iter(())

    def resources(self) -> Iterator[Resource]:
        """Yield the entries of all sitemaps of the site, each URI once; none before all are read.

        Raises:
            SourceError: A sitemap cannot be fetched, or no resource can be measured.
            DocumentError: A sitemap is invalid: truncated, or an HTML page.
            StorageError: No space is left for temporary files.
        """
        with self._options.fetcher(self._address) as fetcher, Listing() as listing:
            reader = _SitemapReader(fetcher, listing, self._address)
            reader.read()
            self.lists_all, self._tally = reader.lists_all, reader.tally
            for row in self._measured(listing, fetcher):
                yield Resource(
                    uri=row.uri,
                    lastmod=None if row.lastmod is None else from_microseconds(row.lastmod),
                    length=row.length,
                    digests=parse_digests(row.hash),
                    media_type=row.media_type,
                    changefreq=row.changefreq,
                    links=decode_links(row.links),
                )

    def leniencies(self) -> Sequence[Mapping[str, object]]:
        """Return what the last reading tolerated: the fields of an event ``leniency`` for each."""
        return [leniency_fields(row) for row in self._tally.rows]

    def _measured(self, listing: Listing, fetcher: Fetcher) -> Iterator[SitemapEntry]:
        if not self._how:
            for page in listing.pages():
                yield from page
            return
        with MeasurementStore(Path(self._options.memory)) as memory:
            began = to_microseconds(self._options.clock.now())
            measurer = Measurer(fetcher, memory, self._how, self._address, began)
            for page in listing.pages():
                yield from measurer.page(page)
            measurer.finish()
        if measurer.gone:
            _log.warning("%d listed resources do not exist", measurer.gone)


class _SitemapReader:
    """A reader of sitemaps and their indexes, each once.

    Attributes:
        lists_all: True if no sitemap so far may lack what exists, as a feed does.
        tally: What was tolerated.
    """

    def __init__(self, fetcher: Fetcher, listing: Listing, address: str) -> None:
        self._address = address
        self._documents = DocumentFetcher(fetcher, tempfile.TemporaryFile)
        self._listing = listing
        self._read: set[str] = set()
        self.lists_all = True
        self.tally = LeniencyTally()

    def read(self) -> None:
        """Read all sitemaps of the address; feeds only if there is nothing else.

        What a feed lists beside a sitemap leaves it again, and would count as deleted.
        """
        roots = self._roots(self._address)
        feeds = [uri for uri in roots if not self._read_root(uri, accepts_feeds=len(roots) == 1)]
        if len(feeds) < len(roots):
            for uri in feeds:
                self.tally.note(Leniency.FEED_UNREAD, uri)
            return
        for uri in feeds:
            self._read.discard(uri)
            self._read_root(uri, accepts_feeds=True)

    def _read_root(self, uri: str, *, accepts_feeds: bool) -> bool:
        """Read a sitemap with its parts; False if it is a feed, and these are not accepted."""
        if uri in self._read:  # named by robots.txt, and listed by an index, too
            return True
        self._mark_read([uri])
        with fetch(self._documents, uri) as fetched:
            if not accepts_feeds and fetched.open().form.is_feed:
                return False
            parts = self._read_document(fetched, may_be_index=True)
        self._read_parts(parts)
        return True

    def _roots(self, address: str) -> list[str]:
        """Return the sitemaps to read: the address itself, or all those of the site.

        It is an error if one that ``robots.txt`` names is missing.
        """
        path = urlsplit(address).path.lower()
        if path.endswith(_ENDINGS) and path not in _NO_SITEMAPS:
            return [address]
        named = self._named(urljoin(address, "/robots.txt"))
        if named:
            return list(dict.fromkeys(named))
        offered = offered_sets(self._documents, address)
        if not all(offered_set.is_sitemap for offered_set in offered):
            raise ConfigurationError(
                f"{address} is a ResourceSync Source already",
                evidence=(("found", offered[0].uri),),
                hint="make a mirror of it",
                remedy=Remedy("pull-from", value=address),
            )
        return [offered_set.uri for offered_set in offered]

    def _named(self, robots: str) -> tuple[str, ...]:
        try:
            fetched = self._documents.get(robots)
        except ResourceMissingError:
            return ()
        assert fetched is not None, "an unconditional request is never answered with 304"
        with fetched:
            named = named_sitemaps(fetched.stream, fetched.final_uri)
            fetched.stream.seek(0)
            is_page = fetched.stream.read(_BEGINNING).lstrip().startswith(b"<")
        if is_page and not named:
            raise BadResponseError(
                "robots.txt is a page, and no robots.txt: the sitemaps of the site are not known",
                uri=robots,
                evidence=(("kept", "what was published before"),),
                hint="name the sitemap itself: sitemap:https://HOST/sitemap.xml",
            )
        if len(named) >= MAX_SITEMAPS:
            raise _too_many(robots, MAX_SITEMAPS)
        return named

    def _read_parts(self, parts: list[str]) -> None:
        new = [uri for uri in dict.fromkeys(parts) if uri not in self._read]
        self._mark_read(new)
        for fetched in self._documents.get_all(new):
            with fetched:
                self._read_document(fetched, may_be_index=False)

    def _mark_read(self, uris: Sequence[str]) -> None:
        self._read.update(uris)
        if len(self._read) > _MAX_DOCUMENTS:
            raise _too_many(self._address, _MAX_DOCUMENTS)

    def _read_document(self, fetched: FetchedDocument, *, may_be_index: bool) -> list[str]:
        """Add the entries of a document; return the parts of an index."""
        refused: list[RefusedEntry] = []
        document = fetched.open(refused.append)
        header = document.header
        if header.capability not in _LISTS or (header.is_index and not may_be_index):
            raise UnexpectedDocumentError(
                f"expected a sitemap, got a {header.phrase}",
                uri=document.uri,
                hint="give the address of the sitemap itself: sitemap:https://HOST/sitemap.xml",
            )
        entries = iter(document.entries())
        if header.is_index:
            parts = [entry.uri for entry in entries if isinstance(entry, Part)]
            if refused:  # a whole sitemap would be missing
                raise _broken(document, len(parts))
            itself = own_entries(document.uri, parts)
            if itself and len(itself) < len(parts):
                document.tolerate(Leniency.INDEX_LISTS_ITSELF)
            self.tally.add(document.leniencies())
            return [uri for uri in parts if uri not in itself]
        taken = 0
        while batch := list(islice(entries, _AT_ONCE)):
            taken += len(batch)
            self._listing.add(_listed(entry) for entry in batch if isinstance(entry, Resource))
            self._add_refused(document, refused)
        self._add_refused(document, refused)
        self.tally.add(document.leniencies())
        self.lists_all = self.lists_all and document.lists_all
        if document.refused > max(_FEW, taken // _PART):
            raise _broken(document, taken)
        return []

    def _add_refused(self, document: Document, refused: list[RefusedEntry]) -> None:
        """Add the URIs of invalid entries: their resources are not gone."""
        place = document.uri
        self._listing.add(
            _listed(
                Resource(
                    uri=entry.uri or f"an entry without a location ({place}, line {entry.line})"
                )
            )
            for entry in refused
        )
        refused.clear()


def _broken(document: Document, taken: int) -> BadResponseError:
    return BadResponseError(
        f"{document.refused:,} of {document.refused + taken:,} entries of a sitemap are unusable",
        uri=document.uri,
        status=200,
        evidence=(("kept", "what was recorded before"),),
        hint="their resources would count as deleted; run it again when the sitemap is fixed",
    )


def _too_many(uri: str, limit: int) -> DocumentLimitError:
    return DocumentLimitError(
        "too many sitemaps",
        uri=uri,
        evidence=(("limit", f"{limit}"),),
        hint="publish them one by one: sitemap:https://HOST/sitemap.xml",
    )


def _listed(entry: Resource) -> SitemapEntry:
    return SitemapEntry(
        uri=entry.uri,
        lastmod=lastmod_microseconds(entry.lastmod),
        length=entry.length,
        hash=format_digests(entry.digests),
        media_type=entry.media_type,
        changefreq=entry.changefreq,
    )
