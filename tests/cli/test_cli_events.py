"""Every line that ``--json`` writes is as ``config schema --events`` says."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from resourcesync.cli.event_schema import EVENTS, event_schema
from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said, check_event, rows, spoil
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource


def lines(said: Said) -> set[str]:
    """Check what was said to the last field; return the kinds of its lines."""
    found = rows(said)
    for row in found:
        check_event(row, is_all_named=row["type"] != "step")
    return {row["type"] for row in found}


def test_the_schema_is_one_and_is_printed(said: Said) -> None:
    jsonschema.Draft202012Validator.check_schema(event_schema())
    assert run(["config", "schema", "--events"]) == 0
    assert json.loads(said.readouterr().out) == event_schema()


def reported_kinds() -> Iterator[str]:
    """Yield the first argument of each call that reports an event, where it is written out."""
    for path in (Path(__file__).parents[2] / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=name),
                    args=[ast.Constant(value=str(kind)), _],
                ) if name.strip("_") == "report" and kind.islower():
                    yield kind


def test_every_kind_that_is_reported_is_in_the_table() -> None:
    kinds = set(reported_kinds())

    assert {"item", "plan", "warning"} <= kinds
    assert sorted(kinds - set(EVENTS)) == []


@pytest.mark.parametrize("code", ["RS402", "RS4", "hash-mismatch"])
def test_what_rule_writes_is_all_named(code: str, said: Said) -> None:
    assert run(["why", code, "--json"]) == 0
    assert lines(said) > {"run.start", "run.end"}


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"v": 1, "type": "error", "run": "x"},
        {"v": 2, "type": "schema", "run": "x", "schema": {}},
        {"v": 1, "type": "schema", "run": "x", "schema": []},
        {"v": 1, "type": "unheard", "run": "x"},
    ],
)
def test_what_is_no_line_is_not_valid(row: dict[str, object]) -> None:
    assert not jsonschema.Draft202012Validator(event_schema()).is_valid(row)


def test_what_the_commands_on_mirrors_write_is_all_named(source: TinySource, said: Said) -> None:
    put(museum(source))
    seen: set[str] = set()

    def say(*words: str, code: int = 0) -> None:
        assert run([*words, "--json"]) == code, words
        seen.update(lines(said))

    say("pull", source.url, "alone", "-n")
    say("pull", "--all")
    say("pull", source.url, "alone")
    source.offer({**FILES, "/objects/0001.txt": b"another", "/%zz": b"odd"}, at=LATER)
    say("pull", "alone", "-n")
    run(["pull", "alone", "--json"])
    seen.update(lines(said))
    spoil("alone")
    say("audit", "alone", code=1)
    say("audit", "alone", "--sample", "50%", code=1)
    say("repair", "alone", "-n")
    run(["repair", "alone", "--json"])
    seen.update(lines(said))
    say("status")
    say("changes", "alone", "--touched")
    run(["why", "alone", "objects/0001.txt", "--json"])
    seen.update(lines(said))
    say("doctor", "alone")
    say("config", "check")
    say("config", "show", "--origin")
    say("config", "schema")
    expected = "plan item progress source finding change mirror verdict setting schema"
    assert set(expected.split()) <= seen


def test_what_the_commands_that_look_write_is_all_named(
    source: TinySource, tree: Path, said: Said
) -> None:
    seen: set[str] = set()

    def say(*words: str, code: int = 0) -> None:
        assert run([*words, "--json"]) == code, words
        seen.update(lines(said))

    say("publish", str(tree), "--url", "https://museum.example/")
    say("explore", source.url)
    say("explore", str(tree))
    run(["validate", source.url, "--json"])
    seen.update(lines(said))
    say("why", "RS402")
    assert {"document", "written", "rule", "finding"} <= seen
