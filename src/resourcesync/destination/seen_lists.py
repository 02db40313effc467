"""Change Lists that were processed before: what is new in them, and whether they were rewritten."""

from collections.abc import Iterable, Iterator, Sequence

from resourcesync.destination.cursor import (
    OLD_COPY,
    ChangeListSpan,
    ListPrefix,
    find_list_within_processed,
    find_missing_newest_list,
    find_superseded_list,
)
from resourcesync.destination.history import LAST_CHANGES, ChangeHistory, open_lists_of
from resourcesync.destination.last_changes import LastChanges
from resourcesync.destination.memory import SyncState, encode_notes
from resourcesync.destination.resource_lists import document_record
from resourcesync.discovery import FetchedDocument
from resourcesync.documents.reader import Document
from resourcesync.errors import SourceUnavailableError
from resourcesync.model.resources import Change
from resourcesync.ports.mirror import MirrorStateStore, ProcessedDocument


def find_list_record(
    head: str, span: ChangeListSpan, state: MirrorStateStore
) -> ProcessedDocument | None:
    """Return what is known of a list; one that was closed may have been processed while open.

    Args:
        head: The Change List or its index.
        span: The list.
        state: What is known of lists.
    """
    known = state.document(span.uri, span.from_ or 0)
    if known is not None or not span.from_:
        return known
    places = (head, *open_lists_of(head, state))
    return next(filter(None, (state.document(it, span.from_) for it in places)), None)


class ListPositions:
    """How many changes of each list there were when a Resource List was read first.

    Of those that came later nobody knows whether that list has them, whatever time they tell; also
    not when it is read once more.

    Args:
        state: What is known of lists.
        at: The moment of the Resource List, microseconds.
    """

    def __init__(self, state: MirrorStateStore, at: int) -> None:
        self._state, self._at = state, at
        noted_at, noted = SyncState(state).list_positions
        self._stored = noted if noted_at == at else None

    def position_of(self, head: str, span: ChangeListSpan) -> int | None:
        """Return how many changes of a list there were; ``None`` where nobody knows.

        Args:
            head: The Change List or its index.
            span: The list.
        """
        if self._stored is not None:
            return self._stored.get(_list_key(span.uri, span.from_), 0)
        seen = find_list_record(head, span, self._state)
        return None if seen is None else seen.entries

    def encode(self, seen: Iterable[ProcessedDocument]) -> dict[str, str]:
        """Return the note of lists that were read now; empty if it stands already."""
        if self._stored is not None:
            return {}
        read = {_list_key(it.uri, it.from_): it.entries for it in seen if it.prefix}
        return encode_notes(beside_list=(self._at, read))


def _list_key(uri: str, from_: int | None) -> str:
    """Return what a list is known by: when it begins, wherever it is."""
    return str(from_) if from_ else uri


def index_record(index: FetchedDocument, history: ChangeHistory) -> ProcessedDocument:
    """Return what is remembered of an index; of an outdated one nobody may say it is the same."""
    seen = document_record(index)
    return seen._replace(etag="", last_modified="") if history.is_outdated else seen


def record_rewritten_lists(
    history: ChangeHistory, spans: Sequence[ChangeListSpan], state: MirrorStateStore | None
) -> None:
    """Note which lists that were processed others cover now, or may cover.

    Args:
        history: Takes it.
        spans: The lists that there are.
        state: What is known of lists.

    Raises:
        SourceUnavailableError: All of them end before what was read: an old copy.
    """
    if state is None:
        return
    head = history.head
    uris = {head, *open_lists_of(head, state), *(it.uri for it in spans)}
    known = [*filter(None, map(state.document, uris)), *state.closed_documents(1)]
    newest = LastChanges.from_note(state.note(LAST_CHANGES)).newest
    history.superseded = find_superseded_list(spans, known, newest)
    history.suspect = find_list_within_processed(spans, known, newest) or find_superseded_list(
        spans, known, newest, margin=0
    )
    if missing := find_missing_newest_list(spans, known):
        raise SourceUnavailableError(
            "the Change Lists end before what was read of them (an old copy)",
            uri=missing,
            evidence=(("kept", "nothing was changed"),),
            code="stale-copy",
            hint=OLD_COPY,
        )


def check_begins_no_earlier(span: ChangeListSpan, newest: ProcessedDocument | None) -> None:
    """Check that a list at a URI is none that was there before the one read last.

    Raises:
        SourceUnavailableError: It is: an old copy.
    """
    if newest is not None and newest.from_ > (span.from_ or 0):
        raise SourceUnavailableError(
            "a Change List begins earlier than the one that was read last (an old copy)",
            uri=span.uri,
            evidence=(("kept", "nothing was changed"),),
            code="stale-copy",
            hint=OLD_COPY,
        )


def check_no_shorter(entries: int, seen: ProcessedDocument) -> None:
    """Check that a list has as many changes as were processed.

    Args:
        entries: How many it has, of those that were processed.
        seen: What was processed.

    Raises:
        SourceUnavailableError: It has fewer: an old copy.
    """
    if entries < seen.entries:
        raise SourceUnavailableError(
            "a Change List is shorter than it was (an old copy)",
            uri=seen.uri,
            evidence=(
                ("here", f"{seen.entries} changes were processed"),
                ("got", f"{entries} changes"),
                ("kept", "nothing was changed"),
            ),
            code="stale-copy",
            hint=OLD_COPY,
        )


def is_intact(prefix: ListPrefix, seen: ProcessedDocument) -> bool:
    """Whether the changes that were processed still stand at the start of a list."""
    return (prefix.entries, prefix.hexdigest()) == (seen.entries, seen.prefix)


def changes_of(document: Document) -> Iterator[Change]:
    """Yield the changes of a list that is no index."""
    for entry in document.entries():
        assert isinstance(entry, Change), "a Change List that is no index has changes"
        yield entry
