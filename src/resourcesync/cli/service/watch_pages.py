"""The data of the pages of ``watch``: the same as in ``status``, ``why`` and ``audit``."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import structs

from resourcesync.app.mirrors import mirror_state
from resourcesync.app.watching import mirror_views
from resourcesync.app.watching.service import StateCache
from resourcesync.cli.commands.status import read_statuses
from resourcesync.cli.commands.why import explanation_lines
from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.cli.output import CollectingScreen
from resourcesync.cli.render.audit_page import audit_page
from resourcesync.cli.render.explore_pages import CachedExplorer, own_sources
from resourcesync.cli.render.status_formats import CheckedMirror, UnreadableMirror
from resourcesync.cli.render.status_table import full_disk_notes, notes_of
from resourcesync.cli.service.watch_reports import next_pull_text, result_parts, watch_check
from resourcesync.destination.audits.reports import AuditRecord
from resourcesync.destination.reports import MirrorState, MirrorStatus
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports import Clock
from resourcesync.server.dashboard.views import (
    DocumentTree,
    EndedAudit,
    EndedPull,
    EndedRun,
    ExplainedResource,
    ExplorableSource,
    MirrorActivity,
    MirrorDetail,
    MirrorSummary,
    PushStatus,
    RunningJob,
)
from resourcesync.settings.network import Network
from resourcesync.watch.loop import NextPull
from resourcesync.watch.scheduler import JobKind, MirrorJob

T = TypeVar("T")
_MAX_RUNS: Final = 200
_MAX_NOTICES: Final = 2_000
_DAYS: Final = 7
_EVENT_SPAN: Final = timedelta(days=30)
_MOST_EVENT_MIRRORS: Final = 200
_MOST_EVENTS: Final = 20_000
_FEWEST_EVENTS: Final = 100
_RECORDING: Final = timedelta(seconds=5)
"""Most time from the end of a pull in its state to the report of its job."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_RESULTS: Final = {0: "good", 1: "findings", 3: "incomplete", 7: "stopped"}


