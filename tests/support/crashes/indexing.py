"""Indexes that follow a mirror while SIGKILL ends the pull, and whoever fills them, at random."""

import hashlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import find_tree
from tests.support.commands.run import environment
from tests.support.crashes.killed import ROOT, Tree, served, visible

PROGRAMS: Final = ("pull", "search", "vectors", "loop")
"""The pull, and three programs: the two examples, and a plain loop of a named consumer."""

_PROBABILITY: Final = 0.5
_STATEMENTS: Final = {"search": 60, "vectors": 40, "loop": 12}
"""So many statements a round takes at least, as a rule."""
_PATIENCE: Final = 60.0
_SURE: Final = 10
"""Rounds between two comparisons."""


class Indexing:
    """A Source that changes, a mirror of it, and three indexes of the mirror."""

    def __init__(self, folder: Path, uri: str, tree: Tree, chance: random.Random) -> None:
        self._folder, self._uri, self._tree, self._chance = folder, uri, tree, chance
        self.mirror = folder / "mirror"
        self.counts: Counter[str] = Counter()
        self._took = dict.fromkeys(PROGRAMS, 1.0)
        feeding = (sys.executable, str(ROOT / "tests/support/crashes/index_feeding.py"))
        self._commands: Mapping[str, Sequence[str]] = {
            name: (*feeding, name, str(self.mirror), str(folder)) for name in _STATEMENTS
        }
        self._pull = (
            *(sys.executable, "-m", "resourcesync", "pull", uri, str(self.mirror)),
            *("--max-delete", "100%"),
        )

    def begin(self) -> None:
        self._publish()
        self._finish(["pull"])

    def live(self) -> None:
        before = self._tree.now()
        for _ in range(self._chance.randint(1, 6)):
            self._tree.change()
        after = self._tree.now()
        names = before.keys() | after.keys()
        self.counts["changes"] += sum(before.get(name) != after.get(name) for name in names)
        self._publish()
        began = time.monotonic()
        doomed = [name for name in PROGRAMS if self._chance.random() < _PROBABILITY]
        at_work = {
            name: self._chance.randint(1, _STATEMENTS[name])
            for name in doomed
            if name != "pull" and self._chance.random() < _PROBABILITY
        }
        running = {name: self._start(name, at_work.get(name, 0)) for name in PROGRAMS}
        ends = {name: self._chance.random() * self._took[name] for name in PROGRAMS}
        for name in sorted(set(doomed) - at_work.keys(), key=ends.__getitem__):
            time.sleep(max(0.0, began + ends[name] - time.monotonic()))
            alone = self._chance.random() < 1 / 2  # else with its own processes
            (os.kill if alone else os.killpg)(running[name].pid, signal.SIGKILL)
        for name, process in running.items():
            code = process.wait(_PATIENCE)
            self.counts[f"kills of {name}"] += code == -signal.SIGKILL
            self.counts["of these in the middle of a change"] += name in at_work and code != 0
            if name not in doomed:
                self._took[name] = time.monotonic() - began
            if name not in doomed or code != -signal.SIGKILL:
                self._check(name, code)

    def compare(self) -> None:
        self._finish(PROGRAMS)
        files = {self._uri + name: body for name, body in self._tree.now().items()}
        mirrored = {self._uri + name: body for name, body in visible(self.mirror).items()}
        _check_equal("mirror", mirrored, files)
        _check_equal("search", read_search(self._folder / "search.db"), mirrored)
        _check_equal("vectors", read_vectors(self._folder / "vectors.db"), chunks_of(mirrored))
        _check_equal("loop", read_loop(self._folder / "loop.db"), mirrored)
        self.counts["comparisons"] += 1

    @property
    def kills(self) -> int:
        return sum(self.counts[f"kills of {name}"] for name in PROGRAMS)

    def _publish(self) -> None:
        publish_tree(self._tree.root, {"url": self._uri}, clock=SystemClock())

    def _finish(self, names: Sequence[str]) -> None:
        for name in names:
            self._check(name, self._start(name).wait(_PATIENCE))

    def _check(self, name: str, code: int) -> None:
        said = (self._folder / f"{name}.log").read_text()[-2_000:]
        assert code == 0, f"{name} ended with {code}: {said}"

    def _start(self, name: str, statements: int = 0) -> "subprocess.Popen[bytes]":
        command = self._pull if name == "pull" else (*self._commands[name], str(statements))
        path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                env={**environment(self._folder), "PYTHONPATH": path},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def _check_equal(name: str, found: Mapping[str, object], wanted: Mapping[str, object]) -> None:
    wrong = [uri for uri in found.keys() | wanted.keys() if found.get(uri) != wanted.get(uri)]
    assert not wrong, f"{name} differs in {len(wrong)}, such as {min(wrong)}"


def index_and_kill(folder: Path, *, changes: int, kills: int, seed: int) -> Mapping[str, int]:
    chance = random.Random(seed)
    tree = Tree(folder / "tree", chance)
    with served(tree.root) as (uri, application):
        publish_tree(tree.root, {"url": uri}, clock=SystemClock())
        application.application = find_tree(tree.root).application(SystemClock())
        world = Indexing(folder, uri, tree, chance)
        world.begin()
        while world.counts["changes"] < changes or world.kills < kills:
            world.live()
            world.counts["rounds"] += 1
            if world.counts["rounds"] % _SURE == 0:
                world.compare()
        world.compare()
    return world.counts


def read_search(path: Path) -> dict[str, bytes]:
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT uri, hash, text FROM page JOIN words ON id = words.rowid")
        texts = {uri: (hash_, text.encode()) for uri, hash_, text in rows}
        for table in ("page", "words"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (len(texts),), table
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        for uri, (_, text) in texts.items():
            phrase = '"{}"'.format(text.split(b"\n")[0].decode())
            found = "SELECT uri FROM page JOIN words ON id = words.rowid WHERE words MATCH ?"
            assert db.execute(found, (phrase,)).fetchall() == [(uri,)], phrase
    db.close()
    for hash_, text in texts.values():
        assert hash_ == f"sha-256:{hashlib.sha256(text).hexdigest()}"
    return {uri: text for uri, (_, text) in texts.items()}


def chunks_of(files: Mapping[str, bytes]) -> dict[str, list[bytes]]:
    parts = {
        uri: [body[start : start + 1_000] for start in range(0, len(body), 1_000)]
        for uri, body in files.items()
    }
    return {uri: sorted(set(found)) for uri, found in parts.items()}


def read_vectors(path: Path) -> dict[str, list[bytes]]:
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT uri, text FROM chunk").fetchall()
    db.close()
    found: dict[str, list[bytes]] = {}
    for uri, text in rows:
        found.setdefault(uri, []).append(text.encode())
    return {uri: sorted(texts) for uri, texts in found.items()}


def read_loop(path: Path) -> dict[str, bytes]:
    with sqlite3.connect(path) as db:
        rows = dict(db.execute("SELECT uri, content FROM stored").fetchall())
    db.close()
    return rows
