"""``resourcesync status``: the state of mirrors, without requests."""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from msgspec.structs import replace

from resourcesync.cli import configured_mirrors, formatting, options
from resourcesync.cli.configured_mirrors import ConfiguredMirror, MirrorConfiguration
from resourcesync.cli.exit_codes import ExitCode, exit_code_of_kind, worst
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen, problem_of
from resourcesync.cli.remedies import with_command
from resourcesync.cli.render.status_formats import (
    CheckedMirror,
    DiskSpace,
    UnreadableMirror,
    nagios_line,
    prometheus_lines,
)
from resourcesync.destination.reports import FailedRun, Failing, MirrorState, MirrorStatus
from resourcesync.errors import ConfigurationError, Remedy, ResourceSyncError, StorageError
from resourcesync.settings.mirror import FreshnessSettings

_COLUMNS: Final = ("MIRROR", "STATE", "IN SYNC", "LAG", "LAST PULL", "RESOURCES", "FAILING")
_NUMBERS: Final = frozenset({"RESOURCES", "FAILING"})
_UNKNOWN: Final = ("-",) * (len(_COLUMNS) - 2)
_GAP: Final = "  "


@click.command("status", cls=SectionedCommand)
@click.argument("mirrors", nargs=-1, metavar="[MIRROR...]", shell_complete=options.complete_mirror)
@option("--check", is_flag=True, help="Exit 1 unless every mirror is in sync within --max-lag.")
@option("--max-lag", type=options.DURATION, help="Longest lag that --check accepts, such as 1h.")
@option(
    "--max-quiet",
    type=options.DURATION,
    help="Longest time since the Source's last publication that --check accepts, such as 7d: after "
    "that, the Source may have stopped.",
)
@option(
    "--format",
    "format",
    type=click.Choice(["text", "json", "nagios", "prom"]),
    default="text",
    show_default=True,
    help="json is the same as --json; nagios is one line, with the exit codes of Nagios plug-ins;"
    " prom are metrics for Prometheus.",
)
@option(
    "--sort",
    type=click.Choice(["lag", "name", "state", "failing"]),
    default="lag",
    show_default=True,
    help="The order of the table: the longest lag first, or by name, state or failures.",
)
@options.CONFIG
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Show how far behind each mirror is.

    MIRROR is a name in the configuration file or a mirror's folder; without one, all mirrors of
    the configuration file, or if it has none, those in the current folder. `status` only reports,
    from the state of the mirrors: it sends no request, and without --check it exits with 0. Lag is
    the time since the last run that found the mirror in sync: it grows if the Source does not
    answer or a resource fails, not if the Source has no changes. --max-lag and --max-quiet override
    max_lag and max_quiet of a mirror's table.
    """
    configuration = configured_mirrors.load(values["config"])
    places: tuple[str, ...] = values["mirrors"] or configuration.names
    check: bool = values["check"]
    limits = FreshnessSettings(max_lag=values["max_lag"], max_quiet=values["max_quiet"])
    style: str = values["format"]
    if limits != FreshnessSettings() and not check and style != "nagios":
        name = "--max-quiet" if limits.max_lag is None else "--max-lag"
        raise click.UsageError(f"{name} needs --check or --format nagios")
    if style == "json":
        output = OutputOptions(json=True, quiet=output.quiet, verbose=output.verbose)

    def work(screen: Screen) -> CommandOutcome:
        found = read_statuses(
            places, configuration, screen, StatusCheck(is_requested=check, limits=limits)
        )
        if style == "nagios":
            line, code = nagios_line(found.mirrors, found.unreadable)
            return CommandOutcome(
                exit=code, closing=(TextLine(line, level=QUIET),), shows_exit=True
            )
        if style == "prom":
            figures = prometheus_lines(found.mirrors, found.unreadable)
            lines = tuple(TextLine(text, level=QUIET) for text in figures)
            return CommandOutcome(exit=found.exit, closing=lines)
        return _table(found, values["sort"])

    return Job(command="status", acts=check and style == "text", output=output, work=work)


def _read_status(folder: Path) -> MirrorStatus:
    from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - help stays quick

    return mirror_state.read_status(folder)


_Found = list[CheckedMirror | UnreadableMirror]


def _read_here(_: str, read: Callable[[], _Found]) -> _Found:
    return read()


class StatusCheck(NamedTuple):
    """How mirrors are read.

    Attributes:
        is_requested: Mirrors that are not in sync within the limits are findings.
        limits: The limits for all mirrors.
        read: Reads a status.
        apart: Calls what reads the mirrors of one name, so that it delays no other name.
    """

    is_requested: bool
    limits: FreshnessSettings
    read: Callable[[Path], MirrorStatus] = _read_status
    apart: Callable[[str, Callable[[], _Found]], _Found] = _read_here

    def measure(self, status: MirrorStatus, own: FreshnessSettings, now: datetime) -> CheckedMirror:
        """Return a mirror as it is now; limits of the command line override its own."""
        given = self.limits
        limits = FreshnessSettings(
            max_lag=own.max_lag if given.max_lag is None else given.max_lag,
            max_quiet=own.max_quiet if given.max_quiet is None else given.max_quiet,
        )
        quiet = None if status.as_of is None else max((now - status.as_of).total_seconds(), 0.0)
        return CheckedMirror(status, _lag(status, now), limits, quiet)


class _StatusTarget(NamedTuple):
    """A mirror to show: its folder, and its table if it has one."""

    folder: Path
    mirror: ConfiguredMirror | None = None
    configuration: MirrorConfiguration | None = None

    def status(self, read: Callable[[Path], MirrorStatus]) -> MirrorStatus:
        """Return the mirror's status; a configured mirror without a pull is new.

        Raises:
            StorageError: It was pulled, and its folder is gone; or it cannot be read.
        """
        from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - help stays quick

        if self.mirror is None:
            return read(self.folder)
        name, source = self.mirror.name, self.mirror.source
        if not mirror_state.is_mirror(self.folder):
            assert self.configuration is not None, "it has the table of the mirror"
            self.configuration.check_present(name)
            return MirrorStatus(folder=name, source=source, state=MirrorState.NEW)
        found = replace(read(self.folder), folder=name)
        return (
            self._judge_source(found, self.mirror)
            if found.source
            else replace(found, source=source)
        )

    def _judge_source(self, found: MirrorStatus, mirror: ConfiguredMirror) -> MirrorStatus:
        """Return the status; each pull of a mirror of another Source will fail."""
        from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - help stays quick

        source = mirror.source
        if found.source == source or not mirror_state.other_source(self.folder, source):
            return found
        has_moved = bool(mirror_state.moved_source(self.folder, source))
        error = mirror.source_conflict_error(found.source, has_moved=has_moved)
        failed = FailedRun(
            code=error.code,
            kind=type(error).__name__,
            message=error.message,
            hint=error.hint,
            remedy=error.remedy,
        )
        return replace(found, state=MirrorState.FAILING, failed=failed)

    @property
    def limits(self) -> FreshnessSettings:
        """The limits of the mirror's table."""
        return FreshnessSettings() if self.mirror is None else self.mirror.limits

    @property
    def name(self) -> str:
        """The name of the mirror, or its folder."""
        return str(self.folder) if self.mirror is None else self.mirror.name


