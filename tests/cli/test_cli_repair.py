"""``repair``: from what an audit found to a mirror that is whole."""

import json
import re
from pathlib import Path

import pytest

from resourcesync.adapters.mirror import small_files
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, spoil
from tests.support.servers.tiny_source import TinySource


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    run(["pull", source.url, "museum"])
    spoil("museum")
    said.readouterr()
    return "museum"


def test_of_two_audits_in_one_second_the_later_one_is_the_last(museum: str, said: Said) -> None:
    # Their random ids are in the order of time by chance only once in 40,320.
    audits = []
    for _ in range(8):
        run(["audit", museum, "--method", "stat"])
        audits += re.findall(r"repair museum --from-audit (\w+)", said.readouterr().out)

    assert run(["repair", museum, "--from-audit", "unknown"]) == 2
    assert ", ".join(audits) in said.readouterr().err


def test_a_repair_names_the_damage_that_only_a_later_audit_found(museum: str, said: Said) -> None:
    run(["audit", museum, "--method", "stat"])
    (older,) = re.findall(r"repair museum --from-audit (\w+)", said.readouterr().out)
    Path(museum, "objects/0007.txt").unlink()
    run(["audit", museum, "--method", "stat"])
    said.readouterr()

    assert run(["repair", museum, "--from-audit", older]) == 3

    first, last, step = said.readouterr().out.splitlines()
    assert first == "! /objects/0007.txt   missing; not part of this repair"
    assert last.startswith("Not in sync   11 of 12 (1 created, 1 updated, 1 failed)")
    assert step == "  next   run it again: resourcesync pull museum"


def test_findings_of_few_audits_are_kept_and_of_each_a_bounded_number(
    museum: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_files, "MAX_AUDITS", 2)
    monkeypatch.setattr(small_files, "MAX_FINDINGS", 2)
    for _ in range(4):
        run(["audit", museum])

    kept = list(Path(museum, ".resourcesync/reports").iterdir())
    assert len(kept) == 2
    assert [len(path.read_text().splitlines()) for path in kept] == [2, 2]
    assert json.loads(kept[0].read_text().splitlines()[0])["kind"] in {"+", "*"}
