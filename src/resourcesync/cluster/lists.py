"""Resource List Index read by workers, part by part, into files of rows (§10)."""

from collections.abc import Iterator
from contextlib import closing
from typing import Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.cluster.units import (
    ErrorReport,
    ListDocumentUnit,
    ListRead,
    UnitOptions,
    WorkerContext,
    restore_error,
    row_of,
)
from resourcesync.destination.lists.list_version import ListVersion
from resourcesync.destination.lists.resource_reader import (
    ListSnapshot,
    check_capability,
    count_outdated,
    fits_index,
    is_same_host,
    list_version,
    parts_of,
    refuse_part,
    with_parts,
)
from resourcesync.destination.lists.selection import Refusals
from resourcesync.destination.session import SyncSession
from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.errors import DocumentError, EngineError, ResourceSyncError, SourceError
from resourcesync.model.capabilities import Header, Part
from resourcesync.model.timestamps import from_microseconds, known_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports.engines import UnitOutcome
from resourcesync.ports.mirror import ProcessedDocument

READ_PREFIX: Final = "read/"
"""Prefix of the names of lists that were read."""


class DistributedLists:
    """The Resource List of a pull, as files of rows.

    Args:
        context: Workers and tables.
        options: The options of the pull's units.

    Attributes:
        files: The files.
    """

    def __init__(self, pull: SyncSession, context: WorkerContext, options: UnitOptions) -> None:
        self._pull = pull
        self._workers = context
        self._terms = options
        self.files: list[str] = []

    def read(self, uri: str, known: ProcessedDocument | None) -> ListSnapshot | None:
        """Read a Resource List, its index, or a plain sitemap.

        Args:
            uri: Its address.
            known: Its recorded validators; then ``None`` is returned when it did not change.

        Raises:
            SourceError: A document could not be fetched.
            DocumentError: A document cannot be used.
            EngineError: The workers cannot read.
        """
        fetcher, scratch = self._pull.dependencies.fetcher, self._pull.dependencies.scratch
        # A cached copy may be older than the Source's rollback.
        documents = DocumentFetcher(fetcher, scratch, uncached=known is None)
        fetched = documents.get(
            uri,
            etag=known.etag if known else "",
            last_modified=known.last_modified if known else "",
        )
        if fetched is None:
            return None
        with fetched:
            index = fetched.open()
            if index.header.capability is Capability.RESOURCE_DUMP or not index.header.is_index:
                return self._read_locally(uri)
            check_capability(index, Capability.RESOURCE_LIST)
            parts, header, dialect = parts_of(index), index.header, index.dialect
            self._pull.selection.refusals.count_tolerated(index)
            same_host, head = is_same_host(fetched), list_version(fetched)
        unread: list[ResourceSyncError] = []
        found = list(self._read_parts(parts, unread))
        if not found and unread:
            raise unread[0]
        sent = [(result.head or ListVersion(uri=part), parts[part], None) for part, result in found]
        ats = [known_microseconds(header.at), *(result.at for _, result in found)]
        stated = [at for at in ats if at is not None]
        snapshot = ListSnapshot(
            at=min(stated) if stated else None,
            entries=sum(result.entries for _, result in found),
            proves_absence=same_host
            and not unread
            and all(
                result.complete and _fits(parts[part], result, header) for part, result in found
            ),
            dialect=dialect,
            documents=(),
            unread_parts=len(unread),
            outdated_parts=count_outdated(sent),
            version=with_parts(head, sent),
        )
        return self._pull.with_plausible_time(snapshot)

    def _read_locally(self, uri: str) -> ListSnapshot | None:
        """Read a document that is no index on this machine."""
        with closing(self._pull.new_sorter()) as sorter:
            snapshot = self._pull.read_list(uri, sorter)
            file = f"{self._workers.folder()}/listed"
            self._workers.tables.write_listed(file, map(row_of, sorter))
        self.files.append(file)
        return snapshot

    def _read_parts(
        self, parts: dict[str, Part], unread: list[ResourceSyncError]
    ) -> Iterator[tuple[str, ListRead]]:
        """Read the parts by workers; unreadable ones are refused, and go to ``unread``."""
        names = {f"{READ_PREFIX}{self._terms.run}-{n:05}": uri for n, uri in enumerate(parts)}
        units = (
            ListDocumentUnit(name=name, host=host_of(uri), uri=uri, options=self._terms)
            for name, uri in names.items()
        )
        for outcome in self._workers.read(units):
            try:
                result = self._decode_outcome(outcome)
            except (SourceError, DocumentError) as error:
                if error.transient:
                    raise
                unread.append(error)
                refuse_part(self._pull.selection, names[outcome.name], error)
                continue
            file = self._workers.exchange.receive(result.file)
            if file is None:
                raise EngineError(
                    f"the rows that a worker read from {names[outcome.name]} are missing",
                    evidence=(("kept", "nothing was changed"),),
                    hint="let all workers use the same store, then run the command again",
                )
            self._workers.exchange.remove(result.file)
            self.files.append(file)
            self._refuse(result)
            self._pull.selection.has_entries |= result.has_entries
            yield names[outcome.name], result

    def _decode_outcome(self, outcome: UnitOutcome) -> ListRead:
        if outcome.failed is None:
            result = msgspec.json.decode(outcome.details, type=ListRead)
            self._workers.traffic.add(result.requests, result.received)
            return result
        if outcome.details is not None:
            raise restore_error(msgspec.json.decode(outcome.details, type=ErrorReport))
        raise EngineError(
            f"a list could not be read: {outcome.failed[1]}",
            evidence=(("kept", "nothing was changed"),),
            hint="check the workers, then run the command again",
        )

    def _refuse(self, result: ListRead) -> None:
        refusals: Refusals = self._pull.selection.refusals
        before = refusals.count
        for row in result.kept:
            refusals.add(row.uri, row.code, row.reason)
        unnamed = result.refused - len(result.kept)
        refusals.count = max(refusals.count, before) + unnamed
        refusals.new_count += unnamed
        refusals.dropped += result.dropped
        refusals.example = refusals.example or result.example
        refusals.encoded += result.encoded
        refusals.leniencies.add(result.leniencies)
        refusals.encoded_example = refusals.encoded_example or result.encoded_example


def host_of(uri: str) -> str:
    """Return the host of a URI, with its port."""
    return urlsplit(uri).netloc.rpartition("@")[2].lower()


def _fits(announced: Part, result: ListRead, index: Header) -> bool:
    at = None if result.at is None else from_microseconds(result.at)
    return fits_index(announced, Header(capability=Capability.RESOURCE_LIST, at=at), index)
