"""The Change Lists of the past, where those of the present do not reach back far enough.

An archive lists closed documents (Archives §5). Drafts before 0.9 had nothing else: there the
archive is what the Capability List offers, and stands for the index.
"""

from collections.abc import Iterator
from datetime import datetime

from resourcesync.destination.cursor import ChangeListSpan
from resourcesync.destination.resource_lists import check_capability, parts_of
from resourcesync.discovery import DocumentFetcher
from resourcesync.documents.reader import Document
from resourcesync.errors import DocumentLimitError, UnexpectedDocumentError
from resourcesync.model.capabilities import Header, Part
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import Capability

_MAX_LISTS = 50_000


def is_archive(header: Header) -> bool:
    """Whether a document is a Change List Archive, or its index."""
    return header.capability is Capability.CHANGE_LIST_ARCHIVE


def grows_unseen(header: Header) -> bool:
    """Whether what a document lists may grow though the document stays as it is."""
    return is_archive(header) and header.is_index


def archived_lists(documents: DocumentFetcher, uri: str) -> list[ChangeListSpan]:
    """Return the Change Lists of an archive, in its order, with the intervals that it tells.

    Args:
        documents: Gets documents.
        uri: The archive, or its index.

    Raises:
        SourceError: A document could not be had.
        DocumentError: One cannot be used, or they list too many.
    """
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
                    hint="tell the Source; look at its lists with: resourcesync validate URL",
                )
    return list(spans.values())


def read_archive(documents: DocumentFetcher, archive: Document) -> Iterator[ChangeListSpan]:
    """Yield the Change Lists of an archive that is open, or of the parts of its index.

    Drafts write ``sitemapindex`` for an archive: its parts are the Change Lists, as the first one
    shows.

    Raises:
        SourceError: A part could not be had.
        DocumentError: A document cannot be used.
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
                    hint="tell the Source; look at its lists with: resourcesync validate URL",
                )
            yield from read_archive(documents, inner)


def in_time_order(documents: DocumentFetcher, spans: list[ChangeListSpan]) -> list[ChangeListSpan]:
    """Return the lists of an archive in their turn, where neither it nor they tell intervals.

    Their changes may have times all the same: where those of the first list are later than those
    of the last one, the newest list comes first.

    Raises:
        SourceError: A list could not be had.
        DocumentError: One cannot be used.
    """
    if len(spans) < 2 or any(span.from_ is not None for span in spans):  # noqa: PLR2004 - an order
        return spans
    first, last = _first_time(documents, spans[0]), _first_time(documents, spans[-1])
    is_turned = first is not None and last is not None and first > last
    return spans[::-1] if is_turned else spans


def _first_time(documents: DocumentFetcher, span: ChangeListSpan) -> datetime | None:
    """Return the earliest time in a list that tells of no interval; ``None``: it tells one."""
    fetched = documents.get(span.uri)
    assert fetched is not None, "an unconditional request is never answered with 304"
    with fetched:
        document = fetched.open()
        if document.header.from_ is not None:
            return None
        entries = (entry for entry in document.entries() if isinstance(entry, Change))
        return min((entry.time for entry in entries if entry.time is not None), default=None)


def announced_span(uri: str, part: Part) -> ChangeListSpan:
    """Return the interval of a Change List as an index or an archive tells it."""
    from_, until = part.from_, part.until
    return ChangeListSpan(
        uri=uri,
        from_=known_microseconds(from_),
        until=known_microseconds(until),
        announced=from_ is not None,
    )