class StatusResult(NamedTuple):
    """The mirrors, those that cannot be read, the time, and the exit code."""

    mirrors: list[CheckedMirror]
    unreadable: list[UnreadableMirror]
    now: datetime
    exit: ExitCode

    def fields(self) -> Iterator[dict[str, object]]:
        """Yield the fields of each mirror; of an unreadable one, its name and the reason."""
        yield from (status_fields(mirror.status, self.now) for mirror in self.mirrors)
        for name, problem in self.unreadable:
            yield {"mirror": name, **problem.fields()}


def read_statuses(
    places: Sequence[str], configuration: MirrorConfiguration, screen: Screen, check: StatusCheck
) -> StatusResult:
    """Read the status of mirrors; an unreadable one is reported, and the others are still read.

    Args:
        places: Names or folders; none for all mirrors in the current folder.
        configuration: The configuration with the names.
        screen: Receives each mirror, and each error.
        check: The limits.
    """
    from resourcesync.app import machine  # noqa: PLC0415 - help stays quick

    now = machine.system_clock().now()
    result = StatusResult([], [], now, ExitCode.OK)
    codes: list[ExitCode] = []
    folders: set[Path] = set()
    for place in places or ("",):
        for found in _read_apart(place, configuration, check, now):
            if isinstance(found, UnreadableMirror):
                screen.problem(found.problem)
                result.unreadable.append(found)
                codes.append(found.problem.exit)
                continue
            if found.folder in folders:
                continue
            folders.add(found.folder)
            result.mirrors.append(found)
            screen.report("mirror", status_fields(found.status, now))
            if check.is_requested and not found.is_fine:
                codes.append(ExitCode.FINDINGS)
    return result._replace(exit=worst(codes))


def _read_apart(
    place: str, configuration: MirrorConfiguration, check: StatusCheck, now: datetime
) -> _Found:
    """Return the mirrors of a name or a folder; of no name, those in the current folder."""

    def read() -> _Found:
        targets = _targets(place, configuration) if place else _targets_here()
        return [_measure(target, check, now) for target in targets]

    if not place:
        return read()
    try:
        return check.apart(place, read)
    except (ResourceSyncError, OSError) as error:  # its table has a mistake, or it does not answer
        return [_unreadable(place, Path(place), error)]


def _measure(
    target: _StatusTarget, check: StatusCheck, now: datetime
) -> CheckedMirror | UnreadableMirror:
    try:
        found = check.measure(target.status(check.read), target.limits, now)
    except (ResourceSyncError, OSError) as error:
        return _unreadable(target.name, target.folder, error)
    return found._replace(disk=disk_space(target.folder), folder=target.folder)


