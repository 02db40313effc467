"""Mirrors as ``status``, ``watch`` and the pages show them: their fields, the table, and notes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from resourcesync.cli.exit_codes import exit_code_of_kind
from resourcesync.cli.output import with_mirror
from resourcesync.cli.render.pull import deletions_line, release_steps, say
from resourcesync.destination.mirror_health import CheckedMirror, pending_of, pending_text
from resourcesync.destination.reports import (
    FailedRun,
    Failing,
    LastingFailure,
    MirrorState,
    MirrorStatus,
    report_fields,
)
from resourcesync.errors import quoted
from resourcesync.model import formatting

if TYPE_CHECKING:
    from resourcesync.app.source_status import SourceStatus
    from resourcesync.cli.output import Problem
    from resourcesync.server.metrics import Metric

_COLUMNS: Final = ("MIRROR", "STATE", "IN SYNC", "LAG", "LAST PULL", "COPIES", "FAILING")
_SOURCE_COLUMNS: Final = ("SOURCE", "STATE", "LAST RUN", "LAST CHANGE", "RESOURCES")
_NUMBERS: Final = frozenset({"COPIES", "FAILING", "RESOURCES"})
_UNKNOWN: Final = ("-",) * (len(_COLUMNS) - 2)
_RUNNING: Final = "a run is under way"


class Unreadable(NamedTuple):
    """A mirror or Source whose state cannot be read now: its name, and the reason."""

    name: str
    problem: "Problem"
    noun: str = "mirror"
    folder: str = ""


def mirror_fields(seen: CheckedMirror) -> dict[str, object]:
    """Return the fields of a mirror's event, whose numbers are its metrics."""
    status, disk = seen.status, seen.disk
    fields = report_fields(status)
    if status.failed_run is not None:
        hint = with_mirror(status.failed_run.hint, status.mirror)
        fields["failed_run"] = {**_failed_fields(status.failed_run), "hint": hint}
    fields["listed"] = {**report_fields(status.listed), "pending": pending_of(status)}
    return {
        **fields,
        "running": status.state is MirrorState.SYNCING,
        "paused": seen.is_paused,
        "in_sync_ratio": status.share,
        "lag_seconds": _rounded(seen.lag),
        "max_lag_seconds": seen.max_lag,
        "source_quiet_seconds": _rounded(seen.quiet),
        "disk_bytes": disk and disk.total,
        "disk_free_bytes": disk and disk.free,
    }


def source_fields(source: "SourceStatus") -> dict[str, object]:
    """Return the fields of a Source's event, whose numbers are its metrics."""
    failed = source.failed_run
    return {**report_fields(source), "failed_run": failed and _failed_fields(failed)}


def _failed_fields(failed: FailedRun) -> dict[str, object]:
    code = exit_code_of_kind(failed.kind)
    return {**report_fields(failed), "exit": None if code is None else int(code)}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def lag_of(status: MirrorStatus, now: datetime) -> float | None:
    """Return the seconds since the mirror was last found in sync; ``None`` if it never was."""
    moment = status.in_sync_at
    return None if moment is None else max((now - moment).total_seconds(), 0.0)


def status_table(
    mirrors: Sequence[CheckedMirror], now: datetime, unreadable: Sequence[str] = ()
) -> list[str]:
    """Return the table of the mirrors."""
    if not mirrors and not unreadable:
        return []
    unknown = [(formatting.escape(name), "unreadable", *_UNKNOWN) for name in unreadable]
    return _aligned([_COLUMNS, *unknown, *(_row(mirror, now) for mirror in mirrors)])


def source_table(
    sources: "Sequence[SourceStatus]", now: datetime, unreadable: Sequence[str] = ()
) -> list[str]:
    """Return the table of the Sources."""
    rows = [(formatting.escape(name), "unreadable", "-", "-", "-") for name in unreadable]
    rows += [
        (
            formatting.escape(source.source),
            source.state.value,
            _ago(source.last_run, now),
            _ago(source.changed_at, now),
            formatting.count(source.resources),
        )
        for source in sources
    ]
    return _aligned([_SOURCE_COLUMNS, *rows]) if rows else []


