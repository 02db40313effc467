"""Runs in which the nth operation on the disk fails, in one process, and what is left of them.

It must be started with the library of ``failing.c`` preloaded: see ``preloaded.py``. Usage: lines
of JSON ``[SCENE, SEED, MOST]`` on stdin, for each a line on stdout: how many points there are where
the run may fail, how many were tried, after how many of these the run after it failed as well, how
many operations failed in all, and what was wrong.
"""

import ctypes
import errno
import json
import random
import shutil
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from resourcesync.errors import StorageError
from tests.support.crashes.crash_states import Disk, State, lay_out
from tests.support.crashes.power_scenes import SCENES, Scene
from tests.support.crashes.renumbered import Numbers

_OPEN, _WRITE, _SYNC, _NAME, _READ, _LOOK = 1, 2, 4, 8, 16, 32
KINDS: Final = {
    errno.ENOSPC: _OPEN | _WRITE | _SYNC | _NAME,
    errno.EMFILE: _OPEN,
    errno.EPERM: _OPEN | _NAME,
    errno.EIO: _OPEN | _WRITE | _SYNC | _NAME | _READ | _LOOK,
}
"""What may fail with which error."""

_TWICE: Final = 4
"""After one point in so many, the next run fails as well, somewhere."""


class Fault(NamedTuple):
    """An operation that fails: the nth that may end with this error, once or from then on."""

    error: int
    nth: int
    persistent: bool

    def __str__(self) -> str:
        ever = "from then on" if self.persistent else "once"
        return f"operation {self.nth}, {errno.errorcode[self.error]} {ever}"


class Failing:
    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        self._library.hits.restype = self._library.seen.restype = ctypes.c_long
        self.hits = 0

    def arm(self, root: Path, fault: Fault) -> None:
        self._library.arm(
            str(root).encode(),
            ctypes.c_long(fault.nth),
            fault.error,
            KINDS[fault.error],
            fault.persistent,
        )

    def disarm(self) -> int:
        seen, self.hits = int(self._library.seen()), self.hits + int(self._library.hits())
        self._library.arm(b"", ctypes.c_long(-1), 0, 0, 0)
        return seen


class Trials:
    def __init__(self, failing: Failing, scene: Scene, before: State, folder: Path) -> None:
        self._failing, self._scene, self._before, self._folder = failing, scene, before, folder

    def points(self) -> list[Fault]:
        found = []
        for error in KINDS:
            with _laid(self._before, self._folder) as numbers:
                self._scene.set_before()
                self._failing.arm(self._folder, Fault(error, -1, persistent=False))
                try:
                    assert self._scene.attempt(self._folder, numbers)
                finally:
                    seen = self._failing.disarm()
            found += [Fault(error, nth, ever) for nth in range(seen) for ever in (False, True)]
        return found

    def wrong(self, faults: list[Fault]) -> Iterator[str]:
        is_done = False
        with _laid(self._before, self._folder) as numbers:
            self._scene.set_before()
            for fault in faults:
                self._failing.arm(self._folder, fault)
                try:
                    is_done = self._scene.attempt(self._folder, numbers)
                except StorageError:
                    is_done = False
                except Exception:  # noqa: BLE001 - whatever else comes is what is looked for
                    yield f"it ended with {traceback.format_exc(limit=-4)}"
                    is_done = False
                finally:
                    self._failing.disarm()
            yield from self._scene.wrong(self._folder, numbers, is_done=is_done)


@contextmanager
def _laid(state: State, folder: Path) -> Iterator[Numbers]:
    folder.mkdir()
    try:
        yield lay_out(state, folder)
    finally:
        shutil.rmtree(folder)


def tried(failing: Failing, folder: Path, job: tuple[str, int, int]) -> list[Any]:
    name, seed, most = job
    luck, root = random.Random(f"{name} {seed}"), folder / "disk"
    root.mkdir()
    failing.hits = compound = 0
    wrong: list[str] = []
    try:
        scene = SCENES[name](root, seed)
        before = Disk(root).state()
        scene.seen(before)
        scene.do()
        trials = Trials(failing, scene, before, folder / "again")
        points = trials.points()
        assert points, "nothing could fail"
        luck.shuffle(points)
        for number, point in enumerate(points[:most]):
            faults = [point]
            if number % _TWICE == 0:
                faults.append(luck.choice(points))
                compound += 1
            told = ", then ".join(map(str, faults))
            wrong += [f"{told}: {name}" for name in trials.wrong(faults)]
            if wrong:
                break
    finally:
        shutil.rmtree(root)
    return [len(points), number + 1, compound, failing.hits, wrong]


def main() -> None:
    failing, folder = Failing(sys.argv[1]), Path(sys.argv[2]).resolve()
    for line in sys.stdin:
        print(json.dumps(tried(failing, folder, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
