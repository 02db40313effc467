"""Lines of CSV on stdout: a header, then a row for each item."""

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

from resourcesync.cli.output import OutputLostError
from resourcesync.model.formatting import escape, stamp


class CsvLines:
    """Writer of lines of CSV, which are on their way when a call returns."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._write(columns)

    def write(self, fields: Mapping[str, object]) -> None:
        """Write the row of an event; what is unknown is empty."""
        values = [fields.get(name, "") for name in self._columns]
        self._write(
            [
                stamp(value) if isinstance(value, datetime) else escape(str(value))
                for value in values
            ]
        )

    def _write(self, cells: Sequence[str]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        write_text(line.getvalue())


def write_text(text: str) -> None:
    """Write to stdout, and flush."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        raise OutputLostError(error) from error
