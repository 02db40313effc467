"""The pull of one mirror, of several mirrors, or of the sets of a Source, and their outcome."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from resourcesync.cli import configured_mirrors, formatting
from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.cli.exit_codes import worst
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome, Problem, Screen, problem_of
from resourcesync.errors import ConfigurationError, ResourceSyncError, StorageError
from resourcesync.settings.mirror import PullSettings
from resourcesync.settings.network import Network, SecretNames
from resourcesync.settings.schema import make
from resourcesync.settings.tables import SettingValue, overlay

if TYPE_CHECKING:
    from resourcesync.app.mirrors.mirror_state import SetMirror
    from resourcesync.app.mirrors.sets import SetPlan
    from resourcesync.app.mirrors.stores import Home
    from resourcesync.app.stored_names import StoredNames
    from resourcesync.cli.render.pull import PullRenderer
    from resourcesync.destination.options import PullOptions, Review
    from resourcesync.ports import Reporter
    from resourcesync.ports.cancellation import CancelToken
    from resourcesync.settings.network import Network


class PullTarget(NamedTuple):
    """One mirror to pull, and its settings.

    Attributes:
        name: The name that the operator uses.
        address: The Source's address; ``None`` for the remembered one.
        folder: The mirror's folder.
        network: The settings of requests, without secrets.
        is_configured: True if the settings, with the filters, come from a table.
        store: The address of the store with the copies; empty for the folder.
        dry_run: Read and plan, change nothing.
    """

    name: str
    address: str | None
    folder: Path
    settings: PullSettings
    network: Network
    secrets: SecretNames
    is_configured: bool = False
    store: str = ""
    dry_run: bool = False


class TargetResolver:
    """A resolver of names and folders, from the command line and the configuration file."""

    def __init__(
        self,
        configuration: MirrorConfiguration,
        given: Mapping[str, Any],
        *,
        dry_run: bool = False,
    ) -> None:
        self.configuration = configuration
        self._given = given
        self._dry_run = dry_run

    def target(self, place: str) -> PullTarget:
        """Return the mirror of a name or a folder."""
        if place not in self.configuration:
            return self.target_at(None, place)
        mirror = self.configuration.mirror(place)
        found = self._target(place, mirror.source, mirror.dest, mirror.settings)
        return found._replace(is_configured=True, store=mirror.store)

    def target_at(self, address: str | None, place: str) -> PullTarget:
        """Return the mirror at a folder or store address, of a Source or of its remembered one."""
        found = self._target(place, address, Path(place), self.configuration.defaults)
        folder, store = configured_mirrors.locate_mirror(place, found.settings.state or None)
        name = place if store else str(folder)
        return found._replace(name=name, folder=folder, store=store)

    def _target(
        self, name: str, address: str | None, folder: Path, settings: Mapping[str, SettingValue]
    ) -> PullTarget:
        values = overlay(configured_mirrors.values_of(settings), self._given)
        return PullTarget(
            name=name,
            address=address,
            folder=folder,
            settings=make(PullSettings, values),
            network=configured_mirrors.network_of(values),
            secrets=make(SecretNames, values),
            dry_run=self._dry_run,
        )


class PullContext(NamedTuple):
    """The parts that all pulls of a command share.

    Attributes:
        configuration: The file's mirrors and secrets.
        renderer: Its ``first`` is set for each mirror.
        cancel: The request to stop, and the clock.
        pulled: The folders of configured mirrors that were pulled before; ``None`` where no
            mirror is configured.
    """

    configuration: MirrorConfiguration
    renderer: "PullRenderer"
    cancel: "CancelToken"
    pulled: "StoredNames | None"


def pull(
    target: PullTarget, context: PullContext, screen: Screen, on_event: "Reporter"
) -> CommandOutcome:
    """Pull a mirror, or a folder with one mirror for each set.

    The folder of a configured mirror that was pulled before must be there: its disk may not be
    mounted, and all would be fetched again, to another disk.
    """
    _check_folder(target, context.pulled)
    outcome = _pull(target, context, screen, on_event)
    _check_folder(target, context.pulled)
    return outcome


def _check_folder(target: PullTarget, pulled: "StoredNames | None") -> None:
    """Record that a folder is a mirror; refuse one that was a mirror, and is none."""
    if not target.is_configured or target.store or pulled is None:
        return
    from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - help stays quick

    folder = str(target.folder.absolute())
    if not mirror_state.is_present(target.folder):
        if folder in pulled.names:
            raise configured_mirrors.vanished_error(target.name, folder, target.address)
    elif folder not in pulled.names:
        with suppress(StorageError):  # then a pull that finds nothing there is not refused
            pulled.set(folder, is_in=True)


def _pull(
    target: PullTarget, context: PullContext, screen: Screen, on_event: "Reporter"
) -> CommandOutcome:
    from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - help stays quick

    settings, folder = target.settings, target.folder
    network = _network(target, context.configuration)
    is_several = settings.all_sets or len(settings.set_names) > 1
    is_folder_of_sets = mirror_state.is_folder_of_sets(folder)
    if settings.moved and (is_several or is_folder_of_sets):
        raise ConfigurationError(
            "--moved needs exactly one mirror",
            hint=f"run it for each set: name the folder of the set below {folder}",
        )
    if is_several and target.store:
        raise ConfigurationError(
            "a store can contain only one mirror, and so only one set",
            hint="name one set, and give each set its own store",
        )
    if not is_several and not is_folder_of_sets:
        name = "".join(settings.set_names)
        return _pull_one(_MirrorPull(target, folder, name), network, context, on_event)

    from resourcesync.app.mirrors import mirror_state, sets  # noqa: PLC0415 - rarely

    request = sets.SetRequest(
        source=target.address, names=settings.set_names, every=settings.all_sets
    )
    plan = sets.plan_sets(folder, request, network=network, cancel=context.cancel)

    def pull_one(set_target: SetTarget, report: "Reporter") -> CommandOutcome:
        _check_folder(target, context.pulled)  # its disk may go meanwhile
        of_set = target._replace(address=set_target.address)
        return _pull_one(
            _MirrorPull(of_set, set_target.folder, set_target.uri), network, context, report
        )

    return pull_all_sets(plan, pull_one, screen, dry_run=target.dry_run)


class _MirrorPull(NamedTuple):
    """One pull: its options, its folder, and its set; an empty name means the only set."""

    target: PullTarget
    folder: Path
    set_name: str


def _pull_one(
    pull: _MirrorPull, network: Network, context: PullContext, on_event: "Reporter"
) -> CommandOutcome:
    """Pull one mirror."""
    from resourcesync.app.mirrors import opening  # noqa: PLC0415 - help stays quick
    from resourcesync.app.mirrors.planned_items import item_review  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.render.pull_outcome import conclude  # noqa: PLC0415 - help stays quick

    address, folder = pull.target.address, pull.folder
    words, cancel = context.renderer, context.cancel
    plan: dict[str, object] = {}

    def report(event: str, fields: Mapping[str, object]) -> None:
        if event == "plan":
            plan.update(fields)
        on_event(event, fields)

    _check_source(pull.target, context)
    with opening.open_destination(
        _home(pull),
        source=pull.target.settings.moved or address,
        network=network,
        report=report,
        cancel=cancel,
        failed_pulls=opening.recorded_pulls(
            is_configured=pull.target.is_configured, dry_run=pull.target.dry_run
        ),
    ) as destination:
        words.first = destination.is_new
        words.since_moves = isinstance(pull.target.settings.since, timedelta)
        review = item_review(on_event, folder) if pull.target.dry_run else None
        found = destination.pull(_options(pull, cancel.clock.now(), review))
    place, pruning = pull.target.store or str(folder), pull.target.settings.prune
    ended = conclude(found, str(folder), first=words.first, plan=plan, pruning=pruning, place=place)
    return _with_moved_line(ended, pull.target, context)


def _check_source(target: PullTarget, context: PullContext) -> None:
    """Refuse to pull a configured mirror whose Source moved from the address in the file."""
    from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - help stays quick

    if not target.is_configured or target.settings.moved or not target.address:
        return
    if mirror_state.is_mirror(target.folder):
        known = mirror_state.moved_source(target.folder, target.address)
        if known:
            mirror = context.configuration.mirror(target.name)
            raise mirror.source_conflict_error(known, has_moved=True)


def _with_moved_line(
    ended: CommandOutcome, target: PullTarget, context: PullContext
) -> CommandOutcome:
    """Return an outcome that says which line of the configuration file is to be changed."""
    moved = target.settings.moved
    if not (target.is_configured and moved) or target.dry_run:
        return ended
    line = context.configuration.mirror(target.name).moved_line(moved)
    return ended._replace(closing=(*ended.closing, TextLine(f"  next   change the file: {line}")))


def _home(pull: _MirrorPull) -> "Home":
    """Return the place of the mirror, and its workers."""
    from resourcesync.app.mirrors.stores import Home  # noqa: PLC0415 - help stays quick

    engine = pull.target.settings.engine
    if engine is None:
        return Home(pull.folder, pull.target.store)
    from resourcesync.app.engines import Workers  # noqa: PLC0415 - rarely needed

    return Home(pull.folder, pull.target.store, Workers(engine=engine))


def _network(target: PullTarget, configuration: MirrorConfiguration) -> Network:
    """Return the network settings for the Source, with its secret."""
    from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - help stays quick

    source = target.settings.moved or target.address or ""
    if target.secrets.auth and not source and mirror_state.is_mirror(target.folder):
        source = mirror_state.read_status(target.folder).source
    return configuration.with_secrets(target.network, target.secrets, source)


def _options(pull: _MirrorPull, now: datetime, review: "Review | None") -> "PullOptions":
    from resourcesync.app.options import pull_options  # noqa: PLC0415 - help stays quick
    from resourcesync.destination.scope import Filters  # noqa: PLC0415 - help stays quick

    return structs.replace(
        pull_options(pull.target.settings, now, set_name=pull.set_name),
        dry_run=pull.target.dry_run,
        filters=Filters() if pull.target.is_configured else None,
        review=review,
    )


PullNamed = Callable[[str, "Reporter"], CommandOutcome]
"""A function that pulls the mirror of a name; raises ``ResourceSyncError``."""


class BatchResult(NamedTuple):
    """The result of one of several: its name, its fields in ``run.end``, and its outcome."""

    name: str
    fields: Mapping[str, object]
    outcome: CommandOutcome


def pull_many(names: Sequence[str], pull_one: PullNamed, screen: Screen) -> CommandOutcome:
    """Pull the mirrors in turn; the others go on after a failure of any kind."""
    ended = [
        run_part(name, {"mirror": name}, partial(_pull_named, name, pull_one, screen), screen)
        for name in names
    ]
    return combine_outcomes(ended, "mirror")


def run_part(
    name: str, fields: Mapping[str, object], work: Callable[[], CommandOutcome], screen: Screen
) -> BatchResult:
    """Run one of several, and report its end as the event ``mirror.end``."""
    from resourcesync.app import machine  # noqa: PLC0415 - help stays quick

    clock = machine.system_clock()
    started = clock.monotonic()
    outcome = work()
    seconds = round(clock.monotonic() - started, 3)
    tail = {"seconds": seconds, "exit": int(outcome.exit)}
    screen.report("mirror.end", {**fields, **outcome.fields, **tail})
    return BatchResult(name, fields, outcome)


def _pull_named(name: str, pull_one: PullNamed, screen: Screen) -> CommandOutcome:
    def report(event: str, fields: Mapping[str, object]) -> None:
        screen.report(event, {"mirror": name, **fields})

    screen.report("mirror", {"mirror": name})
    try:
        return pull_one(name, report)
    except ResourceSyncError as error:
        return report_failure(problem_of(error, name), name, screen)
    except Exception as error:  # noqa: BLE001 - a bug in one mirror does not stop the others
        from resourcesync.cli.crash import write_crash_report  # noqa: PLC0415 - rarely needed

        return report_failure(write_crash_report(error, ["pull", name]), name, screen)


def report_failure(
    problem: Problem, name: str, screen: Screen, noun: str = "mirror"
) -> CommandOutcome:
    """Show the error that ended one of several; return its outcome."""
    screen.problem(problem._replace(evidence=((noun, name), *problem.evidence)))
    line = TextLine(f"{problem.code}: {problem.message}  exit {int(problem.exit)}", "Failed", QUIET)
    return problem.outcome()._replace(closing=(line,))


def combine_outcomes(ended: Iterable[BatchResult], noun: str) -> CommandOutcome:
    """Return the outcome of several: the lines of each, and the worst of their exit codes."""
    lines: list[TextLine] = []
    failed: list[TextLine] = []
    rows: list[dict[str, object]] = []
    codes = []
    head = "Source" if noun == "source" else "Mirror"
    for name, fields, outcome in ended:
        own = (TextLine(name, head, QUIET), *outcome.closing)
        lines += own
        failed += own if outcome.exit else ()
        rows.append({**fields, **outcome.fields, "exit": int(outcome.exit)})
        codes.append(outcome.exit)
    code = worst(codes)
    good = sum(not code for code in codes)
    text = f"{formatting.count(good)} of {formatting.counted(len(codes), noun)} OK"
    end = TextLine(f"{text}  exit {int(code)}", f"{noun.capitalize()}s", QUIET)
    return CommandOutcome(
        exit=code,
        closing=(*lines, end),
        fields={f"{noun}s": rows},
        shows_exit=True,
        failed=(*failed, end),
    )


class SetTarget(NamedTuple):
    """One set to pull: the Source's address, the mirror's folder, the set's URI."""

    address: str
    folder: Path
    uri: str


