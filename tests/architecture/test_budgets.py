"""The parts have their budgets of lines: what enters, something else leaves for it."""

import re
from pathlib import Path

import pytest

from resourcesync.cli import main
from tests.support.commands import started
from tests.support.source_files import ANNEXES, ROOT, TESTS

BUDGETS = {
    "the kernel": (76_000, [ROOT / "src"]),
    "the annexes": (13_000, ANNEXES),
    "the command line": (8_900, [ROOT / "src/resourcesync/cli"]),
    "tests": (80_000, TESTS),
    "campaigns, fuzz, benchmarks": (
        7_000,
        [ROOT / at for at in ("campaigns", "fuzz", "benchmarks")],
    ),
}
"""Most lines, docstrings and blank lines included. A figure may fall and never rise."""
MOST_OPTIONS = 30


def lines(folder: Path) -> int:
    found = (path for kind in ("*.py", "*.pyi") for path in folder.rglob(kind))
    return sum(len(path.read_bytes().splitlines()) for path in found)


@pytest.mark.parametrize("part", BUDGETS)
def test_a_part_keeps_to_its_budget_of_lines(part: str) -> None:
    most, folders = BUDGETS[part]

    assert 0 < sum(map(lines, folders)) <= most


@pytest.mark.parametrize("command", main.COMMANDS)
def test_a_command_has_no_more_options_than_a_person_can_survey(
    command: str, tmp_path: Path
) -> None:
    told = started.command(command, "--help", home=tmp_path).stdout

    options = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", told, re.MULTILINE)) - {"--help"}
    assert 0 < len(options) <= MOST_OPTIONS
