"""The entries of sitemaps, and stored measurements of their resources.

Each URI is listed once, in order, in memory that does not grow with their number. A site is asked
for what its sitemap lacks: lengths, types and digests. An entry with an unchanged date is not
requested again; one without a date is requested with a condition.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, NamedTuple, Self

from resourcesync.discovery.addresses import is_at_home
from resourcesync.discovery.link_header import encode_links, find_signposts
from resourcesync.errors import ResourceMissingError, SourceError, StorageError
from resourcesync.model.timestamps import end_of_lastmod, to_microseconds
from resourcesync.ports import (
    Fetcher,
    FetchFailure,
    FetchRequest,
    FetchResponse,
    Purpose,
    served_at,
    validators_of,
)
from resourcesync.sqlite_file import (
    TEMPORARY_ERRORS,
    Durability,
    SqliteFile,
    SqliteFormat,
    connect_temporary,
)

_PAGE: Final = 1_000
_CREATE_LISTED: Final = """
CREATE TABLE listed (
    uri TEXT PRIMARY KEY, lastmod INTEGER, length INTEGER, hash TEXT NOT NULL,
    media_type TEXT NOT NULL, changefreq TEXT NOT NULL
) WITHOUT ROWID
"""
# For a URI in several sitemaps, the latest lastmod counts.
_ADD: Final = """
INSERT INTO listed VALUES (?,?,?,?,?,?) ON CONFLICT (uri) DO UPDATE SET
    lastmod = max(coalesce(lastmod, excluded.lastmod), coalesce(excluded.lastmod, lastmod))
