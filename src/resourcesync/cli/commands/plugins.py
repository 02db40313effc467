"""The list of installed plug-ins; ``resourcesync plugins``."""

from collections.abc import Iterator, Mapping

import click

from resourcesync.cli import formatting, options
from resourcesync.cli.formatting import NORMAL, TextLine
from resourcesync.cli.options import SectionedCommand
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen


@click.command("plugins", cls=SectionedCommand)
@options.output_options
def command(output: OutputOptions) -> Job:
    """List the installed plug-ins, as ``resourcesync doctor --plugins`` does."""
    return job_of("plugins", output)


def job_of(command: str, output: OutputOptions) -> Job:
    """Return the job of a command that lists the plug-ins."""
    return Job(command=command, output=output, work=_list, render=_render)


def _list(screen: Screen) -> CommandOutcome:
    from resourcesync.app import plugins  # noqa: PLC0415 - help stays quick

    found = plugins.installed()
    for plugin in found:
        screen.report("plugin", {**plugin._asdict(), "ours": plugin.distribution == "resourcesync"})
    others = sum(plugin.distribution != "resourcesync" for plugin in found)
    ours = formatting.count(len(found) - others)
    text = f"{ours} of resourcesync, {formatting.count(others)} of other packages"
    closing = (TextLine(text, "Plug-ins", NORMAL),)
    return CommandOutcome(closing=closing, fields={"plugins": len(found), "others": others})


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "plugin":
        kind = str(fields["group"]).rpartition(".")[2]
        of = f"{fields['distribution']} {fields['version']}".strip() or "an unnamed package"
        yield TextLine(f"{kind:<10} {fields['name']}  ({of})")
