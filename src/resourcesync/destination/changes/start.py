"""Start of a reading of Change Lists: what is known of them before (§12)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from resourcesync.destination.changes.spans import OVERLAP, ChangeListSpan
from resourcesync.ports.mirror import ProcessedDocument

if TYPE_CHECKING:
    from resourcesync.destination.changes.history import ChangeHistory


class ReadingStart(msgspec.Struct, frozen=True, kw_only=True):
    """Moment from which Change Lists are read. Moments are microseconds.

    Attributes:
        checkpoint: T: everything up to here is known.
        list_clock: T by the clock of the lists.
        is_resource_list: It is the moment of a Resource List, which has all up to it: earlier
            changes are older than its entries. Else a list may add a change of the second before
            late.
        resource_list_at: Moment of the last Resource List that was processed; ``None`` if unknown.
        head: The Change List or its index that was processed; empty if none was.
        processed: Lists that were processed and may have grown since.
        open_lists: URIs of those that are behind an index.
        last_changes: The change that was listed last.
        is_resource_clock_ahead: The clock of the resources is ahead of that of the lists.
    """

    checkpoint: int
    list_clock: int
    is_resource_list: bool = False
    resource_list_at: int | None = None
    head: str = ""
    processed: tuple[ProcessedDocument, ...] = ()
    open_lists: tuple[str, ...] = ()
    last_changes: tuple[tuple[str, int | None], ...] = ()
    is_resource_clock_ahead: bool = False

    @property
    def new_since(self) -> int:
        """Start of new changes where no processed prefix tells."""
        return self.list_clock if self.is_resource_list else self.list_clock - OVERLAP

    def find(self, span: ChangeListSpan, address: Callable[[str], str]) -> ProcessedDocument | None:
        """Return the record of a list: by its start, or else by its address.

        Args:
            span: The list.
            address: Returns the address of a URI before its Source moved.
        """
        uri, start = address(span.uri), span.from_ or 0
        same = [done for done in self.processed if done.from_ == start]
        at_uri = [done for done in same if address(done.uri) == uri]
        return next(iter(at_uri or (same if start else ())), None)


class ListPositions(msgspec.Struct, frozen=True):
    """Number of changes in each list when a Resource List was first read.

    It is unknown whether the Resource List includes later changes, whatever their times; also if it
    is read again.

    Attributes:
        stored: The numbers by list, if the Resource List was read before; else ``None``.
        processed: The lists that were processed before it is read first.
    """

    stored: Mapping[str, int] | None
    processed: tuple[ProcessedDocument, ...] = ()

    def position_of(self, span: ChangeListSpan) -> int | None:
        """Return the number of changes that a list had; ``None`` if unknown."""
        if self.stored is not None:
            return self.stored.get(_list_key(span.uri, span.from_), 0)
        start = ReadingStart(checkpoint=0, list_clock=0, processed=self.processed)
        seen = start.find(span, str)
        return None if seen is None else seen.entries

    def after(self, history: "ChangeHistory") -> Mapping[str, int]:
        """Return the positions to store: those of the first reading."""
        if self.stored is not None:
            return self.stored
        records = (read.record for read in history.lists)
        return {_list_key(record.uri, record.from_): record.entries for record in records}


def _list_key(uri: str, from_: int | None) -> str:
    """Return the key of a list: its start, independent of its URI."""
    return str(from_) if from_ else uri
