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
    ("more", "message"),
    [
        ('jobs = "64"', "`jobs` in [mirror.museum] must be a whole number"),
        ('trash = "30"', "`trash` in [mirror.museum] is wrong: '30' is not a duration"),
        ("[mirror.museum.audit]", "unknown key `audit` in [mirror.museum]"),
        ('auth = "arxiv"', "names [auth.arxiv], which does not exist"),
        (
            'set = ["a"]\nall_sets = true',
            "`all_sets` in [mirror.museum] excludes `set`: choose one",
        ),
        ('header = ["Authorization: Bearer s3cret"]', "must not contain Authorization"),
        ("max_dlete = 5", "unknown key `max_dlete` in [mirror.museum]"),
    ],
)
def test_a_mistake_in_a_table_is_told_with_file_table_and_key(
    more: str, message: str, source: TinySource, said: Said
) -> None:
    put(museum(source, more))

    assert run(["pull", "museum"]) == 2

    captured = said.readouterr()
    assert message in captured.err
    assert "resourcesync.toml:" in captured.err
    assert "s3cret" not in captured.err
    assert captured.out == ""
    assert source.asked == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mirors.a]\n", "unknown key `mirors` at the top"),
        ("[defaults]\nevrey = '5m'\n", "unknown key `evrey` in [defaults]"),
        ("[defaults]\nauth = 'x'\n[auth.x]\ntype = 'bearer'\n", "unknown key `auth` in [defaults]"),
        ("defaults = 5\n", "`defaults` must be a table"),
        ("[mirror.a]\ndest = 'a'\n", "`source` in [mirror.a] is missing"),
        ("[mirror.a]\nsource = 'h'\ndest = 'a'\n", "`source` in [mirror.a] must be an address"),
        (
            "[mirror.a]\nsource = 'https://h/'\ndest = 'zz://b'\n",
            "`dest` in [mirror.a] must be a folder",
        ),
        ("mirror = [\n", "is not TOML"),
    ],
)
def test_a_mistake_of_the_whole_file_is_told(text: str, message: str, said: Said) -> None:
    put(text)

    assert run(["pull", "a"]) == 2

    assert message in said.readouterr().err


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
    ("arguments", "message"),
    [
        (["pull"], "name a SOURCE or a MIRROR"),
        (["pull", "--all"], "no mirror is configured"),
        (["pull", "--all", "x"], "do not name one"),
        (["pull", "http://h/", "a", "b"], "one SOURCE and one DEST"),
        (["pull", "museum.example", "here"], "such as https://museum.example/"),
        (["pull", "127.0.0.1:8090", "here"], "such as http://127.0.0.1:8090/"),
        (["pull", "./folder", "./here"], "a Source is an address, such as https://HOST/"),
        (["pull", "published", "copy"], "'published' is neither a mirror nor the address"),
        (["pull", "./a", "http://h/"], "comes first: resourcesync pull http://h/ ./a"),
        (["pull", "file.txt"], "is a file"),
        (["pull", "http://h/", "--auth", "x"], "there is no [auth.x] in the configuration"),
        (["pull", "x", "--config", "none.toml"], "there is no configuration file none.toml"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], message: str, said: Said) -> None:
    Path("file.txt").write_text("")
    Path("folder").mkdir()
    Path("published/.resourcesync").mkdir(parents=True)

    assert run(arguments) == 2

    assert message in said.readouterr().err


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
