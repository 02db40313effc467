"""The position in a PostgreSQL change log, as text that is stored between runs.

Probes show whether a log can be resumed, and up to where it can be read now.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

import msgspec

from resourcesync.errors import (
    DiscontinuityError,
    SourceUnavailableError,
)
from resourcesync_postgresql import statements
from resourcesync_postgresql.layout import TableLayout
from resourcesync_postgresql.session import ReadTransaction

_SNAPSHOT: Final = re.compile(r"([0-9]{1,20}):([0-9]{1,20}):(?:[0-9]{1,20}(?:,[0-9]{1,20})*)?")
_MAX: Final = 1 << 64

LogRow = tuple[int, int]
"""The transaction and the number of a row of the log."""
NO_ROW: Final[LogRow] = (0, 0)


class PostgresPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A position in a log: all rows visible in ``after`` are read, and some of those in ``to``.

    Attributes:
        log: The identity of log and server; another log has other positions.
        after: A snapshot; all its rows are read.
        to: The snapshot that is being read; empty between two of them.
        row: The last row read: with ``to``, the rows up to it are read. It must still exist, or be
            known as pruned.
    """

    log: str
    after: str
    to: str = ""
    row: LogRow = NO_ROW

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the position in a text."""
        try:
            fields: Any = msgspec.json.decode(text)
            found = cls(
                log=str(fields["log"]),
                after=_snapshot(fields["after"]),
                to=_snapshot(fields["to"]) if fields.get("to") else "",
                row=(_number(fields["row"][0]), _number(fields["row"][1])),
            )
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise DiscontinuityError(
                "the stored position in the change log of PostgreSQL is invalid",
                evidence=(("kept", text[:200]),),
            ) from error
        return found

    @property
    def text(self) -> str:
        """The position as text."""
        fields: dict[str, object] = {"log": self.log, "after": self.after, "row": self.row}
        if self.to:
            fields["to"] = self.to
        return msgspec.json.encode(fields).decode()

    @property
    def begin(self) -> LogRow:
        """The row after which unread rows are searched."""
        return self.row if self.to else (snapshot_xmin(self.after), 0)


def snapshot_xmin(snapshot: str) -> int:
    """Return the first transaction that a snapshot may not show, of those that have begun."""
    return int(snapshot.split(":", maxsplit=1)[0])


def snapshot_xmax(snapshot: str) -> int:
    """Return the first transaction that had not begun."""
    return int(snapshot.split(":")[1])


def _snapshot(text: str) -> str:
    match = _SNAPSHOT.fullmatch(text)
    if match is None or not int(match[1]) <= int(match[2]) < _MAX:
        raise ValueError("no snapshot")
    return text


def _number(value: int) -> int:
    if type(value) is not int or not 0 <= value < _MAX:
        raise ValueError("no number")
    return value


class _LogState(NamedTuple):
    """The state of a log.

    Attributes:
        log: The identity of the log: server, timeline, tables, and start.
        snapshot: The current snapshot.
        is_standby: The server is a standby.
        pruned_to: The last transaction whose rows may have been pruned.
        has_row: The requested row exists.
    """

    log: str
    snapshot: str
    is_standby: bool
    pruned_to: int
    has_row: bool


def start_position(reading: ReadTransaction, layout: TableLayout) -> PostgresPosition | None:
    """Return the current position; ``None`` if there is no log, or nothing writes it."""
    found = _read_log_state(reading, layout, NO_ROW)
    if found is None:
        return None
    newest = reading.fetch_one(statements.newest(layout))
    row = NO_ROW if newest is None else (int(newest[0]), int(newest[1]))
    return PostgresPosition(log=found.log, after=found.snapshot, row=row)


def readable_snapshot(
    reading: ReadTransaction, layout: TableLayout, position: PostgresPosition
) -> str:
    """Return the snapshot that can be read now, complete since a position."""
    now = _read_log_state(reading, layout, position.row)
    if now is None:
        raise _discontinuity("nothing writes the change log any more")
    if now.log != position.log:
        raise _discontinuity("the change log was replaced, emptied or restored")
    if snapshot_xmax(position.to or position.after) > snapshot_xmax(now.snapshot):
        if now.is_standby:
            raise SourceUnavailableError("the standby is behind the last position read")
        raise _discontinuity("the server was restored")
    if now.pruned_to >= snapshot_xmin(position.after):
        raise _discontinuity("changes were pruned before they were read")
    if position.row != NO_ROW and not now.has_row and position.row[0] > now.pruned_to:
        raise _discontinuity("changes that were read already are gone")
    return now.snapshot


def log_warnings(reading: ReadTransaction, layout: TableLayout) -> Sequence[tuple[str, str]]:
    """Return warnings of triggers that miss the writes of replication."""
    answer = reading.fetch_one(statements.weak_triggers(layout))
    if answer is None or not answer[0]:
        return ()
    missed = "changes that are written with session_replication_role = replica are not logged"
    return (("log-partial", f"{missed}; what mends it: {answer[0]}"),)


def _read_log_state(reading: ReadTransaction, layout: TableLayout, row: LogRow) -> _LogState | None:
    answer = reading.fetch_one(statements.server_state(layout))
    assert answer is not None
    snapshot, is_standby, system, timeline, is_there, tables = answer
    triggers = len(statements.triggers_of(layout))
    if not is_there or len(tables) != triggers:
        return None
    state = reading.fetch_one(statements.state(layout, row))
    if state is None:
        return None
    incarnation, pruned_to, has_row = state
    names = ".".join(str(table) for table in sorted(set(tables)))
    if is_standby:  # its running writers are unknown: only rows older than all of them
        snapshot = f"{snapshot_xmin(snapshot)}:{snapshot_xmin(snapshot)}:"
    return _LogState(
        log=f"{system}-{timeline}-{names}-{incarnation}",
        snapshot=snapshot,
        is_standby=is_standby,
        pruned_to=int(pruned_to),
        has_row=has_row,
    )


def _discontinuity(why: str) -> DiscontinuityError:
    return DiscontinuityError(
        f"PostgreSQL: {why}",
        evidence=(("kept", "what was known before"),),
        hint="all rows are read again",
    )
