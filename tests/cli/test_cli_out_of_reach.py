"""Folders that this user may not enter: told with the path and what to do, never as a bug."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.servers.tiny_source import TinySource


@contextmanager
def somebody() -> Iterator[None]:
    """Be a user who may not enter what is closed: root may enter everything."""
    user = os.geteuid()
    if not user:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture(autouse=True)
def public_place(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder that anybody may enter: those of tests are their user's own."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        monkeypatch.chdir(place)
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            monkeypatch.setenv(name, f"{place}/none")
        yield


PUBLISH = ["publish", "tree", "--url", "https://museum.example/"]


@pytest.mark.parametrize(
    ("closed", "words"),
    [
        ("home", ["pull", "URL", "home/mirror"]),
        ("tree/.resourcesync", PUBLISH),
        ("tree/.resourcesync", [*PUBLISH, "--dry-run"]),
    ],
)
def test_a_folder_that_is_out_of_reach_is_told_with_its_path(
    closed: str, words: list[str], source: TinySource, said: Said
) -> None:
    Path(closed).mkdir(parents=True)
    Path("tree").mkdir(exist_ok=True)
    Path("tree/a.txt").write_bytes(b"a")
    words = [source.url if word == "URL" else word for word in words]
    assert run(words) == 0  # and it has imported what it needs
    said.readouterr()
    os.chmod(closed, 0)
    try:
        with somebody():
            assert run(words) == 8
    finally:
        os.chmod(closed, 0o700)
    told = said.readouterr().err
    assert f"{closed}/" in told
    assert "Permission denied" in told
