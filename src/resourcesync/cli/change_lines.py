"""How the changes of a mirror are written: as lines, as JSON, as paths, as a table."""

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from resourcesync.cli.output import OutputLostError, Screen
from resourcesync.cli.words import TextLine, count, escape, moment, stamp
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports.changes import LoggedChange, MirrorChangeKind
from resourcesync.ports.mirror import MirrorStateStore

_SYMBOLS: Final = {
    MirrorChangeKind.CREATED.value: "+",
    MirrorChangeKind.UPDATED.value: "*",
    MirrorChangeKind.DELETED.value: "-",
    MirrorChangeKind.TOUCHED.value: "=",
}
_CSV_COLUMNS: Final = ("seq", "time", "change", "uri", "path", "bytes", "hash", "prev_hash")


def change_fields(change: LoggedChange) -> dict[str, object]:
    """Return a change as the fields of its event; what is not known is left out."""
    fields: dict[str, object] = {
        "seq": change.seq,
        "change": change.kind,
        "uri": change.uri,
        "path": change.path,
        "bytes": change.length,
        "hash": change.digests,
        "prev_hash": change.previous,
        "time": from_microseconds(change.time),
    }
    return {name: value for name, value in fields.items() if value != ""}


def render_change(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    """Yield the line of a change."""
    if event == "change":
        at = moment(fields["time"])  # type: ignore[arg-type]  # fields_of put it there
        size = fields["bytes"]
        amount = f"{count(size)} B" if isinstance(size, int) else ""
        yield TextLine(f"/{fields['path']}   {amount}   {at}", _SYMBOLS[str(fields["change"])])


def change_writer(
    form: str, screen: Screen, state: MirrorStateStore
) -> Callable[[LoggedChange], None]:
    """Return what writes one change, and raises when nobody takes it.

    Args:
        form: How it is written.
        screen: Where it is told, in the forms that have no own.
        state: The mirror's memory: a bare path cannot say whether something is there.
    """
    match form:
        case "paths0":
            return lambda change: _write_path(change, there=True, state=state)
        case "deleted-paths0":
            return lambda change: _write_path(change, there=False, state=state)
        case "csv":
            return _ChangeCsv()
        case _:
            return lambda change: screen.report("change", change_fields(change))


def _write_path(change: LoggedChange, *, there: bool, state: MirrorStateStore) -> None:
    was_deleted = change.kind == MirrorChangeKind.DELETED
    if was_deleted is not there and (state.copy(change.uri) is not None) is there:
        _write(f"{change.path}\0")


class _ChangeCsv:
    """Writes a row for each change, and the heads above the first."""

    def __init__(self) -> None:
        self._row(_CSV_COLUMNS)

    def __call__(self, change: LoggedChange) -> None:
        time = stamp(from_microseconds(change.time))
        uri, path = escape(change.uri), escape(change.path)
        number, size = str(change.seq), str(change.length)
        self._row((number, time, change.kind, uri, path, size, change.digests, change.previous))

    def _row(self, cells: tuple[str, ...]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        _write(line.getvalue())


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise OutputLostError(error) from error
