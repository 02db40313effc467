"""Archives of Change Lists: the lists of the past, in time order (Archives §5).

An archive lists closed documents. Drafts before 0.9 have nothing else: there the Capability List
offers the archive, which takes the place of the index.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from resourcesync.destination.changes.times import ChangeListSpan, announced_span
from resourcesync.destination.lists.resource_reader import check_capability, parts_of
from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.errors import DocumentLimitError, UnexpectedDocumentError
from resourcesync.model.resources import Change
from resourcesync.model.vocabulary import Capability

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document

_MAX_LISTS = 50_000


def archived_lists(documents: DocumentFetcher, uri: str) -> list[ChangeListSpan]:
    """Return the Change Lists of an archive, in its order, with their announced intervals."""
    spans: dict[str, ChangeListSpan] = {}
    fetched = documents.get(uri)
    assert fetched is not None, "an unconditional request is never answered with 304"
    with fetched:
        for span in read_archive(documents, fetched.open()):
            spans.setdefault(span.uri, span)
            if len(spans) > _MAX_LISTS:
                raise DocumentLimitError(
                    "an archive lists too many documents",
                    uri=uri,
                    evidence=(("limit", f"{_MAX_LISTS}"),),
                    hint="report it to the Source; check its lists: resourcesync validate URL",
                )
    return list(spans.values())


def read_archive(documents: DocumentFetcher, archive: "Document") -> Iterator[ChangeListSpan]:
    """Yield the Change Lists of an open archive, or of the parts of its index.

    Drafts write ``sitemapindex`` for an archive: then its parts are Change Lists, as the first one
    shows.
    """
    check_capability(archive, Capability.CHANGE_LIST_ARCHIVE)
    parts = parts_of(archive)
    spans = (announced_span(*item) for item in parts.items())
    if not archive.header.is_index:
        yield from spans
        return
    for uri in parts:
        fetched = documents.get(uri)
        assert fetched is not None, "an unconditional request is never answered with 304"
        with fetched:
            inner = fetched.open()
            if inner.header.capability is Capability.CHANGE_LIST:
                yield from spans
                return
            if inner.header.is_index:
                raise UnexpectedDocumentError(
                    "an index lists another index",
                    uri=inner.uri,
                    hint="report it to the Source; check its lists: resourcesync validate URL",
                )
            yield from read_archive(documents, inner)


def in_time_order(documents: DocumentFetcher, spans: list[ChangeListSpan]) -> list[ChangeListSpan]:
    """Return the lists of an archive in time order, where no intervals are given.

    Their changes may have times all the same: if those of the first list are later than those of
    the last one, the newest list comes first.
    """
    if len(spans) < 2 or any(span.from_ is not None for span in spans):  # noqa: PLR2004 - an order
        return spans
    first, last = _first_time(documents, spans[0]), _first_time(documents, spans[-1])
    is_turned = first is not None and last is not None and first > last
    return spans[::-1] if is_turned else spans


def _first_time(documents: DocumentFetcher, span: ChangeListSpan) -> datetime | None:
    """Return the earliest time in a list without an interval; ``None`` if it has one."""
    fetched = documents.get(span.uri)
    assert fetched is not None, "an unconditional request is never answered with 304"
    with fetched:
        document = fetched.open()
        if document.header.from_ is not None:
            return None
        entries = (entry for entry in document.entries() if isinstance(entry, Change))
        return min((entry.time for entry in entries if entry.time is not None), default=None)
