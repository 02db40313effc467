"""Read a Resource List Index part by part, each by a worker, into files of rows (§10)."""

from collections.abc import Iterator
from contextlib import closing
from typing import Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.destination.resource_reader import (
    ListSnapshot,
    ListVersion,
    check_capability,
    count_outdated,
    fits_index,
    is_same_host,
    list_version,
    parts_of,
    refuse_part,
    with_parts,
)
from resourcesync.destination.selection import Refusals
from resourcesync.destination.session import SyncSession
from resourcesync.discovery import DocumentFetcher
from resourcesync.distributed.rows import row_of
from resourcesync.distributed.units import (
    ErrorReport,
    ListDocumentUnit,
    ListRead,
    UnitOptions,
    restore_error,
)
from resourcesync.distributed.worker_context import WorkerContext
from resourcesync.errors import DocumentError, EngineError, ResourceSyncError, SourceError
from resourcesync.model.capabilities import Header, Part
from resourcesync.model.timestamps import from_microseconds, known_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports.engines import UnitOutcome
from resourcesync.ports.mirror import ProcessedDocument

READ_PREFIX: Final = "read/"
"""What the names of lists begin with that were read."""


class DistributedLists:
    """The Resource List of a pull, as files of rows.

    Args:
        pull: What the pull works with.
        crew: Workers and tables.
        terms: Of the pull.

    Attributes:
        files: The files.
    """

    def __init__(self, pull: SyncSession, crew: WorkerContext, terms: UnitOptions) -> None:
        self._pull = pull
        self._workers = crew
        self._terms = terms
        self.files: list[str] = []

    def read(self, uri: str, known: ProcessedDocument | None) -> ListSnapshot | None:
        """Read a Resource List, its index, or a plain sitemap.

        Args:
            uri: Its address.
            known: What is known of it; then ``None`` is returned when it did not change.

        Raises:
            SourceError: A document could not be had.
            DocumentError: A document cannot be used.
            EngineError: The workers cannot read.
        """
        equipment = self._pull.dependencies
        # A cached copy may be from before the Source was restored from an older state.
        documents = DocumentFetcher(equipment.fetcher, equipment.scratch, uncached=known is None)
        etag, last_modified = (known.etag, known.last_modified) if known else ("", "")
        fetched = documents.get(uri, etag=etag, last_modified=last_modified)
        if fetched is None:
            return None
        with fetched:
            index = fetched.open()
            if index.header.capability is Capability.RESOURCE_DUMP or not index.header.is_index:
                return self._read_locally(uri)
            check_capability(index, Capability.RESOURCE_LIST)
            parts, header, dialect = parts_of(index), index.header, index.dialect
            at_home, head = is_same_host(fetched), list_version(fetched)
        unread: list[ResourceSyncError] = []
        found = list(self._read_parts(parts, unread))
        if not found and unread:
            raise unread[0]
        sent = [(read.head or ListVersion(uri=part), parts[part], None) for part, read in found]
        ats = [known_microseconds(header.at), *(list_read.at for _, list_read in found)]
        stated = [at for at in ats if at is not None]
        snapshot = ListSnapshot(
            at=min(stated) if stated else None,
            entries=sum(list_read.entries for _, list_read in found),
            proves_absence=at_home
            and not unread
            and all(
                list_read.complete and _fits(parts[part], list_read, header)
                for part, list_read in found
            ),
            dialect=dialect,
            documents=(),
            unread_parts=len(unread),
            outdated_parts=count_outdated(sent),
            version=with_parts(head, sent),
        )
        return self._pull.with_plausible_time(snapshot)

    def _read_locally(self, uri: str) -> ListSnapshot | None:
        """Read what is no index on this machine."""
        with closing(self._pull.new_sorter()) as spool:
            snapshot = self._pull.read_list(uri, spool)
            file = f"{self._workers.folder()}/listed"
            self._workers.tables.write_listed(file, map(row_of, spool))
        self.files.append(file)
        return snapshot

    def _read_parts(
        self, parts: dict[str, Part], unread: list[ResourceSyncError]
    ) -> Iterator[tuple[str, ListRead]]:
        """Have the parts read; those that cannot be read are refused, and go to ``unread``."""
        names = {f"{READ_PREFIX}{self._terms.run}-{n:05}": uri for n, uri in enumerate(parts)}
        units = (
            ListDocumentUnit(name=name, host=host_of(uri), uri=uri, options=self._terms)
            for name, uri in names.items()
        )
        for outcome in self._workers.read(units):
            try:
                told = self._decode_outcome(outcome)
            except (SourceError, DocumentError) as error:
                if error.transient:
                    raise
                unread.append(error)
                refuse_part(self._pull.selection, names[outcome.name], error)
                continue
            file = self._workers.exchange.receive(told.file)
            if file is None:
                raise EngineError(
                    f"a worker read {names[outcome.name]}, and its rows are not there",
                    evidence=(("kept", "nothing was changed"),),
                    hint="see that all workers reach the same store, then run the same command",
                )
            self._workers.exchange.remove(told.file)
            self.files.append(file)
            self._refuse(told)
            self._pull.selection.has_entries |= told.has_entries
            yield names[outcome.name], told

    def _decode_outcome(self, outcome: UnitOutcome) -> ListRead:
        if outcome.failed is None:
            told = msgspec.json.decode(outcome.details, type=ListRead)
            self._workers.traffic.add(told.requests, told.received)
            return told
        if outcome.details is not None:
            raise restore_error(msgspec.json.decode(outcome.details, type=ErrorReport))
        raise EngineError(
            f"a list could not be read: {outcome.failed[1]}",
            evidence=(("kept", "nothing was changed"),),
            hint="see that the workers live, then run the same command",
        )

    def _refuse(self, told: ListRead) -> None:
        refusals: Refusals = self._pull.selection.refusals
        before = refusals.count
        for row in told.kept:
            refusals.add(row.uri, row.code, row.reason)
        unnamed = told.refused - len(told.kept)
        refusals.count = max(refusals.count, before) + unnamed
        refusals.new_count += unnamed
        refusals.dropped += told.dropped
        refusals.example = refusals.example or told.example
        refusals.encoded += told.encoded
        refusals.encoded_example = refusals.encoded_example or told.encoded_example


def host_of(uri: str) -> str:
    """Return the host that is asked for a URI, with its port."""
    return urlsplit(uri).netloc.rpartition("@")[2].lower()


def _fits(announced: Part, told: ListRead, index: Header) -> bool:
    return fits_index(announced, _header(told), index)


def _header(told: ListRead) -> Header:
    at = None if told.at is None else from_microseconds(told.at)
    return Header(capability=Capability.RESOURCE_LIST, at=at)
