"""A worker that is killed: its work is done again, and who runs the pull is told."""

import os
import signal
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.cluster.engines import children
from tests.support.servers.tiny_source import Answer, TinySource

TEXTS = {f"/{number}.txt": f"text {number}".encode() for number in range(5)}


class Deadly(dict[str, Answer]):
    """Answers of a Source; whoever asks for one of them first does not live to have it."""

    def __init__(self, answers: dict[str, Answer], path: str) -> None:
        super().__init__(answers)
        self.path = path
        self.killed: list[int] = []

    def get(self, path: str, default: object = None) -> object:  # type: ignore[override]
        if path == self.path and not self.killed:
            self.killed = children("spawn_main")
            for pid in self.killed:
                os.kill(pid, signal.SIGKILL)
        return super().get(path, default)


def test_a_pull_says_in_one_line_that_a_worker_died_and_ends_in_sync(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with TinySource() as source:
        source.offer(TEXTS)
        deadly = Deadly(source.answers, "/3.txt")
        source.answers = deadly
        words = ["pull", source.url, f"file://{store}", "--state", str(tmp_path / "home")]

        assert run([*words, "--engine", "processes:1"]) == 0

    said = capsys.readouterr()
    assert deadly.killed
    lines = [line for line in (said.out + said.err).splitlines() if "a worker died" in line]
    assert len(lines) == 1, said
    assert {f"/{path.name}": path.read_bytes() for path in store.glob("*.txt")} == TEXTS
