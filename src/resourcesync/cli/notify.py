"""``resourcesync notify``: tell the hubs of a Source what was published."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from resourcesync.cli import formatting, options, publish_inputs
from resourcesync.cli.configured_sources import ConfiguredSource, ConfiguredSources
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.options import option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.cli.publish_inputs import CATALOGUE, default_out, is_external
from resourcesync.config import files

if TYPE_CHECKING:
    from resourcesync.wiring.notifications import Notified


@click.command("notify")
@click.argument(
    "source",
    metavar="DIR|NAME|catalogue:FILE",
    type=click.Path(path_type=Path),
)
@option(
    "--test",
    is_flag=True,
    help="Try the whole way out on this machine, with a hub and a subscriber of its own.",
)
@options.CONFIG
@options.output_options
def command(output: OutputOptions, source: Path, config: Path | None, *, test: bool) -> Job:
    """Tell the hubs of a Source what was published since they were told last.

    The hubs are those of 'publish --hub'. Whatever could not be told before is told now. Use it
    after the documents were copied to where the world reads them; where they are read from DIR
    itself, 'publish --notify' does the same at once.

    --test tells nobody: it subscribes to the channel at a hub on this machine, sends the last
    notification, and says how long each step took.
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
    """Return the tree or the catalogue of a Source; another system's is beside its documents."""
    if publish_inputs.is_originals_address(source.path):
        return Path(str(source.settings["state" if "state" in source.settings else "out"].value))
    if is_external(source.path) and not source.path.startswith(CATALOGUE):
        told = source.settings.get("state") or source.settings.get("out")
        out = default_out(source.path) if told is None else told.value
        return Path(f"{CATALOGUE}{out}/.resourcesync/catalogue.db")
    return Path(source.path)


def _notify(source: Path, screen: Screen) -> CommandOutcome:
    from resourcesync.wiring import machine, push_channels  # noqa: PLC0415 - help stays quick

    with push_channels.open_channels(
        source, is_catalogue=str(source).startswith(CATALOGUE)
    ) as opened:
        told = opened.notify(machine.system_clock())
    report(told, screen)
    failed = {problem.notice.hub for problem in told.problems}
    reached = {outcome.notice.hub for outcome in told.sent} - failed
    code = ExitCode.OK
    if failed:
        code = ExitCode.PARTIAL if reached else ExitCode.UNREACHABLE
    line = summary(told) or TextLine("no hub" if failed else "nothing is new", "Notified", QUIET)
    fields = {
        "changes": told.changes,
        "documents": told.documents,
        "hubs": len(reached),
        "problems": len(failed),
    }
    return CommandOutcome(exit=code, closing=(line,), fields=fields)


def _test_round_trip(source: Path) -> CommandOutcome:
    from resourcesync.wiring import machine, push_channels, websub_round_trip  # noqa: PLC0415 - the same

    with push_channels.open_channels(
        source, is_catalogue=str(source).startswith(CATALOGUE)
    ) as opened:
        topic, body = opened.last_notification()
    found = websub_round_trip.try_round_trip(topic, body, machine.system_clock())
    lines = (
        TextLine(f"after {_milliseconds(found.subscribed)}, as the hub verified", "Subscribed"),
        TextLine(f"by the hub after {_milliseconds(found.accepted)}", "Accepted"),
        TextLine(f"signed, after {_milliseconds(found.delivered)}: polls now", "Delivered", QUIET),
    )
    fields = {
        "subscribed_seconds": round(found.subscribed, 4),
        "accepted_seconds": round(found.accepted, 4),
        "delivered_seconds": round(found.delivered, 4),
    }
    return CommandOutcome(closing=lines, fields=fields)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def report(told: "Notified", screen: Screen) -> None:
    """Tell which hubs have not heard it, and why."""
    for hub, problem in {problem.notice.hub: problem.problem for problem in told.problems}.items():
        screen.report(
            "warning",
            {
                "code": "notify",
                "message": f"the hub {hub} was not told: {problem}",
                "evidence": (("kept", "it is told again the next time, with what comes then"),),
            },
        )
    if told.error is not None:
        message = f"no hub was told: {told.error.message}"
        fields = {"evidence": told.error.evidence, "hint": told.error.hint}
        screen.report("warning", {"code": "notify", "message": message, **fields})


def summary(told: "Notified") -> TextLine | None:
    """Return the line that says what hubs were told; ``None`` for nothing."""
    failed = {problem.notice.hub for problem in told.problems}
    reached = len({outcome.notice.hub for outcome in told.sent} - failed)
    if not reached:
        return None
    said = []
    if told.changes:
        said.append(formatting.counted(told.changes, "change"))
    if told.documents:
        said.append(formatting.counted(told.documents, "document"))
    return TextLine(
        f"{formatting.counted(reached, 'hub')} of {' and '.join(said)}", "Notified", QUIET
    )
