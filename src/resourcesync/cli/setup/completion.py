"""``resourcesync completion``: what lets a shell complete commands, options and mirrors."""

import sys
from typing import Final

import click
from click.shell_completion import get_completion_class

from resourcesync.cli import options
from resourcesync.cli.options import SectionedCommand
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen, write_line
from resourcesync.settings.environment import PREFIX

_SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = f"_{PREFIX}_COMPLETE"
"""Variable by which the shell's function calls the program for completions; click reads it."""


@click.command("completion", cls=SectionedCommand)
@click.argument("shell", type=click.Choice(_SHELLS))
@options.output_options
def command(output: OutputOptions, shell: str) -> Job:
    """Print what lets a shell complete commands, options and the names of mirrors.

    \b
    bash  eval "$(resourcesync completion bash)" in ~/.bashrc; bash 4.4 or newer
    zsh   eval "$(resourcesync completion zsh)" in ~/.zshrc, after compinit
    fish  resourcesync completion fish > ~/.config/fish/completions/resourcesync.fish

    Where a mirror is expected, its name in the configuration file completes.
    """  # noqa: D301 - click's mark for lines that are not to be filled
    root = click.get_current_context().find_root().command

    def work(screen: Screen) -> CommandOutcome:
        text = completion_script(root, shell)
        if output.json:
            screen.report("file", {"name": shell, "text": text})
        else:
            write_line(sys.stdout, text)
        return CommandOutcome()

    return Job(command="completion", output=output, work=work, fields={"shell": shell})


def completion_script(root: click.Command, shell: str) -> str:
    """Return the script of a shell that completes a command line."""
    writer = get_completion_class(shell)
    assert writer is not None, shell
    completer = writer(root, {}, "resourcesync", _VARIABLE)
    return (completer.source_template % completer.source_vars()).strip("\n")
