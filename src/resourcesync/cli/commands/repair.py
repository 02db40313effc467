"""``resourcesync repair``: fetch again what an audit found."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.cli.target_options import MirrorArgument, mirror_argument
from resourcesync.destination.options import PullOptions
from resourcesync.model.settings import Limit

if TYPE_CHECKING:
    from resourcesync.settings.mirror import Network


class RepairArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed command line of ``repair``."""

    mirror: Path
    from_audit: str | None
    dry_run: bool
    delete: bool
    max_delete: Limit


@click.command("repair", cls=SectionedCommand)
@options.CONNECTION
@mirror_argument
@option(
    "--from-audit", metavar="ID", help="Repair the findings of this audit; last: the newest one."
)
@option("-n", "--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@option(
    "-i",
    "--itemize",
    is_flag=True,
    help="Show a line per action: + created, * updated, - deleted, ! failed.",
)
@option("--delete", is_flag=True, help="Also delete copies that the Source does not list.")
@options.MAX_DELETE
@options.CONFIG
@options.output_options
def command(output: OutputOptions, mirror: MirrorArgument, itemize: bool, **values: Any) -> Job:  # noqa: FBT001 - click calls it
    """Fetch again what an audit found missing or different.

    MIRROR is a mirror's folder, or its name in the configuration file.
    Without --from-audit, what audits proved is repaired, and size and time of each file are
    compared first. A file that was changed
    locally is moved to .resourcesync/quarantine. Files that did not come from the Source are not
    touched. Exit codes are those of pull.
    """
    arguments = RepairArguments(mirror=mirror.folder, **values)
    from resourcesync.cli.render.pull import PullRenderer  # noqa: PLC0415 - help stays quick

    words = PullRenderer(first=False, itemize=itemize, dry_run=arguments.dry_run)
    return Job(
        command="repair",
        acts=True,
        output=output,
        work=lambda screen: _repair(arguments, mirror.network, screen),
        render=words,
        subject=arguments.mirror.name or str(arguments.mirror),
        fields={"mirror": str(arguments.mirror), "from_audit": arguments.from_audit},
        resume_command=f"resourcesync repair {arguments.mirror}",
    )


def _repair(
    arguments: RepairArguments, network: "Callable[[], Network]", screen: Screen
) -> CommandOutcome:
    from resourcesync.cli.render.pull import conclude  # noqa: PLC0415 - help stays quick

    folder = arguments.mirror
    settings = PullOptions(max_delete=arguments.max_delete)
    mirror = app.mirror.mirror_at(folder, network(), settings)
    known = None
    if arguments.from_audit is not None:
        known = app.mirror_state.findings_of(folder, arguments.from_audit)
    plan: dict[str, object] = {}

    def report(event: "app.mirror.Event") -> None:
        if event.kind == "plan":
            plan.update(event.fields)
        screen.report(event.kind, event.fields)

    found = mirror.repair(
        known, deleting=arguments.delete, dry_run=arguments.dry_run, on_event=report
    )
    return conclude(found, str(folder), first=False, plan=plan)