PullSet = Callable[[SetTarget, "Reporter"], CommandOutcome]
"""A function that pulls one mirror; raises ``ResourceSyncError``."""


def pull_all_sets(
    plan: "SetPlan", pull_one: PullSet, screen: Screen, *, dry_run: bool
) -> CommandOutcome:
    """Pull the mirror of each set; the others go on after a failure."""
    failure = "" if plan.failure is None else plan.failure.message
    screen.report(
        "sets", {"source": plan.source, "sets": len(plan.mirrors), "not_asked_anew": failure}
    )
    if not dry_run:
        plan.remember()
    try:
        ended = [
            run_part(
                str(mirror.folder),
                {"mirror": str(mirror.folder), "set": mirror.uri},
                partial(_pull_set, plan, mirror, pull_one, screen),
                screen,
            )
            for mirror in plan.mirrors
        ]
    finally:
        plan.remove_if_empty()
    return combine_outcomes(ended, "set")


def _pull_set(
    plan: "SetPlan", mirror: "SetMirror", pull_one: PullSet, screen: Screen
) -> CommandOutcome:
    where = {"mirror": str(mirror.folder)}

    def report(event: str, fields: Mapping[str, object]) -> None:
        screen.report(event, {**where, **fields})

    screen.report("mirror", {**where, "set": mirror.uri, "offered": mirror.offered})
    try:
        return pull_one(SetTarget(plan.source, mirror.folder, mirror.uri), report)
    except ResourceSyncError as error:
        name = where["mirror"]
        return report_failure(problem_of(error, name), name, screen)
