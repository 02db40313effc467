"""Reader of a Source's Resource List, or of a plain sitemap, into a sorter (§10).

All documents are read and checked before the mirror acts on them, so one bad document changes
nothing. The entries wait on disk: memory does not grow with the size of the Source.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from resourcesync import errors
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.lists import absence_proof
from resourcesync.destination.lists.list_documents import (
    ListDocuments,
    check_capability,
    check_list,
    fits_index,
    is_same_host,
    parts_of,
)
from resourcesync.destination.lists.selection import ResourceSelection
from resourcesync.destination.pending_tasks import PART_UNREAD
from resourcesync.destination.planner import WRITING_TIME, ListedEntry
from resourcesync.discovery.document_fetcher import (
    DocumentFetcher,
    FetchedDocument,
    fetch,
    is_of_document,
)
from resourcesync.mirror_state.rows import ProcessedDocument
from resourcesync.model.digests import Digest, agree, usable
from resourcesync.model.entries import Entry, Package, Part, RefusedEntry, Resource, ResourceRun
from resourcesync.model.leniencies import Leniency
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import Capability, Dialect
from resourcesync.ports.validators_and_dates import modified_at

if TYPE_CHECKING:
    from resourcesync.destination.lists.dump_packages import DumpPackages
    from resourcesync.documents.reader import Document


class ListSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Resource List as read.

    ``proves_absence``: every part fits its index and came from the requested host. ``served`` is
    the time of the oldest answer by the server's clock, less its age in a cache. ``documents`` is
    empty for an index, whose parts may change without it. The content of outdated parts is unknown.
    """

    moments: absence_proof.ListMoments
    entries: int
    proves_absence: bool
    dialect: Dialect
    is_one_moment: bool = True
    served: int | None = None
    documents: tuple[ProcessedDocument, ...]
    outdated_parts: int = 0
    version: "absence_proof.ListVersion | None" = None

    @property
    def at(self) -> int | None:
        """Moment up to which every change is included, microseconds; ``None``: none is stated."""
        return self.moments.at


def _digest_of(fetched: FetchedDocument) -> str:
    fetched.stream.seek(0)
    return hashlib.file_digest(fetched.stream, "sha256").hexdigest()  # type: ignore[arg-type]  # a file


def list_version(fetched: FetchedDocument) -> absence_proof.ListVersion:
    """Return the version of a Resource List; of an index, its parts are unknown."""
    document = fetched.open()
    is_index = document.header.is_index
    ats = [known_microseconds(document.header.at)]
    if is_index:
        ats += [known_microseconds(part.at) for part in parts_of(document).values()]
    return absence_proof.ListVersion(
        uri=fetched.uri,
        digest=_digest_of(fetched),
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        at=max((at for at in ats if at is not None), default=None),
        parts=None if is_index else (),
    )


def with_parts(
    head: absence_proof.ListVersion, parts: Iterable[absence_proof.ReadPart]
) -> absence_proof.ListVersion:
    """Return the version of an index with the parts that must be requested again.

    An index proves as much about a part as a list about a resource: the part is unchanged as long
    as the index is, if it has the listed hash, or if the interval in which the index dates it was
    over when the part was sent. If the part itself states another moment, the index proves nothing.
    """
    kept = tuple(
        structs.replace(part.version, over=part.over)
        for part in parts
        if part.over is None
        or not (part.has_listed_hash or (part.served is not None and part.served >= part.over))
    )
    return structs.replace(head, parts=kept)


