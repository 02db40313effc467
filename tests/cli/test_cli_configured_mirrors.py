"""Secrets of configured mirrors, and the commands that take a mirror by its name."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.commands.settings_file import AUTH, museum, put, tokens
from tests.support.servers.tiny_source import TinySource


@pytest.mark.parametrize("command", ["pull", "explore"])
def test_a_mirror_sends_the_secret_that_its_table_names(
    command: str, source: TinySource, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cret")
    put(AUTH + museum(source, 'auth = "key"'))

    assert run([command, "museum"]) == 0

    assert tokens(source) == {"Bearer s3cret"}
    assert "s3cret" not in "".join(said.readouterr())


def test_a_check_finds_a_folder_that_is_a_mirror_of_another_source(
    source: TinySource, said: Said
) -> None:
    put(museum(source))
    assert run(["pull", "museum"]) == 0
    assert run(["config", "check"]) == 0
    said.readouterr()

    put(museum(source).replace(source.url, "https://other.example/"))
    assert run(["status", "museum", "--check"]) == 1
    shown = said.readouterr().out
    assert "failing" in shown
    assert "is a mirror of another Source  exit 2" in shown
    assert run(["config", "check"]) == 2

    text = said.readouterr().err
    assert "[mirror.museum] has a `dest` that is a mirror of another Source" in text
    assert source.url in text
    assert "resourcesync pull museum --moved https://other.example/" in text


@pytest.mark.parametrize("arguments", [["museum"], ["--all", "-q"], ["museum", "--dry-run"]])
def test_a_mirror_whose_folder_vanished_is_not_fetched_again_by_its_name(
    arguments: list[str], source: TinySource, said: Said
) -> None:
    put(museum(source))
    folder, away = Path("copies/museum"), Path("away")
    assert run(["pull", "museum"]) == 0
    folder.rename(away)
    folder.mkdir()  # as where its disk is mounted
    said.readouterr()

    assert run(["pull", *arguments]) == 8
    error = said.readouterr().err
    assert "was a mirror, and is none now" in error
    assert f"resourcesync pull {source.url} {folder.absolute()}" in error
    assert list(folder.iterdir()) == []
    for command in ("status", "audit", "changes", "trash list"):
        assert run([*command.split(), "museum"]) == 8
        assert "was a mirror, and is none now" in said.readouterr().err

    folder.rmdir()
    assert run(["pull", source.url, str(folder)]) == 0
    assert run(["pull", "museum"]) == 0
    assert run(["status", "--check"]) == 0


@pytest.mark.parametrize("command", ["pull", "explore", "validate"])
def test_a_secret_is_named_on_the_command_line(
    command: str, source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cret")
    put(AUTH)

    run([command, source.url, "--auth", "key"])

    assert tokens(source) == {"Bearer s3cret"}


def test_a_netrc_is_asked_for_the_remembered_source(
    source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
    Path("netrc").chmod(0o600)
    put(f'[auth.mine]\ntype = "netrc"\nfile = "{Path("netrc").resolve()}"\n')
    assert run(["pull", source.url, "here"]) == 0
    source.asked.clear()

    assert run(["pull", "here", "--auth", "mine"]) == 0

    assert tokens(source) == {"Basic bWU6czNjcmV0"}


def test_two_sources_are_not_told_one_secret(source: TinySource, said: Said) -> None:
    put(AUTH)

    assert run(["validate", source.url, "http://127.0.0.1:1/", "--auth", "key"]) == 2

    assert "--auth would send a secret of one Source to the other" in said.readouterr().err


def test_a_mirror_is_audited_by_its_name_with_its_own_secret(
    source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cret")
    put(AUTH + museum(source, 'auth = "key"'))
    run(["pull", "museum"])
    source.asked.clear()

    assert run(["audit", "museum"]) == 0

    assert tokens(source) == {"Bearer s3cret"}
    Path("copies/museum/objects/0003.txt").unlink()
    assert run(["audit", "museum"]) == 1
    monkeypatch.delenv("THE_TOKEN")
    assert run(["audit", "museum"]) == 2
    assert run(["audit", "museum", "--offline"]) == 1
