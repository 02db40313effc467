"""Makes the nth operation of a run on its mirror's files fail, and checks what is left."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving.applications import LateApplication, find_tree
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.commands.run import environment, files_of

ROOT: Final = Path(__file__).parents[3]
_CODE: Final = Path(__file__).with_suffix(".c")
_HOST: Final = Path(__file__).with_name("failable.py")
_OPEN, _WRITE, _SYNC, _NAME, _READ, _LOOK = 1, 2, 4, 8, 16, 32
KINDS: Final = {
    errno.ENOSPC: _OPEN | _WRITE | _SYNC | _NAME,
    errno.EMFILE: _OPEN,
    errno.EPERM: _OPEN | _NAME,
    errno.EIO: _OPEN | _WRITE | _SYNC | _NAME | _READ | _LOOK,
}
"""What may fail with which error."""

GOOD_ENDS: Final = frozenset({0, 1, 3, 8})
"""Exit codes by which a run may end when its disk fails: all told, none a fault of ours."""
SCENES: Final = ("baseline", "incremental", "audit", "repair")


class Point(NamedTuple):
    """Where a run is to fail: at the nth operation that may end so; ``persistent``: from then."""

    scene: str
    nth: int
    error: int
    persistent: bool

    def __str__(self) -> str:
        ever = "from then on" if self.persistent else "once"
        return f"{self.scene}, operation {self.nth}, {errno.errorcode[self.error]} {ever}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended."""

    code: int
    hits: int  # how many operations failed
    seen: int  # how many might have


class Host:
    """Runs our command with operations that fail."""

    def __init__(self, home: Path) -> None:
        library, self.said = home / "failing.so", home / "said.txt"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", library, _CODE, "-ldl"], check=True, timeout=60
        )
        more = {"LD_PRELOAD": str(library), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        # What is counted are our own operations, not those of who measures our coverage.
        kept = {k: v for k, v in environment(home).items() if not k.startswith("COVERAGE")}
        self._process = subprocess.Popen(
            [sys.executable, str(_HOST), str(self.said), str(library)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**kept, **more},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.communicate(timeout=20)

    def run(self, *words: str | Path, root: Path, point: Point | None = None) -> Ended:
        """Run a command; without a point nothing fails."""
        how = (
            [-1, errno.EIO, KINDS[errno.EIO], False]
            if point is None
            else [point.nth, point.error, KINDS[point.error], point.persistent]
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([list(map(str, words)), str(root), *how]) + "\n")
        self._process.stdin.flush()
        code, hits, seen = map(int, self._process.stdout.readline().split())
        return Ended(code=code, hits=hits, seen=seen)


class Scenes:
    """Mirrors in some states, each to be made anew for every trial, and their Source."""

    def __init__(self, home: Path, host: Host, uri: str, application: LateApplication) -> None:
        self._home, self.host, self._uri, self._application = home, host, uri, application
        self._tree = home / "tree"
        self.ever: dict[str, set[bytes]] = {}
        for number in range(10):
            self._put(f"d{number % 3}/{number}.txt", f"first {number}")
        self._publish()
        self._succeed("pull", uri, home / "old")
        for number in range(4):
            self._put(f"d{number % 3}/{number}.txt", f"second {number}")
        self._put("new/1.txt", "new")
        (self._tree / "d2/8.txt").unlink()
        self._publish()
        self._succeed("pull", uri, home / "current")
        shutil.copytree(home / "current", home / "damaged")  # other inodes: all look altered
        (home / "damaged/d0/3.txt").unlink()
        self.now = files_of(self._tree)

    def _put(self, name: str, content: str) -> None:
        path = self._tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content * 50)
        self.ever.setdefault(name, set()).add(path.read_bytes())

    def _publish(self) -> None:
        self._succeed("publish", self._tree, "--url", self._uri)
        self._application.application = find_tree(self._tree).application(SystemClock())

    def _succeed(self, *words: str | Path) -> Ended:
        ended = self.host.run(*words, root=self._home / "nothing")
        assert ended.code == 0, self.host.said.read_text()
        return ended

    def prepare(self, scene: str) -> tuple[Path, list[str | Path]]:
        """Make a scene's mirror; return it and the command to try."""
        mirror = self._home / "mirror"
        shutil.rmtree(mirror, ignore_errors=True)
        network = ("-o", "timeout=5s", "-o", "retries=0")
        if scene == "baseline":
            return mirror, ["pull", self._uri, mirror, *network]
        before = {"incremental": "old", "audit": "current", "repair": "damaged"}[scene]
        link_tree(self._home / before, mirror)
        if scene == "incremental":
            return mirror, ["pull", mirror, "--max-delete", "100%", *network]
        return mirror, [scene, mirror]

    def operations(self, scene: str, error: int) -> int:
        """Return how many operations of a scene may end with an error."""
        mirror, words = self.prepare(scene)
        never = Point(scene, 10**9, error, persistent=False)
        return self.host.run(*words, root=mirror, point=never).seen

    def trial(self, point: Point) -> list[str]:
        """Let a run fail at a point; return what is wrong afterwards."""
        mirror, words = self.prepare(point.scene)
        ended = self.host.run(*words, root=mirror, point=point)
        said = self.host.said.read_text(errors="replace")
        wrong = []
        if ended.code not in GOOD_ENDS:
            wrong.append(f"ended with {ended.code}: {said[-600:]}")
        here = files_of(mirror) if mirror.is_dir() else {}
        wrong += [
            f"{name} has bytes that it never had"
            for name, body in here.items()
            if body not in self.ever.get(name, ())
        ]
        if point.scene == "incremental":
            wrong += [f"{name} was lost" for name in self.now if name not in here and name in OLD]
        if point.scene == "audit" and here != self.now:
            wrong.append("an audit changed a copy")
        if ended.code == 0 and point.scene in ("baseline", "incremental") and here != self.now:
            wrong.append("it is called in sync, and is not")
        if wrong:
            return wrong
        return self._heal(mirror)

    def _heal(self, mirror: Path) -> list[str]:
        healed = self.host.run("pull", self._uri, mirror, "--max-delete", "100%", root=mirror)
        if healed.code:
            return [f"the next run ended with {healed.code}: {self.host.said.read_text()[-600:]}"]
        self.host.run("repair", mirror, root=mirror)
        wrong = [] if files_of(mirror) == self.now else ["it is not healed by the next runs"]
        left = list((mirror / ".resourcesync/tmp").iterdir())
        return wrong + [f"{path.name} is left half-written" for path in left]


OLD: Final = frozenset(f"d{number % 3}/{number}.txt" for number in range(10))


@contextmanager
def scenes(home: Path) -> Iterator[Scenes]:
    """Serve a tree, and make the mirrors of the scenes."""
    application = LateApplication()
    with Host(home) as host, ServerThread(application) as server:
        yield Scenes(home, host, server.uri, application)


def link_tree(source: Path, target: Path) -> None:
    """Copy a mirror so that its files stay the same files: it would take others for altered."""
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        elif ".resourcesync" in path.parts:
            shutil.copy2(path, place)
        else:
            place.hardlink_to(path)
