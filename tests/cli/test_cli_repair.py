"""``repair``, ``audit`` and ``trash``."""

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from resourcesync.adapters.mirror import audit_findings
from resourcesync.cli.main import run
from resourcesync.validator.rule import RULES
from tests.support.commands.command_line import FILES, LATER, Said, rows, spoil
from tests.support.servers.tiny_source import Answer, TinySource
from tests.support.sources.several_sets import SETS, offer

ONE = "/objects/0001.txt"


@pytest.fixture
def spoilt(museum: str) -> str:
    spoil(museum)
    return museum


def test_of_two_audits_in_one_second_the_later_one_is_the_last(spoilt: str, said: Said) -> None:
    # Their random ids are in the order of time by chance only once in 40,320.
    audits = []
    for _ in range(8):
        run(["audit", spoilt, "--method", "stat"])
        audits += re.findall(r"repair museum --from-audit (\w+)", said.readouterr().out)

    assert run(["repair", spoilt, "--from-audit", "unknown"]) == 2
    assert ", ".join(audits) in said.readouterr().err


def test_a_repair_names_the_damage_that_only_a_later_audit_found(spoilt: str, said: Said) -> None:
    run(["audit", spoilt, "--method", "stat"])
    (older,) = re.findall(r"repair museum --from-audit (\w+)", said.readouterr().out)
    Path(spoilt, "objects/0007.txt").unlink()
    run(["audit", spoilt, "--method", "stat"])
    said.readouterr()

    assert run(["repair", spoilt, "--from-audit", older]) == 3

    first, last, step = said.readouterr().out.splitlines()
    assert first == "! /objects/0007.txt   missing; not part of this repair"
    assert last.startswith("Not in sync   11 of 12 (1 created, 1 updated, 1 failed)")
    assert step == "  next   run it again: resourcesync pull museum"


def test_a_repair_names_what_the_source_does_not_list_and_the_steps_that_end_that(
    museum: str, source: TinySource, said: Said
) -> None:
    source.offer(dict(list(FILES.items())[2:]), at=LATER)

    for more, first in (("-n", "Dry run"), ("-i", "Not in sync   10 of 12 (2 not listed)  exit 3")):
        assert run(["repair", museum, more]) == 3
        shown = said.readouterr().out
        assert shown.startswith(first)
        assert "next   2 copies not listed: resourcesync pull museum deletes or keeps them" in shown
        assert "run it again" not in shown
    assert run(["status", museum, "--json"]) == 0
    assert [row["in_sync_ratio"] for row in rows(said) if "in_sync_ratio" in row] == [None]
    assert run(["repair", museum, "--delete"]) == 0


def test_a_repair_of_a_folder_of_sets_repairs_each_whatever_another_one_lacks(
    source: TinySource, here: Path
) -> None:
    offer(source, SETS)
    assert run(["pull", source.url, "m", "--all-sets"]) == 0
    copies = [here / "m/maps/maps/a.txt", here / "m/texts/texts/b.txt"]
    for copy in copies:
        copy.unlink()
    source.answers["/maps/a.txt"] = Answer(status=403)

    assert run(["repair", "m"]) == 3

    assert [copy.exists() for copy in copies] == [False, True]


@pytest.mark.parametrize(
    ("ways", "left"),
    [
        (["pull museum --include /objects/000* --prune"], 10),
        (["repair museum --delete"], 10),
        (["pull museum --exclude /objects/0009.txt --prune", "repair museum --delete"], 9),
    ],
)
def test_every_command_names_the_one_that_releases_what_was_held(
    ways: list[str], left: int, museum: str, source: TinySource, said: Said
) -> None:
    if "repair" in ways[-1]:
        source.offer(dict(list(FILES.items())[:10]), at=LATER)
        assert run(["pull", museum, "--max-delete", "50%"]) == 0
        assert run(["trash", "restore", museum, "--all"]) == 0
    for way in ways:
        assert run([*way.split(), "--max-delete", "0"]) == 7
    said.readouterr()
    run(["status", museum])
    for more in ("-n", "", "--delete --max-delete 0 -n", "--delete --max-delete 0"):
        assert run(["repair", museum, *more.split()]) == 7
    first, *others = re.findall("if this is intended: resourcesync (.+)", said.readouterr().out)

    assert others == [first] * 4
    assert run(first.split()) == 0

    assert len(list(Path(museum, "objects").iterdir())) == left


