"""``why``: one resource explained, whatever became of it."""

import hashlib
import os
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import TinySource

ONE = "/objects/0001.txt"


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


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
