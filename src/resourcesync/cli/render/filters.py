"""The line about the changed filters of a mirror."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from resourcesync.cli import formatting
from resourcesync.cli.formatting import DETAIL, NORMAL, TextLine

_FILTERS: Final = {
    "include": "--include",
    "exclude": "--exclude",
    "types": "--type",
    "max_size": "--max-size",
    "since": "--since",
    "links": "--link",
    "allow_origins": "--allow-origin",
}


_UNSET: Final[tuple[object, ...]] = (None, ())


def filters_line(fields: Mapping[str, object], *, since_moves: bool) -> TextLine:
    """Return the line about the changed filters and those that still hold.

    Args:
        fields: The fields of the event ``scope``.
        since_moves: ``--since`` is relative, such as -7d: it is another in each run.
    """
    before, after = (_filters(fields.get(name)) for name in ("before", "after"))
    changes, unchanged, level = [], [], DETAIL
    for name in _FILTERS:
        was, now = before.get(name, ""), after.get(name, "")
        if was != now and not (since_moves and name == "since" and was and now):
            level = NORMAL
        if was == now:
            unchanged += [now] if now else []
        elif was and now:
            changes.append(f"{now} instead of {was}")
        else:
            changes.append(f"{now} added" if now else f"{was} removed")
    still = f"; unchanged: {', '.join(unchanged)}" if unchanged else ""
    return TextLine(f"changed: {', '.join(changes)}{still}", "Filters", level)


def _filters(filters: object) -> dict[str, str]:
    """Return the filters that are set, each as its option is written."""
    values: Mapping[str, Any] = filters if isinstance(filters, Mapping) else dict.fromkeys(_FILTERS)
    return {name: _as_option(name, values[name]) for name in _FILTERS if values[name] not in _UNSET}


def _as_option(name: str, value: Any) -> str:
    if isinstance(value, int):
        return f"{_FILTERS[name]} {formatting.size(value).replace(' ', '')}"
    if isinstance(value, datetime):
        return f"{_FILTERS[name]} {formatting.stamp(value)}"
    return " ".join(f"{_FILTERS[name]} {shlex.quote(item)}" for item in value)