def _unreadable(name: str, folder: Path, error: ResourceSyncError | OSError) -> UnreadableMirror:
    problem = problem_of(_as_library_error(error, folder))
    named = () if "mirror" in dict(problem.evidence) else (("mirror", name),)
    return UnreadableMirror(name, problem._replace(evidence=(*named, *problem.evidence)))


def disk_space(folder: Path) -> DiskSpace | None:
    """Return the space of the file system of a mirror's folder; ``None`` if it is unknown.

    A folder that is not made yet will be in the file system of the one above it.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return DiskSpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def _table(found: StatusResult, order: str) -> CommandOutcome:
    mirrors = [mirror.status for mirror in found.mirrors]
    gone = [mirror.name for mirror in found.unreadable]
    table = status_table(mirrors, found.now, order, gone)
    lines = [TextLine(text, level=QUIET) for text in table]
    return CommandOutcome(
        exit=found.exit,
        closing=(*lines, *status_details(mirrors), *_limit_lines(found.mirrors)),
        fields={"mirrors": len(mirrors)},
    )


def _limit_lines(mirrors: Sequence[CheckedMirror]) -> Iterator[TextLine]:
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
    """Return the notes about a mirror on a full disk, where a state may not say why pulls fail."""
    if not mirror.is_full or mirror.disk is None:
        return []
    name, free = mirror.status.folder, formatting.size(mirror.disk.free)
    return [
        f"no space left on its disk ({free} free): pulls store nothing.",
        f"next   {with_command('free disk space', Remedy('empty-trash'), name)}",
    ]


def _targets_here() -> list[_StatusTarget]:
    """Return the mirrors in the current folder."""
    from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - help stays quick

    here = _mirrors_in_folder(mirror_state.is_present)
    return [_StatusTarget(folder) for folder in mirror_state.each_mirror(here)]


def _targets(place: str, configuration: MirrorConfiguration) -> list[_StatusTarget]:
    """Return the mirrors of a name or a folder.

    Raises:
        ConfigurationError: The table of the name has a mistake.
    """
    from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - help stays quick

    named = configuration.mirror(place) if place in configuration else None
    folder = configuration.folder(place)
    own = mirror_state.each_mirror([folder])
    name = named if own == (folder,) else None
    return [_StatusTarget(path, name, configuration) for path in own]


def _as_library_error(error: ResourceSyncError | OSError, folder: Path | str) -> ResourceSyncError:
    if isinstance(error, ResourceSyncError):
        return error
    return StorageError(
        f"cannot read {folder}: {error.strerror}",
        hint="correct its permissions, or name another folder",
    )


def _mirrors_in_folder(is_mirror: Any) -> list[Path]:
    current = Path()
    folders = [current, *sorted(current.iterdir())]
    mirrors = [folder for folder in folders if _is_mirror_folder(folder, is_mirror)]
    if not mirrors:
        raise ConfigurationError(
            "there is no mirror in this folder",
            hint="name a mirror's folder: resourcesync status DIR",
        )
    return mirrors


def _is_mirror_folder(folder: Path, is_mirror: Any) -> bool:
    """True if a folder is a mirror; False if it cannot be read."""
    try:
        return folder.is_dir() and bool(is_mirror(folder))
    except OSError:
        return False


def _lag(status: MirrorStatus, now: datetime) -> float | None:
    """Return the seconds since the mirror was last found in sync; ``None`` if it never was."""
    moment = status.in_sync_at
    return None if moment is None else max((now - moment).total_seconds(), 0.0)


def _lateness(status: MirrorStatus, now: datetime) -> float:
    """Return the lag; infinite if it is unknown."""
    lag = _lag(status, now)
    return inf if lag is None else lag


def status_table(
    mirrors: Sequence[MirrorStatus],
    now: datetime,
    order: str = "lag",
    unreadable: Sequence[str] = (),
) -> list[str]:
    """Return the table of the mirrors, by default with the longest lag first.

    Args:
        mirrors: The mirrors.
        now: The present moment.
        order: The order of the rows.
        unreadable: The names of those that cannot be read: they are the first.
    """
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
    lag = _lag(mirror, now)
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
    """Return the notes about a mirror that is not in sync, and the next steps.

    Args:
        mirror: The mirror.
        next_pull: The time of its next pull; empty if it is not known.
    """
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
    next_step = with_command(failed.hint, failed.remedy, mirror.folder) or again
    return [*notes, f"next   {next_step}"] if next_step else notes


def _failed_fields(failed: FailedRun | None, mirror: str) -> dict[str, object] | None:
    if failed is None:
        return None
    code = exit_code_of_kind(failed.kind)
    hint = with_command(failed.hint, failed.remedy, mirror)
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
    lag = _lag(status, now)
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
