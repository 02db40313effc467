"""What a hint names can be typed: the options and the commands exist."""

import re
from functools import cache

import click

from resourcesync.cli.main import cli
from tests.support.source_files import SOURCES, module_name, python_files

GROUP = click.Context(cli)
COMMANDS = cli.list_commands(GROUP)
NO_OPTIONS = {"--muted", "--bad", "--warn", "--no", "--help", "--version", "--host", "--port"}
"""Colours of pages, the beginning of options, those of click, and those of other servers."""

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]\b")
_COMMAND = re.compile(r"""[:`("'] ?resourcesync (?!is\b)([a-z]+)""")


@cache
def options() -> frozenset[str]:
    found: set[str] = set()
    waiting = [command for name in COMMANDS if (command := cli.get_command(GROUP, name))]
    while waiting:
        command = waiting.pop()
        waiting += command.commands.values() if isinstance(command, click.Group) else ()
        for option in command.params:
            found.update(option.opts, option.secondary_opts)
    return frozenset(found)


def named(pattern: re.Pattern[str]) -> dict[str, str]:
    """What the text of the package names, with a module that does."""
    return {
        name: module_name(path)
        for path in python_files(SOURCES)
        for name in pattern.findall(path.read_text(encoding="utf-8"))
    }


def test_each_option_that_the_package_names_exists() -> None:
    names = named(_OPTION)

    assert {n: at for n, at in names.items() if n not in options() | NO_OPTIONS} == {}
    assert "--allow-empty" in names


def test_each_command_that_the_package_names_exists() -> None:
    names = named(_COMMAND)

    assert {name: at for name, at in names.items() if name not in COMMANDS} == {}
    assert {"pull", "audit", "validate"} <= names.keys()
