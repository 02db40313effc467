"""SIGKILL at random moments of ``pull`` and of ``publish``: real processes, HTTP and disk."""

import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving.applications import LateApplication, find_tree
from resourcesync.destination.mapping.names import RELOCATED
from resourcesync.destination.sync_state import SyncState
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.commands.started import Started, command

ROOT = Path(__file__).parents[3]
FILES = 30
PAIRS = 4
"""Names that clash when both are there: a file, and a folder that needs its name."""


def killed_after(seconds: float, home: Path, *arguments: str) -> int:
    with Started(*arguments, cwd=home) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        return process.wait(60)


def succeed(home: Path, *arguments: str) -> None:
    ran = command(*arguments, home=home)
    assert ran.returncode == 0, ran.stdout + ran.stderr


class Tree:
    """A tree that changes, and every content that each of its files ever had."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self._chance = chance
        self.ever: dict[str, set[bytes]] = {}
        for number in range(FILES):
            self.put(f"d{number % 5}/{number}.txt")
        for number in range(PAIRS):
            self.clash(number)

    def clash(self, number: int) -> None:
        name = f"d{number}/name{number}"
        if self._chance.random() < 0.5:
            shutil.rmtree(self.root / name, ignore_errors=True)
            self.put(name)
        else:
            if (self.root / name).is_file():
                (self.root / name).unlink()
            self.put(f"{name}/below/it.txt")

    def put(self, name: str) -> None:
        content = f"{name} {self._chance.random()}\n".encode() * self._chance.randrange(1, 400)
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.ever.setdefault(name, set()).add(content)

    def change(self) -> None:
        if self._chance.random() < 0.5:
            self.clash(self._chance.randrange(PAIRS))
        for _ in range(self._chance.randrange(1, 12)):
            name = f"d{self._chance.randrange(5)}/{self._chance.randrange(FILES)}.txt"
            if self._chance.random() < 0.2:
                (self.root / name).unlink(missing_ok=True)
            else:
                self.put(name)

    def now(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.glob("d*/**/*")
            if path.is_file()
        }


def visible(mirror: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in mirror.rglob("*"):
        if path.is_file() and ".resourcesync" not in path.parts:
            name = str(path.relative_to(mirror)).removesuffix(RELOCATED)
            assert name not in found, f"{name} is there twice"
            found[name] = path.read_bytes()
    return found


@contextmanager
def served(tree: Path) -> Iterator[tuple[str, LateApplication]]:
    application = LateApplication()
    with ServerThread(application) as server:
        yield server.uri, application


def kill_again_and_again(folder: Path, *, kills: int, seed: int) -> dict[str, int]:
    chance = random.Random(seed)
    tree = Tree(folder / "tree", chance)
    mirror = folder / "mirror"
    killed = {"pull": 0, "publish": 0}
    proven = 0
    with served(tree.root) as (uri, application):
        publish = ("publish", str(tree.root), "--url", uri)
        pull = ("pull", uri, str(mirror), "--max-delete", "100%", "-o", "timeout=5s")
        succeed(folder, *publish)
        application.application = find_tree(tree.root).application(SystemClock())
        took = {"publish": 0.15, "pull": 0.25}
        while min(killed.values()) < kills:
            tree.change()
            for name, arguments in (("publish", publish), ("pull", pull)):
                started = time.monotonic()
                code = killed_after(chance.random() * took[name], folder, *arguments)
                if code == -signal.SIGKILL:
                    killed[name] += 1
                else:
                    took[name] = max(0.02, (time.monotonic() - started) * 0.9)
                took[name] *= 1.02
                for path, content in visible(mirror).items():
                    assert content in tree.ever[path], f"{path} holds bytes it never had"
            if killed["pull"] >= proven + 10:
                proven = killed["pull"]
                succeed(folder, *publish)
                succeed(folder, *pull)
                assert visible(mirror) == tree.now()
        succeed(folder, *publish)
        succeed(folder, *pull)
        succeed(folder, "audit", str(mirror))
        succeed(folder, *pull, "--mode", "baseline")
        assert not list(mirror.glob(f"d*/**/*{RELOCATED}")), "nothing needs another's name any more"
        succeed(folder, "audit", str(mirror))
    assert visible(mirror) == tree.now()
    _check_memory(mirror)
    return killed


def _check_memory(mirror: Path) -> None:
    with MirrorFolder(mirror, SystemClock()) as folder:
        assert folder.state is not None
        folder.state.check()
        assert SyncState(folder.state).cursor.checkpoint is not None
    assert not list((mirror / ".resourcesync" / "tmp").iterdir())