"""


class SitemapEntry(NamedTuple):
    """A listed resource.

    Attributes:
        uri: Its URI.
        lastmod: Microseconds since 1970, or ``None``.
        length: Bytes, if known.
        hash: A ``hash`` attribute; empty for none.
        media_type: Its type; empty if unknown.
        changefreq: As written.
        links: Links that the site sent with the resource, as from ``encode_links``.
    """

    uri: str
    lastmod: int | None
    length: int | None
    hash: str
    media_type: str
    changefreq: str
    links: str = ""


_LISTED_FIELDS: Final = SitemapEntry._fields.index("links")
"""Number of fields that a sitemap gives."""


class Listing:
    """A temporary file that sorts entries and removes repeated URIs."""

    def __init__(self) -> None:
        self._db = connect_temporary(_CREATE_LISTED)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._db.close()

    def add(self, entries: Iterable[SitemapEntry]) -> None:
        """Add entries.

        Raises:
            StorageError: No space is left.
        """
        with TEMPORARY_ERRORS:
            self._db.execute("BEGIN")
            self._db.executemany(_ADD, (entry[:_LISTED_FIELDS] for entry in entries))
            self._db.execute("COMMIT")

    def pages(self) -> Iterator[list[SitemapEntry]]:
        """Yield all entries in URI order, in batches.

        Raises:
            StorageError: They cannot be read.
        """
        after = ""
        while True:
            with TEMPORARY_ERRORS:
                rows = self._db.execute(
                    "SELECT * FROM listed WHERE uri > ? ORDER BY uri LIMIT ?", (after, _PAGE)
                ).fetchall()
            if not rows:
                return
            yield [SitemapEntry(*row) for row in rows]
            after = rows[-1][0]


_FORMAT: Final = SqliteFormat(
    noun="a file of measurements",
    application_id=0,
    migrations=(
        """
        CREATE TABLE measured (
            uri TEXT PRIMARY KEY, lastmod INTEGER, etag TEXT NOT NULL, last_modified TEXT NOT NULL,
            length INTEGER, hash TEXT NOT NULL, media_type TEXT NOT NULL, how TEXT NOT NULL
        ) WITHOUT ROWID;
        """,
        "ALTER TABLE measured ADD COLUMN links TEXT NOT NULL DEFAULT '';",
    ),
    durability=Durability.SIMPLE,
    retained="what is published",
    repair="move {path} away: everything is measured again",
)


class MeasuredResource(NamedTuple):
    """The measurement of one resource.

    Attributes:
        uri: Its URI.
        lastmod: The ``lastmod`` in the sitemap then, microseconds, if it was past when the server
            answered; else ``None``.
        etag: For conditional requests.
        last_modified: For conditional requests.
        length: Bytes, or ``None`` if unknown.
        hash: A ``hash`` attribute; empty if the bytes were not read.
        media_type: Its type; empty if unknown.
        how: ``head`` or ``get``.
        links: Links that the site sent with it, as from ``encode_links``.
    """

    uri: str
    lastmod: int | None
    etag: str
    last_modified: str
    length: int | None
    hash: str
    media_type: str
    how: str
    links: str = ""


class MeasurementStore:
    """A file of measurements.

    Args:
        folder: Its folder; created if missing.

    Raises:
        StateError: The file is damaged, or was written by a newer version.
        StorageError: It cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._file = SqliteFile(folder / "measured.db", _FORMAT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._file.close()

    def find(self, uris: Sequence[str]) -> dict[str, MeasuredResource]:
        """Return the measurements of some resources."""
        found = {}
        with self._file.errors:
            for uri in uris:
                row = self._file.connection.execute(
                    "SELECT * FROM measured WHERE uri = ?", (uri,)
                ).fetchone()
                if row is not None:
                    found[uri] = MeasuredResource._make(row)
        return found

    def store(self, rows: Sequence[MeasuredResource], between: tuple[str, str | None]) -> None:
        """Store the measurements of all resources in a range of URIs; delete all others there.

        Args:
            rows: The measurements.
            between: The URI before the range, and the last one of it; ``None``: to the end.
        """
        after, last = between
        with self._file.writing() as connection:
            if last is None:
                connection.execute("DELETE FROM measured WHERE uri > ?", (after,))
            else:
                connection.execute("DELETE FROM measured WHERE uri > ? AND uri <= ?", between)
            connection.executemany("INSERT INTO measured VALUES (?,?,?,?,?,?,?,?,?)", rows)


METHODS: Final = ("head", "get")
_NOT_MODIFIED: Final = 304
_MOST_FAILED: Final = 20


class _DigestSink:
    """A sink that stores only the length and the digest of a body."""

    def __init__(self) -> None:
        self.restart()

    def write(self, chunk: bytes) -> None:
        self.length += len(chunk)
        self._sha256.update(chunk)

    def restart(self) -> None:
        self.length = 0
        self._sha256 = hashlib.sha256()

    @property
    def hash(self) -> str:
        return f"sha-256:{self._sha256.hexdigest()}"


class Measurer:
    """A measurer of listed resources, page by page.

    Args:
        fetcher: The HTTP fetcher.
        memory: The former measurements.
        how: One of `HOW`.
        home: An address of the site; resources elsewhere are not measured.
        began: Start of this reading of the site, microseconds: no response is older.

    Attributes:
        gone: Number of listed resources that do not exist; they are left out.
    """

    def __init__(
        self, fetcher: Fetcher, memory: MeasurementStore, how: str, home: str, began: int
    ) -> None:
        self._fetcher = fetcher
        self._memory = memory
        self._how = how
        self._home = home
        self._began = began
        self._answered = False
        self._failed = 0
        self._last = ""
        self._unsettled: set[str] = set()
        self.gone = 0

    def page(self, rows: list[SitemapEntry]) -> Iterator[SitemapEntry]:
        """Yield the existing resources of a page, with their measurements.

        Raises:
            SourceError: All requests to the site fail.
            StorageError: The measurements cannot be stored.
        """
        known = self._memory.find([row.uri for row in rows])
        asked = [row for row in rows if self._needs_request(row, known.get(row.uri))]
        found: dict[str, MeasuredResource | None] = {**known, **self._request_all(asked, known)}
        kept = [
            self._storable(resource) for row in rows if (resource := found.get(row.uri)) is not None
        ]
        self._memory.store(kept, (self._last, rows[-1].uri))
        self._last = rows[-1].uri
        self._unsettled.clear()
        for row in rows:
            measured = found.get(row.uri)
            if measured is not None:
                yield _with(row, measured)
            elif row.uri in found:
                self.gone += 1
            else:
                yield row

    def _storable(self, measured: MeasuredResource) -> MeasuredResource:
        """Return the measurement to store, without a time that a later change may share."""
        return measured._replace(last_modified="") if measured.uri in self._unsettled else measured

    def finish(self) -> None:
        """Delete the measurements after the last page."""
        self._memory.store([], (self._last, None))

    def _needs_request(self, row: SitemapEntry, known: MeasuredResource | None) -> bool:
        if row.hash or not is_at_home(row.uri, (self._home,)):
            return False
        is_as_before = (
            known is not None and row.lastmod is not None and row.lastmod == known.lastmod
        )
        return not (is_as_before and known is not None and self._is_sufficient(known))

    def _is_sufficient(self, known: MeasuredResource) -> bool:
        return self._how == "head" or known.how == "get"

    def _request_all(
        self, rows: list[SitemapEntry], known: Mapping[str, MeasuredResource]
    ) -> dict[str, MeasuredResource | None]:
        """Return the current measurement of each; ``None`` for those that do not exist."""
        listed = {row.uri: row for row in rows}
        found: dict[str, MeasuredResource | None] = {}
        for outcome in self._fetcher.fetch(self._request(row, known) for row in rows):
            row = listed[outcome.request.uri]
            before = known.get(row.uri)
            if isinstance(outcome, FetchResponse):
                self._answered = True
                found[row.uri] = self._measured(row, outcome, before)
            elif isinstance(outcome.error, ResourceMissingError):
                self._answered = True
                found[row.uri] = None
            else:
                self._fail(outcome)
                if before is not None and before.lastmod != row.lastmod:
                    found[row.uri] = MeasuredResource(
                        row.uri, None, "", "", None, "", "", self._how
                    )
        return found

    def _request(self, row: SitemapEntry, known: Mapping[str, MeasuredResource]) -> FetchRequest:
        before = known.get(row.uri)
        is_known = before is not None and self._is_sufficient(before)
        return FetchRequest(
            uri=row.uri,
            sink=_DigestSink(),
            purpose=Purpose.RESOURCE,
            etag=before.etag if before is not None and is_known else "",
            last_modified=before.last_modified if before is not None and is_known else "",
            is_head=self._how == "head",
        )

    def _measured(
        self, row: SitemapEntry, answer: FetchResponse, before: MeasuredResource | None
    ) -> MeasuredResource:
        lastmod = self._proving(row, answer)
        if answer.status == _NOT_MODIFIED and before is not None:
            return before._replace(lastmod=lastmod)
        fields, sink = answer.headers, answer.request.sink
        assert isinstance(sink, _DigestSink)
        is_read = self._how == "get"
        etag, last_modified = validators_of(fields)
        if not last_modified:
            self._unsettled.add(row.uri)
        return MeasuredResource(
            uri=row.uri,
            lastmod=lastmod,
            etag=etag,
            last_modified=fields.get("last-modified", ""),
            length=sink.length if is_read else _length(fields),
            hash=sink.hash if is_read else "",
            media_type=fields.get("content-type", "").partition(";")[0].strip().lower(),
            how=self._how,
            links=encode_links(find_signposts(fields.get("link", ""), answer.uri or row.uri)),
        )

    def _proving(self, row: SitemapEntry, answer: FetchResponse) -> int | None:
        """Return the date to store; ``None`` if it was not past when the site answered."""
        served = served_at(answer.headers)
        as_of = self._began if served is None else to_microseconds(served)
        is_over = row.lastmod is not None and as_of >= end_of_lastmod(row.lastmod)
        return row.lastmod if is_over else None

    def _fail(self, outcome: FetchFailure) -> None:
        """Count a failure; a site at which all requests fail is down."""
        self._failed += 1
        if isinstance(outcome.error, StorageError):
            raise outcome.error
        if self._failed > _MOST_FAILED and not self._answered:
            assert isinstance(outcome.error, SourceError)
            raise outcome.error


def _length(fields: Mapping[str, str]) -> int | None:
    text = fields.get("content-length", "")
    is_plain = fields.get("content-encoding", "identity").lower() == "identity"
    return int(text) if is_plain and text.isdecimal() and len(text) < 19 else None  # noqa: PLR2004 - of 64 bits


def _with(row: SitemapEntry, measured: MeasuredResource) -> SitemapEntry:
    lastmod = row.lastmod
    if lastmod is None and measured.last_modified:
        try:
            lastmod = to_microseconds(parsedate_to_datetime(measured.last_modified))
        except (ValueError, TypeError, OverflowError):  # no date, or out of range
            lastmod = None
    return row._replace(
        lastmod=lastmod,
        length=row.length if row.length is not None else measured.length,
        hash=row.hash or measured.hash,
        media_type=row.media_type or measured.media_type,
        links=measured.links,
    )
