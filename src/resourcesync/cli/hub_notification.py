"""``publish --notify-only``: notify the hubs of a Source about what is published."""

from pathlib import Path

from resourcesync import app
from resourcesync.app.configured_sources import ConfiguredSource, ConfiguredSources
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome, Job, Screen
from resourcesync.cli.render.publish import notified_line, report_notified


def notification_job(source: str, sources: ConfiguredSources) -> Job:
    """Return the job that notifies the hubs of what was published since the last notification."""
    target = _target(sources.source(source)) if source in sources.names else Path(source)

    return Job(
        acts=True,
        work=lambda screen: _notify(target, screen),
        subject=Path(source).name,
        fields={"tree": source},
        resume_command=f"resourcesync publish {source} --notify-only",
    )


def _target(source: ConfiguredSource) -> Path:
    """Return the tree or the catalogue of a Source; that of another system is in its folder."""
    kind, settings = app.inputs.kind_of(source.path), source.settings
    if kind in {app.inputs.InputKind.FOLDER, app.inputs.InputKind.CATALOGUE}:
        return Path(source.path)
    setting = settings.get("state") or settings.get("out")
    out = app.inputs.default_out(source.path) if setting is None else setting.value
    if kind is app.inputs.InputKind.ORIGINALS:
        return Path(str(out))
    return Path(f"{app.inputs.CATALOGUE_SCHEME}{out}/.resourcesync/catalogue.db")


def _notify(source: Path, screen: Screen) -> CommandOutcome:
    is_catalogue = str(source).startswith("catalogue:")
    result = app.hubs.notify_published(source, screen.clock, is_catalogue=is_catalogue)
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
