"""Many write and commit out of order while the publisher is killed again and again."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import psycopg

from resourcesync.app.publishing import catalogues
from resourcesync.cli.main import run
from resourcesync.model.vocabulary import ChangeKind
from tests.support.accounts.postgres_tables import BASE, RECORDS, Records
from tests.support.commands.forking import Forked
from tests.support.commands.run import environment, script

WRITERS = 3
KEYS = 12
PATIENCE = 30.0


def write(address: str, number: int, done: threading.Event) -> None:
    """Write and commit, late or never, until all have had enough."""
    chance = random.Random(number)
    with psycopg.connect(address) as connection:
        while not done.is_set():
            for _ in range(chance.randint(1, 3)):
                key = f"{number}.{chance.randrange(KEYS)}"
                if chance.random() < 0.3:
                    connection.execute("DELETE FROM record WHERE id = %s", [key])
                else:
                    connection.execute(
                        "INSERT INTO record (id, size) VALUES (%s, %s) ON CONFLICT (id)"
                        " DO UPDATE SET size = excluded.size",
                        [key, chance.randrange(1_000)],
                    )
                time.sleep(chance.random() * 0.03)
            if chance.random() < 0.2:
                connection.rollback()
            else:
                connection.commit()


def test_what_is_published_in_the_end_is_what_is_in_the_table(
    records: Records, address: str, tmp_path: Path
) -> None:
    records.migrate()
    records.put("first", b"first")
    told = [word for key, value in RECORDS.items() for word in ("--with", f"{key}={value}")]
    publish = ["publish", address, *told, "--url", BASE, "--out", str(tmp_path)]
    assert run([*publish, "-q"]) == 0
    done = threading.Event()
    writers = [
        threading.Thread(target=write, args=(address, number, done)) for number in range(WRITERS)
    ]
    for writer in writers:
        writer.start()

    path = tmp_path / ".resourcesync" / "catalogue.db"
    try:
        for later in (0.0, 0.2):
            _publish_and_die(publish, path, later)
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert run([*publish, "-q"]) == 0

    held = {resource.uri: resource.length for resource in catalogues.read_resources(path)}
    rows = {
        f"{BASE}objects/{key}": size for key, size in records.run("SELECT id, size FROM record")
    }
    assert held == rows
    replayed: dict[str, int | None] = {f"{BASE}objects/first": 5}
    for _, change in catalogues.read_changes(path, 0):
        if change.kind is ChangeKind.DELETED:
            del replayed[change.uri]
        else:
            assert (change.uri in replayed) is (change.kind is ChangeKind.UPDATED)
            replayed[change.uri] = change.resource.length
    assert replayed == rows


def _publish_and_die(command: list[str], path: Path, later: float) -> None:
    """Keep publishing until changes were recorded, and some time; then kill it."""
    before, home = _count(path), path.parent
    words = [*command, "--watch", "-o", "every=1s"]
    with (
        open(os.devnull, "r+b") as nothing,
        open(home / "errors.txt", "w+b") as errors,
        Forked(
            script("resourcesync"), *words, cwd=home, env=environment(home),
            streams=(nothing.fileno(), nothing.fileno(), errors.fileno()),
        ) as process,
    ):  # fmt: skip
        until = time.monotonic() + PATIENCE
        while _count(path) == before and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(later)
        process.signal(signal.SIGKILL)
        ended = process.wait(PATIENCE)
        assert ended == -signal.SIGKILL, (home / "errors.txt").read_text()
    assert _count(path) > before


def _count(path: Path) -> int:
    return sum(1 for _ in catalogues.read_changes(path, 0))
