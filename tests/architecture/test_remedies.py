"""The library names no command: an error has a remedy, and the command line has its command."""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from resourcesync.cli.main import COMMANDS as COMMAND_NAMES
from resourcesync.cli.main import cli, module_of
from resourcesync.cli.remedies import COMMANDS, choice_commands, warning_fields, with_command
from resourcesync.errors import Remedy

SOURCE = Path(__file__).parents[2] / "src" / "resourcesync"
ALLOWED = {
    "server/dashboard/front_page.py": "the page of a Source tells its visitors how to mirror it",
    "simulator/live.py": "the page of a simulated Source tells its visitors how to mirror it",
    "app/publishing/document_stores.py": "the mark in the robots.txt files that we write",
}
"""The modules that name a command, each with the reason; this list only gets shorter."""

_COMMAND = re.compile(rf"\bresourcesync (?:{'|'.join(COMMAND_NAMES)})\b")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_FIELD = re.compile(r"\{(?:target|value|choice)\|([^}]*)\}")
_REMARK = re.compile(r" \([^)]*\)")


@cache
def all_commands() -> tuple[click.Command, ...]:
    """Return all commands, each followed by the commands within it."""
    found: list[click.Command] = []
    waiting = [importlib.import_module(module_of(name)).command for name in COMMAND_NAMES]
    while waiting:
        command = waiting.pop()
        found.append(command)
        if isinstance(command, click.Group):
            waiting += command.commands.values()
    return tuple(found)


@cache
def all_options() -> frozenset[str]:
    return frozenset(
        name
        for command in all_commands()
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("--")
    )


@cache
def library() -> tuple[tuple[str, ast.Module], ...]:
    """Return the modules outside the command line."""
    return tuple(
        (path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text("utf-8")))
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.is_relative_to(SOURCE / "cli")
    )


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield the string literals, those with fields as one text, docstrings too."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner.update(map(id, node.values))
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in inner:
            value = node.value
            yield value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def named(text: str) -> set[str]:
    """Return the commands and options of the command line that a text names."""
    return {*_COMMAND.findall(text), *(all_options() & set(_OPTION.findall(text)))}


