"""The mirrors as ``status`` and the pages show them: the table, its notes, and the fields."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from math import inf
from typing import Any, Final

from resourcesync.cli import formatting
from resourcesync.cli.exit_codes import exit_code_of_kind
from resourcesync.cli.formatting import TextLine
from resourcesync.cli.output import with_mirror
from resourcesync.cli.render.status_formats import CheckedMirror
from resourcesync.destination.reports import FailedRun, Failing, MirrorState, MirrorStatus
from resourcesync.errors import quoted

_COLUMNS: Final = ("MIRROR", "STATE", "IN SYNC", "LAG", "LAST PULL", "RESOURCES", "FAILING")
_NUMBERS: Final = frozenset({"RESOURCES", "FAILING"})
_UNKNOWN: Final = ("-",) * (len(_COLUMNS) - 2)
_GAP: Final = "  "


def limit_lines(mirrors: Sequence[CheckedMirror]) -> Iterator[TextLine]:
    """Yield the mirrors that are late, have no room, or whose Sources are quiet for too long."""
    for mirror in mirrors:
        yield from (TextLine(f"{mirror.status.folder}  {note}") for note in full_disk_notes(mirror))
        if mirror.is_late and mirror.limits.max_lag is not None:
            found = (
                "was never found in sync"
                if mirror.lag is None
                else f"was last found in sync {formatting.age(mirror.lag)} ago"
            )
            limit = formatting.age(mirror.limits.max_lag)
            yield TextLine(f"{mirror.status.folder}  late: it {found}; max_lag is {limit}.")
        if mirror.is_too_quiet:
            known = mirror.status.as_of
            since = (
                "lists no times"
                if known is None
                else f"has not published since {formatting.moment(known)}"
            )
            yield TextLine(f"{mirror.status.folder}  the Source {since}: check that it still runs.")


def full_disk_notes(mirror: CheckedMirror) -> list[str]:
    """Return the notes about a mirror on a full disk whose state does not say why pulls fail."""
    if not mirror.is_full or mirror.disk is None or mirror.status.failed is not None:
        return []
    name, free = quoted(mirror.status.folder, "MIRROR"), formatting.size(mirror.disk.free)
    return [
        f"no space left on its disk ({free} free): pulls store nothing.",
        f"next   free disk space: resourcesync trash empty {name} --all",
    ]


def lag_of(status: MirrorStatus, now: datetime) -> float | None:
    """Return the seconds since the mirror was last found in sync; ``None`` if it never was."""
    moment = status.in_sync_at
    return None if moment is None else max((now - moment).total_seconds(), 0.0)


def _lateness(status: MirrorStatus, now: datetime) -> float:
    """Return the lag; infinite if it is unknown."""
    lag = lag_of(status, now)
    return inf if lag is None else lag


def status_table(
    mirrors: Sequence[MirrorStatus],
    now: datetime,
    order: str = "lag",
    unreadable: Sequence[str] = (),
) -> list[str]:
    """Return the table of the mirrors, by default with the longest lag first."""
    if not mirrors and not unreadable:
        return []
    ordered = sorted(mirrors, key=lambda mirror: -_lateness(mirror, now))
    ordered.sort(key=_ORDERS.get(order, lambda _: 0))
    unknown = [(formatting.escape(name), "unreadable", *_UNKNOWN) for name in unreadable]
    rows = [_COLUMNS, *unknown, *(_row(mirror, now) for mirror in ordered)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    return [_GAP.join(_cells(row, widths)).rstrip() for row in rows]


_ORDERS: Final[dict[str, Callable[[MirrorStatus], Any]]] = {
    "name": lambda mirror: mirror.folder,
    "state": lambda mirror: mirror.state.value,
    "failing": lambda mirror: -mirror.pending,
}


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.rjust(width) if head in _NUMBERS else cell.ljust(width)
        for head, cell, width in zip(_COLUMNS, row, widths, strict=True)
    ]


def _row(mirror: MirrorStatus, now: datetime) -> tuple[str, ...]:
    lag = lag_of(mirror, now)
    ran = "never"
    if mirror.last_run is not None:
        ran = f"{formatting.age((now - mirror.last_run).total_seconds())} ago"
    return (
        formatting.escape(mirror.folder),
        mirror.state.value,
        mirror.share_text,
        "-" if lag is None else formatting.age(lag),
        ran,
        formatting.count(mirror.resources),
        formatting.count(mirror.pending),
    )


def status_details(mirrors: Sequence[MirrorStatus]) -> list[TextLine]:
    """Return the notes about the mirrors that are not in sync."""
    lines: list[TextLine] = []
    for mirror in mirrors:
        notes = notes_of(mirror)
        head = f"{mirror.folder}  "
        for note in notes:
            lines.append(TextLine(f"{head}{note}"))
            head = " " * len(head)
    return [TextLine(""), *lines] if lines else []


def notes_of(mirror: MirrorStatus, next_pull: str = "") -> list[str]:
    """Return the notes about a mirror that is not in sync, and the next steps."""
    notes = []
    again = f"resourcesync pull {mirror.folder}"
    if mirror.held and mirror.state is not MirrorState.STOPPED:
        deletions = formatting.counted(mirror.held, "deletion")
        notes.append(f"{deletions} pending until the next pull.")
    elif mirror.held:
        share = formatting.share(mirror.held, mirror.resources)
        held, all_ = formatting.count(mirror.held), formatting.count(mirror.resources)
        notes.append(f"would delete {held} of {all_} ({share}); held back.")
        if mirror.moved_from:
            notes.append(f"If the Source did not move: {again} --moved {mirror.moved_from}")
        notes.append(f"If the Source really shrank: {again} --max-delete {mirror.held}")
    if mirror.state is MirrorState.FAILING:
        notes += _why_failed(mirror)
    if not mirror.is_counted and mirror.resources:
        pull = (
            "the last pull did not complete" if mirror.in_sync_at else "no pull has completed yet"
        )
        is_running = mirror.state is MirrorState.SYNCING
        now = "a run is under way" if is_running else f"continue with: {again}"
        notes.append(f"{pull}, so the number of missing resources is unknown; {now}")
    if mirror.pending:
        waiting = formatting.counted(mirror.pending, "listed resource")
        notes.append(f"{waiting} not in the mirror as listed; {_tried_again(mirror, next_pull)}.")
        if mirror.contradicting:
            copies = formatting.counted(mirror.contradicting, "copy", "copies")
            notes.append(f"{copies} of them stored, but not matching the list (--verify lenient).")
    notes += [*_refuted(mirror), *_edited(mirror)]
    ended = mirror.last_run
    notes += [f"! {failing.uri}   {_failure(failing, ended)}" for failing in mirror.failures[:3]]
    refused = f"{formatting.count(mirror.refused)} listed but not usable" if mirror.refused else ""
    not_given = formatting.not_given(mirror.absent, mirror.skipped, mirror.unknown)
    notes += [f"{text}." for text in (not_given, refused) if text]
    return [*notes, *_known_by_date(mirror)]


def _known_by_date(mirror: MirrorStatus) -> list[str]:
    """Return the notes about copies that no hash and no request proves."""
    notes = []
    if mirror.by_date:
        known = f"{formatting.count(mirror.by_date)} of {formatting.count(mirror.resources)}"
        again = formatting.span(mirror.recheck or 0)
        turn = f"each is requested again within {again}." if mirror.recheck else "no recheck."
        if mirror.is_recheck_late:
            reached = formatting.span(mirror.recheck_reached)
            turn = f"each is requested again within {reached}, not {again}:"
        notes.append(f"{known} copies known by their dates only; {turn}")
        if mirror.is_recheck_late:
            notes.append("warning: pull more often, or give them more time with --recheck.")
    if mirror.unconfirmed:
        doubted = formatting.counted(mirror.unconfirmed, "copy", "copies")
        notes.append(f"{doubted} with a new date, but not modified by the server's word.")
    return notes


def _refuted(mirror: MirrorStatus) -> list[str]:
    """Return the note about what an audit found and the mirror's tasks do not say."""
    if mirror.pending or not mirror.refuted or mirror.state is not MirrorState.BEHIND:
        return []
    return [f"an audit found that it is not in sync; next: resourcesync pull {mirror.folder}"]


