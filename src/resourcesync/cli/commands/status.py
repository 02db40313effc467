"""``resourcesync status``: the state of mirrors, without requests."""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

from resourcesync import app
from resourcesync.app.configured_mirrors import ConfiguredMirror, MirrorConfiguration
from resourcesync.app.configured_sources import ConfiguredSource, ConfiguredSources
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
    Unreadable,
    lag_of,
    mirror_fields,
    mirror_metrics,
    notes_of,
    notes_of_source,
    source_fields,
    source_metrics,
    source_table,
    status_details,
    status_table,
)
from resourcesync.destination.mirror_health import CheckedMirror, DiskSpace
from resourcesync.destination.reports import LastingFailure, MirrorState, MirrorStatus
from resourcesync.errors import ConfigurationError, ResourceSyncError, StorageError
from resourcesync.settings.mirror import FreshnessSettings

if TYPE_CHECKING:
    from resourcesync.app.source_status import SourceStatus


@click.command("status", cls=SectionedCommand)
@click.argument(
    "places", nargs=-1, metavar="[MIRROR|SOURCE...]", shell_complete=options.complete_mirror
)
@option(
    "--check",
    is_flag=True,
    help="Exit 1 unless every mirror is in sync, and every Source published, within --max-lag.",
)
@option(
    "--max-lag",
    type=options.DURATION,
    help="Longest lag that --check accepts, such as 1h, also while a run does what it found.",
)
@option(
    "--max-quiet",
    type=options.DURATION,
    help="Longest time since the Source's last publication that --check accepts, such as 7d: after "
    "that, the Source may have stopped.",
)
@option(
    "--format",
    "format",
    type=click.Choice(["text", "prom"]),
    default="text",
    show_default=True,
    help="prom are metrics for Prometheus.",
)
@options.CONFIG
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Show how far behind each mirror is, and when each Source was published.

    MIRROR and SOURCE are names in the configuration file, or folders, or catalogue:FILE; without
    one, all of the configuration file, or if it has none, those in the current folder. `status`
    only reports, from their own states: it sends no request, and without --check it exits with 0
    if it can read them all. Lag is the time since the last run that found the mirror in sync, or
    published all of the Source: it grows if runs fail or do not happen, not if nothing changes.
    --max-lag and --max-quiet override max_lag and max_quiet of a table; Sources have only the
    first. -q shows only what is not fine.
    """
    configuration = options.load(values["config"])
    check: bool = values["check"]
    limits = FreshnessSettings(max_lag=values["max_lag"], max_quiet=values["max_quiet"])
    style: str = values["format"]
    if limits != FreshnessSettings() and not check:
        name = "--max-quiet" if limits.max_lag is None else "--max-lag"
        raise click.UsageError(f"{name} needs --check")

    def work(screen: Screen) -> CommandOutcome:
        asked = StatusCheck(is_requested=check, limits=limits)
        sources = ConfiguredSources(configuration)
        configured = (*configuration.names, *sources.names)
        # A mirror and a Source may have the same name.
        given: dict[str, None] = dict.fromkeys(values["places"] or configured or _folders_found())
        folders = (place for place in given if place not in configured and _is_source_folder(place))
        named = {*sources.names, *folders}
        published = [sources.named(place) for place in given if place in named]
        mirrors = [place for place in given if place in configuration or place not in named]
        found = read_statuses(mirrors, configuration, screen, asked, published)
        if style == "prom":
            from resourcesync.server.metrics import write_metrics  # noqa: PLC0415 - rarely needed

            figures = mirror_metrics(found.mirrors, found.unreadable)
            more = source_metrics(found.sources, found.unreadable)
            text = write_metrics((*figures, *more)).decode()
            lines = tuple(TextLine(line, level=QUIET) for line in text.splitlines())
            return CommandOutcome(exit=found.exit, closing=lines)
        return _table(found, is_short=output.quiet > 0)

    return Job(acts=check and style == "text", output=output, work=work)


_Found = list[CheckedMirror | Unreadable]
ReadStatus = Callable[[Path, MirrorStatus | None], MirrorStatus]
"""Reads the status of a mirror; the second one is that of a folder that is none yet."""


class StatusCheck(NamedTuple):
    """How mirrors are read."""

    is_requested: bool
    limits: FreshnessSettings
    read: ReadStatus | None = None  # None: from its state
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
    name: str
    folder: Path
    configuration: MirrorConfiguration
    mirror: ConfiguredMirror | None  # with several sets, that of all

    def status(self, read: ReadStatus) -> MirrorStatus:
        if self.mirror is None:
            return read(self.folder, None)
        source = self.mirror.source
        if not app.mirror_home.is_mirror(self.folder):
            self.configuration.check_present(self.mirror.name)
            app.mirror_home.is_set_present(self.folder)
        new = MirrorStatus(mirror=self.name, source=source, state=MirrorState.NEW)
        found = replace(read(self.folder, new), mirror=self.name)
        of = self.mirror.of_set(self.folder)
        error = None if found.source in {"", source} else of.source_conflict()
        if error is None:
            return replace(found, source=found.source or source)
        return replace(found, state=MirrorState.FAILING, failed_run=LastingFailure.of(error))


class StatusResult(NamedTuple):
    """The mirrors and Sources, those that cannot be read, the time, and the exit code."""

    mirrors: list[CheckedMirror]
    sources: "list[SourceStatus]"
    unreadable: list[Unreadable]
    now: datetime
    exit: ExitCode

    def fields(self) -> Iterator[dict[str, object]]:
        """Yield the fields of each mirror; of an unreadable one, its name and the reason."""
        yield from map(mirror_fields, self.mirrors)
        for name, problem, *_ in self.unreadable:
            yield {"mirror": name, **problem.fields()}


def read_statuses(
    places: Sequence[str],
    configuration: MirrorConfiguration,
    screen: Screen,
    check: StatusCheck,
    sources: Sequence[ConfiguredSource] = (),
) -> StatusResult:
    """Read the status of mirrors and Sources; an unreadable one is reported, the others read."""
    now = screen.clock.now()
    result = StatusResult([], [], [], now, ExitCode.OK)
    codes, folders = list[ExitCode](), set[str]()
    read = (each for place in places for each in _read_apart(place, configuration, check, now))
    for found in (*read, *(_read_source(source, check, now) for source in sources)):
        if isinstance(found, Unreadable):
            screen.problem(found.problem)
            result.unreadable.append(found)
            codes.append(found.problem.exit)
            continue
        if isinstance(found, CheckedMirror):
            if found.folder in folders:
                continue
            folders.add(found.folder)
            result.mirrors.append(found)
            screen.report("mirror", mirror_fields(found))
        else:
            result.sources.append(found)
            screen.report("source.status", source_fields(found))
        if check.is_requested and not found.is_fine:
            codes.append(ExitCode.FINDINGS)
    return result._replace(exit=worst(codes))


def _read_source(
    source: ConfiguredSource, check: StatusCheck, now: datetime
) -> "SourceStatus | Unreadable":
    from resourcesync.app.source_status import SourceState, read_status  # noqa: PLC0415 - not for mirrors

    most = source.max_lag if check.limits.max_lag is None else check.limits.max_lag
    try:
        catalogue = source.present_catalogue()
        found = read_status(source.name, catalogue, most, now)
        failed = app.mirror_home.read_only_failure(catalogue.parent)
        failing = {"state": SourceState.FAILING, "failed_run": failed}
        return found if failed is None else replace(found, **failing)
    except (ResourceSyncError, OSError) as error:
        return _unreadable(source.name, Path(source.path), error, "source")


def _is_source_folder(place: str) -> bool:
    if place.startswith("catalogue:"):
        return True
    folder = Path(place)
    return not _is_mirror_folder(folder) and app.mirror_home.trace_of_source(folder) is not None


def _read_apart(
    place: str, configuration: MirrorConfiguration, check: StatusCheck, now: datetime
) -> _Found:
    def read() -> _Found:
        folder, mirror = configuration.folder(place), configuration.mirror_of(place)
        whole = folder if mirror is None else configuration.mirror(mirror.name).dest
        is_paused = bool(app.mirror_home.is_paused(whole))
        own = app.mirror_home.each_mirror(folder)
        name = place if place in configuration and own == (folder,) else ""
        targets = (_StatusTarget(name or str(path), path, configuration, mirror) for path in own)
        return [_measure(target, check, now, is_paused=is_paused) for target in targets]

    try:
        return check.apart(place, read)
    except (ResourceSyncError, OSError) as error:  # its table has a mistake, or it does not answer
        return [_unreadable(place, Path(place), error)]


def _measure(
    target: _StatusTarget, check: StatusCheck, now: datetime, *, is_paused: bool
) -> CheckedMirror | Unreadable:
    mirror = target.mirror
    try:
        limits = FreshnessSettings() if mirror is None else mirror.limits
        found = check.measure(target.status(check.read or app.mirror_home.read_status), limits, now)
    except (ResourceSyncError, OSError) as error:
        return _unreadable(target.name, target.folder, error)
    disk = disk_space(target.folder)
    return found._replace(disk=disk, folder=str(target.folder), is_paused=is_paused)


def _unreadable(
    name: str, folder: Path, error: ResourceSyncError | OSError, noun: str = "mirror"
) -> Unreadable:
    if isinstance(error, OSError):
        error = StorageError(
            f"cannot read {folder}: {error.strerror}",
            hint="correct its permissions, or name another folder",
        )
    problem = problem_of(error)
    if noun not in dict(problem.evidence):
        problem = problem.about(noun, name)
    return Unreadable(name, problem, noun, str(folder))


def disk_space(folder: Path) -> DiskSpace | None:
    """Return the space of the file system of a mirror's folder; ``None`` if it is unknown."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return DiskSpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def _table(found: StatusResult, *, is_short: bool) -> CommandOutcome:
    ordered, now = sorted(found.mirrors, key=lambda mirror: mirror.rank), found.now
    mirrors = [mirror for mirror in ordered if not (is_short and mirror.is_fine)]
    sources = [source for source in found.sources if not (is_short and source.is_fine)]
    gone = [one.name for one in found.unreadable if one.noun == "mirror"]
    lost = [one.name for one in found.unreadable if one.noun == "source"]
    tables = status_table(mirrors, now, gone), source_table(sources, now, lost)
    text = "\n\n".join("\n".join(table) for table in tables if table)
    noted = [mirror for mirror in mirrors if len(mirrors) == 1 or not mirror.is_fine]
    notes = [(mirror.status.mirror, notes_of(mirror)) for mirror in noted]
    notes += [(source.source, [*notes_of_source(source)]) for source in sources]
    lines = [*text.splitlines(), *status_details(notes)]
    return CommandOutcome(
        exit=found.exit,
        closing=tuple(TextLine(line, level=QUIET) for line in lines),
        fields={"mirrors": len(found.mirrors), "sources": len(found.sources)},
    )


def _folders_found() -> tuple[str, ...]:
    from resourcesync.source.publication_settings import CATALOGUE  # noqa: PLC0415 - few need it

    folders = (Path(), *sorted(Path().iterdir()))
    here = [str(at) for at in folders if _is_mirror_folder(at) or os.path.lexists(at / CATALOGUE)]
    if not here:
        raise ConfigurationError(
            "there is no mirror and no Source in this folder",
            hint="name a mirror's folder: resourcesync status DIR",
        )
    return tuple(here)


def _is_mirror_folder(folder: Path) -> bool:
    try:
        return folder.is_dir() and app.mirror_home.is_present(folder)
    except OSError:
        return False