class WatchPages:
    """The data of the pages (``server.dashboard.views.Views``)."""

    def __init__(
        self,
        names: Callable[[], tuple[tuple[str, ...], MirrorConfiguration]],
        clock: Clock,
        pushed: Callable[[], Mapping[str, PushStatus]] = dict,
        planned: Callable[[str], NextPull | None] = lambda _: None,
        running: Callable[[], Mapping[MirrorJob, float]] = dict,
        cache: StateCache | None = None,
    ) -> None:
        self._planned, self._running = planned, running
        self._cache = StateCache() if cache is None else cache
        self._names, self._clock, self._pushed = names, clock, pushed
        self._explorer = CachedExplorer(clock)
        self._ended: deque[EndedRun] = deque(maxlen=_MAX_RUNS)
        self._count = 0
        self._progress: dict[str, tuple[int, int]] = {}
        self._version, self._mark = 0, object()
        self._notices: dict[str, deque[datetime]] = {}
        self._folders_of: MirrorConfiguration | None = None
        self._by_folder: Mapping[Path, str] = {}

    def notice(self, mirror: str) -> None:
        """Record a notification for a mirror."""
        noted = self._notices.setdefault(mirror, deque(maxlen=_MAX_NOTICES))
        noted.append(self._clock.now())

    def count(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Record a finished job, by the fields of its event."""
        self._ended.appendleft(
            EndedRun(
                time=fields["time"],
                mirror=str(fields["mirror"]),
                kind=kind,
                word=_RESULTS.get(int(fields["exit"]), "failed"),
                is_good=not fields["exit"],
                text=", ".join(result_parts(kind, fields)),
            )
        )
        self._count += 1

    def show_progress(self, mirror: str, fields: Mapping[str, Any]) -> None:
        """Record the progress of a running pull, by the fields of its event."""
        self._progress[mirror] = int(fields["done"]), int(fields["total"] or 0)

    def end_progress(self, mirror: str) -> None:
        """Forget the progress of a mirror's pull: it ended, or gave way to others."""
        self._progress.pop(mirror, None)

    def version(self) -> int:
        """Return a number that is another one once a job started, made progress, or ended."""
        mark = self._count, tuple(self._running()), dict(self._progress)
        if mark != self._mark:
            self._mark = mark
            self._version += 1
        return self._version

    def running(self) -> Sequence[RunningJob]:
        """Return the running jobs, the longest running first."""
        now = self._clock.now()
        jobs = sorted(self._running().items(), key=lambda item: -item[1])
        return [self._running_job(job, now - timedelta(seconds=seconds)) for job, seconds in jobs]

    def _running_job(self, job: MirrorJob, since: datetime) -> RunningJob:
        is_pull = job.kind is JobKind.PULL
        done, total = self._progress.get(job.mirror, (0, 0)) if is_pull else (0, 0)
        kind = job.kind.value
        return RunningJob(mirror=job.mirror, kind=kind, since=since, done=done, total=total)

    def watched_name(self, name: str) -> str:
        """Return the name by which a mirror of the pages is watched; empty for an unknown one."""
        folder = self._folder(name)
        return "" if folder is None else _watched_name(folder, self._watched())

    def now(self) -> datetime:
        """Return the present moment, UTC."""
        return self._clock.now()

    def mirrors(self) -> Sequence[MirrorSummary]:
        """Return all mirrors; an unreadable one with its error."""
        return [brief for brief, _ in self._each(self._names()[0])]

    def activity(self, names: Sequence[str]) -> Mapping[str, MirrorActivity]:
        """Return the recent past of some watched mirrors; unreadable ones are left out."""
        configuration, now = self._names()[1], self._clock.now()
        found = {}
        for name in names:
            with suppress(ResourceSyncError, OSError):  # the page of mirrors says so
                folder = configuration.folder(name) if name in configuration else Path(name)
                read = partial(mirror_views.read_activity, folder, now, _DAYS)
                found[name] = self._read(folder, ("activity", now.date()), read)
        return found

    def mirror(self, name: str, length: timedelta | None) -> MirrorDetail | None:
        """Return one mirror and its recent past."""
        found = self._find(name)
        if found is None:
            return None
        brief, folder = found
        now = self._clock.now()
        watched_as = _watched_name(folder, self._watched())
        notices = tuple(self._notices.get(watched_as, ()))
        since = None if length is None else now - length
        read = partial(mirror_views.read_detail, folder, brief, since, now, notices)
        return self._cache.apart(str(folder), read)

    def resource(self, name: str, resource: str) -> ExplainedResource | None:
        """Return the explanation of one resource."""
        folder = self._folder(name)
        if folder is None or not resource:
            return None
        names = mirror_state.resource_names(resource, folder)
        read = partial(mirror_views.read_resource, folder, names)
        known, history = self._cache.apart(str(folder), read)
        return ExplainedResource(
            uri=known.uri, lines=tuple(explanation_lines(known, folder)), history=history
        )

    def run(self, name: str, run: str) -> EndedPull | None:
        """Return one pull."""
        folder = self._folder(name)
        if folder is None:
            return None
        return self._cache.apart(str(folder), partial(mirror_views.read_run, folder, run))

    def audits(self) -> Sequence[EndedAudit]:
        """Return the last audits of all mirrors, the newest first; those that can be read."""
        found: list[EndedAudit] = []
        for name, folder in self._folders():
            try:
                _, audits = self._audits_of(folder)
            except (ResourceSyncError, OSError):  # the page of mirrors says so
                continue
            found += [
                EndedAudit(
                    mirror=name,
                    ended=from_microseconds(audit.ended),
                    method=audit.method,
                    report=audit.report,
                )
                for audit in audits
            ]
        return sorted(found, key=lambda audit: audit.ended, reverse=True)

    def _audits_of(self, folder: Path) -> tuple[str, tuple[AuditRecord, ...]]:
        return self._read(folder, "audits", partial(mirror_views.read_audits, folder))

    def _read(self, folder: Path, key: Hashable, read: Callable[[], T]) -> T:
        cached = partial(self._cache.read, folder, key, read)
        return self._cache.apart(str(folder), cached)

    def audit(self, name: str, run: str) -> str | None:
        """Return the page of one audit; ``None`` if there is no such audit."""
        folder = self._folder(name)
        if folder is None:
            return None
        source, audits = self._audits_of(folder)
        stored = next((audit for audit in audits if audit.report.run == run), None)
        if stored is None:
            return None
        try:
            findings = tuple(mirror_state.findings_of(folder, run))
        except ConfigurationError:  # it found nothing, or its findings were removed
            findings = ()
        report = structs.replace(stored.report, findings=findings)
        audit = EndedAudit(
            mirror=name,
            ended=from_microseconds(stored.ended),
            method=stored.method,
            report=report,
        )
        return audit_page(audit, source)

    def sources(self) -> Sequence[ExplorableSource]:
        """Return the Sources of the mirrors, and those of the configuration file."""
        found = [
            ExplorableSource(
                name=mirror.name, kind="followed by a mirror", address=mirror.status.source
            )
            for mirror in self.mirrors()
            if mirror.status.source
        ]
        own = own_sources(self._names()[1])
        more = [
            ExplorableSource(name=name, kind="our own", address=text) for name, text in own.items()
        ]
        return [*sorted(found, key=lambda source: source.name), *more]

    def explore(self, name: str, depth: int) -> DocumentTree | None:
        """Return the documents of one of these Sources; no other is ever requested."""
        configuration = self._names()[1]
        found = self._find(name)
        if found is None:
            place = own_sources(configuration).get(name, "")
            return self._explorer.explore(name, place, Network, depth) if place else None
        brief, folder = found
        source = brief.status.source
        watched_as = _watched_name(folder, self._watched())
        network = partial(configuration.network, watched_as, {})
        again = name if name in configuration else ""
        explore = self._explorer.explore
        return explore(name, source, network, depth, again) if source else None

    def events(self) -> Sequence[EndedRun]:
        """Return the runs of the last 30 days, the newest first.

        Pulls are read from the states of the mirrors that were pulled last; other jobs, and pulls
        whose failure a state could not record, are those of this service.
        """
        now = self._clock.now()
        read = [
            (brief, folder) for brief, folder in self._each(self._names()[0]) if not brief.error
        ]
        read.sort(key=lambda pair: pair[0].status.last_run or _NEVER, reverse=True)
        read = read[:_MOST_EVENT_MIRRORS]
        most = max(_MOST_EVENTS // max(len(read), 1), _FEWEST_EVENTS)
        found: list[EndedRun] = []
        for brief, folder in read:
            events = partial(mirror_views.read_events, folder, brief.name, now - _EVENT_SPAN, most)
            with suppress(ResourceSyncError, OSError):  # the page of mirrors says so
                found += self._read(folder, ("events", now.date(), most), events)
        recorded = {brief.name: brief.status.last_run for brief, _ in read}
        found += (run for run in tuple(self._ended) if _is_unrecorded(run, recorded))
        return sorted(found, key=lambda run: run.time, reverse=True)

    def _find(self, name: str) -> tuple[MirrorSummary, Path] | None:
        """Return a watched mirror; ``None`` for any other."""
        return None if self._folder(name) is None else next(iter(self._each((name,))), None)

    def _folder(self, name: str) -> Path | None:
        configuration = self._names()[1]
        if name in configuration and name in self._watched().values():
            with suppress(ResourceSyncError):  # the page of mirrors says so
                folder = configuration.folder(name)
                if self._mirrors_below(folder) == (folder,):
                    return folder
        return dict(self._folders()).get(name)

    def _folders(self) -> Iterator[tuple[str, Path]]:
        """Yield the watched mirrors by name; those of a Source's sets by folder."""
        names, configuration = self._names()
        for name in names:
            try:
                folder = configuration.folder(name)
                own = self._mirrors_below(folder)
            except ResourceSyncError:  # the page of mirrors says so
                continue
            if own == (folder,):
                yield name if name in configuration else str(folder), folder
            else:
                yield from ((str(path), path) for path in own)

    def _mirrors_below(self, folder: Path) -> tuple[Path, ...]:
        return self._cache.apart(str(folder), partial(mirror_state.each_mirror, [folder]))

    def _each(self, names: Sequence[str]) -> Iterator[tuple[MirrorSummary, Path]]:
        configuration = self._names()[1]
        notes, pushed, watched = CollectingScreen(), self._pushed(), self._watched()
        running = {job.mirror: job for job in self.running() if job.kind != JobKind.HAND_OVER}
        found = read_statuses(names, configuration, notes, watch_check(self._cache))
        yield from ((_unreadable_mirror(mirror), Path()) for mirror in found.unreadable)
        for seen in found.mirrors:
            name = seen.status.folder
            folder = configuration.folder(name) if name in configuration else Path(name)
            watched_as = _watched_name(folder, watched)
            brief = self._brief(seen, self._planned(watched_as))
            push, job = pushed.get(watched_as), running.get(watched_as)
            yield structs.replace(brief, push=push, running=job), folder

    def _watched(self) -> Mapping[Path, str]:
        names, configuration = self._names()
        if self._folders_of is not configuration:
            found: dict[Path, str] = {}
            for name in names:
                with suppress(ResourceSyncError):  # the page of mirrors says so
                    found[configuration.folder(name)] = name
            self._folders_of, self._by_folder = configuration, found
        return self._by_folder

    def _brief(self, seen: CheckedMirror, planned: NextPull | None) -> MirrorSummary:
        status = seen.status
        next_pull = "" if planned is None else next_pull_text(planned, self._clock.now())
        time = None if planned is None else planned.time
        notes = (*notes_of(status, next_pull), *full_disk_notes(seen))
        if seen.is_too_quiet:
            notes = (*notes, "the Source has not published for long: check that it still runs.")
        return MirrorSummary(
            status=status,
            lag=seen.lag,
            notes=notes,
            max_lag=seen.limits.max_lag,
            next_pull=next_pull,
            next_at=None if time is None else datetime.fromtimestamp(time, UTC),
            tries=0 if planned is None else planned.failures,
            is_paused=planned is not None and planned.is_paused,
            disk_free=None if seen.disk is None else seen.disk.free,
            disk_size=0 if seen.disk is None else seen.disk.total,
        )


def _is_unrecorded(run: EndedRun, recorded: Mapping[str, datetime | None]) -> bool:
    """True if no state has a run: all but pulls, and failures before a state was opened."""
    if run.kind != "pull":
        return True
    last = recorded.get(run.mirror)
    return not run.is_good and (last is None or run.time > last + _RECORDING)


def _watched_name(folder: Path, watched: Mapping[Path, str]) -> str:
    """Return the name by which a mirror is watched, also for a mirror of one of several sets."""
    return watched.get(folder) or watched.get(folder.parent, "")


def _unreadable_mirror(mirror: UnreadableMirror) -> MirrorSummary:
    problem = mirror.problem
    hint = (f"next   {problem.hint}",) if problem.hint else ()
    status = MirrorStatus(folder=mirror.name, source="", state=MirrorState.FAILING)
    return MirrorSummary(status=status, error=problem.message, notes=(problem.message, *hint))
