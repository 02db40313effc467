"""``why``: one resource explained, whatever became of it."""

import hashlib
import os
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said, rows
from tests.support.servers.tiny_source import TinySource

ONE = "/objects/0001.txt"


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def verdict(said: Said) -> str:
    return str(rows(said)[-1]["verdict"])


def test_an_update_that_is_not_here_yet_is_told_and_offline_is_not_known(
    source: TinySource, museum: str, said: Said
) -> None:
    source.offer({**FILES, ONE: b"newer\n", "/new.txt": b"new\n"}, at=LATER)

    assert run(["why", museum, ONE, "--json"]) == 1
    assert verdict(said) == "outdated"
    assert run(["why", museum, "/new.txt", "--json"]) == 1
    assert verdict(said) == "waiting"
    source.asked.clear()
    assert run(["why", museum, ONE, "--offline", "--json"]) == 0
    assert verdict(said) == "as_fetched"
    assert source.asked == []


def test_a_deletion_done_and_a_deletion_held_are_told(
    source: TinySource, museum: str, said: Said
) -> None:
    files = {name: body for name, body in FILES.items() if name != ONE}
    source.offer(files, at=LATER)
    assert run(["pull", museum, "--max-delete", "0"]) == 7
    said.readouterr()
    assert run(["why", museum, ONE, "--json"]) == 1
    assert verdict(said) == "held"
    assert run(["pull", museum, "--max-delete", "1"]) == 0
    said.readouterr()

    assert run(["why", museum, ONE]) == 0
    lines = said.readouterr().out.splitlines()
    assert lines[0] == f"Resource  {source.url}{ONE}"
    assert lines[1] == "Verdict   deleted at the Source, and deleted here too"
    assert lines[2].startswith("Here      nothing; in the trash since ")
    assert lines[3] == "Source    does not list it"


def test_what_the_filters_do_not_want_and_what_was_never_listed_are_told(
    source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "museum", "--exclude", "objects/0001*"])
    said.readouterr()

    assert run(["why", "museum", ONE, "--json"]) == 0
    assert verdict(said) == "filtered"
    assert run(["why", "museum", "/never.txt", "--json"]) == 1
    assert verdict(said) == "unknown"
    assert run(["why", "museum", "/never.txt", "--offline", "--json"]) == 1
    assert verdict(said) == "unasked"


def test_a_foreign_entry_is_told_with_the_reason(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    said.readouterr()

    assert run(["why", "museum", "https://elsewhere.example/a", "--json"]) == 1
    assert verdict(said) == "unknown"


def test_a_source_that_does_not_answer_leaves_what_is_remembered(
    source: TinySource, museum: str, said: Said
) -> None:
    source.answers.clear()

    assert run(["why", museum, ONE]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[1].startswith("Verdict   the copy is as it was fetched")
    assert lines[3].startswith("Source    could not be checked: ")


@pytest.fixture
def damaged(museum: str, said: Said) -> Path:
    """A copy that was damaged without a trace in size and time, and an audit that found it."""
    path = Path(museum, ONE[1:])
    stat = path.stat()
    path.write_bytes(path.read_bytes().swapcase())
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert run(["audit", museum]) == 1
    said.readouterr()
    return path


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


def test_what_an_audit_found_is_told_and_whether_it_still_holds(damaged: Path, said: Said) -> None:
    assert run(["why", "museum", ONE]) == 1
    text = said.readouterr().out
    assert "Audit     sha-256 differs (same length): silent corruption or local edit" in text
    assert "; checked now: still so" in text
    assert "Tried" not in text
    damaged.write_bytes(damaged.read_bytes().swapcase())

    assert run(["why", "museum", ONE]) == 0
    text = said.readouterr().out
    assert "; checked now: it is as it was fetched" in text
    assert "Verdict   an audit found the file changed; now it is as it was fetched" in text


def test_what_was_set_aside_is_told(damaged: Path, said: Said) -> None:
    altered = damaged.read_bytes()
    assert run(["pull", "museum"]) == 0
    said.readouterr()

    assert run(["why", "museum", ONE, "--json"]) == 0
    [name] = rows(said)[-1]["set_aside"]
    assert Path("museum/.resourcesync/quarantine", name).read_bytes() == altered
    assert run(["why", "museum", ONE]) == 0
    assert f"Set aside .resourcesync/quarantine/{name}" in said.readouterr().out


def test_a_file_may_be_named_as_the_shell_names_it(
    museum: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(museum, ONE[1:])
    here = path.resolve()
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


def test_a_file_that_is_not_ours_is_called_so_and_left_alone(museum: str, said: Said) -> None:
    Path(museum, "notes.txt").write_text("mine")

    for name in ("notes.txt", "museum/notes.txt", str(Path("museum/notes.txt").resolve())):
        assert run(["why", museum, name]) == 0
        lines = said.readouterr().out.splitlines()
        assert lines[0].startswith("Resource  ")
        assert lines[0].endswith("museum/notes.txt")
        assert lines[2] == "Here      a file that resourcesync did not fetch"
        assert (
            "Verdict   the file did not come from the Source; resourcesync does not touch it"
            in lines
        )
    assert Path(museum, "notes.txt").read_text() == "mine"


def test_the_kind_of_an_error_says_what_to_do_and_how_the_run_ends(said: Said) -> None:
    for kind in ("config", "storage", "missing"):
        assert run(["why", kind]) == 0
        first = said.readouterr().out.partition("\n")[0]
        assert first.count(".") > 1, first

    assert run(["why", "unreadable-file"]) == 0
    assert "exit    3:" in said.readouterr().out
