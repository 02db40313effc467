"""The ``Account`` port on a table or query of PostgreSQL: all rows, or the changes in its log.

The position in the log is a text that is stored between runs. Probes show whether the log can be
resumed, and up to where it can be read now.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Annotated, Final, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from resourcesync.errors import ConfigurationError, DiscontinuityError, SourceUnavailableError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, ResourceAccount
from resourcesync_postgresql import statements
from resourcesync_postgresql.layout import TableLayout, parse_layout
from resourcesync_postgresql.rows import Row, RowDecoder, moment_of
from resourcesync_postgresql.session import PostgresSession

_POLLED: Final = 10.0
_BREATH: Final = 1.0
_SNAPSHOT: Final = r"^[0-9]{1,20}:[0-9]{1,20}:(?:[0-9]{1,20}(?:,[0-9]{1,20})*)?\Z"
_MAX: Final = 1 << 64

_Number = Annotated[int, msgspec.Meta(ge=0)]
LogRow = tuple[_Number, _Number]
"""The transaction and the number of a row of the log."""
NO_ROW: Final[LogRow] = (0, 0)


class PostgresPosition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A position in a log: all rows visible in the snapshot ``after`` are read.

    Of those in ``to``, which is empty between two snapshots, the rows up to ``row`` are read, too.
    That row, the last one read, must still exist, or be known as pruned.
    """

    log: str  # the identity of log and server: another log has other positions
    after: Annotated[str, msgspec.Meta(pattern=_SNAPSHOT)]
    to: Annotated[str, msgspec.Meta(pattern=f"^$|{_SNAPSHOT}")] = ""
    row: LogRow = NO_ROW

    def __post_init__(self) -> None:
        for snapshot in filter(None, (self.after, self.to)):
            if not snapshot_xmin(snapshot) <= snapshot_xmax(snapshot) < _MAX:
                raise ValueError("no snapshot")
        if max(self.row) >= _MAX:
            raise ValueError("no row")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the position in a text."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise DiscontinuityError(
                "the stored position in the change log of PostgreSQL is invalid",
                evidence=(("kept", text[:200]),),
            ) from error

    @property
    def text(self) -> str:
        """The position as text."""
        return msgspec.json.encode(self).decode()

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


class _LogState(NamedTuple):
    """The state of a log, and whether the requested row exists."""

    log: str  # its identity: server, timeline, tables, and start
    snapshot: str
    is_standby: bool
    pruned_to: int  # the last transaction whose rows may have been pruned
    has_row: bool


def start_position(session: PostgresSession, layout: TableLayout) -> PostgresPosition | None:
    """Return the current position; ``None`` if there is no log, or nothing writes it."""
    found = _read_log_state(session, layout, NO_ROW)
    if found is None:
        return None
    newest = session.fetch_one(statements.newest(layout))
    row = NO_ROW if newest is None else (int(newest[0]), int(newest[1]))
    return PostgresPosition(log=found.log, after=found.snapshot, row=row)


def readable_snapshot(
    session: PostgresSession, layout: TableLayout, position: PostgresPosition
) -> str:
    """Return the snapshot that can be read now, complete since a position."""
    now = _read_log_state(session, layout, position.row)
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


def log_warnings(session: PostgresSession, layout: TableLayout) -> Sequence[tuple[str, str]]:
    """Return warnings of triggers that miss the writes of replication."""
    answer = session.fetch_one(statements.weak_triggers(layout))
    if answer is None or not answer[0]:
        return ()
    missed = "changes that are written with session_replication_role = replica are not logged"
    return (("log-partial", f"{missed}; what mends it: {answer[0]}"),)


def _read_log_state(session: PostgresSession, layout: TableLayout, row: LogRow) -> _LogState | None:
    answer = session.fetch_one(statements.server_state(layout))
    assert answer is not None
    snapshot, is_standby, system, timeline, is_there, tables = answer
    triggers = len(statements.triggers_of(layout))
    if not is_there or len(tables) != triggers:
        return None
    state = session.fetch_one(statements.state(layout, row))
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


@contextmanager
def open_account(options: AccountOptions) -> Iterator[ResourceAccount]:
    """Open a table or query; the connection opens on first use."""
    layout = parse_layout(options.values, options.base_uri)
    if not layout.query:
        raise ConfigurationError(
            "no query is given",
            hint="give it by the option query (query=file:PATH): --with query='SELECT …'",
        )
    password = options.values.get("password", "")
    session = PostgresSession(options.address, password, layout.timeout, options.clock)
    with closing(session):
        yield PostgresAccount(session, layout, options.clock)


