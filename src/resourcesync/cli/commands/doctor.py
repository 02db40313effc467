"""``resourcesync doctor``: check a mirror's folder and a Source for problems."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from resourcesync import app
from resourcesync.app import configured_mirrors
from resourcesync.app.configured_mirrors import MirrorConfiguration
from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import NORMAL, QUIET, CommandOutcome, Job, Screen, TextLine
from resourcesync.errors import ResourceSyncError, next_step
from resourcesync.model import formatting
from resourcesync.settings.precedence import overlay

_LEVELS: Final = {"ok": NORMAL, "warning": QUIET, "problem": QUIET}


@click.command("doctor", cls=SectionedCommand)
@click.argument(
    "target", required=False, metavar="MIRROR|SOURCE", shell_complete=options.complete_mirror
)
@option("--plugins", is_flag=True, help="Only list the installed plug-ins, each with its package.")
@options.CONNECTION
@options.CONFIG
@options.output_options
def command(target: str | None, *, plugins: bool, **values: Any) -> Job:
    """Check a mirror or a Source for problems that disturb pulls.

    MIRROR is the folder of a mirror or of a future mirror, or a name in the configuration file;
    its Source is checked too. In a folder of several sets, each mirror is checked. SOURCE is an
    address. What is checked: whether the folder, and those in a mirror, can be written, and whether
    its file system distinguishes upper and lower case; what a mirror has in quarantine; certificate
    and clock of the Source, and that its lists can be read. Exit 0 without problems, 1 otherwise.

    --plugins lists the built-in plug-ins and those of other installed packages; none is imported.
    Kinds: accounts are input adapters of publish, originals are object stores of publish.
    """
    if plugins:
        if target is not None:
            raise click.UsageError("--plugins lists all plug-ins: name no mirror and no Source")
        return Job(work=_list_plugins, render=_render_plugin)
    if target is None:
        raise click.UsageError("name a mirror or a Source")
    named: Path | None = values.pop("config")
    way = options.pop_connection(values)

    def work(screen: Screen) -> CommandOutcome:
        verdicts: list[app.diagnosis.CheckResult] = []
        for verdict in _verdicts(target, options.load(named), way):
            verdicts.append(verdict)
            screen.report(
                "verdict",
                {
                    "check": verdict.check,
                    "level": verdict.level,
                    "text": verdict.text,
                    "next": verdict.next_step,
                },
            )
        return _outcome(verdicts)

    return Job(work=work, render=_render, fields={"target": target})


def _verdicts(
    target: str, configuration: MirrorConfiguration, way: Mapping[str, Any]
) -> "Iterator[app.diagnosis.CheckResult]":
    settings, addresses = configuration.defaults, {target}
    if "://" not in target:
        configuration.check_name(target)
        folder, addresses = configuration.planned_folder(target), set[str]()
        if mirror := configuration.mirror_of(target):
            settings, addresses = mirror.settings, {mirror.source}
        for each in app.mirror_home.each_mirror(folder):
            try:
                if mirror:
                    configuration.check_present(mirror.name)
                app.mirror_home.is_set_present(each)
                yield from app.diagnosis.check_folder(each)
                source = app.mirror_home.source_of(each)
            except ResourceSyncError as error:
                text, hint = error.cause, next_step(error)
                yield app.diagnosis.CheckResult("mirror", "problem", text, hint)
            else:
                addresses |= set() if mirror else {source}
    for address in sorted(filter(None, addresses)):
        chosen = overlay(configured_mirrors.values_of(settings), way)
        network = configured_mirrors.network_of(chosen)
        whole = partial(configuration.network_from, chosen, address)
        yield from app.diagnosis.check_source(address, network, app.system.SystemClock(), whole)


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "verdict":
        level = str(fields["level"])
        yield TextLine(str(fields["text"]), level, _LEVELS[level])
        if fields["next"]:
            yield TextLine(f"  next    {fields['next']}", level=_LEVELS[level])


def _outcome(verdicts: "list[app.diagnosis.CheckResult]") -> CommandOutcome:
    levels = [verdict.level for verdict in verdicts]
    problems, warnings = levels.count("problem"), levels.count("warning")
    counts = f"{formatting.counted(problems, 'problem')}, {formatting.counted(warnings, 'warning')}"
    line = TextLine(f"{counts}, {formatting.counted(len(verdicts), 'check')}", "Checked", QUIET)
    code = ExitCode.FINDINGS if problems else ExitCode.OK
    fields = {"problems": problems, "warnings": warnings, "checks": len(verdicts)}
    return CommandOutcome(exit=code, closing=(line,), fields=fields)


def _list_plugins(screen: Screen) -> CommandOutcome:
    found = app.plugins.installed()
    for plugin in found:
        screen.report("plugin", {**plugin._asdict(), "ours": plugin.distribution == "resourcesync"})
    others = sum(plugin.distribution != "resourcesync" for plugin in found)
    ours = formatting.count(len(found) - others)
    text = f"{ours} of resourcesync, {formatting.count(others)} of other packages"
    closing = (TextLine(text, "Plug-ins"),)
    return CommandOutcome(closing=closing, fields={"plugins": len(found), "others": others})


def _render_plugin(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "plugin":
        kind = str(fields["group"]).rpartition(".")[2]
        of = f"{fields['distribution']} {fields['version']}".strip() or "an unnamed package"
        yield TextLine(f"{kind:<10} {fields['name']}  ({of})")