def _edited(mirror: MirrorStatus) -> list[str]:
    """Return the note about files to delete that were changed locally."""
    if not mirror.edited:
        return []
    files = formatting.counted(mirror.edited, "file")
    return [
        f"{files} to delete, but changed locally: move or remove them,",
        f"then: resourcesync pull {mirror.folder}",
    ]


def _failure(failing: Failing, ended: datetime | None) -> str:
    """Return the reason of a failure, and the time of the next try if it waits beyond a run."""
    if failing.due is None or ended is None or failing.due <= ended:
        return failing.reason
    return f"{failing.reason}; next try after {formatting.moment(failing.due)}"


def _tried_again(mirror: MirrorStatus, next_pull: str) -> str:
    """Return the time of the next try; resources that failed often wait longer."""
    pull = f"the next pull ({next_pull})" if next_pull else "the next pull"
    if not mirror.resting or mirror.tried_again is None:
        return f"{pull} tries again"
    rest = f"tried again by the first pull after {formatting.moment(mirror.tried_again)}"
    if mirror.resting >= mirror.pending:
        return rest
    soon = formatting.count(mirror.pending - mirror.resting)
    return f"{pull} tries {soon} again, the others are {rest}"


def _why_failed(mirror: MirrorStatus) -> list[str]:
    """Return the time, reason and exit code of the last failed run, and the next step."""
    failed = mirror.failed or FailedRun(code=mirror.outcome)
    code = exit_code_of_kind(failed.kind)
    at = "" if mirror.last_run is None else f" {formatting.moment(mirror.last_run)}"
    why = failed.message or failed.code
    notes = [f"the last pull failed{at}: {why}{'' if code is None else f'  exit {int(code)}'}"]
    again = f"resourcesync pull {mirror.folder}" if mirror.source else ""
    next_step = with_mirror(failed.hint, mirror.folder) or again
    return [*notes, f"next   {next_step}"] if next_step else notes


