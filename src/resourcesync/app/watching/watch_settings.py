"""The settings of the service behind `watch`: its mirrors, and the jobs of each."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from resourcesync.app.configured_mirrors import MirrorConfiguration, values_of
from resourcesync.app.configured_pulls import PullTarget, TargetResolver
from resourcesync.destination.audits.sampling import AuditRolling
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model.settings import AuditMethod
from resourcesync.settings import environment
from resourcesync.settings.mirror import ScheduleSettings, ServiceSettings
from resourcesync.settings.schema import make
from resourcesync.watch.scheduler import Cron, Every, MirrorSchedule, Timetable

DEFAULT_INTERVAL: Final = 3_600.0
"""Seconds between two pulls of a named mirror without a schedule."""

_BEARER: Final = "Bearer "
_SHORTEST_TOKEN: Final = 16


class WatchedMirror(msgspec.Struct, frozen=True, kw_only=True):
    """One mirror, and its jobs."""

    target: PullTarget
    wanted: MirrorSchedule
    on_change: tuple[str, ...]
    limit: float  # seconds
    audit_method: AuditMethod
    rolling: AuditRolling | None  # the copies to audit; None: all


class WatchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the service."""

    configuration: MirrorConfiguration
    names: tuple[str, ...]
    every: float | None = None
    service: ServiceSettings = msgspec.field(default_factory=ServiceSettings)

    def watched_mirrors(self) -> tuple[dict[str, WatchedMirror], TargetResolver]:
        """Return the mirrors, and the resolver for their pulls."""
        chosen = TargetResolver(self.configuration, {})
        return {name: self._watched_mirror(name, chosen) for name in self.names}, chosen

    def problems(self) -> Iterator[ConfigurationError]:
        """Yield the mistakes for which `watched_mirrors` refuses a mirror."""
        chosen = TargetResolver(self.configuration, {})
        for name in self.names:
            try:
                self._watched_mirror(name, chosen)
            except ConfigurationError as error:
                yield error

    def push_state(self) -> Path:
        """Return the file of the subscriptions of this configuration."""
        folder = self.service.state or environment.state_folder()
        return self.configuration.state_file("push", folder).with_suffix(".db")

    def operator_token(self) -> str:
        """Return the secret with which operators act on the pages; empty if they only read."""
        name = self.service.operator
        if not name:
            return ""
        [secret] = self.configuration.credentials(name, "")
        token = dict(secret.fields).get("Authorization", "")
        if not token.startswith(_BEARER):
            raise ConfigurationError(
                f"`operator` in [watch] names [auth.{name}], which is not of type bearer"
            )
        if len(token) < len(_BEARER) + _SHORTEST_TOKEN:
            raise ConfigurationError(
                f"the token of [auth.{name}] is too short to be an operator's",
                hint=f"use at least {_SHORTEST_TOKEN} random characters",
            )
        return token.removeprefix(_BEARER)

    def _watched_mirror(self, name: str, chosen: TargetResolver) -> WatchedMirror:
        tables = self.configuration
        mirror = tables.mirror_of(name)
        settings = tables.defaults if mirror is None else mirror.settings
        schedule = make(ScheduleSettings, values_of(settings))
        sample = schedule.audit_sample
        if sample is not None and not sample.percent:
            raise self._mistake(name, "audit_sample", "must be a share of the files, such as 15%")
        if schedule.on_change_limit < 1:
            raise self._mistake(name, "on_change_limit", "must be at least 1s")
        share = sample.percent / 100 if sample is not None and sample.percent else 1.0
        share, oldest_first = min(share, 1.0), schedule.audit_oldest_first
        is_whole = schedule.audit_method == "lists" or (share >= 1 and not oldest_first)
        target = self._with_job_share(chosen.target(name))
        return WatchedMirror(
            target=target,
            wanted=MirrorSchedule(
                pull=self._timetable(name, schedule),
                audit=Every(schedule.audit_every) if schedule.audit_every else None,
                hands_over=bool(schedule.on_change),
                accepts_hints=schedule.push,
                host=urlsplit(target.options.moved or target.address or "").netloc.lower(),
            ),
            on_change=schedule.on_change,
            limit=schedule.on_change_limit,
            audit_method=schedule.audit_method,
            rolling=None if is_whole else AuditRolling(share=share, oldest_first=oldest_first),
        )

    def _timetable(self, name: str, schedule: ScheduleSettings) -> Timetable:
        if schedule.cron is not None:
            try:
                return Cron(schedule.cron)
            except ConfigurationError as error:
                raise self._mistake(name, "cron", error.message, hint=error.hint) from error
        every = (self.every or DEFAULT_INTERVAL) if schedule.every is None else schedule.every
        if every < 1:
            raise self._mistake(name, "every", "must be at least 1s")
        return Every(every)

    def _mistake(self, name: str, key: str, reason: str, *, hint: str = "") -> ConfigurationError:
        file = self.configuration.file
        table = ("mirror", name)
        if file is not None and key in file.table(*table):
            return file.key_error(table, key, reason, hint=hint)
        return ConfigurationError(f"`{key}` of {name} {reason}", hint=hint)

    def _with_job_share(self, target: PullTarget) -> PullTarget:
        jobs = min(target.network.jobs, max(self.service.jobs // self.service.parallel, 1))
        return target._replace(network=structs.replace(target.network, jobs=jobs))


def watch_problems(configuration: MirrorConfiguration) -> Iterator[ResourceSyncError]:
    """Yield the mistakes for which ``watch`` refuses an otherwise valid configuration."""
    operator = configuration.service.get("operator")
    file = configuration.file
    name = "" if operator is None else operator.value
    if name and file is not None and name not in file.table("auth"):
        reason = f"names [auth.{name}], which does not exist"
        yield file.key_error(("watch",), "operator", reason)
    names = configuration.names
    for name in names:
        mirror, conflict = configuration.mirror(name), None
        with suppress(ResourceSyncError):  # `status` and `pull` report a damaged state
            conflict = mirror.source_conflict()
        if conflict is not None:
            yield conflict
    yield from WatchSettings(configuration=configuration, names=names).problems()
