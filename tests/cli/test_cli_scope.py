"""``pull`` with filters: what is remembered, what is said when they change, what is pruned."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, Said, rows
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

FEW = ["objects/0001.txt", "objects/0002.txt", "objects/0003.txt"]
THREE = [text for name in FEW for text in ("--include", f"/{name}")]


def here() -> list[str]:
    return sorted(files_of(Path("museum")))


@pytest.fixture
def mirror(source: TinySource, said: Said) -> TinySource:
    """Give a Source of twelve files, of which the mirror has three."""
    assert run(["pull", source.url, "museum", *THREE]) == 0
    assert here() == FEW
    said.readouterr()
    return source


def test_filters_that_select_nothing_are_a_warning(source: TinySource, said: Said) -> None:
    assert run(["pull", source.url, "museum", "--include", "/objcets/*"]) == 0

    assert said.readouterr().err == (
        "warning[nothing-selected]: no listed resource matches the filters\n"
    )
    assert here() == []


def test_a_filter_that_is_given_leaves_the_others_as_they_were(
    mirror: TinySource, said: Said
) -> None:
    assert run(["pull", "museum", "-o", "max_size=5MB"]) == 0

    assert here() == FEW
    scope, *_ = said.readouterr().out.splitlines()
    assert scope == (
        "Filters   changed: -o max_size=5.0MB added; unchanged: --include /objects/0001.txt"
        " --include /objects/0002.txt --include /objects/0003.txt"
    )
    assert run(["pull", "museum", "--exclude", "/objects/0002.txt"]) == 0
    assert run(["pull", "museum"]) == 0
    assert "Filters" not in said.readouterr().out.splitlines()[-1]
    assert here() == FEW


def test_a_filter_of_no_text_is_forgotten_and_no_other_one(mirror: TinySource, said: Said) -> None:
    run(["pull", "museum", "-o", "max_size=1M", "--since", "2020", "--exclude", "*.pdf"])
    said.readouterr()

    assert run(["pull", "museum", "-o", "max_size=", "--since", "", "--exclude", ""]) == 0

    scope, *_ = said.readouterr().out.splitlines()
    assert "-o max_size=1.0MB removed" in scope
    assert "--since 2020-01-01T00:00:00.000Z removed" in scope
    assert "--exclude '*.pdf' removed" in scope
    assert here() == FEW
    assert run(["pull", "museum", "--include", ""]) == 0
    assert len(here()) == len(FILES)


def test_a_filter_that_replaces_another_is_told_before_anything_is_fetched(
    mirror: TinySource, said: Said
) -> None:
    before = len(mirror.asked)

    assert run(["pull", "museum", "--include", "/objects/0004.txt", "-n", "--json"]) == 0

    kinds = [row["type"] for row in rows(said)]
    assert kinds.index("scope") < kinds.index("plan")
    said.readouterr()
    assert run(["pull", "museum", "--include", "/objects/0004.txt"]) == 0
    assert said.readouterr().out.startswith(
        "Filters   changed: --include /objects/0004.txt instead of --include /objects/0001.txt"
    )
    assert here() == [*FEW, "objects/0004.txt"]
    assert len(mirror.asked) > before


def test_pruning_deletes_what_the_filters_do_not_want_into_the_trash(
    source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "museum"])
    kept = "          9 files no longer match the filters (kept); --prune deletes them"
    said.readouterr()
    assert run(["pull", "museum", *THREE, "-n"]) == 0
    assert said.readouterr().out.splitlines()[-1] == kept
    assert run(["pull", "museum", *THREE]) == 0
    assert len(here()) == len(FILES)
    first, last = said.readouterr().out.splitlines()[-2:]
    assert first.startswith("In sync   3 resources, nothing changed")
    assert last == kept
    assert run(["audit", "museum"]) == 0
    assert "coverage 100 % (3 of 3)" in said.readouterr().out

    assert run(["pull", "museum", "--prune", "-n"]) == 0
    assert "would create 0, update 0, delete 9" in said.readouterr().out
    assert len(here()) == len(FILES)
    assert run(["pull", "museum", "--prune"]) == 0

    assert here() == FEW
    assert len(list(Path("museum/.resourcesync/trash").iterdir())) == 9
    assert run(["pull", "museum"]) == 0
    assert run(["audit", "museum"]) == 0


def test_pruning_is_held_back_as_other_deletions_are_and_no_later_run_does_it_by_itself(
    source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "museum"])
    said.readouterr()

    assert run(["pull", "museum", *THREE, "--prune", "--max-delete", "8"]) == 7

    captured = said.readouterr().out
    assert "if this is intended: resourcesync pull museum --prune --max-delete 9" in captured
    assert len(here()) == len(FILES)
    assert run(["pull", "museum", "--max-delete", "100%"]) == 0
    assert len(here()) == len(FILES)
    assert run(["pull", "museum", "--prune", "--max-delete", "9"]) == 0
    assert here() == FEW
