"""The ``Account`` port on an OAI-PMH repository: its records are harvested, stored and published.

``FileMeasurements`` requests files by HEAD: length, media type, and whether access is public.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

from resourcesync.errors import DiscontinuityError, SourceError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.timestamps import format_w3c
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Fetcher, FetchFailure, FetchRequest, FetchResponse, Purpose
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, ResourceAccount
from resourcesync_oai.harvest import Harvest
from resourcesync_oai.metadata_files import MetadataFiles
from resourcesync_oai.options import OaiOptions, parse_options
from resourcesync_oai.provider import Endpoint, open_provider
from resourcesync_oai.published_resources import REFUSED, PublishedResources
from resourcesync_oai.records import RecordStore
from resourcesync_oai.repository_state import RepositoryState, Row
from resourcesync_oai.signposts import encode_links, find_signposts

_BATCH: Final = 200
_OK: Final = 200
_DIGITS: Final = 18
_LONGEST: Final = 200
_WANTED: Final = """
SELECT uri FROM touched_file
WHERE uri > ? AND EXISTS (SELECT 1 FROM mention WHERE mention.uri = touched_file.uri)
ORDER BY uri LIMIT 500
"""


class FileMeasurements:
    """Measurements of files by requests."""

    def __init__(self, memory: RepositoryState, fetcher: Fetcher, now: datetime) -> None:
        self._memory, self._fetcher, self._now = memory, fetcher, now

    def retry_unavailable(self) -> None:
        """Schedule unavailable files for another request: an embargo may have ended."""
        with self._memory.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO touched_file SELECT uri FROM file WHERE status <> 200"
                " AND EXISTS (SELECT 1 FROM mention WHERE mention.uri = file.uri)"
            )

    def measure(self) -> None:
        """Request each file that is to be published again.

        A server that does not answer is no error: the file's data stay unknown.
        """
        rows: list[Row] = []
        for outcome in self._fetcher.fetch(self._requests()):
            rows.append(self._measured_row(outcome))
            if len(rows) >= _BATCH:
                self._store_rows(rows)
                rows = []
        self._store_rows(rows)

    def _requests(self) -> Iterator[FetchRequest]:
        last = ""
        while rows := self._memory.rows(_WANTED, last):
            last = rows[-1][0]
            for (uri,) in rows:
                yield FetchRequest(
                    uri=uri, sink=_HeadSink(), purpose=Purpose.RESOURCE, is_head=True
                )

    def _measured_row(self, outcome: FetchResponse | FetchFailure) -> Row:
        uri = outcome.request.uri
        if isinstance(outcome, FetchFailure):
            status = outcome.error.status if isinstance(outcome.error, SourceError) else 0
            return uri, status if status in REFUSED else 0, None, "", "", ""
        told = outcome.headers
        length = told.get("content-length", "")
        is_plain = told.get("content-encoding", "identity").lower() == "identity"
        is_length = is_plain and length.isascii() and length.isdigit() and len(length) < _DIGITS
        media_type = told.get("content-type", "").strip()
        is_type = "/" in media_type and media_type.isprintable() and len(media_type) <= _LONGEST
        return (
            uri,
            _OK,
            int(length) if is_length else None,
            media_type if is_type else "",
            self._time(told.get("last-modified", "")),
            encode_links(find_signposts(told.get("link", ""), outcome.uri or uri)),
        )

    def _time(self, text: str) -> str:
        try:
            found = parsedate_to_datetime(text)
            return format_w3c(min(found, self._now)) if found.tzinfo is not None else ""
        except (ValueError, TypeError, OverflowError):
            return ""

    def _store_rows(self, rows: list[Row]) -> None:
        with self._memory.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?)", rows)


class _HeadSink:
    """A sink for the response to HEAD, which has no body."""

    def write(self, chunk: bytes) -> None:
        """Discard the bytes."""

    def restart(self) -> None:
        """Do nothing: no bytes are stored."""


_FOLDER: Final = "oai"


class OaiAccount(ResourceAccount):
    """An account of a repository: metadata in some formats, and files.

    Metadata is written as files below the published folder, so the bytes served are those that
    were hashed. All state is stored, so a stopped run is resumed.
    """

    can_list_resources = True

    def __init__(
        self, options: AccountOptions, choice: OaiOptions, memory: RepositoryState, fetcher: Fetcher
    ) -> None:
        self._options, self._choice, self._memory = options, choice, memory
        self._fetcher = fetcher
        self._endpoint = Endpoint(choice.endpoint, fetcher, options.clock)
        self._places = MetadataFiles(memory, Path(options.out))
        self._recorded = 0
        self._is_harvested = False

    def position(self) -> str:
        """List everything; return the position of the change log after that."""
        self._harvest(is_full=True)
        self._is_harvested = True
        return self._format_position(self._memory.last)

    def resources(self) -> Iterator[Resource]:
        """Yield all resources; a list that `position` just read is not read again."""
        is_full, self._is_harvested = not self._is_harvested, False
        telling = self._harvest(is_full=is_full)
        last = self._memory.last
        yield from telling.resources()
        self._recorded = last

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:  # noqa: ARG002 - nobody calls us
        """Request the changes once, and yield them."""
        self._is_harvested = False
        telling = self._harvest(is_full=False, after=after)
        self._recorded = int(after.partition(":")[2])
        for batch in telling.changes(self._recorded):
            changes = [_change(uri, resource) for _, uri, resource in batch]
            yield ChangeBatch(self._format_position(batch[-1][0]), changes)
            self._recorded = batch[-1][0]

    def published(self) -> None:
        """Remove the files of withdrawn metadata: no published document refers to them now."""
        self._places.remove(self._options.base_uri, self._recorded)

    def pop_counts(self) -> Mapping[str, int]:
        """Return the numbers of records and requests of the harvest."""
        found, self._endpoint.read = self._endpoint.read, {"record": 0, "request": 0}
        return found

    def _harvest(self, *, is_full: bool, after: str = "") -> PublishedResources:
        """Synchronise the state and the files with the repository."""
        provider = open_provider(self._endpoint, self._choice, has_sets=not is_full)
        told = [provider.namespace, sorted(provider.published.items())]
        self._memory.reset(f"{self._choice.digest(self._options.base_uri)} {told}")
        if after:
            self._check_position(after)
        if is_full:
            self._places.mark_missing()
        now = self._options.clock.now()
        records = RecordStore(
            self._memory,
            self._choice,
            published=provider.published,
            namespace=provider.namespace,
            now=now,
        )
        harvest = Harvest(provider, self._choice, self._memory, records, self._options.clock)
        harvest.run(is_full=is_full, allow_empty=self._options.allow_empty)
        telling = PublishedResources(
            self._memory,
            self._choice,
            base_uri=self._options.base_uri,
            published=provider.published,
        )
        telling.touch_files()
        if self._choice.measure:
            measures = FileMeasurements(self._memory, self._fetcher, now)
            if is_full:
                measures.retry_unavailable()
            measures.measure()
        telling.update()
        self._places.write()
        return telling

    def _format_position(self, number: int) -> str:
        return f"{self._memory.epoch}:{number}"

    def _check_position(self, position: str) -> None:
        epoch, _, number = position.partition(":")
        known = number.isdecimal() and int(number) <= self._memory.last
        if epoch != self._memory.epoch or not known:
            raise DiscontinuityError(
                "the repository's state does not match the position",
                evidence=(("asked", f"after {position[:100]}"),),
                hint="everything is published again",
            )


def _change(uri: str, resource: Resource | None) -> Change:
    if resource is None:
        return Change(kind=ChangeKind.DELETED, resource=Resource(uri=uri))
    return Change(kind=ChangeKind.UPDATED, resource=resource)


@contextmanager
def open_account(options: AccountOptions) -> Iterator[OaiAccount]:
    """Open a repository, ``oai:`` and the base URL of its provider."""
    choice = parse_options(options.address, options.values)
    with (
        RepositoryState(Path(options.memory) / _FOLDER) as memory,
        options.fetcher(choice.endpoint) as fetcher,
    ):
        yield OaiAccount(options, choice, memory, fetcher)
