"""What ``publish`` says about files that it leaves out, or cannot read."""

import os
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said

ARGUMENTS = ["publish", "museum", "--url", "https://museum.example"]


@pytest.fixture
def museum(here: Path) -> Path:
    for name in ("page.txt", "a~", "old~/b.txt", ".hidden", "resourcesync/mine.txt"):
        path = Path("museum", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return Path("museum")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_a_quiet_run_names_the_files_that_it_cannot_read(museum: Path, said: Said) -> None:
    (museum / "page.txt").chmod(0)
    (museum / "other.txt").write_text("other")

    assert run([*ARGUMENTS, "-q"]) == 3

    captured = said.readouterr()
    assert "museum/page.txt cannot be read: Permission denied" in captured.out + captured.err
    assert "leave them out: --exclude" in captured.out + captured.err
