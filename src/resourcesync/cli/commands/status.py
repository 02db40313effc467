"""``resourcesync status``: the state of mirrors, without requests."""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec.structs import replace

from resourcesync import app
from resourcesync.app.configured_mirrors import ConfiguredMirror, MirrorConfiguration
from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode, worst
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import (
    QUIET,
    CommandOutcome,
    Job,
    OutputOptions,
    Screen,
    TextLine,
    problem_of,
)
from resourcesync.cli.render.status import (
    UnreadableMirror,
    lag_of,
    mirror_fields,
    status_details,
    status_table,
)
from resourcesync.destination.reports import (
    CheckedMirror,
    DiskSpace,
    FailedRun,
    MirrorState,
    MirrorStatus,
)
from resourcesync.errors import ConfigurationError, ResourceSyncError, StorageError
from resourcesync.settings.mirror import FreshnessSettings


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
    type=click.Choice(["text", "json", "prom"]),
    default="text",
    show_default=True,
    help="json is the same as --json; prom are metrics for Prometheus.",
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
    configuration = options.load(values["config"])
    places: tuple[str, ...] = values["mirrors"] or configuration.names
    check: bool = values["check"]
    limits = FreshnessSettings(max_lag=values["max_lag"], max_quiet=values["max_quiet"])
    style: str = values["format"]
    if limits != FreshnessSettings() and not check:
        name = "--max-quiet" if limits.max_lag is None else "--max-lag"
        raise click.UsageError(f"{name} needs --check")
    if style == "json":
        output = OutputOptions(json=True, quiet=output.quiet, verbose=output.verbose)

    def work(screen: Screen) -> CommandOutcome:
        found = read_statuses(
            places, configuration, screen, StatusCheck(is_requested=check, limits=limits)
        )
        if style == "prom":
            from resourcesync.cli.render.metrics import mirror_figures  # noqa: PLC0415 - rarely
            from resourcesync.server.metrics import write_metrics  # noqa: PLC0415 - rarely needed

            texts = write_metrics(mirror_figures(found.mirrors, found.unreadable)).decode()
            lines = tuple(TextLine(text, level=QUIET) for text in texts.splitlines())
            return CommandOutcome(exit=found.exit, closing=lines)
        return _table(found)

    return Job(acts=check and style == "text", output=output, work=work)


_Found = list[CheckedMirror | UnreadableMirror]


class StatusCheck(NamedTuple):
    """How mirrors are read."""

    is_requested: bool
    limits: FreshnessSettings
    read: Callable[[Path], MirrorStatus] | None = None  # None: from its state
    apart: Callable[[str, Callable[[], _Found]], _Found] = lambda _, read: read()

    def measure(self, status: MirrorStatus, own: FreshnessSettings, now: datetime) -> CheckedMirror:
        """Return a mirror as it is now; limits of the command line override its own."""
        given = self.limits
        return CheckedMirror(
            status,
            lag=lag_of(status, now),
            max_lag=own.max_lag if given.max_lag is None else given.max_lag,
            quiet=None if status.as_of is None else max((now - status.as_of).total_seconds(), 0.0),
            max_quiet=own.max_quiet if given.max_quiet is None else given.max_quiet,
        )


class _StatusTarget(NamedTuple):
    """A mirror to show: its folder, and its table if it has one."""

    folder: Path
    mirror: ConfiguredMirror | None = None
    configuration: MirrorConfiguration | None = None

    def status(self, read: Callable[[Path], MirrorStatus]) -> MirrorStatus:
        """Return the mirror's status; a configured mirror without a pull is new."""
        if self.mirror is None:
            return read(self.folder)
        name, source = self.mirror.name, self.mirror.source
        if not app.mirror_state.is_mirror(self.folder):
            assert self.configuration is not None, "it has the table of the mirror"
            self.configuration.check_present(name)
            return MirrorStatus(mirror=name, source=source, state=MirrorState.NEW)
        found = replace(read(self.folder), mirror=name)
        if not found.source:
            return replace(found, source=source)
        return self._judge_source(found, self.mirror)

    def _judge_source(self, found: MirrorStatus, mirror: ConfiguredMirror) -> MirrorStatus:
        """Return the status; each pull of a mirror of another Source will fail."""
        source = mirror.source
        if found.source == source or not app.mirror_state.other_source(self.folder, source):
            return found
        has_moved = bool(app.mirror_state.moved_source(self.folder, source))
        error = mirror.source_conflict_error(found.source, has_moved=has_moved)
        failed = FailedRun(
            code=error.code, kind=type(error).__name__, message=error.message, hint=error.hint
        )
        return replace(found, state=MirrorState.FAILING, failed_run=failed)


