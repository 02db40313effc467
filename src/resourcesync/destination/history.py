"""What was read of a Source's changes (§12)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from resourcesync.destination.cursor import OLD_COPY, OVERLAP, ChangeListSpan
from resourcesync.destination.cut_off import InterruptedReading, PrefixRecord
from resourcesync.destination.last_changes import LastChanges
from resourcesync.destination.ordering import ExternalSorter
from resourcesync.destination.plan import ListedEntry
from resourcesync.errors import RollbackError, SourceUnavailableError
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import format_w3c, from_microseconds
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports.mirror import MirrorStateStore, ProcessedDocument

LAST_CHANGES: Final = "last-changes"
"""The note of the changes that were read last."""
RESOURCE_CLOCK_AHEAD: Final = "clock-ahead"
"""The note of whether the clock of the resources is ahead of that of the lists."""


@dataclass(slots=True, kw_only=True)
class ChangeHistory:
    """Change Lists as read.

    Attributes:
        head: The Change List or its index.
        spool: What is new, in the order of the lists. Close it after use.
        known: The old T: everything up to it was known.
        since: What the clock of the lists says of it, no later.
        begin: Changes from here on are new, where no processed prefix tells: a second before that,
            since a list may tell late of a change. A Resource List has all up to its own moment:
            what a change says of a resource before that is older than what the list says.
        through: The new T: everything up to it is in the spool or was known.
        listed: What the clock of the lists says of that.
        reaches: Whether the lists reach back to the old T without a hole; without it the spool is
            not whole.
        changes: How many new changes were found.
        undated: Whether one of them has no time that counts: nobody knows how old it is, so all
            that stand after it count as new, or an old one would have the last word on its URI.
        seen: The lists, for the next time.
        is_outdated: Whether the index calls a list open that is closed: it is older than that list.
        open_lists: The lists that further changes will be added to, if the head is none itself.
        archive: Where the lists of the past are, if a list says so.
        past: Lists of the past that are read too.
        is_after_list: Whether the changes since a Resource List are read, and not those since T.
        is_of_dump: Whether the manifests of a Change Dump were read in place of lists.
        rewritten: A list that does not begin any more with the changes that were processed.
        displaced: A list that was processed and whose time others cover now.
        doubted: A list whose Source may have been set back: it is new, and begins among the changes
            that were processed of another; or others cover its time by less than a second.
        last: The changes that were read last.
        news: The lists that told of something new.
        cut_off: Those of a reading that was not written down to its end.
        is_ahead: Whether the clock of the resources is ahead of that of the lists: then it never
            says how far they tell.
        unchanged: Whether the Source said that nothing is new.
        dialect: How the last list is written.
    """

    head: str
    sorter: ExternalSorter[ListedEntry]
    old_checkpoint: int
    old_list_clock_checkpoint: int
    new_since: int
    checkpoint: int
    list_clock_checkpoint: int
    reaches_back: bool = True
    change_count: int = 0
    has_undated: bool = False
    documents: list[ProcessedDocument] = field(default_factory=list)
    is_outdated: bool = False
    open_lists: list[str] = field(default_factory=list)
    archive: str = ""
    archived_lists: tuple[ChangeListSpan, ...] = ()
    is_after_list: bool = False
    is_of_dump: bool = False
    rewritten: str = ""
    superseded: str = ""
    suspect: str = ""
    last_changes: LastChanges = field(default_factory=lambda: LastChanges({}))
    new_prefixes: list[PrefixRecord] = field(default_factory=list)
    interrupted: InterruptedReading = field(default_factory=lambda: InterruptedReading(()))
    is_resource_clock_ahead: bool = False
    is_unchanged: bool = False
    dialect: Dialect | None = None

    def record(self, change: Change) -> None:
        """Take note of a change of the lists, new or not."""
        self.last_changes.add(change)
        self.interrupted.add(change)


def new_history(
    head: str,
    spool: ExternalSorter[ListedEntry],
    *,
    since: int,
    listed: int,
    past: Iterable[ChangeListSpan],
    state: MirrorStateStore | None,
) -> ChangeHistory:
    """Return what is known of changes before anything is read.

    Args:
        head: The Change List or its index.
        spool: Takes what is new; empty.
        since: T: everything up to here is known, microseconds.
        listed: What the clock of the lists says of it.
        past: Lists of the past that are read too.
        state: What is known of the lists; ``None`` when all is read anew.
    """
    noted = (lambda _: None) if state is None else state.note
    return ChangeHistory(
        head=head,
        sorter=spool,
        old_checkpoint=since,
        old_list_clock_checkpoint=listed,
        new_since=listed if state is None else listed - OVERLAP,
        checkpoint=since,
        list_clock_checkpoint=listed,
        archived_lists=tuple(past),
        last_changes=LastChanges.from_note(noted(LAST_CHANGES)),
        interrupted=InterruptedReading.from_state(state),
        is_resource_clock_ahead=noted(RESOURCE_CLOCK_AHEAD) == "1",
        is_after_list=state is None,
    )


def open_lists_of(head: str, state: MirrorStateStore) -> list[str]:
    """Return the open lists behind an index, as they were when it was read last."""
    return (state.note(_open_lists_key(head)) or "").split()


def open_lists_note(history: ChangeHistory) -> dict[str, str]:
    """Return the note of the open lists behind an index."""
    return {_open_lists_key(history.head): " ".join(history.open_lists)}


def _open_lists_key(head: str) -> str:
    return f"open-list {head}"


def check_no_older(at: int, known: int | None) -> None:
    """Check that a Resource List is of no earlier moment than the last one that was processed.

    Args:
        at: Its moment, microseconds.
        known: That of the last one; ``None`` when none told its own.

    Raises:
        RollbackError: It is older: a copy of a cache, or the Source was set back.
    """
    if known is not None and at < known:
        raise RollbackError(
            "the Source's Resource List is older than the one already processed",
            evidence=(
                ("here", f"Resource List at {format_w3c(from_microseconds(known))}"),
                ("got", f"Resource List at {format_w3c(from_microseconds(at))}"),
                ("kept", "nothing was changed"),
            ),
            hint="if the Source was really set back: resourcesync pull --mode baseline",
        )


def continue_from(history: ChangeHistory, uri: str, *, known: int, listed: int, now: int) -> None:
    """Check that lists tell of all that was read of them before, so that T does not go back.

    The clock of the lists tells it exactly. T itself may be ahead of that, and changes of one
    moment that are read one by one each move it by a microsecond, which no list says.

    Args:
        history: What they tell since an earlier moment.
        uri: The Change List or its index.
        known: The T of the mirror: it knows everything up to here, microseconds.
        listed: What the clock of the lists says of that.
        now: The present moment.

    Raises:
        SourceUnavailableError: They tell of less: an old copy, or one that was cut.
    """
    if not history.reaches_back:
        return
    if (
        history.list_clock_checkpoint < min(listed, known)
        or history.checkpoint < min(known, now) - OVERLAP
    ):
        raise SourceUnavailableError(
            "the Change Lists tell of less than before (an old copy)",
            uri=uri,
            evidence=(
                ("here", f"complete to {format_w3c(from_microseconds(known))}"),
                ("got", f"changes to {format_w3c(from_microseconds(history.checkpoint))}"),
                ("kept", "nothing was changed"),
            ),
            code="stale-copy",
            hint=OLD_COPY,
        )
    history.checkpoint = max(history.checkpoint, known)
