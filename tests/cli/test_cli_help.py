"""The help of commands: options in sections, and how to set them in the environment."""

import re

import click
import pytest

from resourcesync.cli import main
from resourcesync.cli.main import run
from resourcesync.settings.schema import Section
from tests.support.commands.command_line import Said

SECTIONS = [section.value for section in Section]


def help_of(command: str, said: Said) -> str:
    assert run([command, "--help"]) == 0
    shown = said.readouterr().out
    first = re.search(r"\n(?:Options|Output):\n", shown)
    assert first is not None
    return shown[first.start() :]


def options_of(command: str) -> list[click.Option]:
    found = main.cli.get_command(click.Context(main.cli), command)
    assert found is not None
    return [param for param in found.params if isinstance(param, click.Option)]


@pytest.mark.parametrize("command", main.COMMANDS)
def test_help_shows_every_option_once_in_sections_of_one_order(command: str, said: Said) -> None:
    shown = help_of(command, said)

    heads = re.findall(r"(?m)^([A-Z][a-z]+):$", shown)
    assert heads == [name for name in SECTIONS if name in heads]
    for option in options_of(command):
        rows = re.findall(rf"(?m)^  (?:-\w, )?{option.opts[-1]}(?: |$)", shown)
        assert len(rows) == (0 if option.hidden else 1), option.name


@pytest.mark.parametrize("command", main.COMMANDS)
def test_help_names_a_variable_of_the_environment_once_and_its_own_for_the_file(
    command: str, said: Said
) -> None:
    shown = " ".join(help_of(command, said).split())

    named = re.findall(
        r"variable of the environment: (--[a-z0-9-]+) is (RESOURCESYNC_[A-Z0-9_]+)", shown
    )
    assert len(named) == 1
    option, variable = named[0]
    assert variable == f"RESOURCESYNC_{command}_{option[2:]}".upper().replace("-", "_")
    assert shown.count("[env var:") == ("--config" in shown)


def test_the_first_options_of_pull_are_those_of_the_first_hour(said: Said) -> None:
    shown = help_of("pull", said)
    first = shown[: shown.index("Selection:")]

    assert re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", first) == [
        "--all",
        "--dry-run",
        "--itemize",
        "--mode",
        "--delete",
        "--max-delete",
        "--include",
        "--exclude",
        "--config",
    ]


def test_the_variable_that_help_names_is_obeyed(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOURCESYNC_PULL_DRY_RUN", "neither")

    assert run(["pull", "https://museum.example/", "here"]) == 2
    assert "dry" in said.readouterr().err