@pytest.fixture
def edited(museum: str, source: TinySource, said: Said) -> str:
    """A mirror whose last pull could not delete a copy, since it was changed here."""
    Path(museum, ONE[1:]).write_bytes(b"mine")
    left = {target: body for target, body in FILES.items() if target != ONE}
    source.offer(left, at=LATER)
    assert run(["pull", museum]) == 3
    said.readouterr()
    return museum


def test_no_dry_run_nor_audit_expects_a_pull_to_delete_a_file_that_it_leaves(
    edited: str, said: Said
) -> None:
    for command in (["pull"], ["repair"], ["repair", "--delete"]):
        assert run([*command, edited, "-n"]) == 3
        shown = said.readouterr().out
        assert "delete 0" in shown
        assert "next   1 file to delete, but changed locally: move or remove it" in shown
    assert run(["repair", edited, "--json"]) == 3
    assert rows(said)[-1]["reasons"] == {"local-change": 1}
    assert run(["audit", edited]) == 1
    step = "next        move or remove what was changed locally, then: resourcesync pull museum"
    assert step in said.readouterr().out
    assert run(["status", edited]) == 0
    assert "next: resourcesync pull" not in said.readouterr().out
    Path(edited, ONE[1:]).unlink()
    for command in (["pull"], ["repair", "--delete"]):
        assert run([*command, edited, "-n"]) == 0
        assert "delete 1" in said.readouterr().out


def test_a_deletion_says_where_the_file_is_and_only_then_that_it_is_in_the_trash(
    edited: str, source: TinySource, said: Said
) -> None:
    Path(edited, ONE[1:]).unlink()
    assert run(["pull", edited, "-i"]) == 0
    assert said.readouterr().out.splitlines()[0] == f"- {ONE}   deleted (its file was gone)"

    source.offer({ONE: b"back", **dict(list(FILES.items())[3:])}, at="2026-01-03T00:00:00Z")
    assert run(["pull", edited, "-i"]) == 0
    assert "- /objects/0002.txt   deleted (in the trash)\n" in said.readouterr().out
    assert run(["trash", "restore", edited, "--all"]) == 0
    Path(edited, "objects/0002.txt").write_text("edited")
    assert run(["repair", edited, "--delete", "-i"]) == 0
    moved = "- /objects/0002.txt   deleted (moved to .resourcesync/quarantine)\n"
    assert moved in said.readouterr().out

    Path(edited, "objects/0006.txt").unlink()
    for first, more in ((4, ""), (5, "-i -o trash=0"), (6, "-o trash=1d"), (7, "-o trash=0")):
        source.offer(dict(list(FILES.items())[first:]), at=f"2026-01-0{first}T00:00:00Z")
        assert run(["pull", edited, *more.split()]) == 0
    shown = said.readouterr()
    assert "- /objects/0004.txt   deleted (trash = 0: not kept)\n" in shown.out
    for old in (4, 1):
        assert f"trash = 0: all of the trash, also old files, is gone ({old})" in shown.err


def test_an_audit_without_findings_is_the_last_one_and_disproves_those_before(
    spoilt: str, said: Said
) -> None:
    Path(spoilt, "mine.txt").unlink()
    for command, code in (("audit", 1), ("repair", 0), ("audit", 0)):
        assert run([command, spoilt]) == code
    said.readouterr()

    assert run(["why", spoilt, "/objects/0005.txt", "--json"]) == 0
    assert rows(said)[-1]["finding"] is None


