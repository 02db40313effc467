"""Change history: the result of reading a Source's Change Lists (§12)."""

from collections.abc import Sequence
from itertools import dropwhile

import msgspec

from resourcesync.destination.changes.window import Window
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.planner import ListedEntry
from resourcesync.mirror_state.rows import ProcessedDocument
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import to_microseconds


class ReadList(msgspec.Struct, frozen=True):
    """A Change List behind the head, requested or known to be the same.

    ``known`` is the list as it was processed. It is intact if it begins with the changes that were.
    """

    record: ProcessedDocument
    known: ProcessedDocument | None
    is_intact: bool = True
    has_news: bool = False

    def is_of(self, done: ProcessedDocument) -> bool:
        """True if this is a list that was processed."""
        return self.known is not None and self.known[:2] == done[:2]


class ChangeHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Change Lists as read. Moments are microseconds.

    Moments are microseconds; ``checkpoint`` is the new T, ``list_clock_checkpoint`` the same by the
    clock of the lists, ``reported`` the latest moment that they give by their own clock.
    ``has_undated``: a new change has no time that counts. ``is_resource_clock_ahead``: times of
    resources never say how far the lists report. ``is_unchanged_head``: only its open lists were
    requested. ``window`` is the last list, if it gives no interval: then ``is_continuous`` says
    that no change before it is missing, and ``is_older`` that it is an older copy of the processed
    one. ``may_be_old``: some changes may be older than the Resource List.
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
    is_resource_clock_ahead: bool
    is_unchanged_head: bool
    is_of_dump: bool
    archive: str
    window: Window | None = None
    is_continuous: bool = True
    is_older: bool = False
    may_be_old: bool = False

    @property
    def reaches_back(self) -> bool:
        """True if the lists reach back to the old T without a gap."""
        return self.starts_in_time and self.is_contiguous and self.is_continuous

    @property
    def news_before_processed(self) -> tuple[ReadList, ...]:
        """Unknown lists whose news stand before processed changes, which may be later."""
        rest = dropwhile(lambda read: read.known is None, reversed(self.lists))
        return tuple(read for read in rest if read.known is None and read.has_news)


class LastChanges:
    """The change that was listed last, and whether lists still have the one processed last."""

    def __init__(self, known: Sequence[tuple[str, int | None]]) -> None:
        self._known = self._last = known[-1] if known else None
        self._is_listed = False

    def add(self, change: Change, begin: int | None) -> None:
        """Add the next change of a list, new or not."""
        time = None if change.time is None else to_microseconds(change.time)
        self._last = change.resource.uri, time
        if time is not None and time >= (begin or time):
            self._is_listed |= self._last == self._known

    @property
    def recent(self) -> tuple[tuple[str, int | None], ...]:
        """The last one now, if there is one."""
        return () if self._last is None else (self._last,)

    @property
    def has_last(self) -> bool:
        """True if the lists have the change that was read last: then later ones are listed, too.

        It must be the same change: another one of the same resource proves nothing, and one without
        a time is never known to be the same.
        """
        return self._is_listed
