"""Change history: the result of reading a Source's Change Lists (§12)."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import dropwhile, islice
from typing import Final

from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.planner import ListedEntry
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.mirror import ProcessedDocument


@dataclass(frozen=True, slots=True)
class ReadList:
    """A Change List behind the head, requested or known to be the same.

    Attributes:
        record: The list as it is now.
        known: The list as it was processed; ``None`` if it was not.
        is_intact: It begins with the changes that were processed; also true if none were.
        has_news: Some of its changes count as new.
    """

    record: ProcessedDocument
    known: ProcessedDocument | None
    is_intact: bool = True
    has_news: bool = False

    def is_of(self, done: ProcessedDocument) -> bool:
        """True if this is a list that was processed."""
        return self.known is not None and self.known[:2] == done[:2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeHistory:
    """Change Lists as read. Moments are microseconds.

    Attributes:
        head: URI of the Change List or its index.
        sorter: New changes, in the order of the lists. Close it after use.
        checkpoint: The new T: everything up to it is in the sorter or was known.
        list_clock_checkpoint: The new T by the clock of the lists.
        reported: Latest moment that the lists give by their own clock; ``None`` if they give none.
        lists: The lists behind the head, oldest first.
        starts_in_time: The first list begins at the old T or before.
        is_contiguous: There is no gap between the lists.
        change_count: Number of new changes.
        has_undated: A new change has no time that counts.
        documents: Records of the documents, to be stored.
        last_changes: The resources whose changes were listed last, with the times of these.
        has_last_change: The lists have the change that was processed last.
        is_unchanged_head: The head is the same as before: only its open lists were requested.
        is_of_dump: The manifests of a Change Dump were read in place of lists.
        archive: URI of the archive of older lists, if a list links to it.
    """

    head: str
    sorter: ExternalSorter[ListedEntry]
    checkpoint: int
    list_clock_checkpoint: int
    reported: int | None
    lists: tuple[ReadList, ...]
    starts_in_time: bool
    is_contiguous: bool
    change_count: int
    has_undated: bool
    documents: tuple[ProcessedDocument, ...]
    last_changes: tuple[tuple[str, int | None], ...]
    has_last_change: bool
    is_unchanged_head: bool
    is_of_dump: bool
    archive: str

    @property
    def reaches_back(self) -> bool:
        """True if the lists reach back to the old T without a gap, by their times."""
        return self.starts_in_time and self.is_contiguous

    @property
    def news_before_processed(self) -> tuple[ReadList, ...]:
        """Unknown lists whose news stand before processed changes, which may be later."""
        rest = dropwhile(lambda read: read.known is None, reversed(self.lists))
        return tuple(read for read in rest if read.known is None and read.has_news)


MAX_RECENT: Final = 16
"""Number of resources whose last changes are stored."""
_MAX_BUFFERED: Final = 16 * MAX_RECENT


class LastChanges:
    """Resources that changed last, each with the time of its change.

    Args:
        known: Those of the previous reading, the newest at the end.
    """

    def __init__(self, known: Iterable[tuple[str, int | None]]) -> None:
        self._known = dict(known)
        self._recent = dict(self._known)
        self._listed_times: dict[str, set[int | None]] = {uri: set() for uri in self._known}

    def add(self, change: Change, begin: int | None) -> None:
        """Add the next change of a list, new or not.

        Args:
            change: The change.
            begin: Start of its list; a change before it proves nothing.
        """
        uri = change.resource.uri
        time = None if change.time is None else to_microseconds(change.time)
        if uri in self._listed_times and (time is None or time >= (begin or time)):
            self._listed_times[uri].add(time)
        recent = self._recent
        recent.pop(uri, None)
        recent[uri] = time
        if len(recent) > _MAX_BUFFERED:
            self._recent = dict(islice(recent.items(), len(recent) - MAX_RECENT, None))

    @property
    def recent(self) -> tuple[tuple[str, int | None], ...]:
        """The last ones now, the newest at the end."""
        return tuple(self._recent.items())[-MAX_RECENT:]

    @property
    def has_last(self) -> bool:
        """True if the lists have the change that was read last: then later ones are listed, too.

        Where its resource changed again and only that is listed, the one before it decides, and so
        on. It must be the same change: another one of the same resource proves nothing, and one
        without a time is never known to be the same.
        """
        for uri, known in reversed(self._known.items()):
            times = self._listed_times[uri]
            if known is None or not times:
                return False
            if known in times:
                return True
            if any(time is None or time < known for time in times):
                return False
        return False
