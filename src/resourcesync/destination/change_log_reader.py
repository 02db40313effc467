"""Change log of a mirror: its changes for other programs, from a position on, at least once."""

from collections.abc import Iterator

import msgspec

from resourcesync.errors import ChangesLostError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import ChangeLogPosition, Copy, LoggedChange


class ChangeLogReader(msgspec.Struct, kw_only=True):
    """Reader of the changes of a mirror that continues from its position.

    ``position`` is that after the last change that was yielded: stored with what was done with the
    change, it continues there. It is ``None`` before the first change of a program that starts with
    everything. ``restart`` is the command by which the reader starts over.
    """

    state: SqliteMirrorState
    position: ChangeLogPosition | None = None
    include_touched: bool = False
    restart: str = ""

    def read_new(self) -> Iterator[LoggedChange]:
        """Yield the changes since the position, which moves with each of them.

        Without a position, or with one of a first reading that was interrupted, each present copy
        is yielded as ``created`` first.
        """
        is_new, newest = self.position is None, self.state.change_bounds()[1]
        begin = self.position or ChangeLogPosition(newest, self._time_of(newest))
        self._check(begin)
        if is_new or begin.uri:
            yield from self._read_copies(begin)
        yield from self._read_changes(begin.number)

    def _read_copies(self, begin: ChangeLogPosition) -> Iterator[LoggedChange]:
        """Yield the copies after a URI; what changes meanwhile is in the log after ``begin``."""
        copies = (
            each if each.length >= 0 else self._content(each.uri) for each in self.state.copies()
        )
        rest = (copy for copy in copies if copy is not None and copy.uri > begin.uri)
        copy = next(rest, None)
        while copy is not None:
            following = next(rest, None)
            self.position = begin._replace(uri="" if following is None else copy.uri)
            seen = (copy.uri, copy.path, copy.length, copy.digests)
            yield LoggedChange(begin.number, copy.installed, "created", *seen, "")
            copy = following
        self.position = begin._replace(uri="")

    def _content(self, uri: str) -> Copy | None:
        """Return a copy whose file is being replaced, with its former content; ``None`` if new."""
        for _ in range(2):  # it may be replaced again between the two readings
            before = self.state.content_before(uri)
            copy = self.state.copy(uri)
            if copy is None or copy.length >= 0:
                return copy
            if before is not None:
                return copy._replace(length=before.length, digests=before.digests)
        return None

    def _read_changes(self, read: int) -> Iterator[LoggedChange]:
        for row in self.state.changes(read):
            if row.seq != read + 1:  # a pull pruned the log during a slow read
                raise self._lost_error(ChangeLogPosition(read), *self.state.change_bounds())
            read = row.seq
            self.position = ChangeLogPosition(read, row.time)
            if self.include_touched or row.kind != "touched":
                yield row

    def _time_of(self, number: int) -> int:
        row = next(self.state.changes(number - 1), None) if number else None
        return row.time if row is not None and row.seq == number else 0

    def _check(self, position: ChangeLogPosition) -> None:
        forgotten, newest = self.state.change_bounds()
        if not forgotten <= position.number <= newest:
            raise self._lost_error(position, forgotten, newest)
        if position.time and self._time_of(position.number) != position.time:
            raise self._lost_error(position, forgotten, newest)

    def _lost_error(
        self, position: ChangeLogPosition, forgotten: int, newest: int
    ) -> ChangesLostError:
        number = position.number
        reason = f"the mirror's change log does not reach back to cursor {number}"
        if number > newest:
            reason = f"cursor {number} is beyond the end of the mirror's change log"
        elif number > forgotten:
            reason = f"the mirror's change log has another change {number}: the mirror was restored"
        here = f"changes {forgotten + 1} to {newest}" if newest > forgotten else "no change yet"
        return ChangesLostError(
            reason,
            evidence=(("here", here),),
            hint="delete what was built from the mirror, then start over"
            f"{':' * bool(self.restart)} {self.restart}".rstrip(),
        )
