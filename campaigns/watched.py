"""``watch`` is killed again and again while a Source changes: nothing is lost, nothing is untold.

In the end the copies equal the tree, and who replays what the program of ``on_change`` was told
has the same files with the same bytes.
"""

import contextlib
import hashlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import find_tree
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.commands.run import environment, files_of, free_port

_FILES: Final = 200
_NAMES: Final = 300
_PATIENCE: Final = 60.0


def run(asked: Asked) -> Outcome:
    """Change, kill, and begin again; then compare."""
    dice, folder = random.Random(asked.seed), asked.folder
    tree = folder / "tree"
    tree.mkdir()
    for number in range(_FILES):
        _write(tree / f"{number}.txt", dice)
    port = free_port()
    base = f"http://127.0.0.1:{port}/"
    publish_tree(tree, {"url": base}, clock=SystemClock())
    (folder / "resourcesync.toml").write_text(
        f'[mirror.copies]\nsource = "{base}"\ndest = "copies"\nevery = "1s"\naudit_every = "3s"\n'
        'on_change = ["sh", "-c", "cat >> told.ndjson"]\n'
    )
    outcome = Outcome()
    application = find_tree(tree).application(SystemClock())
    with ServerThread(application, port=port):
        for _ in range(asked.size):
            _live(folder, tree, dice)
        with _watching(folder):
            _settle(folder, tree)
    told = _replayed(folder / "told.ndjson")
    here, copies = files_of(tree), files_of(folder / "copies")
    hashes = {name: f"sha-256:{hashlib.sha256(body).hexdigest()}" for name, body in here.items()}
    outcome.add("files", len(here))
    outcome.add("kills", asked.size)
    outcome.require(here == copies, "the copies are not equal to the tree")
    outcome.require(told == hashes, "what was told does not lead to the same files")
    outcome.require(asked.size, "nobody was killed: nothing was proven")
    return outcome


def _write(path: Path, dice: random.Random) -> None:
    path.write_bytes(dice.randbytes(8) * dice.randint(1, 3_000))


@contextlib.contextmanager
def _watching(folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    command = [sys.executable, "-m", "resourcesync", "watch", "-v"]
    with (folder / "watch.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(folder), stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _live(folder: Path, tree: Path, dice: random.Random) -> None:
    """Let one process watch while the tree changes, then kill it."""
    with _watching(folder) as process:
        for _ in range(dice.randint(1, 2)):
            for _ in range(dice.randint(1, 20)):
                path = tree / f"{dice.randrange(_NAMES)}.txt"
                if path.exists() and dice.random() < 1 / 3:
                    path.unlink()
                else:
                    _write(path, dice)
            publish_tree(tree, {}, clock=SystemClock())
        time.sleep(dice.uniform(0.3, 2.5))
        process.kill()


def _settle(folder: Path, tree: Path) -> None:
    """Wait until the copies are right and all of it is told."""
    until = time.monotonic() + _PATIENCE
    wanted = set(files_of(tree))
    while time.monotonic() < until:
        copies = files_of(folder / "copies") if (folder / "copies").is_dir() else {}
        if copies == files_of(tree) and set(_replayed(folder / "told.ndjson")) == wanted:
            return
        time.sleep(0.2)


def _replayed(path: Path) -> Mapping[str, str]:
    state: dict[str, str] = {}
    lines = path.read_text().splitlines() if path.exists() else []
    for line in lines:
        with contextlib.suppress(ValueError):  # the kill came in the middle of a line
            row = json.loads(line)
            if row["change"] == "deleted":
                state.pop(row["path"], None)
            else:
                state[row["path"]] = row["hash"]
    return state


CAMPAIGN: Final = Campaign(run=run, size=20, unit="kills of watch")
