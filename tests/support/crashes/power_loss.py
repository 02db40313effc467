"""Records how a run writes to the disk, cuts the power everywhere, and looks at what is left.

It must be started with the library of ``write_order.c`` preloaded: see ``preloaded.py``. Usage:
lines of JSON ``[SCENE, SEED, MUTANT, MOST, TWICE]`` on stdin, for each a line on stdout: the number
of operations, how many states there were, how many of them did not say what another one had said
and so were given to the next run, and what was wrong. The first argument is the library, the second
an empty folder.
"""

import copy
import ctypes
import json
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.crashes.crash_meaning import Meanings
from tests.support.crashes.crash_states import (
    Disk,
    Operation,
    State,
    files_of,
    lay_out,
    name_of,
    operations,
)
from tests.support.crashes.power_mutants import mutated
from tests.support.crashes.power_scenes import SCENES, Scene

_EACH = 4
"""States at a point, at least."""
_FIRST = 60
"""States of which one is what the next run finds, when the power is cut twice."""


class Recorder:
    def __init__(self, library: str, folder: Path) -> None:
        self._library = ctypes.CDLL(library)
        self._log = folder / "log"
        self.meanings = Meanings(folder / "meanings")

    def record(
        self, scene: Scene, root: Path, mutant: str, *, together: bool
    ) -> tuple[Disk, list[Operation]]:
        """Let a scene be done; return the disk as it was before, and what was done to it."""
        before = Disk(root)
        with mutated(mutant, together=together):
            self._library.note_below(str(root).encode(), str(self._log).encode())
            try:
                scene.do()
            finally:
                self._library.note_nothing()
        done = list(operations(self._log.read_bytes()))
        _check_recorded(before, done, root)
        return before, done


def tried(recorder: Recorder, folder: Path, job: tuple[str, int, str, int, bool]) -> list[Any]:
    name, seed, mutant, most, twice = job
    luck = random.Random(f"{name} {seed}")
    root, again = folder / "disk", folder / "again"
    root.mkdir()
    try:
        scene = SCENES[name](root, seed)
        disk, done = recorder.record(scene, root, mutant, together=seed % 2 == 1)
        if twice:
            state, _ = luck.choice(list(_states(disk, done, luck, _FIRST, scene)))
            shutil.rmtree(root)
            root.mkdir()
            scene.begin_again(lay_out(state, root))
            disk, done = recorder.record(scene, root, mutant, together=seed % 2 == 1)
        wrong: list[str] = []
        ends: dict[tuple[int, bool], object] = {}
        states = 0
        for state, place in _states(disk, done, luck, most, scene):
            states += 1
            is_done = place == len(done)
            case = recorder.meanings.of(state), is_done
            if case in ends:
                found = list(scene.wrong_for_readers(ends[case]))
            else:
                again.mkdir()
                scene.set_after()
                found = list(scene.wrong(again, lay_out(state, again), is_done=is_done))
                shutil.rmtree(again)
                ends[case] = scene.end()
            wrong += [f"state {states}, after operation {place}: {name}" for name in found]
            if wrong:
                break
    finally:
        recorder.meanings.forget()
        shutil.rmtree(root)
    return [len(done), states, len(ends), wrong]


def _check_recorded(before: Disk, done: list[Operation], root: Path) -> None:
    """See that nothing was missed: what was recorded leads to what is on the disk now."""
    replayed = copy.deepcopy(before)
    for operation in done:
        replayed.do(operation)
    found = dict(files_of(Disk(root).state()))
    assert dict(files_of(replayed.state())) == found, "the recorder has missed something"


def _states(
    disk: Disk, done: list[Operation], luck: random.Random, most: int, scene: Scene
) -> Iterator[tuple[State, int]]:
    """Yield states of the disk, each once, with how many operations were done."""
    known: set[tuple[int, bool]] = set()
    syncs = [n for n, operation in enumerate(done) if operation.kind in "SA"]
    points = [*sorted(luck.sample(syncs, min(len(syncs), most // _EACH))), len(done)]
    at = 0
    for number, point in enumerate(points):
        for operation in done[at:point]:
            disk.do(operation)
        at = point
        scene.seen(disk.state())
        room = -(-(most - len(known)) // (len(points) - number))
        for state in disk.states(luck, 3 * room):
            name = (name_of(state), point == len(done))  # what is done may not be lost any more
            if room <= 0:
                break
            if name not in known:
                known.add(name)
                room -= 1
                yield state, point


def main() -> None:
    folder = Path(sys.argv[2]).resolve()
    recorder = Recorder(sys.argv[1], folder)
    for line in sys.stdin:
        print(json.dumps(tried(recorder, folder, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