def _failed_fields(failed: FailedRun | None, mirror: str) -> dict[str, object] | None:
    if failed is None:
        return None
    code = exit_code_of_kind(failed.kind)
    hint = with_mirror(failed.hint, mirror)
    fields = {"code": failed.code, "message": failed.message, "hint": hint}
    return {**fields, "exit": None if code is None else int(code)}


def _evidence_fields(status: MirrorStatus) -> dict[str, object]:
    """Return by what the copies are known, and when they are requested again."""
    return {
        "by_hash": status.by_hash,
        "by_request": status.by_request,
        "by_date": status.by_date,
        "unconfirmed": status.unconfirmed,
        "recheck_seconds": status.recheck,
        "recheck_reached_seconds": round(status.recheck_reached, 3),
    }


def status_fields(status: MirrorStatus, now: datetime) -> dict[str, object]:
    """Return a mirror's status as the fields of its event."""
    lag = lag_of(status, now)
    return {
        "mirror": status.folder,
        "source": status.source,
        "state": status.state.value,
        "resources": status.resources,
        "pending": status.pending,
        "contradicting": status.contradicting,
        "resting": status.resting,
        "tried_again": status.tried_again,
        "refused": status.refused,
        "absent": status.absent,
        "skipped": status.skipped,
        "unknown": status.unknown,
        **_evidence_fields(status),
        "held": status.held,
        "edited": status.edited,
        "counted": status.is_counted,
        "refuted": status.refuted,
        "lag_seconds": None if lag is None else round(lag, 3),
        "as_of": status.as_of,
        "in_sync_at": status.in_sync_at,
        "last_run": status.last_run,
        "outcome": status.outcome,
        "failed_run": _failed_fields(status.failed, status.folder),
        "failures": [
            {
                "uri": failure.uri,
                "code": failure.code,
                "reason": failure.reason,
                "tries": failure.tries,
                "due": failure.due,
            }
            for failure in status.failures
        ],
    }
