"""``trash``: what a mirror deleted is listed, brought back, or removed for good."""

from pathlib import Path

import pytest

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

GONE = ["objects/0001.txt", "objects/0002.txt"]
TRASH = Path("museum/.resourcesync/trash")
LAST = "2026-01-03T00:00:00Z"


def here() -> dict[str, bytes]:
    return {str(path): body for path, body in files_of(Path("museum")).items()}


@pytest.fixture
def mirror(source: TinySource, said: Said) -> TinySource:
    """Give a Source that deleted two files, which a mirror followed."""
    run(["pull", source.url, "museum"])
    source.offer({k: v for k, v in FILES.items() if k[1:] not in GONE}, at=LATER)
    assert run(["pull", "museum"]) == 0
    assert len(list(TRASH.iterdir())) == 2
    said.readouterr()
    return source


def test_a_source_that_lists_it_again_has_the_say_again(mirror: TinySource, said: Said) -> None:
    run(["trash", "restore", "museum", "--all"])
    mirror.offer(FILES, at="2026-01-02T12:00:00Z")
    assert run(["pull", "museum"]) == 0
    mirror.offer({k: v for k, v in FILES.items() if k[1:] not in GONE}, at=LAST)

    assert run(["pull", "museum"]) == 0

    assert not here().keys() & set(GONE)
    assert len(list(TRASH.iterdir())) == 2


def test_nobody_else_may_work_on_the_mirror_meanwhile(mirror: TinySource) -> None:
    with MirrorFolder(Path("museum"), SystemClock()):
        assert run(["trash", "restore", "museum", "--all"]) == 9
        assert run(["trash", "empty", "museum", "--all"]) == 9
        assert run(["trash", "list", "museum"]) == 0
