"""Put copies in doubt that an audit could not prove, and take the doubt back when one is proven.

Only the mirror's memory is written, never a copy. What is in doubt equals nothing that is listed,
so every later run fetches it again; the file that is here then goes to quarantine.
"""

from typing import Final

from resourcesync.destination.plan import (
    DAMAGED,
    ListedEntry,
    as_suspect,
    is_suspect,
    is_unknown,
)
from resourcesync.destination.pulling import SyncSession
from resourcesync.destination.tasks import pending_fetch
from resourcesync.ports import CopyInspector
from resourcesync.ports.mirror import Copy, Pending, PendingTask, StateTransaction

_GROUP: Final = 256


class SuspectMarker:
    """Remembers what an audit thinks of copies.

    Args:
        pull: What the audit works with.
        offline: Whether what is listed now is not known.
        is_kept: Whether anything is remembered.

    Attributes:
        count: How many copies were found that are not as they were put there.
    """

    def __init__(self, pull: SyncSession, *, offline: bool, is_kept: bool = True) -> None:
        self._pull = pull
        self._is_stored = is_kept
        self._is_offline = offline
        self._checkpoint = pull.sync_state.checkpoint or 0
        self._generation = pull.sync_state.generation
        self._copies: list[Copy] = []
        self._pending: list[Pending] = []
        self._finished: list[str] = []
        self.count = 0

    def mark_suspect(self, copy: Copy, row: ListedEntry, reason: str) -> None:
        """Take a copy that is not what was put in place.

        Args:
            copy: The copy.
            row: What the Source lists of it.
            reason: What is wrong with it.
        """
        self.count += 1
        known = self._pull.state.pending_of(copy.uri)
        # Offline nobody knows whether what is kept is wanted: it is not fetched for that.
        if known is None or (known.task == PendingTask.RETAIN and not self._is_offline):
            self._pending.append(self._task(copy, row, reason))
        if not is_suspect(copy) and not is_unknown(copy):
            self._copies.append(as_suspect(copy))
        self._flush_when_full()

    def _task(self, copy: Copy, row: ListedEntry, reason: str) -> Pending:
        # Not what is listed now, which T may not tell of yet, but what was, as far as we know.
        length = copy.length if copy.listed else None
        row = row._replace(hash=copy.listed, length=length)
        task = pending_fetch(
            row,
            known=None,
            now=self._pull.now,
            at=self._checkpoint,
            generation=self._generation,
            failed=False,
        )
        return task._replace(code=DAMAGED, reason=reason)

    def clear_suspect(self, copy: Copy, look: CopyInspector) -> Copy:
        """Take a copy whose bytes were proven; return it without the doubt, if there was one."""
        signature = look.signature(copy.path) if is_suspect(copy) else None
        if signature is None:
            return copy
        sound = copy._replace(signature=signature)
        self._copies.append(sound)
        known = self._pull.state.pending_of(copy.uri)
        if known is not None and known.code == DAMAGED:
            self._finished.append(copy.uri)
        self._flush_when_full()
        return sound

    def _flush_when_full(self) -> None:
        if len(self._copies) + len(self._pending) >= _GROUP:
            self.flush()

    def flush(self) -> None:
        """Remember what was taken.

        Raises:
            StorageError: It cannot be written.
        """
        if self._is_stored and (self._copies or self._pending):
            step = StateTransaction(
                suspect=self._copies, pending=self._pending, completed=self._finished
            )
            self._pull.state.commit(step)
        self._copies, self._pending, self._finished = [], [], []


def listed_from_copy(copy: Copy) -> ListedEntry:
    """Return what the Source listed of a copy when it was fetched, as far as that is known."""
    return ListedEntry(
        uri=copy.uri,
        loc=copy.uri,
        path=copy.path,
        hash=copy.listed or copy.digests,
        length=None if is_unknown(copy) else copy.length,
        lastmod=copy.lastmod,
        change="",
    )
