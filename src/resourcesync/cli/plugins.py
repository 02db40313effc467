"""``resourcesync plugins``: list what is installed, ours and others'."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

import click

from resourcesync.cli import formatting, options
from resourcesync.cli.formatting import NORMAL, TextLine
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen


@click.command("plugins")
@options.output_options
def command(output: OutputOptions) -> Job:
    """List what can be used by its name: mappers, exporters, accounts, originals, stores and more.

    Ours, and those that other installed packages bring by entry points, each with the package
    that it is of. Nothing of them is imported for this.
    """
    return Job(command="plugins", output=output, work=_list, render=_render)


def _list(screen: Screen) -> CommandOutcome:
    from resourcesync.wiring import plugins  # noqa: PLC0415 - help stays quick

    found = plugins.installed()
    for plugin in found:
        screen.report("plugin", {**asdict(plugin), "ours": plugin.distribution == "resourcesync"})
    others = sum(plugin.distribution != "resourcesync" for plugin in found)
    ours = formatting.count(len(found) - others)
    text = f"{ours} of resourcesync, {formatting.count(others)} of others"
    closing = (TextLine(text, "Plug-ins", NORMAL),)
    return CommandOutcome(closing=closing, fields={"plugins": len(found), "others": others})


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "plugin":
        kind = str(fields["group"]).rpartition(".")[2]
        of = f"{fields['distribution']} {fields['version']}".strip() or "an unnamed package"
        yield TextLine(f"{kind:<10} {fields['name']}  ({of})")
