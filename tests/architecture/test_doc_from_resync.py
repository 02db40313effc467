"""The page on moving from resync is true: every option of both sides, and every name of ours."""

import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import resourcesync
from resourcesync.cli.main import COMMANDS, module_of
from tests.support.commands.command_line import options_of

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PAGE = (HOW_TO / "from-resync.md").read_text("utf-8")


def rows(marker: str) -> Iterator[list[str]]:
    _, found, rest = PAGE.partition(f"<!-- {marker} -->")
    assert found, marker
    table = re.match(r"\s*((?:\|.*\n)+)", rest)
    assert table is not None
    for line in table[1].splitlines()[2:]:
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("command", ["resync-sync", "resync-build"])
def test_every_option_of_ours_exists(command: str) -> None:
    table = list(rows(f"options: {command}"))
    named = [text for row in table for cell in row[1:] for text in quoted(cell)]
    ours = [words for text in named if (words := text.split())[0] in COMMANDS]

    assert len(ours) > 5
    for name, *words in ours:
        wrong = [word for word in words if word.startswith("-")]
        found = options_of(importlib.import_module(module_of(name)).command)
        assert set(wrong) <= found, (name, wrong)
    # A row names a command of ours, or says that there is nothing to write.
    names = [[text.split()[0] for text in quoted(row[1])] for row in table if row[1] != "no option"]
    assert [found for found in names if not found or set(found) - set(COMMANDS)] == []


def test_our_own_names_are_there() -> None:
    for _, ours in rows("own names"):
        (name,) = quoted(ours)
        found: object = resourcesync
        for part in name.split("."):
            found = getattr(found, part)
        assert found is not None
