"""The ``Account`` port on a table or query of PostgreSQL: all rows, or the changes in its log."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from resourcesync.errors import ConfigurationError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, ResourceAccount
from resourcesync_postgresql import change_log, statements
from resourcesync_postgresql import layout as layouts
from resourcesync_postgresql.change_log import PostgresPosition
from resourcesync_postgresql.layout import TableLayout
from resourcesync_postgresql.rows import Row, RowDecoder, moment_of
from resourcesync_postgresql.session import PostgresSession, ReadTransaction

_POLLED: Final = 10.0
_BREATH: Final = 1.0


@contextmanager
def open_account(options: AccountOptions) -> Iterator[ResourceAccount]:
    """Open a table or query; the connection opens on first use."""
    layout = layouts.parse_layout(options.values, options.base_uri)
    if not layout.query:
        raise ConfigurationError(
            "no query is given",
            hint="give it by the option query (query=file:PATH): --with query='SELECT …'",
        )
    password = options.values.get("password", "")
    session = PostgresSession(options.address, password, layout.timeout, options.clock)
    try:
        yield PostgresAccount(session, layout, options.clock)
    finally:
        session.close()


class PostgresAccount(ResourceAccount):
    """An account of a table or query. See ``Account``."""

    def __init__(self, session: PostgresSession, layout: TableLayout, clock: Clock) -> None:
        self._session = session
        self._layout = layout
        self._clock = clock
        self._known_rows: RowDecoder | None = None
        self._is_warned = False

    @property
    def can_list_resources(self) -> bool:
        """Always true: a table can be read."""
        return True

    def position(self) -> str:
        """Return the position of the log; empty if there is none, or nothing writes it."""
        if not self._layout.log:
            return ""
        with self._session.snapshot() as reading:
            self._rows(reading)  # reports a missing column as such
            found = change_log.start_position(reading, self._layout)
        return "" if found is None else found.text

    def resources(self) -> Iterator[Resource]:
        """Yield the resources of all rows, in one snapshot."""
        with self._session.snapshot() as reading:
            rows = self._rows(reading)
            for some in reading.copy_rows(statements.all_rows(self._layout, rows.expressions)):
                yield from rows.resources(some)

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield the current state of rows whose keys were logged after a position."""
        told = position = PostgresPosition.parse(after)
        warnings: Sequence[tuple[str, str]] = ()
        until = self._clock.monotonic() + wait
        if wait > 0:
            self._session.listen(self._layout.log[-1])
        while True:
            with self._session.snapshot() as reading:
                position, changes = self._read_page(reading, position)
                fresh = self._warn_once(reading)
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

    def _warn_once(self, reading: ReadTransaction) -> Sequence[tuple[str, str]]:
        """Return the warnings of the log; only the first time."""
        if self._is_warned:
            return ()
        self._is_warned = True
        return change_log.log_warnings(reading, self._layout)

    def _wait(self, until: float) -> None:
        """Wait until something may have changed, but not less than a second."""
        started = self._clock.monotonic()
        most = min(until, started + _POLLED)
        while (left := most - self._clock.monotonic()) > 0 and not self._session.wait(left):
            pass
        soonest = min(started + _BREATH, until)
        self._clock.sleep(max(0.0, soonest - self._clock.monotonic()))

    def _read_page(
        self, reading: ReadTransaction, position: PostgresPosition
    ) -> tuple[PostgresPosition, list[Change]]:
        """Return the changes of the next page, and the position after them."""
        rows = self._rows(reading)  # reports a missing column as such
        now = change_log.readable_snapshot(reading, self._layout, position)
        to = position.to or now
        if to == position.after:
            return position, []
        begin = position.begin
        unread = statements.unread(position.after, to, begin)
        last = reading.fetch_one(statements.page_end(self._layout, unread))
        if last is None:
            return replace(position, after=to, to=""), []
        row = (int(last[0]), int(last[1]))
        page = statements.page(self._layout, rows.expressions, unread, row)
        changes = [
            change for some in reading.copy_rows(page) for change in self._page_changes(rows, some)
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

    def _rows(self, reading: ReadTransaction) -> RowDecoder:
        if self._known_rows is None:
            columns = reading.columns(statements.described(self._layout))
            self._known_rows = RowDecoder(self._layout, columns)
        return self._known_rows
