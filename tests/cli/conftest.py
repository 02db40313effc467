"""A place to work in, a Source and a tree, for every test of the command line."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from resourcesync.cli import main
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from tests.support.commands.command_line import FILES, Said
from tests.support.servers.tiny_source import TinySource


@pytest.fixture
def said(capsys: Said) -> Said:
    """Give what was said, under its name."""
    return capsys


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, without the user's settings."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("RESOURCESYNC_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))
    if "XDG_STATE_HOME" not in os.environ:  # a fixture of the module may have set it
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no-state"))
    return tmp_path


@pytest.fixture
def source() -> Iterator[TinySource]:
    """Run a Source that offers the files."""
    with TinySource() as running:
        running.offer(FILES)
        yield running


@pytest.fixture
def tree(here: Path) -> Path:
    """Put the files into the folder ``public``."""
    for target, body in FILES.items():
        path = here / "public" / target.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        os.utime(path, (1_700_000_000, 1_700_000_000))  # long enough ago to be trusted unread
    return Path("public")


@pytest.fixture
def with_job(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let ``demo`` do what a test wants."""

    def put(work: Callable[[Screen], CommandOutcome], **options: Any) -> None:
        job = Job(
            command="demo",
            output=OutputOptions(**options),
            work=work,
            resume_command="resourcesync demo",
        )

        def get_command(_self: object, _ctx: click.Context, _name: str) -> click.Command:
            return click.Command("demo", callback=lambda: job)

        monkeypatch.setattr(main.LazyGroup, "get_command", get_command)

    return put
