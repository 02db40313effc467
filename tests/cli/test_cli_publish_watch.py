"""``publish --watch``: from a change to its place in the list, and a clean end."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands.started import Started

pytest.importorskip("watchfiles", reason="the extra 'watch' is not installed")


@contextmanager
def watched(tree: Path, *words: str) -> Iterator[Started]:
    command = ["publish", str(tree), "--watch", "--url", "https://h.example/"]
    with Started(*command, *words, cwd=tree.parent) as process:
        _soon((tree / ".well-known/resourcesync").exists, 30)
        yield process


def _soon(holds: Callable[[], bool], seconds: float) -> float:
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, "it did not come"
        time.sleep(0.02)
    return time.monotonic() - began


def _lists(tree: Path, *words: str) -> Callable[[], bool]:
    path = tree / "resourcesync/changelist.xml"
    return lambda: all(word in path.read_text() for word in words)


def test_changes_are_listed_within_seconds_also_those_in_new_folders(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.txt").write_text("a")
    with watched(tree) as process:
        (tree / "b.txt").write_text("b")
        first = _soon(_lists(tree, "b.txt"), 20)
        for depth in ("x", "x/y", "x/y/z"):
            (tree / depth).mkdir()
            for number in range(40):
                (tree / depth / f"{number}.txt").write_text(f"{depth} {number}")
        names = [f"{depth}/{n}.txt<" for depth in ("x", "x/y", "x/y/z") for n in range(40)]
        _soon(_lists(tree, *names), 30)
        (tree / "a.txt").unlink()
        _soon(_lists(tree, "deleted"), 20)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)

    assert (process.returncode, errors) == (0, ""), output
    assert output.splitlines()[-1] == "Stopped   no longer watched"
    assert first < 10  # two seconds on a machine that has nothing else to do