def test_findings_of_few_audits_are_kept_and_of_each_a_bounded_number(
    spoilt: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_findings, "MAX_AUDITS", 2)
    monkeypatch.setattr(audit_findings, "MAX_FINDINGS", 2)
    for _ in range(4):
        run(["audit", spoilt])

    kept = list(Path(spoilt, ".resourcesync/reports").iterdir())
    assert len(kept) == 2
    assert [len(path.read_text().splitlines()) for path in kept] == [2, 2]
    assert json.loads(kept[0].read_text().splitlines()[0])["kind"] in {"+", "*"}


@pytest.mark.founding(
    "WWW §2.1", "Periodic audits, in place of rsync", "`audit --sample P% --oldest-first`"
)
def test_a_rolling_audit_proves_every_file_in_turn(museum: str, said: Said) -> None:
    command = ["audit", museum, "--sample", "25%", "--oldest-first"]
    Path(museum, "objects/0005.txt").write_bytes(b"objecT 5\n")
    codes = []

    for _ in range(6):
        codes.append(run(command))
        text = said.readouterr().out
        assert "3 of 12 files read" in text or "objects/0005.txt" in text

    assert codes == sorted(codes)  # what is bad stays the first to be looked at
    assert codes[-1] == 1


def test_each_command_says_that_a_folder_in_the_way_of_a_copy_is_to_be_moved(
    museum: str, source: TinySource, said: Said
) -> None:
    Path(museum, ONE[1:]).unlink()
    Path(museum, ONE[1:], "inside").mkdir(parents=True)
    source.offer({**FILES, ONE: b"new"}, at=LATER)

    for command in (["pull"], ["repair"], ["status", "--check"], ["why"]):
        assert run([*command, museum, *[ONE] * (command == ["why"])]) in {1, 3}
        shown = " ".join(said.readouterr().out.split())
        assert "has its path: move that away, then: resourcesync pull museum" in shown
        assert "run it again" not in shown


def verdict(said: Said) -> str:
    return str(rows(said)[-1]["verdict"])


@pytest.mark.parametrize("mending", ["repair", "pull"])
@pytest.mark.parametrize("how", [(), ("--offline",)])
def test_what_why_advises_mends_damage_that_leaves_size_and_time(
    museum: str, said: Said, mending: str, how: tuple[str, ...]
) -> None:
    path = Path(museum, ONE[1:])
    good, stat = path.read_bytes(), path.stat()
    path.write_bytes(bad := good.swapcase())
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    assert run(["why", museum, ONE, *how]) == 1

    _, _, here, *_, advice, _ = said.readouterr().out.splitlines()
    assert here.startswith(f"Here      9 B  sha-256 {hashlib.sha256(bad).hexdigest()}  fetched ")
    assert advice == "Next      resourcesync repair museum"
    assert run(["status", museum, "--check"]) == 1
    assert path.read_bytes() == bad
    assert run([mending, museum]) == 0
    assert path.read_bytes() == good
    assert run(["status", museum, "--check"]) == 0


def test_a_file_may_be_named_as_the_shell_names_it(
    museum: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path(museum, ONE[1:]).resolve()
    names = [str(here), f"museum{ONE}", f"./museum{ONE}", f"{Path.cwd().name}/../museum{ONE}"]
    Path(Path.cwd().name).mkdir()
    for name in names:
        assert run(["why", museum, name, "--json"]) == 0, name
        assert rows(said)[-1]["path"] == ONE[1:]
    monkeypatch.chdir(here.parent)
    assert run(["why", "..", here.name, "--json"]) == 0
    assert rows(said)[-1]["path"] == ONE[1:]
    here.unlink()
    for name in (str(here), here.name):
        assert run(["why", "..", name, "--json"]) == 1
        assert verdict(said) == "lost"


ROOT = Path(__file__).parents[2]


def test_every_rule_has_its_page(said: Said) -> None:
    for rule in RULES.values():
        assert run(["why", rule.code]) == 0
        lines = said.readouterr().out.splitlines()
        assert len(lines) == 7
        page, _, anchor = lines[6].removeprefix("  page      ").partition("#")
        assert f"\n## {anchor.upper()}\n" in (ROOT / page).read_text("utf-8")
