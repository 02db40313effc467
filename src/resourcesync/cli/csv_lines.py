"""Lines of CSV on stdout: a header, then a row for each item."""

import csv
import io
import sys
from collections.abc import Iterable

from resourcesync.cli.output import OutputLostError


class CsvLines:
    """Writer of lines of CSV, which are on their way when a call returns."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.write(columns)

    def write(self, cells: Iterable[str]) -> None:
        """Write a row."""
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