class PostgresAccount(ResourceAccount):
    """An account of a table or query. See ``Account``."""

    can_list_resources = True

    def __init__(self, session: PostgresSession, layout: TableLayout, clock: Clock) -> None:
        self._session = session
        self._layout = layout
        self._clock = clock
        self._known_rows: RowDecoder | None = None
        self._is_warned = False

    def position(self) -> str:
        """Return the position of the log; empty if there is none, or nothing writes it."""
        if not self._layout.log:
            return ""
        with self._session.snapshot():
            self._rows()  # reports a missing column as such
            found = start_position(self._session, self._layout)
        return "" if found is None else found.text

    def resources(self) -> Iterator[Resource]:
        """Yield the resources of all rows, in one snapshot."""
        with self._session.snapshot():
            rows = self._rows()
            query = statements.all_rows(self._layout, rows.expressions)
            for some in self._session.copy_rows(query):
                yield from rows.resources(some)

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield the current state of rows whose keys were logged after a position."""
        told = position = PostgresPosition.parse(after)
        warnings: Sequence[tuple[str, str]] = ()
        until = self._clock.monotonic() + wait
        if wait > 0:
            self._session.listen(self._layout.log[-1])
        while True:
            with self._session.snapshot():
                position, changes = self._read_page(position)
                fresh = self._warn_once()
            warnings = fresh or warnings
            if changes or fresh:
                told = position
                yield self._batch(position, changes, warnings)
            if position.to:
                continue
            if self._clock.monotonic() >= until:
                break
            self._wait(until)
        if position != told:
            yield self._batch(position, (), warnings)

    def _batch(
        self,
        position: PostgresPosition,
        changes: Sequence[Change],
        warnings: Sequence[tuple[str, str]],
    ) -> ChangeBatch:
        """Return changes; on a standby, or without ``notify``, commits do not announce them."""
        is_announced = self._session.is_listening
        return ChangeBatch(position.text, changes, warnings=warnings, is_announced=is_announced)

    def _warn_once(self) -> Sequence[tuple[str, str]]:
        """Return the warnings of the log; only the first time."""
        if self._is_warned:
            return ()
        self._is_warned = True
        return log_warnings(self._session, self._layout)

    def _wait(self, until: float) -> None:
        """Wait until something may have changed, but not less than a second."""
        started = self._clock.monotonic()
        most = min(until, started + _POLLED)
        while (left := most - self._clock.monotonic()) > 0 and not self._session.wait(left):
            pass
        soonest = min(started + _BREATH, until)
        self._clock.sleep(max(0.0, soonest - self._clock.monotonic()))

    def _read_page(self, position: PostgresPosition) -> tuple[PostgresPosition, list[Change]]:
        """Return the changes of the next page, and the position after them."""
        session, rows = self._session, self._rows()  # reports a missing column as such
        now = readable_snapshot(session, self._layout, position)
        to = position.to or now
        if to == position.after:
            return position, []
        begin = position.begin
        unread = statements.unread(position.after, to, begin)
        last = session.fetch_one(statements.page_end(self._layout, unread))
        if last is None:
            return replace(position, after=to, to=""), []
        row = (int(last[0]), int(last[1]))
        page = statements.page(self._layout, rows.expressions, unread, row)
        changes = [
            change for some in session.copy_rows(page) for change in self._page_changes(rows, some)
        ]
        if int(last[2]) < statements.PAGE:
            return replace(position, after=to, to="", row=row), changes
        return replace(position, to=to, row=row), changes

    def _page_changes(self, rows: RowDecoder, page: Sequence[Row]) -> Iterator[Change]:
        """Yield the change of each key: its row now, or deleted."""
        keys = len(self._layout.key)
        places = [self._layout.key.index(field) + 1 for field in self._layout.uri.fields]
        uris = self._layout.uri.expand([[row[at] for row in page] for at in places])
        present = [row[keys + 2 :] for row in page if row[keys + 1] is not None]
        found = iter(rows.resources(present) if present else ())
        for row, uri in zip(page, uris, strict=True):
            time = moment_of(row[0] or "")
            if row[keys + 1] is None:
                yield Change(kind=ChangeKind.DELETED, time=time, resource=Resource(uri=uri))
            else:
                yield Change(kind=ChangeKind.UPDATED, time=time, resource=next(found))

    def _rows(self) -> RowDecoder:
        if self._known_rows is None:
            columns = self._session.columns(statements.described(self._layout))
            self._known_rows = RowDecoder(self._layout, columns)
        return self._known_rows