def _ago(moment: datetime | None, now: datetime) -> str:
    return "never" if moment is None else f"{formatting.age((now - moment).total_seconds())} ago"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    columns = []
    for head, *cells in zip(*rows, strict=True):
        width = max(map(len, (head, *cells)))
        adjust = str.rjust if head in _NUMBERS else str.ljust
        columns.append([adjust(cell, width) for cell in (head, *cells)])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def _row(seen: CheckedMirror, now: datetime) -> tuple[str, ...]:
    mirror, lag = seen.status, seen.lag
    return (
        formatting.escape(mirror.mirror),
        f"{mirror.state.value}, paused" if seen.is_paused else mirror.state.value,
        mirror.share_text,
        "-" if lag is None else formatting.age(lag),
        _ago(mirror.last_run, now),
        formatting.count(mirror.resources),
        "-" if mirror.state is MirrorState.SYNCING else pending_text(mirror),
    )


def status_details(notes: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """Return the notes about mirrors or Sources, by their names."""
    lines: list[str] = []
    for name, own in notes:
        head = f"{name}  "
        for note in own:
            lines.append(f"{head}{note}")
            head = " " * len(head)
    return ["", *lines] if lines else []


def notes_of_source(source: "SourceStatus") -> Iterator[str]:
    """Yield the notes about a Source, and what is next."""
    again, failed = f"resourcesync publish {quoted(source.source, 'DIR')}", source.failed_run
    if failed is not None:
        yield from _failed("run", failed, source.last_run, failed.hint or again)
    elif source.last_run is None:
        yield f"next   {again}"
    if source.unpublished:
        files = formatting.counted(source.unpublished, "file")
        yield f"{files} not published as they are; to see which: {again}"
    if source.is_late:
        lag, most = source.lag_seconds, formatting.age(source.max_lag_seconds or 0)
        found = "never published" if lag is None else f"last published {formatting.age(lag)} ago"
        yield f"late: all of it was {found}; max_lag is {most}."
    if source.next_list is not None:
        yield f"next Resource List {formatting.moment(source.next_list)}"


def notes_of(seen: CheckedMirror, next_pull: str = "") -> list[str]:
    """Return the notes about a mirror that is not in sync, and the next steps."""
    mirror = seen.status
    listed, ended = mirror.listed, mirror.last_run
    is_running = mirror.state is MirrorState.SYNCING  # then what was not tried yet is no failure
    failures = [failing for failing in mirror.failures if failing.tries or not is_running][:3]
    is_complete = len(mirror.failures) >= listed.pending  # only then the counts are right
    counts = Counter(failing.code for failing in mirror.failures if is_complete)
    faults = list(say("faults", mirror, mirror.mirror, more=counts))
    notes = [*_pending_deletions(mirror), *_why_failed(mirror), *_uncounted(mirror)]
    if listed.pending:
        waiting = formatting.counted(listed.pending, "listed resource")
        notes.append(f"{waiting} not in the mirror as listed; {_tried_again(mirror, next_pull)}.")
    elif mirror.is_refuted and mirror.state is MirrorState.BEHIND and not faults:
        again = f"resourcesync pull {mirror.mirror}"
        notes.append(f"an audit or repair found that it is not in sync; next: {again}")
    notes += [f"! {failing.uri}   {_failure(failing, ended)}" for failing in failures]
    is_unpulled = mirror.state is MirrorState.NEW and not next_pull
    if (mirror.state is MirrorState.BEHIND or is_unpulled) and not (notes or faults):
        faults.append(f"next: resourcesync pull {mirror.mirror}")
    for said in (*faults, *say("remarks", mirror, mirror.mirror)):
        notes += said.split("\n")
    return [*notes, *_exceeded_limits(seen)]


def _exceeded_limits(seen: CheckedMirror) -> Iterator[str]:
    mirror, as_of = seen.status, seen.status.as_of
    if mirror.is_recheck_late:
        reached = formatting.span(mirror.recheck_reached_seconds)
        within = formatting.span(mirror.recheck_seconds or 0)
        yield f"warning: these are requested again within {reached}, not {within}:"
        yield "pull more often, or give them more time with -o recheck=TIME."
    if seen.is_full and seen.disk is not None and mirror.failed_run is None:
        free = formatting.size(seen.disk.free)
        yield f"no space left on its disk ({free} free): pulls store nothing."
        again = f"resourcesync trash empty {quoted(mirror.mirror, 'MIRROR')} --all"
        more = f", such as in its trash: {again}" if mirror.has_trash else ""
        yield f"next   free disk space{more}"
    if seen.is_late and seen.max_lag is not None:
        found = f"was last found in sync {formatting.age(seen.lag or 0)} ago"
        found = "was never found in sync" if seen.lag is None else found
        yield f"late: it {found}; max_lag is {formatting.age(seen.max_lag)}."
    if seen.is_too_quiet:
        if as_of is None:
            yield "the Source states no time (a plain sitemap has none): leave max_quiet out."
        else:
            since = formatting.moment(as_of)
            yield f"the Source has not published since {since}: check that it still runs."


def _pending_deletions(mirror: MirrorStatus) -> Iterator[str]:
    if mirror.deletions > mirror.held:
        yield f"{formatting.counted(mirror.deletions, 'deletion')} pending until the next pull."
    if mirror.held:
        yield f"{deletions_line(mirror)}; held back."
        yield from release_steps(mirror, mirror.mirror, mirror.stopped_command)


def _uncounted(mirror: MirrorStatus) -> Iterator[str]:
    faults, is_known = mirror.faults, mirror.is_counted or mirror.listed.since is not None
    is_known = is_known or faults.gap or bool(faults.undecided or mirror.retained.open)
    if is_known or not mirror.resources:
        return
    has_been = mirror.in_sync_at is not None  # a pull may be complete, and leave a question
    pull = "until a pull has read the whole list," if has_been else "no pull has completed yet, so"
    again = f"continue with: resourcesync pull {mirror.mirror}"
    now = _RUNNING if mirror.state is MirrorState.SYNCING else again
    yield f"{pull} the number of missing resources is unknown; {now}"


def _failure(failing: Failing, ended: datetime | None) -> str:
    if failing.due is None or ended is None or failing.due <= ended:
        return failing.reason
    return f"{failing.reason}; next try after {formatting.moment(failing.due)}"


def _tried_again(mirror: MirrorStatus, next_pull: str) -> str:
    if mirror.state is MirrorState.SYNCING:
        return _RUNNING
    pull = f"the next pull ({next_pull})" if next_pull else "the next pull"
    if not mirror.resting or mirror.tried_again is None:
        return f"{pull} tries again"
    rest = f"tried again by the first pull after {formatting.moment(mirror.tried_again)}"
    soon = formatting.count(mirror.listed.pending - mirror.resting)
    is_all = mirror.resting >= mirror.listed.pending
    return rest if is_all else f"{pull} tries {soon} again, the others are {rest}"


def _why_failed(mirror: MirrorStatus) -> Iterator[str]:
    failed = mirror.failed_run or FailedRun(code=mirror.outcome)
    is_cut = mirror.failed_run is not None and failed.is_stop
    if mirror.judged is not MirrorState.FAILING and not is_cut:
        return
    is_idle = mirror.state is not MirrorState.SYNCING
    again = f"resourcesync pull {mirror.mirror}" if mirror.source and is_idle else ""
    other = f"resourcesync why {failed.code}" if failed.kind else again
    next_step = with_mirror(failed.hint, mirror.mirror) or other
    yield from _failed("pull", failed, mirror.last_run, next_step)


def _failed(noun: str, failed: FailedRun, at: datetime | None, next_step: str) -> Iterator[str]:
    moment, code = "" if at is None else f" {formatting.moment(at)}", exit_code_of_kind(failed.kind)
    text = failed.text if code is None else f"{failed.text}  exit {int(code)}"
    how = f"was asked to stop{moment}" if failed.is_stop else f"failed{moment}: {text}"
    is_lasting = isinstance(failed, LastingFailure)
    yield f"each {noun} fails: {text}" if is_lasting else f"the last {noun} {how}"
    if next_step:
        yield f"next   {next_step}"


def mirror_metrics(
    mirrors: Sequence[CheckedMirror], unreadable: Sequence[Unreadable]
) -> "Iterator[Metric]":
    """Yield the metrics of mirrors; of those that cannot be read, only that they cannot."""
    from resourcesync.server.metrics import report_figures  # noqa: PLC0415 - rarely needed

    seen = [(mirror.status.judged, mirror_fields(mirror)) for mirror in mirrors]
    gone = [name for name, _, noun, _ in unreadable if noun == "mirror"]
    return report_figures("mirror", MirrorState, seen, gone)


def source_metrics(
    sources: "Sequence[SourceStatus]", unreadable: Sequence[Unreadable]
) -> "Iterator[Metric]":
    """Yield the metrics of Sources in the same way."""
    from resourcesync.app.source_status import SourceState  # noqa: PLC0415 - not for mirrors
    from resourcesync.server.metrics import report_figures  # noqa: PLC0415 - rarely needed

    seen = [(source.state, source_fields(source)) for source in sources]
    gone = [name for name, _, noun, _ in unreadable if noun == "source"]
    return report_figures("source", SourceState, seen, gone)
