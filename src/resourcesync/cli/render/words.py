"""The words for the counts of reports: the file ``words.txt``, one row for each field."""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from resourcesync.cli import formatting
from resourcesync.destination.reports import MirrorStatus, RunReport

_EITHER: Final = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_MARGIN: Final = 27
"""Width of the names; a row goes on in lines without one."""


def _read() -> dict[str, dict[str, str]]:
    table: dict[str, str] = {}
    tables: dict[str, dict[str, str]] = {}
    for line in Path(__file__).with_name("words.txt").read_text("utf-8").splitlines():
        name, text = line[:_MARGIN].strip(), line[_MARGIN:]
        if not text:
            table = tables[name] = {}
        elif name:
            table[name] = text
        else:
            table[next(reversed(table))] += f"\n{text}"
    return tables


_TABLES: Final = _read()


def say(
    table: str,
    report: RunReport | MirrorStatus,
    folder: str = "",
    *,
    more: Mapping[str, object] | None = None,
    only: Collection[str] = (),
) -> Iterator[str]:
    """Yield the words of a table for each count of a report that is not 0.

    The tables are the ``changes`` of the run, what the mirror ``lacks``, ``remarks`` that do not
    make it wrong, and ``faults`` with the next step. ``more`` are counts that are no field.
    """
    known: dict[str, Any] = {**dict(_numbers(report)), **(more or {})}
    if since := report.listed.since:
        known["accepted_since" if report.listed.is_since_accepted else "open_since"] = since
        known["faults.gap"] = False
    as_of = report.as_of
    values = {
        "folder": folder,
        "resources": formatting.count(report.resources),
        "absent": formatting.count(report.listed.absent),
        "listed": formatting.count(report.listed.total),
        "since": f" since {formatting.moment(as_of)}" if isinstance(as_of, datetime) else "",
    }
    for field, words in _TABLES[table].items():
        number = known.get(field, 0)
        if number and (not only or field in only):
            text = _EITHER.sub(r"\1" if number == 1 else r"\2", words)
            if isinstance(number, datetime):
                number = formatting.moment(number)
            shown = number if isinstance(number, str) else formatting.count(int(number))
            yield text.format(n=shown, **values)


def _numbers(report: Any, of: str = "") -> Iterator[tuple[str, object]]:
    """Yield the fields of a report, those within a value of it with a dot."""
    for name in report.__struct_fields__:
        value = getattr(report, name)
        if hasattr(value, "__struct_fields__"):
            yield from _numbers(value, f"{of}{name}.")
        else:
            yield f"{of}{name}", value
