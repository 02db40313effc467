"""``resourcesync publish``: write the lists of a tree, a catalogue or another system."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from resourcesync import app
from resourcesync.app.configured_sources import ConfiguredSources, publish_keys
from resourcesync.cli import options
from resourcesync.cli.batch import run_all
from resourcesync.cli.exit_codes import ExitCode, acknowledge_stop
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import (
    QUIET,
    CommandOutcome,
    Job,
    Screen,
    TextLine,
    leniency_line,
    problem_of,
)
from resourcesync.cli.render.publish import (
    conclude,
    notified_line,
    report,
    report_notified,
    with_packages,
)
from resourcesync.destination.reports import report_fields
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model import formatting
from resourcesync.settings.schema import fields_of, without_empty
from resourcesync.source.publication_settings import PublicationSettings

if TYPE_CHECKING:
    from resourcesync.app.publishing.inputs import OnFailed, OnPublished, PublishedInput
    from resourcesync.settings.mirror import Network
    from resourcesync.source.publication_options import PublicationResult, PublishRequest


_PUBLISHING: Final = frozenset(
    ("all", "allow_empty", "dry_run", "dumps", "initialise", "rebase", "update", "watch")
)
"""Options that say what to publish."""
_SYSTEM_OPTIONS: Final = ("with", "auth", "proxy", "proxy_auth", "ca_file")
"""Options that are only for other systems, by the names of their values."""
_PLACES: Final = frozenset({"out", "versions_in"})
"""Settings that are stored as they are from the tree."""


def _given_settings(values: Mapping[str, Any]) -> dict[str, object]:
    fields = fields_of(PublicationSettings)
    for key, field in fields.items():
        if values[key] == "" and not field.setting.is_clearable:
            raise ConfigurationError(f"--{key.replace('_', '-')} is empty")
    return {
        field.name: without_empty(field, values[key])
        for key, field in fields.items()
        if key not in _PLACES and values[key] not in (None, ())
    }


def _forced_step(values: Mapping[str, Any]) -> str:
    forced = [name for name in ("initialise", "update", "rebase") if values[name]]
    if len(forced) > 1:
        raise click.UsageError(f"--{forced[0]} and --{forced[1]} exclude each other")
    return "".join(forced)


_MAX_NAMES: Final = 10_000
"""Most names of omitted files that are stored, so that each is reported once."""


@click.command("publish", cls=SectionedCommand)
@click.argument("tree", metavar="[DIR|NAME|SYSTEM:…]", required=False)
@option("--all", "all", is_flag=True, help="Publish every source of the configuration file.")
@options.with_settings(publish_keys().values())
@option("-n", "--dry-run", is_flag=True, help="Show what has changed; write nothing.")
@option(
    "--initialise", is_flag=True, help="Discard the history, and publish a fresh Resource List."
)
@option("--update", is_flag=True, help="Only list the changes.")
@option(
    "--rebase", is_flag=True, help="List the changes, and write a new Resource List (baseline)."
)
@option(
    "--notify-only",
    is_flag=True,
    help="Publish nothing: notify the hubs of what was published since the last notification,"
    " also where one failed.",
)
@option(
    "--watch",
    is_flag=True,
    help="Keep running, and publish changes; stop with Ctrl-C. Needs the extra 'watch'.",
)
@options.CONFIG
@options.output_options
def command(**values: Any) -> Job:
    """Write Resource Lists and Change Lists for a tree.

    The first run writes a Resource List, an empty Change List, a Capability List and a Source
    Description. Later runs list the changes, close old lists, and write nothing if nothing changed.
    --url and the options under Selection, Documents and Versions are remembered with the tree; a
    new value replaces all former ones of its option. Hidden files are left out.

    NAME is a table [source.NAME] of the configuration file; its settings are used in each run.

    catalogue:FILE is a catalogue that other programs fill, see the command catalogue; it needs
    --out FOLDER once. ndjson:FILE, or ndjson:- for standard input, is a list of all resources, one
    line of JSON each; it needs --out FOLDER.

    s3://BUCKET/PREFIX publishes the objects of a bucket; it needs --out. The documents may go to a
    bucket too: --out s3://BUCKET/PREFIX. For other stores, see 'resourcesync doctor --plugins'.

    SYSTEM:… is another system whose resources are published; for the systems, see 'resourcesync
    doctor --plugins'. It needs --out FOLDER. The system itself is never changed.

    --dumps makes packages of a folder's files: Destinations that support dumps need one request for
    thousands of small files. A package is a ZIP with a manifest, and never changes.

    A mirror's folder is published as an aggregator does: its copies at their own addresses, each
    with a link to the original. The documents go to .resourcesync/publication in it, or to --out.
    """
    _forced_step(values)
    tree: str | None = values.pop("tree")
    every: bool = values.pop("all")
    sources = ConfiguredSources(options.load(values["config"]))
    given = options.given_options()
    for name in ("watch", "dry_run"):
        if "dumps" in given and values[name]:
            raise ConfigurationError(f"--dumps and --{name.replace('_', '-')} exclude each other")
    if values["notify_only"]:
        return _notification_job(tree, sources, values, given)
    if every or tree is None:
        _check_all(tree, values, sources, every=every)
        return _job_of_all(sources, values, given)
    _refuse_ambiguous(tree, sources)
    tree, values = _resolve_target(tree, values, sources, given)
    if ":" in tree and app.inputs.kind_of(tree) is app.inputs.InputKind.SYSTEM:
        app.accounts.check_account_address(tree)  # a secret in it is never shown or logged

    return Job(
        acts=True,
        work=lambda screen: _publish(tree, values, screen),
        render=_render_event,
        subject=Path(tree).name,
        fields={"tree": tree, "dry_run": values["dry_run"]},
        resume_command=f"resourcesync publish {tree}",
    )


def _notification_job(
    tree: str | None, sources: ConfiguredSources, values: dict[str, Any], given: frozenset[str]
) -> Job:
    if others := sorted(given & _PUBLISHING):
        other = others[0].replace("_", "-")
        raise click.UsageError(f"--notify-only and --{other} exclude each other")
    if tree is None:
        raise click.UsageError("--notify-only needs a folder, a catalogue or a source")
    _refuse_ambiguous(tree, sources)
    target, values = _resolve_target(tree, values, sources, given)
    places = app.inputs.places_of(target, values["out"], values["state"])
    return Job(
        acts=True,
        work=lambda screen: _notify_hubs(places, screen),
        subject=Path(tree).name,
        fields={"tree": tree},
        resume_command=f"resourcesync publish {tree} --notify-only",
    )


def _resolve_target(
    target: str, values: dict[str, Any], sources: ConfiguredSources, given: frozenset[str]
) -> tuple[str, dict[str, Any]]:
    if target not in sources.names:
        return target, values
    source = sources.source(target)
    return source.path, options.merge_settings(values, source.settings, given)


def _refuse_ambiguous(target: str, sources: ConfiguredSources) -> None:
    if target not in sources.names or not Path(target).is_dir():
        return
    path = sources.source(target).path
    if Path(path).resolve() != Path(target).resolve():
        raise ConfigurationError(
            f"{target} is a folder here, and a source of the configuration file",
            evidence=(("source", f"[source.{target}] publishes {path}"),),
            hint=f"for the folder: resourcesync publish ./{target}; for the source: run this in"
            " another folder",
        )


def _check_all(
    tree: str | None, values: Mapping[str, Any], sources: ConfiguredSources, *, every: bool
) -> None:
    if not every:
        raise click.UsageError("name a folder, a source of the configuration file, or --all")
    if tree is not None or values["watch"]:
        raise click.UsageError(
            f"--all and {'--watch' if tree is None else tree} exclude each other"
        )
    if not sources.names:
        raise ConfigurationError(
            "no source is configured", hint="add a table [source.NAME] with its path and url"
        )


def _job_of_all(sources: ConfiguredSources, values: dict[str, Any], given: frozenset[str]) -> Job:

    def publish(name: str, screen: Screen) -> CommandOutcome:
        tree, settings = _resolve_target(name, values, sources, given)
        try:
            return _publish(tree, settings, screen)
        except ConfigurationError as error:
            if error.code != app.catalogues.NO_DRY_RUN:
                raise
            line = TextLine(f"not possible: {error.message}", "Dry run", QUIET)
            return CommandOutcome(closing=(line,), fields={"code": error.code})

    def work(screen: Screen) -> CommandOutcome:
        return run_all(sources.names, "source", lambda name, _: publish(name, screen), screen)

    return Job(
        acts=True,
        work=work,
        subject="all",
        fields={"dry_run": values["dry_run"]},
        resume_command="resourcesync publish --all",
    )


def _publish(target: str, values: dict[str, Any], screen: Screen) -> CommandOutcome:
    source, asked = _input(target, values), _request(values, screen)
    kind = app.inputs.kind_of(target)
    if values["watch"]:
        return _watch(source, asked, values["every"] or source.usual_interval, screen)
    done = source.publish(screen.clock, asked)
    report(done, screen)
    mirror = target if kind is app.inputs.InputKind.MIRROR else ""
    outcome = conclude(done, has_files=kind is app.inputs.InputKind.FOLDER, mirror=mirror)
    return outcome if done.dumped is None else with_packages(outcome, done.dumped, screen)


def _request(values: Mapping[str, Any], screen: Screen) -> "PublishRequest":
    from resourcesync.source.publication_options import PublishRequest  # noqa: PLC0415 - the same
    from resourcesync.source.stored_plan import PublicationStep  # noqa: PLC0415 - help stays quick

    dumps, kinds = None, values["dumps"] or "none"
    if kinds != "none" and not (values["dry_run"] or values["watch"]):
        from resourcesync.source.dumps.dump_publisher import DumpRequest  # noqa: PLC0415 - rarely needed

        all_but = {"resources": kinds != "changes", "changes": kinds != "resources"}
        dumps = DumpRequest(**all_but, may_fork=True)

    def report_row(event: str, fields: Mapping[str, object]) -> None:
        screen.report(event, {**fields, "exit": int(ExitCode.PARTIAL)})

    return PublishRequest(
        step=PublicationStep(_forced_step(values) or PublicationStep.DUE),
        dry_run=values["dry_run"],
        allow_empty=values["allow_empty"],
        dumps=dumps,
        report=report_row,
    )


def _input(target: str, values: Mapping[str, Any]) -> "app.inputs.PublishedInput":
    kind, chosen = app.inputs.kind_of(target), _given_settings(values)
    if kind not in {app.inputs.InputKind.SYSTEM, app.inputs.InputKind.MIRROR}:
        for name in _SYSTEM_OPTIONS:
            if values[name] and (name, kind) != ("with", app.inputs.InputKind.ORIGINALS):
                raise ConfigurationError(f"--{name} is only for other systems, not for {target}")

    def network() -> "Network":
        return options.load(values["config"]).network_from(values, "")

    return app.inputs.PublishedInput(
        target=target,
        chosen=chosen,
        out=values["out"],
        versions_in=values["versions_in"],
        state=values["state"],
        values=dict(values["with"]),
        read_again=values["rescan"],
        network=network,
    )


def _watch(
    source: "PublishedInput", asked: "PublishRequest", every: float, screen: Screen
) -> CommandOutcome:
    if asked.dry_run:
        raise ConfigurationError("--watch and --dry-run exclude each other")
    published, failed = _watch_reporters(source.target, screen)

    def begin() -> None:
        screen.report("watching", {"tree": source.target})

    try:
        source.watch(screen.clock, asked, every, begin, published, failed)
    except KeyboardInterrupt as stop:
        acknowledge_stop(stop)
    return CommandOutcome(closing=(TextLine("no longer watched", "Stopped", QUIET),))


def _watch_reporters(name: str, screen: Screen) -> "tuple[OnPublished, OnFailed]":
    reported: set[str] = set()  # each omission is reported once

    def published(done: "PublicationResult") -> None:
        fresh = tuple(omission for omission in done.omissions if omission.name not in reported)
        if len(reported) > _MAX_NAMES:
            reported.clear()
        reported.update(omission.name for omission in fresh)
        report(replace(done, omissions=fresh), screen)
        screen.report("published", report_fields(done.report()))

    def failed(error: ResourceSyncError, pause: float) -> None:
        message = f"{error.message}; next try in {pause:g} s"
        hint, problem = error.hint, problem_of(error)
        fields = {"evidence": error.evidence, "hint": hint, "tree": name, "exit": int(problem.exit)}
        address = {"uri": problem.uri} if problem.uri else {}
        screen.report("warning", {"code": error.code, "message": message, **fields, **address})

    return published, failed


def _render_event(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    if event == "leniency":
        yield leniency_line(fields)
    elif event == "watching":
        yield TextLine(f"{fields['tree']}; stop with Ctrl-C", "Watching", QUIET)
    elif event == "published" and fields["written"]:
        said = formatting.counts({name: fields[name] for name in ("created", "updated", "deleted")})
        names = formatting.counted(len(fields["written"]), "document")
        yield TextLine(f"{names}{': ' if said else ''}{said}", "Wrote", QUIET)


def _notify_hubs(places: "app.inputs.PublishedPlaces", screen: Screen) -> CommandOutcome:
    result = app.hubs.notify_published(*places, screen.clock)
    report_notified(result, screen)
    failed = {problem.notice.hub for problem in result.problems}
    reached = {outcome.notice.hub for outcome in result.sent} - failed
    code = ExitCode.OK
    if failed:
        code = ExitCode.PARTIAL if reached else ExitCode.UNREACHABLE
    line = notified_line(result) or TextLine(
        "no hub" if failed else "nothing new", "Notified", QUIET
    )
    fields = {
        "changes": result.changes,
        "documents": result.documents,
        "hubs": len(reached),
        "problems": len(failed),
    }
    return CommandOutcome(exit=code, closing=(line,), fields=fields)