class ResourceListReader:
    """Reader of Resource Lists."""

    def __init__(
        self,
        documents: DocumentFetcher,
        selection: ResourceSelection,
        packages: "Callable[[], DumpPackages] | None" = None,
        in_lists: Callable[[DocumentFetcher], ListDocuments] = ListDocuments,
        last_read: Callable[[], absence_proof.ListVersion | None] = lambda: None,
    ) -> None:
        self._documents = documents
        self._in_lists = in_lists
        self._last_read = last_read
        self._selection = selection
        self._packages = packages

    def read(
        self, uri: str, spool: ExternalSorter[ListedEntry], known: ProcessedDocument | None = None
    ) -> ListSnapshot | None:
        """Read a Resource List, its index, or a plain sitemap, into the sorter (§10).

        A part of an index that cannot be read is refused, and the others are read; if none can be,
        or the Source does not answer now, it raises all the same.
        """
        if known:
            documents = self._in_lists(self._documents)
            fetched = self._documents.get(uri, known)
        else:
            documents = self._in_lists(self._documents.uncached())
            fetched = documents.first(uri)
        if fetched is None:
            return None
        with fetched:
            document = fetched.open(self._refuser(spool))
            read = self._read_robots if document.is_robots else self._read_list
            snapshot = read(document, fetched, spool, documents)
        if document.header.is_index:
            documents.retain()
        return snapshot

    def is_stable(self, snapshot: ListSnapshot) -> bool:
        """True if all documents of a plain sitemap were as read, together, at one moment.

        None was touched for a while before the reading began, and all are still the same: so it is
        no list that is being written, either.
        """
        head, began = snapshot.version, snapshot.served
        if head is None or began is None or snapshot.dialect is not Dialect.SITEMAP:
            return False
        heads = (head, *(head.parts or ()))
        known = {each.uri: each for top in heads for each in (top, *(top.parts or ()))}
        for each in known.values():
            modified = known_microseconds(modified_at({"last-modified": each.last_modified}))
            if each.at is not None or modified is None or modified > began - WRITING_TIME:
                return False
        failed: list[str] = []
        again = {uri: each.without_old_dates(None, 0) for uri, each in known.items()}
        documents = self._documents.uncached()
        with closing(documents.get_all(again, lambda uri, _: failed.append(uri))) as others:
            for fetched in others:
                with fetched:
                    if _digest_of(fetched) != known[fetched.uri].digest:
                        return False
        return not failed

    def _read_robots(
        self,
        document: "Document",
        robots: FetchedDocument,
        spool: ExternalSorter[ListedEntry],
        documents: ListDocuments,
    ) -> ListSnapshot:
        """Read the sitemaps that a ``robots.txt`` names: together they are the list.

        One that is not there and was not read before is left out, where the file is as before: it
        may be to come, with what left the others. Any other that cannot be read is an unread part.
        """
        from resourcesync.discovery.links import own_sitemaps  # noqa: PLC0415 - rarely needed

        missing, unread = list[errors.ResourceSyncError](), list[errors.ResourceSyncError]()
        opened: list[tuple[Document, FetchedDocument]] = []

        def refuse_missing(uri: str, error: errors.ResourceSyncError) -> None:
            if isinstance(error, errors.ResourceMissingError) and not self._was_read(uri):
                missing.append(error)
                self._selection.refusals.leniencies.note(Leniency.ROBOTS_LINE, uri)
            else:
                self._refuse_part(uri, error, unread, robots.uri)

        head = list_version(robots)
        named = own_sitemaps(document, self._selection.addresses.origins)
        documents.record(robots, head.digest, is_proven=False)
        with ExitStack() as held:
            for fetched in documents.parts(named, None, robots.served, refuse_missing):
                held.enter_context(fetched)
                try:
                    opened.append((fetched.open(self._refuser(spool)), fetched))
                except errors.DocumentError as error:
                    refuse_missing(fetched.uri, error)
            sitemaps = [each for each in opened if not each[0].form.is_feed]
            lists: list[ListSnapshot] = []
            for each in sitemaps or opened:
                lists.append(snapshot := self._read_list(*each, spool, documents))
                if snapshot.version is not None and not each[0].header.is_index:
                    documents.record(each[1], snapshot.version.digest, is_proven=False)
        if not lists:
            raise next(iter((*unread, *missing)))
        last = self._last_read() or absence_proof.ListVersion()
        return structs.replace(
            _joined(lists, is_whole=not missing or last.digest == head.digest),
            served=_earliest(robots.served, *(each.served for each in lists)),
            version=structs.replace(head, parts=tuple(filter(None, (of.version for of in lists)))),
        )

    def _was_read(self, uri: str) -> bool:
        known_uri, last = self._selection.addresses.mirror_uri, self._last_read()
        before = () if last is None else (last, *(last.parts or ()))
        return known_uri(uri) in {known_uri(each.uri) for each in before}

    def _read_list(
        self,
        document: "Document",
        fetched: FetchedDocument,
        spool: ExternalSorter[ListedEntry],
        documents: ListDocuments,
    ) -> ListSnapshot:
        self._selection.addresses.add_source_addresses(fetched.uri, fetched.final_uri)
        if document.header.capability is Capability.RESOURCE_DUMP and self._packages:
            return self._read_dump(document, fetched, self._packages(), spool)
        check_capability(document, Capability.RESOURCE_LIST)
        if not document.header.is_index:
            return self._read_one(document, fetched, spool)
        parts, at_home, head = parts_of(document), is_same_host(fetched), list_version(fetched)
        self._selection.refusals.count_tolerated(document)
        documents.record(fetched, head.digest, is_proven=False)
        snapshot, read = self._read_parts(document, parts, spool, documents, fetched.served)
        return structs.replace(
            snapshot,
            proves_absence=snapshot.proves_absence and at_home,
            is_one_moment=self._is_one_moment(fetched, read, snapshot.moments.head),
            served=_earliest(fetched.served, snapshot.served),
            version=with_parts(head, read),
        )

    def _read_one(
        self, document: "Document", fetched: FetchedDocument, spool: ExternalSorter[ListedEntry]
    ) -> ListSnapshot:
        entries = self._add_resources(document, spool)
        return ListSnapshot(
            moments=absence_proof.ListMoments(head=known_microseconds(document.header.at)),
            entries=entries,
            served=fetched.served,
            proves_absence=is_same_host(fetched)
            and document.lists_all
            and not self._selection.addresses.has_twins,
            dialect=document.dialect,
            documents=(document_record(fetched),),
            version=list_version(fetched),
        )

    def _is_one_moment(
        self, index: FetchedDocument, parts: Sequence[absence_proof.ReadPart], stated: int | None
    ) -> bool:
        """True if the parts of an index, or the packages of a dump, are of one moment."""
        if absence_proof.is_of_one_moment(parts):
            return True
        began = stated if index.served is None else index.served
        if not all(absence_proof.is_pinned(part, -1 if began is None else began) for part in parts):
            return False
        announced = {part.version.uri: part.announced for part in parts}
        try:
            with fetch(self._documents.uncached(), index.uri) as again:
                entries = again.open().entries()
                found = (entry for entry in entries if isinstance(entry, Part | Package))
                return announced == {entry.uri: entry for entry in found}
        except (errors.SourceError, errors.DocumentError):
            return False  # then nothing shows it

    def _read_parts(
        self,
        index: "Document",
        parts: dict[str, Part],
        spool: ExternalSorter[ListedEntry],
        documents: ListDocuments,
        served: int | None,
    ) -> tuple[ListSnapshot, list[absence_proof.ReadPart]]:
        read: list[absence_proof.ReadPart] = []
        entries, complete = 0, True
        unread: list[errors.ResourceSyncError] = []

        def refuse_missing(uri: str, error: errors.ResourceSyncError) -> None:
            self._refuse_part(uri, error, unread, index.uri)

        for fetched in documents.parts(parts, index.header.at, served, refuse_missing):
            announced = parts[fetched.uri]
            try:
                document, count, part = self._read_part(fetched, announced, spool, documents)
            except errors.DocumentError as error:
                refuse_missing(fetched.uri, error)
                continue
            read.append(part)
            fits = fits_index(announced, document.header, index.header)
            complete = complete and fits and is_same_host(fetched) and document.lists_all
            entries += count
        if unread and len(unread) == len(parts):
            raise unread[0]
        stated = {part.version.uri: part.version.at for part in read if part.version.at is not None}
        snapshot = ListSnapshot(
            moments=absence_proof.ListMoments(
                head=known_microseconds(index.header.at), parts=stated
            ),
            served=_earliest(*(part.served for part in read)),
            entries=entries,
            proves_absence=complete and not unread and not self._selection.addresses.has_twins,
            dialect=index.dialect,
            documents=(),
            outdated_parts=sum(part.is_outdated for part in read),
        )
        return snapshot, read

    def _refuse_part(
        self,
        uri: str,
        error: errors.ResourceSyncError,
        unread: list[errors.ResourceSyncError],
        index: str,
    ) -> None:
        error.evidence = (*error.evidence, ("part", uri), ("of index", index))
        if not is_of_document(error):
            raise error
        unread.append(error)
        reason = f"this part of the list cannot be read: {error.cause}"
        self._selection.refusals.add(uri, PART_UNREAD, reason)  # its content is unknown

    def _read_part(
        self,
        fetched: FetchedDocument,
        announced: Part,
        spool: ExternalSorter[ListedEntry],
        documents: ListDocuments,
    ) -> tuple["Document", int, absence_proof.ReadPart]:
        with fetched:
            self._selection.addresses.add_source_addresses(fetched.uri, fetched.final_uri)
            document = fetched.open(self._refuser(spool))
            check_list(document, Capability.RESOURCE_LIST)
            count = self._add_resources(document, spool)
            version = list_version(fetched)
            has_hash = agree([Digest("sha-256", version.digest)], announced.digests)
            part = absence_proof.ReadPart(version, announced, fetched.served, has_hash)
            documents.record(fetched, version.digest, is_proven=has_hash)
            return document, count, part

    def _read_dump(
        self,
        dump: "Document",
        fetched: FetchedDocument,
        packages: "DumpPackages",
        spool: ExternalSorter[ListedEntry],
    ) -> ListSnapshot:
        stated: dict[str, int] = {}
        read: list[absence_proof.ReadPart] = []
        entries = 0
        head = list_version(fetched)
        dumps: list[absence_proof.ReadPart] = []

        def note(part: Part, of: FetchedDocument) -> None:
            dumps.append(absence_proof.ReadPart(list_version(of), part, of.served))

        for offered in packages.of_dump(dump, note):
            with packages.manifest(offered) as copied:
                document = copied.open(self._refuser(spool))
                at = known_microseconds(document.header.at)
                if at is not None:
                    stated[offered.uri] = at
                has_hash = bool(usable(offered.entry.digests)) and not offered.contents
                version = absence_proof.ListVersion(uri=offered.uri, at=at)
                read.append(absence_proof.ReadPart(version, offered.entry, None, has_hash))
                entries += self._add_resources(document, spool, version=at)
        moments = absence_proof.ListMoments(head=known_microseconds(dump.header.at), parts=stated)
        return ListSnapshot(
            moments=moments,
            entries=entries,
            proves_absence=True,
            is_one_moment=self._is_one_moment(fetched, read, moments.head),
            served=fetched.served,
            dialect=dump.dialect,
            documents=() if dump.header.is_index else (document_record(fetched),),
            outdated_parts=sum(part.is_outdated for part in dumps),
            version=with_parts(head, dumps) if dump.header.is_index else head,
        )

    def _refuser(self, spool: ExternalSorter[ListedEntry]) -> Callable[[RefusedEntry], None]:
        def refuse(entry: RefusedEntry) -> None:
            self._selection.refuse(entry)
            row = self._selection.retained_row(entry.uri)
            if row is not None:
                spool.add(row)

        return refuse

    def _add_resources(
        self, document: "Document", spool: ExternalSorter[ListedEntry], version: int | None = None
    ) -> int:
        entries = 0
        self._selection.moment = document.header.at
        if document.header.capability is None:
            self._selection.accept_twins(document.uri)
        for batch in document.batches():
            if isinstance(batch, ResourceRun):
                entries += len(batch)
                rows = self._selection.resource_rows(batch)
                spool.add_all(
                    rows if version is None else (_versioned(row, version) for row in rows)
                )
            else:
                entries += self._add_singly(batch, spool, version)
        self._selection.refusals.count_tolerated(document)
        return entries

    def _add_singly(
        self, batch: Iterable[Entry], spool: ExternalSorter[ListedEntry], version: int | None
    ) -> int:
        entries = 0
        for entry in batch:
            assert isinstance(entry, Resource), "a list that is no index has resources"
            entries += 1
            row = self._selection.resource_row(entry)
            if row is not None:
                spool.add(row if version is None else _versioned(row, version))
        return entries


def _joined(lists: Sequence[ListSnapshot], *, is_whole: bool) -> ListSnapshot:
    return ListSnapshot(
        moments=absence_proof.ListMoments(),
        entries=sum(each.entries for each in lists),
        proves_absence=is_whole and all(each.proves_absence for each in lists),
        is_one_moment=len(lists) == 1 and lists[0].is_one_moment,
        dialect=Dialect.SITEMAP,
        documents=(),
    )


def _earliest(*times: int | None) -> int | None:
    return None if None in times else min(filter(None, times), default=None)


def _versioned(row: ListedEntry, version: int) -> ListedEntry:
    return row._replace(lastmod=version) if not row.hash and row.lastmod is None else row


def document_record(fetched: FetchedDocument) -> ProcessedDocument:
    """Return the record of a document, for a conditional request the next time."""
    return ProcessedDocument(
        uri=fetched.uri,
        from_=0,
        until=None,
        entries=0,
        prefix="",
        etag=fetched.etag,
        last_modified=fetched.last_modified,
    )
