"""The list of installed plug-ins, for ``resourcesync doctor --plugins``."""

from collections.abc import Iterator, Mapping

from resourcesync import app
from resourcesync.cli import formatting
from resourcesync.cli.formatting import NORMAL, TextLine
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen


def plugins_job(output: OutputOptions) -> Job:
    """Return the job that lists the plug-ins."""
    return Job(command="doctor", output=output, work=_list, render=_render)


def _list(screen: Screen) -> CommandOutcome:
    found = app.plugins.installed()
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
