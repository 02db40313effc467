"""Mirrors and secrets of the configuration file, as the commands use them."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import MIRRORED, Said
from tests.support.commands.run import files_of
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource


def test_a_name_wins_over_a_folder_and_a_path_names_the_folder(
    source: TinySource, said: Said
) -> None:
    put(museum(source))
    Path("museum").mkdir()

    assert run(["pull", "museum"]) == 0
    assert run(["pull", "./museum"]) == 2

    assert files_of(Path("copies/museum")) == MIRRORED
    assert "museum is not a mirror" in said.readouterr().err


def test_a_fault_of_ours_in_one_mirror_does_not_keep_the_others_back(
    source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from resourcesync.app.configured_pulls import Puller

    real = Puller.pull

    def failing(puller: Any, target: Any, *others: Any) -> Any:
        if target.name == "first":
            raise RuntimeError("boom")
        return real(puller, target, *others)

    monkeypatch.setattr(Puller, "pull", failing)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    put(museum(source).replace("museum", "first") + museum(source))

    assert run(["pull", "--all"]) == 70

    assert files_of(Path("copies/museum")) == MIRRORED
    assert "error[bug]" in said.readouterr().err


def test_a_flag_wins_over_the_environment_over_the_mirror_over_the_defaults(
    source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agent() -> str:
        source.asked.clear()
        assert run(["pull", "museum", *flags]) == 0
        return source.asked[-1].headers["From"]

    flags: list[str] = []
    put('[defaults]\ncontact = "a@defaults.example"\n' + museum(source))
    assert agent() == "a@defaults.example"
    put('[defaults]\ncontact = "a@h"\n' + museum(source, 'contact = "b@mirror.example"'))
    assert agent() == "b@mirror.example"
    monkeypatch.setenv("RESOURCESYNC_MIRROR__MUSEUM__CONTACT", "c@key.example")
    assert agent() == "c@key.example"
    monkeypatch.setenv("RESOURCESYNC_PULL_OPTION", "contact=d@variable.example")
    assert agent() == "d@variable.example"
    flags = ["-o", "contact=e@flag.example"]
    assert agent() == "e@flag.example"


@pytest.mark.parametrize(
    ("name", "text"), [("JOBS", "many"), ("JOBS", "0"), ("NOTHING", "1"), ("TRASH", "5")]
)
def test_a_mistake_in_the_environment_names_the_variable(
    name: str, text: str, source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(museum(source))
    monkeypatch.setenv(f"RESOURCESYNC_MIRROR__MUSEUM__{name}", text)

    assert run(["pull", "museum"]) == 2

    assert f"RESOURCESYNC_MIRROR__MUSEUM__{name}" in said.readouterr().err


@pytest.mark.parametrize(
    ("dest", "told"),
    [
        ("copies/museum", "`dest` in [mirror.museum] is the folder of [mirror.two] too"),
        ("copies/x/../museum/", "`dest` in [mirror.museum] is the folder of [mirror.two] too"),
        ("link", "`dest` in [mirror.museum] is the folder of [mirror.two] too"),
        ("copies", "`dest` in [mirror.museum] is inside the folder of [mirror.two]"),
        ("copies/museum/a/b", "`dest` in [mirror.museum] contains the folder of [mirror.two]"),
    ],
)
def test_two_mirrors_in_each_others_folder_are_refused_before_anything_runs(
    source: TinySource, said: Said, dest: str, told: str
) -> None:
    Path("link").symlink_to("copies/museum")
    put(
        f'{museum(source)}[mirror.two]\nsource = "{source.url}"\ndest = "{dest}"\n'
        f'[mirror.three]\nsource = "{source.url}"\ndest = "copies3"\n'
    )

    for command in (["pull", "museum"], ["pull", "two"], ["audit", "museum"], ["status", "two"]):
        assert run(command) == 2
    assert source.asked == []
    assert told in said.readouterr().err
    assert run(["config", "check"]) == 2

    assert run(["pull", "--all"]) == 2
    assert not Path("copies").exists()
    assert files_of(Path("copies3")) == MIRRORED
