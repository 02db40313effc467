"""The fields of reports: results of commands in ``--json``."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
from docs.scenario_text import attributes

from resourcesync.app.source_status import SourceStatus
from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.reports import (
    EvidenceCounts,
    ListedCounts,
    MirrorStatus,
    RetainedCounts,
    RunReport,
)

REPORTS = {"pull": RunReport, "audit": AuditReport, "status": MirrorStatus, "source": SourceStatus}
SHARED = {ListedCounts, RetainedCounts, EvidenceCounts}
"""Values of a pull that the status has, too."""
EVENTS = {"findings"}
"""Fields that are events of their own."""
ADDED = {
    "audit": {
        "mirror": "The mirror's folder.",
        "in_sync": "Everything listed is in the mirror and equal, and nothing else is.",
        "coverage": "Share of the listed that are present, 0 to 1; null if it is unknown.",
        "accuracy": "Share of the present that are equal, 0 to 1; null if it is unknown.",
    },
    "status": {
        "running": "A pull or an audit of the mirror runs.",
        "paused": "An operator paused it.",
        "in_sync_ratio": "Share of what is listed or to be deleted that is in the mirror as "
        "listed, 0 to 1.",
        "lag_seconds": "Time since the last run that found the mirror in sync.",
        "max_lag_seconds": "Longest accepted lag (`max_lag`).",
        "source_quiet_seconds": "Time since the last publication of the Source.",
        "disk_bytes": "Size of the file system of the mirror's folder.",
        "disk_free_bytes": "Bytes free there for this user.",
    },
}
"""What the event of a report has besides its fields."""


def fields(report: type[msgspec.Struct], of: str = "") -> Iterator[tuple[str, str]]:
    """Yield the fields of a report with their meanings; those within one with a dot."""
    meanings, kinds = attributes(report), get_type_hints(report)
    for name in report.__struct_fields__:
        if name in EVENTS:
            continue
        kind = kinds[name]
        yield f"{of}{name}", meanings[name]
        inner = [one for one in (kind, *get_args(kind)) if is_report(one)]
        if inner and not (
            report is MirrorStatus and inner[0] in get_type_hints(RunReport).values()
        ):
            several = "[]" if getattr(kind, "__origin__", None) is tuple else ""
            yield from fields(inner[0], f"{of}{name}{several}.")


def is_report(kind: Any) -> bool:
    """True if a type is a value of several fields."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def results(name: str) -> str:
    """Return the fields of a report as a list."""
    rows = [*fields(REPORTS[name]), *ADDED.get(name, {}).items()]
    return "".join(f"- `{field}`: {meaning}\n" for field, meaning in rows)
