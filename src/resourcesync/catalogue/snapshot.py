"""A consistent view of the catalogue: a read transaction."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from resourcesync.catalogue.recording import latest_moment
from resourcesync.catalogue.rows import changes_from_rows, from_row, from_rows
from resourcesync.errors import StateError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import from_microseconds
from resourcesync.sqlite_file import Connection

_RUN: Final = 512
_RANGE: Final = """
SELECT uri, lastmod_us, length, hash, media_type, more FROM resource
WHERE uri >= ? {} ORDER BY uri
"""
_EDITS: Final = """
SELECT CAST(edit.uri AS BLOB), resource.uri, lastmod_us, length, hash, media_type, more
FROM edit LEFT JOIN resource USING (uri) WHERE typeof(edit.uri) = 'text' ORDER BY edit.uri
"""
_CHANGES: Final = """
SELECT seq, change, datetime_us, uri, lastmod_us, length, hash, media_type, more
FROM change WHERE seq > ? ORDER BY seq
"""
_BEFORE: Final = "SELECT datetime_us FROM change WHERE seq <= ? ORDER BY seq DESC LIMIT 1"


class CatalogueSnapshot:
    """A consistent view of the catalogue, made by ``SourceCatalogue.snapshot``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        latest = latest_moment(connection)
        if latest is None:
            raise StateError(
                "nothing was recorded yet",
                hint="publish a folder first, or record resources in a catalogue: "
                "resourcesync catalogue import CATALOGUE FILE",
            )
        self.at = from_microseconds(latest)
        """The time up to which this view includes every change; all later changes are later."""

    def resources(self, start: str = "", end: str | None = None) -> Iterator[Resource]:
        """Yield the resources in rising URI order, those from ``start`` up to before ``end``."""
        return chain.from_iterable(self.batches(start, end))

    def batches(self, start: str = "", end: str | None = None) -> Iterator[Sequence[Resource]]:
        """Yield the same, some hundred at a time."""
        bounds = (start,) if end is None else (start, end)
        query = _RANGE.format("" if end is None else "AND uri < ?")
        rows = self._connection.execute(query, bounds)
        while some := rows.fetchmany(_RUN):
            yield from_rows(some)

    def edits(self) -> Iterator[tuple[str, Resource | None]]:
        """Yield each URI whose resource was written or removed since edits were last forgotten.

        In rising URI order, with the resource as it is now, ``None`` when it is gone. It may be as
        it was before. The first recording is no edit.
        """
        for uri, *row in self._connection.execute(_EDITS):
            # The URI of a row that another program wrote and deleted may be no UTF-8.
            yield uri.decode(errors="replace"), None if row[0] is None else from_row(tuple(row))

    def last_edit(self) -> int:
        """Return the number up to which the edits of this view may be forgotten."""
        return self._number("SELECT ifnull(max(number), 0) FROM edit")

    def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
        """Yield ``(sequence number, change)`` in order of time, those after number ``after``."""
        before = self._connection.execute(_BEFORE, (after,)).fetchone()
        rows = self._connection.execute(_CHANGES, (after,))
        for row, change in changes_from_rows(rows, *(before or ())):
            if isinstance(change, StateError):
                raise change
            yield row[0], change

    def count(self, most: int | None = None) -> int:
        """Return the number of resources, or ``most`` when there are more."""
        query = "SELECT count(*) FROM (SELECT 1 FROM resource LIMIT ?)"
        return self._number(query, -1 if most is None else most)

    def last_change(self) -> int:
        """Return the newest change's sequence number, 0 when there is none."""
        return self._number("SELECT ifnull(max(seq), 0) FROM change")

    def _number(self, query: str, *values: int) -> int:
        found: int = self._connection.execute(query, values).fetchone()[0]
        return found
