"""The pull of one mirror, or of the sets of a Source, with the settings of its table."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from resourcesync import app
from resourcesync.app import configured_mirrors
from resourcesync.app.configured_mirrors import ConfiguredMirror, MirrorConfiguration
from resourcesync.destination.options import PullOptions
from resourcesync.errors import ConfigurationError, ResourceSyncError, StorageError
from resourcesync.settings.config_file import SettingValue
from resourcesync.settings.mirror import Network, PlaceSettings, SecretNames
from resourcesync.settings.precedence import overlay
from resourcesync.settings.schema import make

if TYPE_CHECKING:
    from resourcesync.app.mirror import Stop
    from resourcesync.app.stored_names import StoredNames
    from resourcesync.destination.reports import RunReport
    from resourcesync.ports import Reporter


class PullTarget(NamedTuple):
    """One mirror to pull, and its settings."""

    name: str
    address: str | None  # None: the remembered one
    folder: Path
    options: PullOptions
    place: PlaceSettings
    network: Network  # without secrets
    secrets: SecretNames
    mirror: ConfiguredMirror | None = None  # of the configuration file
    store: str = ""
    dry_run: bool = False


class TargetResolver:
    """A resolver of names and folders, from the command line and the configuration file."""

    def __init__(
        self, configuration: MirrorConfiguration, given: Mapping[str, Any], *, dry_run: bool = False
    ) -> None:
        self.configuration = configuration
        self._given = given
        self._dry_run = dry_run

    def target(self, place: str) -> PullTarget:
        """Return the mirror of a name or a folder."""
        mirror = self.configuration.mirror_of(place)
        if mirror is None:
            return self.target_at(None, place)
        is_whole = mirror == self.configuration.mirror(mirror.name)
        is_there = is_whole or app.mirror_home.is_set_present(mirror.dest)
        source = mirror.source if is_there else None  # its set is not known
        found = self._target(place, source, mirror.dest, mirror.settings)
        return found._replace(mirror=mirror, store=mirror.store)

    def target_at(self, address: str | None, place: str) -> PullTarget:
        """Return the mirror at a folder or store address, of a Source or of its remembered one."""
        found = self._target(place, address, Path(place), self.configuration.defaults)
        folder, store = configured_mirrors.locate_mirror(place, found.place.state or None)
        return found._replace(name=place if store else str(folder), folder=folder, store=store)

    def _target(
        self, name: str, address: str | None, folder: Path, settings: Mapping[str, SettingValue]
    ) -> PullTarget:
        values = overlay(configured_mirrors.values_of(settings), self._given)
        return PullTarget(
            name=name,
            address=address,
            folder=folder,
            options=make(PullOptions, values),
            place=make(PlaceSettings, values),
            network=configured_mirrors.network_of(values),
            secrets=make(SecretNames, values),
            dry_run=self._dry_run,
        )


class PulledMirror(NamedTuple):
    """The end of the pull of one mirror: its report; or of one of several sets, its error."""

    folder: Path
    report: "RunReport | None"
    error: ResourceSyncError | None = None
    of_set: str = ""
    seconds: float = 0.0


class Puller(NamedTuple):
    """A puller of mirrors, for a command or a service."""

    configuration: MirrorConfiguration
    pulled: "StoredNames | None" = None  # before; None: no mirror is configured
    stop: "Stop | None" = None

    def pull(self, target: PullTarget, report: "Reporter") -> Iterator[PulledMirror]:
        """Pull a mirror, or a folder with one mirror for each set; of these, the others go on.

        The folder of a configured mirror that was pulled before must be there: its disk may not be
        mounted, and all would be fetched again, to another disk.
        """
        self._check_folder(target)
        self._check_source(target)
        network = self._network(target)
        if self._is_several(target):
            yield from self._pull_sets(target, network, report)
        else:
            name = "".join(target.place.set_names)
            yield PulledMirror(
                target.folder, self._pull_one(target, target.folder, name, network, report)
            )
        self._check_folder(target)

    def _check_folder(self, target: PullTarget) -> None:
        pulled, mirror = self.pulled, target.mirror
        if mirror is None or target.store or pulled is None:
            return
        folder, names = str(target.folder.absolute()), pulled.names
        if mirror.is_present(names) and folder not in names:
            with suppress(StorageError):  # then a pull that finds nothing there is not refused
                pulled.add(folder)

    def _network(self, target: PullTarget) -> Network:
        source = target.options.moved or target.address or ""
        if target.secrets.auth and not source:
            source = app.mirror_home.source_of(target.folder)
        return self.configuration.with_secrets(target.network, target.secrets, source)

    def _is_several(self, target: PullTarget) -> bool:
        place, folder = target.place, target.folder
        is_several = place.all_sets or len(place.set_names) > 1
        if is_several and target.store:
            raise ConfigurationError(
                "a store can contain only one mirror, and so only one set",
                hint="name one set, and give each set its own store",
            )
        is_there = app.mirror_home.is_folder_of_sets(folder)
        if target.options.moved and is_several and not is_there:
            raise app.mirror_home.not_a_mirror_error(folder)
        return is_several or is_there

    def _pull_sets(
        self, target: PullTarget, network: Network, report: "Reporter"
    ) -> Iterator[PulledMirror]:
        from resourcesync.ports import CancelToken  # noqa: PLC0415 - the same

        clock, place = app.system.SystemClock(), target.place
        request = app.mirror_sets.SetRequest(
            source=target.options.moved or target.address,
            names=place.set_names,
            every=place.all_sets,
            is_now=place.all_sets and target.mirror is None,  # a table says it at each pull
            is_moved=bool(target.options.moved),
        )
        cancel = CancelToken(clock, self.stop)
        plan = app.mirror_sets.plan_sets(target.folder, request, network=network, cancel=cancel)
        failure = "" if plan.failure is None else plan.failure.message
        report(
            "sets", {"source": plan.source, "sets": len(plan.mirrors), "not_asked_anew": failure}
        )
        is_new = not app.mirror_home.is_present(target.folder)
        if not (target.dry_run or request.is_moved):
            plan.remember()
        of_set = target._replace(address=plan.source)
        try:
            for mirror in plan.mirrors:
                where, started = {"mirror": str(mirror.folder)}, clock.monotonic()
                report("mirror", {**where, "set": mirror.uri, "offered": mirror.offered})
                done = PulledMirror(mirror.folder, None, of_set=mirror.uri)
                try:
                    self._check_folder(target)  # its disk may go meanwhile
                    is_first = not app.mirror_home.is_set_present(mirror.folder)
                    pulled = self._pull_one(of_set, mirror.folder, mirror.uri, network, report)
                    done = done._replace(report=pulled)
                    if (request.is_moved or is_first) and not target.dry_run:
                        plan.remember()  # after a move that failed, it is where it was
                except ResourceSyncError as error:
                    done = done._replace(error=error)
                yield done._replace(seconds=round(clock.monotonic() - started, 3))
        finally:
            if is_new:  # else its disk went meanwhile: that is where it is mounted
                plan.remove_if_empty()

    def _pull_one(
        self, target: PullTarget, folder: Path, set_name: str, network: Network, report: "Reporter"
    ) -> "RunReport":
        where = {} if folder == target.folder else {"mirror": str(folder)}
        mirror = app.mirror.mirror_at(
            _home(target, folder),
            network,
            structs.replace(target.options, set_name=set_name),
            target.address,
            is_configured=target.mirror is not None,
        )
        return (mirror.dry_run if target.dry_run else mirror.pull)(
            mode=target.options.mode,
            on_event=lambda event: report(event.kind, {**where, **event.fields}),
            stop=self.stop,
        )

    def _check_source(self, target: PullTarget) -> None:
        if target.mirror is None or target.options.moved:
            return
        conflict = target.mirror.source_conflict(only_moved=True)
        if conflict is not None:
            raise conflict


def _home(target: PullTarget, folder: Path) -> "app.mirror_home.Home":
    engine = target.place.engine
    workers = None if engine is None else app.mirror_workers.Workers(engine=engine)
    return app.mirror_home.Home(folder, target.store, workers)
