"""``resourcesync repair``: fetch again what an audit found."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.options import MirrorArgument, SectionedCommand, mirror_argument, option
from resourcesync.cli.output import CommandOutcome, Job, Screen
from resourcesync.destination.options import PullOptions
from resourcesync.ports import Reporter
from resourcesync.settings.mirror import Network


@click.command("repair", cls=SectionedCommand)
@options.CONNECTION
@mirror_argument
@option(
    "--from-audit", metavar="ID", help="Repair the findings of this audit; last: the newest one."
)
@options.REHEARSAL
@option("--delete", is_flag=True, help="Also delete copies that the Source does not list.")
@options.MAX_DELETE
@options.CONFIG
@options.output_options
def command(mirror: MirrorArgument, **values: Any) -> Job:
    """Fetch again what an audit found missing or different.

    MIRROR is a mirror's folder, or its name in the configuration file.
    Without --from-audit, what audits proved is repaired, and size and time of each file are
    compared first. A file that was changed
    locally is moved to .resourcesync/quarantine. Files that did not come from the Source are not
    touched. Exit codes are those of pull.
    """
    from resourcesync.cli.render.pull import PullRenderer  # noqa: PLC0415 - help stays quick

    folder = mirror.folder
    return Job(
        acts=True,
        work=lambda screen: _repair(mirror, values, screen),
        render=PullRenderer(first=False, itemize=values["itemize"], dry_run=values["dry_run"]),
        subject=folder.name or str(folder),
        fields={"mirror": str(folder), "from_audit": values["from_audit"]},
        resume_command=f"resourcesync repair {mirror.named}",
    )


def _repair(argument: MirrorArgument, values: Mapping[str, Any], screen: Screen) -> CommandOutcome:
    folder, network = argument.folder, argument.network()
    found = app.mirror_home.each_mirror(folder)
    if found == (folder,):
        return _repair_one(folder, argument.named, network, values, screen.report)
    from resourcesync.cli import batch  # noqa: PLC0415 - most repair one

    def repair_set(name: str, report: Reporter) -> CommandOutcome:
        screen.report("mirror", {"mirror": name})
        return _repair_one(Path(name), name, network, values, report)

    return batch.run_all(list(map(str, found)), "mirror", repair_set, screen)


def _repair_one(
    folder: Path, name: str, network: Network, values: Mapping[str, Any], report: Reporter
) -> CommandOutcome:
    from resourcesync.cli.render.pull import conclude  # noqa: PLC0415 - help stays quick

    audit, plan = values["from_audit"], dict[str, object]()
    options = PullOptions(max_delete=values["max_delete"])
    mirror = app.mirror.mirror_at(folder, network, options)
    known = None if audit is None else app.mirror_home.findings_of(folder, audit)

    def on_event(event: "app.mirror.Event") -> None:
        if event.kind == "plan":
            plan.update(event.fields)
        report(event.kind, event.fields)

    found = mirror.repair(
        known, deleting=values["delete"], dry_run=values["dry_run"], on_event=on_event
    )
    by = "repair --delete"
    if found.held and not (found.dry_run and plan.get("held") == found.held):
        by = app.mirror_home.read_status(folder).stopped_command
    return conclude(found, name, first=False, plan=plan, place=str(folder), by=by)
