"""The tree of errors: told apart by code, each with an exit code."""

import inspect
import re

import click
import pytest

from resourcesync import errors
from resourcesync.cli.main import cli, run
from resourcesync.cli.why_codes import CODES
from resourcesync.errors import ResourceSyncError
from tests.support.commands.command_line import options_of
from tests.support.source_files import SOURCES, module_name, python_files

CLASSES = [
    item
    for _, item in inspect.getmembers(errors, inspect.isclass)
    if issubclass(item, ResourceSyncError) and item.__module__ == errors.__name__
]


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [class_.__dict__["default_code"] for class_ in CLASSES]

    assert sorted(codes) == sorted(set(codes))


_PRINTED = re.compile(
    r"""(?:code=|"code":\s*|\.warn\(\s*)"([a-z]+(?:-[a-z]+)*)"|E_[A-Z0-9_]+: \("([a-z-]+)","""
)
_NO_ERROR = {"error", "error-code"}


def printed() -> set[str]:
    found: set[str] = set()
    for path in python_files(SOURCES):
        for match in _PRINTED.finditer(path.read_text(encoding="utf-8")):
            found.update(filter(None, match.groups()))
    return found - _NO_ERROR


def test_each_printed_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for code in sorted(printed() | {"tolerated", "output"}):
        assert run(["why", code]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"{code}  ")
        assert "  exit    " in said


def test_each_explained_code_is_of_a_kind_of_error_that_there_is() -> None:
    for code, (kind, meaning) in CODES.items():
        assert kind == "warning" or issubclass(getattr(errors, kind), errors.ResourceSyncError)
        assert meaning.endswith("."), code


GROUP = click.Context(cli)
COMMANDS = cli.list_commands(GROUP)
NO_OPTIONS = {"--muted", "--bad", "--warn", "--no", "--help", "--version", "--host", "--port"}
"""Colours of pages, the beginning of options, those of click, and those of other servers."""

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]\b")
_COMMAND = re.compile(r"""[:`("'] ?resourcesync (?!is\b)([a-z]+)""")


def named(pattern: re.Pattern[str]) -> dict[str, str]:
    """What the text of the package names, with a module that does."""
    return {
        name: module_name(path)
        for path in python_files(SOURCES)
        for name in pattern.findall(path.read_text(encoding="utf-8"))
    }


def test_each_option_that_the_package_names_exists() -> None:
    names, options = named(_OPTION), set(NO_OPTIONS)
    for command in COMMANDS:
        found = cli.get_command(GROUP, command)
        assert found is not None
        options |= options_of(found)

    assert {name: at for name, at in names.items() if name not in options} == {}
    assert "--allow-empty" in names


def test_each_command_that_the_package_names_exists() -> None:
    names = named(_COMMAND)

    assert {name: at for name, at in names.items() if name not in COMMANDS} == {}
    assert {"pull", "audit", "validate"} <= names.keys()
