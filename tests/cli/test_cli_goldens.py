"""What each command shows for its exit codes, kept in ``golden/``: one file for each scene.

``GOLDEN=write`` writes the files; read the difference before it is committed.
"""

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli import (  # noqa: F401 - they register scenes
    scenes_of_looking,
    scenes_of_mirrors,
    scenes_of_publishing,
    scenes_of_questions,
)
from tests.cli.scenes import SCENES, Scene
from tests.support.commands.command_line import Said
from tests.support.servers.tiny_source import TinySource
from tests.support.source_files import SOURCES, python_files

GOLDEN = Path(__file__).parent / "golden"
LINES = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json-results.md"


@pytest.fixture
def stage(source: TinySource, tree: Path, here: Path, said: Said) -> Scene:
    return Scene(source, tree, here, said)


@pytest.mark.parametrize("name", SCENES)
def test_what_is_shown_is_what_was_agreed(name: str, stage: Scene) -> None:
    SCENES[name](stage)

    file, shown = GOLDEN / f"{name}.txt", stage.transcript()
    if os.environ.get("GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text("utf-8")
    assert [line for line in shown.splitlines() if "s3cret" in line and line[0] != "$"] == []


def shown(key: str) -> dict[str, set[str]]:
    """Return the fields of the lines of JSON in all files, by their type or their command."""
    found: dict[str, set[str]] = {}
    for path in GOLDEN.iterdir():
        for line in path.read_text("utf-8").splitlines():
            if line.startswith('{"type":'):
                row = json.loads(re.sub(r":(?:T|N|ID|PLACE)\b", ":0", line))
                if key == "type" or row["type"] == "run.end":
                    found.setdefault(row[key], set()).update(row)
    return found


def fields_of(page: str, text: str) -> dict[str, set[str]]:
    """Return the names after each name that begins a line of a list on a page."""
    assert page in text
    found = re.findall(r"^- `([\w.-]+)`: (.*)", text.partition(page)[2], re.MULTILINE)
    return {name: set(re.findall(r"`([\w-]+)`", fields)) for name, fields in found}


def test_the_page_names_the_fields_of_each_line() -> None:
    named = fields_of("## Lines", LINES.read_text("utf-8"))
    of_reports = {"run.end", "mirror.end", "mirror", "source.status"}
    always = {"v", "type", "run"}

    for kind, fields in shown("type").items():
        if kind not in of_reports:
            assert fields - always - named[kind] == set(), kind


def test_the_page_names_the_results_of_each_command() -> None:
    always = {"v", "type", "run", "time", "command", "seconds", "exit", "code", "uri"}
    always |= {"mirror", "source", "tree"}
    reports = {"pull", "repair", "audit"}
    found = {command: fields - always for command, fields in shown("command").items()}
    named = fields_of("## Other commands", PAGE.read_text("utf-8"))

    named = {name: fields - always for name, fields in named.items()}
    assert {name: fields for name, fields in found.items() if name not in reports} == named


def test_every_kind_that_is_reported_is_on_the_page() -> None:
    report = re.compile(r"""\b_*report_*\(\s*"([a-z.-]+)",""")
    kinds = {kind for path in python_files(SOURCES) for kind in report.findall(path.read_text())}

    assert {"item", "plan", "warning"} <= kinds
    assert kinds - fields_of("## Lines", LINES.read_text("utf-8")).keys() == set()


def test_each_file_is_of_a_scene() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(SCENES)