class StatusResult(NamedTuple):
    """The mirrors, those that cannot be read, the time, and the exit code."""

    mirrors: list[CheckedMirror]
    unreadable: list[UnreadableMirror]
    now: datetime
    exit: ExitCode

    def fields(self) -> Iterator[dict[str, object]]:
        """Yield the fields of each mirror; of an unreadable one, its name and the reason."""
        yield from map(mirror_fields, self.mirrors)
        for name, problem in self.unreadable:
            yield {"mirror": name, **problem.fields()}


def read_statuses(
    places: Sequence[str], configuration: MirrorConfiguration, screen: Screen, check: StatusCheck
) -> StatusResult:
    """Read the status of mirrors; an unreadable one is reported, and the others are still read."""
    now = screen.clock.now()
    result = StatusResult([], [], now, ExitCode.OK)
    codes: list[ExitCode] = []
    folders: set[str] = set()
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
            screen.report("mirror", mirror_fields(found))
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
    named = target.mirror
    try:
        limits = FreshnessSettings() if named is None else named.limits
        found = check.measure(
            target.status(check.read or app.mirror_state.read_status), limits, now
        )
    except (ResourceSyncError, OSError) as error:
        name = str(target.folder) if named is None else named.name
        return _unreadable(name, target.folder, error)
    return found._replace(disk=disk_space(target.folder), folder=str(target.folder))


def _unreadable(name: str, folder: Path, error: ResourceSyncError | OSError) -> UnreadableMirror:
    if isinstance(error, OSError):
        error = StorageError(
            f"cannot read {folder}: {error.strerror}",
            hint="correct its permissions, or name another folder",
        )
    problem = problem_of(error)
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


def _table(found: StatusResult) -> CommandOutcome:
    mirrors = [mirror.status for mirror in found.mirrors]
    gone = [mirror.name for mirror in found.unreadable]
    table = status_table(mirrors, found.now, gone)
    lines = [TextLine(text, level=QUIET) for text in table]
    return CommandOutcome(
        exit=found.exit,
        closing=(*lines, *status_details(found.mirrors)),
        fields={"mirrors": len(mirrors)},
    )


def _targets_here() -> list[_StatusTarget]:
    """Return the mirrors in the current folder."""
    here = [place for place in (Path(), *sorted(Path().iterdir())) if _is_mirror_folder(place)]
    if not here:
        raise ConfigurationError(
            "there is no mirror in this folder",
            hint="name a mirror's folder: resourcesync status DIR",
        )
    found = (path for folder in here for path in app.mirror_state.each_mirror(folder))
    return [_StatusTarget(path) for path in dict.fromkeys(found)]


def _is_mirror_folder(folder: Path) -> bool:
    """True if a folder is a mirror; False if it cannot be read."""
    try:
        return folder.is_dir() and app.mirror_state.is_present(folder)
    except OSError:
        return False


def _targets(place: str, configuration: MirrorConfiguration) -> list[_StatusTarget]:
    """Return the mirrors of a name or a folder."""
    named = configuration.mirror(place) if place in configuration else None
    folder = configuration.folder(place)
    own = app.mirror_state.each_mirror(folder)
    name = named if own == (folder,) else None
    return [_StatusTarget(path, name, configuration) for path in own]
