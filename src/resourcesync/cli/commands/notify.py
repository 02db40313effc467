"""``resourcesync notify``: notify the hubs of a Source about what was published."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from resourcesync.cli import options, publish_inputs
from resourcesync.cli.configured_sources import ConfiguredSource, ConfiguredSources
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.cli.publish_inputs import CATALOGUE, default_out, is_external
from resourcesync.cli.render.publish import notified_line, report_notified
from resourcesync.settings import files

if TYPE_CHECKING:
    pass


@click.command("notify", cls=SectionedCommand)
@click.argument("source", metavar="DIR|NAME|catalogue:FILE", type=click.Path(path_type=Path))
@option(
    "--test",
    is_flag=True,
    help="Test a notification on this machine, with a local hub and a local subscriber.",
)
@options.CONFIG
@options.output_options
def command(output: OutputOptions, source: Path, config: Path | None, *, test: bool) -> Job:
    """Notify the hubs of a Source about what was published since the last notification.

    The hubs are those of 'publish --hub'. Notifications that failed before are sent again. Use it
    after you have copied the documents to the web server; if they are served from DIR itself,
    'publish --notify' does the same at once.

    --test notifies no real hub: it subscribes to the channel at a hub on this machine, sends the
    last notification, and shows the time of each step.
    """
    sources = ConfiguredSources(files.find(config))
    target = _target(sources.source(str(source))) if str(source) in sources.names else source

    def work(screen: Screen) -> CommandOutcome:
        return _test_round_trip(target) if test else _notify(target, screen)

    return Job(
        command="notify",
        acts=True,
        output=output,
        work=work,
        subject=source.name,
        fields={"tree": str(source)},
        resume_command=f"resourcesync notify {source}",
    )


def _target(source: ConfiguredSource) -> Path:
    """Return the tree or the catalogue of a Source; that of another system is in its folder."""
    if publish_inputs.is_originals_address(source.path):
        return Path(str(source.settings["state" if "state" in source.settings else "out"].value))
    if is_external(source.path) and not source.path.startswith(CATALOGUE):
        setting = source.settings.get("state") or source.settings.get("out")
        out = default_out(source.path) if setting is None else setting.value
        return Path(f"{CATALOGUE}{out}/.resourcesync/catalogue.db")
    return Path(source.path)


def _notify(source: Path, screen: Screen) -> CommandOutcome:
    from resourcesync.app import machine  # noqa: PLC0415 - help stays quick
    from resourcesync.app.serving import push_channels  # noqa: PLC0415 - help stays quick

    with push_channels.open_channels(
        source, is_catalogue=str(source).startswith(CATALOGUE)
    ) as opened:
        result = opened.notify(machine.system_clock())
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


def _test_round_trip(source: Path) -> CommandOutcome:
    from resourcesync.app import machine  # noqa: PLC0415 - the same
    from resourcesync.app.serving import push_channels, websub_round_trip  # noqa: PLC0415 - the same

    with push_channels.open_channels(
        source, is_catalogue=str(source).startswith(CATALOGUE)
    ) as opened:
        topic, body = opened.last_notification()
    found = websub_round_trip.try_round_trip(topic, body, machine.system_clock())
    lines = (
        TextLine(f"after {_milliseconds(found.subscribed)}, verified by the hub", "Subscribed"),
        TextLine(f"by the hub after {_milliseconds(found.accepted)}", "Accepted"),
        TextLine(f"after {_milliseconds(found.delivered)}, signed", "Delivered", QUIET),
    )
    fields = {
        "subscribed_seconds": round(found.subscribed, 4),
        "accepted_seconds": round(found.accepted, 4),
        "delivered_seconds": round(found.delivered, 4),
    }
    return CommandOutcome(closing=lines, fields=fields)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"