def remedies(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the remedies that a module makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == Remedy.__name__:
            yield node


@cache
def used_names() -> frozenset[str]:
    calls = [call for _, tree in library() for call in remedies(tree)]
    return frozenset(
        part.value
        for call in calls
        for part in call.args[:1]
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def alternatives(template: str) -> list[list[str]]:
    """Return the command lines of a template, in words."""
    plain = _REMARK.sub("", _FIELD.sub(r"\1", template))
    return [shlex.split(text.rpartition("| ")[2]) for text in plain.split(", or ")]


def parses(command: click.Command, words: list[str]) -> bool:
    """True if a command has the options, and if each choice is one that it offers."""
    context = click.Context(command)
    try:
        values, rest, _ = command.make_parser(context).parse_args(list(words))
    except click.UsageError:
        return False
    if isinstance(command, click.Group):
        inner = command.get_command(context, rest[0]) if rest else None
        return inner is not None and parses(inner, rest[1:])
    return not rest and all(is_offered(param, values) for param in command.params)


def is_offered(param: click.Parameter, values: Mapping[str, Any]) -> bool:
    """True if the value of a parameter is one of its choices, a word to replace, or not needed."""
    given = values.get(str(param.name))
    if not isinstance(given, str):
        return not (isinstance(param, click.Argument) and param.required and param.nargs == 1)
    choices = param.type.choices if isinstance(param.type, click.Choice) else (given,)
    return given in choices or given.isupper()


def has_options(command: click.Command, words: list[str]) -> bool:
    """True if a command has the options that the words are."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    return parses(click.Command(command.name, params=list(options)), words)


def test_the_library_names_no_command_and_no_option() -> None:
    found = {
        module: sorted(names)
        for module, tree in library()
        if (names := set[str]().union(*map(named, strings(tree))))
    }

    assert found.keys() - ALLOWED.keys() == set(), found
    assert ALLOWED.keys() - found.keys() == set(), "no longer needed"


def test_commands_and_options_are_told_from_other_text() -> None:
    assert named("run resourcesync pull DIR --mode baseline; or `--moved`") == {
        "resourcesync pull",
        "--mode",
        "--moved",
    }
    assert named("resourcesync keeps it; pip install --upgrade x; var(--back); a--state") == set()


def test_each_remedy_is_named_by_a_literal() -> None:
    unclear = [
        f"{module}, line {call.lineno}"
        for module, tree in library()
        for call in remedies(tree)
        if not (call.args and isinstance(call.args[0], ast.Constant))
    ]

    assert unclear == []


def test_each_remedy_of_the_library_has_a_command_and_no_other_has_one() -> None:
    assert used_names() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_of_each_remedy_can_be_typed(name: str) -> None:
    for words in alternatives(COMMANDS[name]):
        if words[0] == "resourcesync":
            assert parses(cli, words[1:]), words
        else:
            assert words[0].startswith("--"), words
            assert any(has_options(command, words) for command in all_commands()), words


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert parses(cli, ["pull", "DIR", "--mode", "baseline"])
    assert not parses(cli, ["pull", "DIR", "--mood", "baseline"])
    assert not parses(cli, ["pull", "DIR", "--mode"])
    assert not parses(cli, ["pull", "DIR", "--mode", "mood"])
    assert not parses(cli, ["catalogue", "forget", "FILE"])
    assert not parses(cli, ["catalogue", "check"])
    assert not parses(cli, ["dump", "DIR"])
    assert not any(has_options(command, ["--mood", "x"]) for command in all_commands())
    assert not any(has_options(command, ["--allow-empty", "x", "y"]) for command in all_commands())


def test_a_hint_ends_with_the_command_of_its_remedy() -> None:
    remedy = Remedy("follow-move", target="./docs", value="https://b.example/")

    assert with_command("the Source moved", remedy) == (
        "the Source moved: resourcesync pull ./docs --moved https://b.example/"
    )
    assert with_command("did you mean a?", Remedy("list-plugins")) == (
        "did you mean a? resourcesync doctor --plugins"
    )
    assert with_command("", Remedy("allow-empty")) == "--allow-empty"


def test_what_is_not_known_is_a_word_to_replace() -> None:
    assert with_command("pull it", Remedy("pull-from", target="docs")) == (
        "pull it: resourcesync pull https://HOST/ docs"
    )


def test_a_hint_without_a_remedy_or_with_that_of_a_plug_in_stays_as_it_is() -> None:
    assert with_command("wait", None) == "wait"
    assert with_command("wait", Remedy("of-a-plug-in")) == "wait"
    assert choice_commands(Remedy("of-a-plug-in", choices=("a", "b"))) == ()


def test_commands_are_safe_to_paste() -> None:
    remedy = Remedy("pull-from", target="my mirror; rm x", value="https://h.example/?a=1&b=2")

    assert with_command("pull it", remedy) == (
        "pull it: resourcesync pull 'https://h.example/?a=1&b=2' 'my mirror; rm x'"
    )


def test_each_choice_has_its_command() -> None:
    remedy = Remedy("choose-set", target="d", value="https://h.example/", choices=("a", "b c"))

    assert choice_commands(remedy) == (
        ("run", "resourcesync pull https://h.example/ d --set a"),
        ("run", "resourcesync pull https://h.example/ d --set 'b c'"),
        ("run", "resourcesync pull https://h.example/ d --all-sets"),
    )
    assert choice_commands(remedy._replace(choices=())) == choice_commands(None) == ()


def test_a_warning_shows_the_command_and_no_remedy() -> None:
    fields = {"code": "x", "hint": "wait", "remedy": Remedy("limit-rate", value="30/h")}

    assert warning_fields(fields) == {"code": "x", "hint": "wait: --rate 30/h"}
    assert warning_fields({"code": "x"}) == {"code": "x"}
