"""``config schema``: what it says of the file is what the program does with it."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from resourcesync.cli.commands.config import EXAMPLE, mistakes_of
from resourcesync.cli.main import run
from resourcesync.errors import ConfigurationError
from resourcesync.settings import files
from resourcesync.settings.credentials import check_credentials
from resourcesync.settings.json_schema import config_schema
from tests.support.commands.command_line import Said, rows
from tests.support.commands.settings_file import put

MIRROR = '[mirror.museum]\nsource = "https://h.example/"\ndest = "museum"\n'


def is_valid(text: str) -> bool:
    checker = jsonschema.Draft202012Validator(config_schema())
    return bool(checker.is_valid(tomllib.loads(text)))


def is_taken(text: str) -> bool:
    put(text)
    return not list(mistakes_of(files.read(Path(files.NAME))))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(config_schema())


def test_it_is_printed_for_people_and_for_programs(said: Said) -> None:
    assert run(["config", "schema"]) == 0
    assert json.loads(said.readouterr().out) == config_schema()
    assert run(["config", "schema", "--json"]) == 0
    assert [row["schema"] for row in rows(said) if row["type"] == "schema"] == [config_schema()]


def test_the_example_is_valid_once_its_marks_are_taken_off() -> None:
    lines = [line.removeprefix("#") for line in EXAMPLE.splitlines() if not line.startswith("# ")]

    assert is_valid("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("", True),
        (MIRROR, True),
        (f'{MIRROR}max_delete = "10%"\ntrash = "30d"\njobs = 5\nrate = 2\n', True),
        (f'{MIRROR}exclude = ["/a/**"]\nfail_fast = true\ndelete = "never"\n', True),
        (f'{MIRROR}trash = "0"\nmax_size = "5M"\nsince = "-7d"\nmax_lag = "1h"\n', True),
        (f'{MIRROR}header = ["Accept-Language: cs"]\n', True),
        (f"{MIRROR}evrey = 5\n", False),
        (f'{MIRROR}every = "5m"\n', True),
        (f'{MIRROR}jobs = "5"\n', False),
        (f"{MIRROR}jobs = 0\n", False),
        (f'{MIRROR}delete = "always"\n', False),
        (f'{MIRROR}exclude = "/a/**"\n', False),
        (f'{MIRROR}trash = "5 days"\n', False),
        (f'{MIRROR}rate = "fast"\n', False),
        (f'{MIRROR}max_delete = "many"\n', False),
        ('[mirror.museum]\nsource = "https://h.example/"\n', False),
        ('[mirror."a b"]\nsource = "https://h.example/"\ndest = "x"\n', False),
        ("[watch]\nparallel = 2\n", True),
        ('[source.theses]\ninventory = "x"\n', False),
        ('[defaults]\nauth = "x"\n', False),
        ("defaults = 1\n", False),
    ],
)
def test_schema_and_program_agree(text: str, good: bool) -> None:
    assert (is_valid(text), is_taken(text)) == (good, good)


@pytest.mark.parametrize(
    ("table", "good"),
    [
        ({"type": "bearer", "token": {"env": "A"}}, True),
        ({"type": "bearer", "token": {"command": ["pass", "x"]}, "origin": "https://h"}, True),
        ({"type": "basic", "username": "a", "password": {"file": "b"}}, True),
        ({"type": "header", "name": "X-Key", "value": {"credential": "c"}}, True),
        ({"type": "netrc"}, True),
        ({"type": "bearer", "token": "secret"}, False),
        ({"type": "bearer", "token": {"env": "A", "file": "b"}}, False),
        ({"type": "bearer", "token": {"vault": "A"}}, False),
        ({"type": "bearer", "token": {"command": []}}, False),
        ({"type": "basic", "username": "a"}, False),
        ({"type": "digest"}, False),
        ({}, False),
    ],
)
def test_schema_and_program_agree_on_secrets(table: Mapping[str, Any], good: bool) -> None:
    checker = jsonschema.Draft202012Validator(config_schema())
    try:
        check_credentials("x", table)
    except ConfigurationError:
        taken = False
    else:
        taken = True

    assert (checker.is_valid({"auth": {"x": table}}), taken) == (good, good)
