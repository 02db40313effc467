"""``publish tables:``: a table becomes a Source that is judged, mirrored and followed."""

import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from resourcesync.adapters.in_memory import ManualClock
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.document_stores import documents_at
from resourcesync.app.serving.applications import LateApplication, find_tree
from resourcesync.cli.main import run
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.accounts.published_table import BASE, PublishedTable, Row, write_table
from tests.support.commands.command_line import Said, rows
from tests.support.commands.run import environment, files_of, script

TABLE = Path("table/part.parquet")
LISTS = 40
ROWS = 4_000


def offer(base: str, bodies: dict[str, bytes]) -> None:
    """Put files where they are served, and tell of them in a table."""
    told: list[Row] = []
    for name, body in bodies.items():
        Path("out").mkdir(exist_ok=True)
        Path("out", name).write_bytes(body)
        digest = f"sha-256:{hashlib.sha256(body).hexdigest()}"
        told.append((f"{base}{name}", None, len(body), digest, "text/plain"))
    write_table(TABLE, told)


def test_a_table_becomes_a_source_that_is_judged_and_followed(said: Said) -> None:
    bodies = {f"{number:02}.txt": b"%d" % number for number in range(25)}
    publish = ["publish", "tables:table", "--out", "out", "--max-entries", "10"]
    late = LateApplication()
    with ServerThread(late) as server:
        offer(server.uri, bodies)
        assert run([*publish, "--url", server.uri]) == 0
        late.application = find_tree(Path("out")).application(SystemClock())
        assert run(["validate", server.uri, "--live", "--fail-on", "warning"]) == 0
        assert run(["pull", server.uri, "copy"]) == 0
        assert files_of(Path("copy")) == bodies

        bodies |= {"new.txt": b"new", "03.txt": b"another"}
        del bodies["07.txt"]
        offer(server.uri, bodies)
        said.readouterr()
        assert run([*publish, "--json"]) == 0
        end = rows(said)[-1]
        assert (end["created"], end["updated"], end["deleted"], end["lists"]) == (1, 1, 1, 1)
        assert run([*publish, "--json"]) == 0
        assert rows(said)[-1]["written"] == []
        assert run(["validate", server.uri, "--live", "--fail-on", "warning"]) == 0
        said.readouterr()

        assert run(["pull", server.uri, "copy", "--json"]) == 0
        assert rows(said)[-1]["mode"] == "incremental"
        assert files_of(Path("copy")) == bodies
        assert run(["audit", "copy"]) == 0
        assert run(["pull", server.uri, "another"]) == 0
        assert files_of(Path("another")) == bodies


def test_killed_workers_and_a_killed_coordinator_change_nothing_of_what_is_published(
    here: Path, said: Said
) -> None:
    told: list[Row] = [(f"{BASE}{number:05}", number, number, "", "") for number in range(ROWS)]
    write_table(TABLE, told)
    words = ["publish", "tables:table", "--url", BASE, "--out", "out"]
    words += ["--max-entries", str(ROWS // LISTS), "--engine", "processes:2"]
    with subprocess.Popen(
        [script("resourcesync"), *words], env=environment(here), stdout=subprocess.DEVNULL
    ) as coordinator:
        wait_for(3)
        os.kill(child_of(coordinator.pid), signal.SIGKILL)
        wait_for(12)
        coordinator.kill()
    assert coordinator.wait() == -signal.SIGKILL
    assert not Path("out/.well-known").exists()
    done = set(Path("out/resourcesync").glob("resourcelist-sha256-*.xml"))
    assert 12 <= len(done) < LISTS
    written = {path: path.stat().st_mtime_ns for path in done}

    assert run(words[:-2]) == 0

    kept = [path for path in done if path.stat().st_mtime_ns == written[path]]
    assert len(kept) >= len(done) - 2  # what was written and not yet noted is written again
    world = PublishedTable(here)
    at = world.listed()[0].at
    assert at is not None
    other = PublishedTable(here / "undisturbed", ManualClock(at))
    other.tell(told)
    other.publish(max_entries=ROWS // LISTS)
    assert other.bytes() == world.bytes()


def wait_for(lists: int) -> None:
    """Wait until so many lists are there."""
    until = time.monotonic() + 60
    while len(list(Path("out/resourcesync").glob("resourcelist-sha256-*.xml"))) < lists:
        assert time.monotonic() < until
        time.sleep(0.002)


def child_of(pid: int) -> int:
    """Return a worker of a coordinator: a process that is no tracker of resources."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    raise AssertionError("no worker was found")


@pytest.mark.parametrize(
    ("words", "said_of_it"),
    [
        (["tables:none", "--out", "out", "--url", BASE], "there is no table at"),
        (["tables:table", "--url", BASE], "needs --out"),
        (["tables:table", "--out", "out"], "address of the resources is not known"),
        (["tables:table", "--out", "out", "--url", BASE, "--watch"], "use cron"),
        (["tables:table", "--out", "out", "--url", BASE, "--sitemap"], "sitemap is not for tables"),
        (["tables:table", "--out", "out", "--url", BASE, "--dry-run"], "no dry run"),
        (
            ["tables:table", "--out", "out", "--url", BASE, "--auth", "u"],
            "is only for other systems",
        ),
        (["out", "--engine", "processes"], "--engine is only for tables"),
    ],
)
def test_what_does_not_fit_is_refused(said: Said, words: list[str], said_of_it: str) -> None:
    write_table(TABLE, [(f"{BASE}a", None, 1, "", "")])

    assert run(["publish", *words]) == 2

    assert said_of_it in said.readouterr().err
    assert not Path("out").exists()


def test_the_lists_of_a_table_go_into_a_bucket(bucket: str, said: Said) -> None:
    told: list[Row] = [(f"{BASE}{number:02}", None, number, "", "") for number in range(30)]
    write_table(TABLE, told)
    words = ["publish", "tables:table", "--out", bucket, "--max-entries", "10"]
    assert run([*words, "--url", BASE]) == 2
    assert f"with --out {bucket}, add: --state DIR" in said.readouterr().err
    words += ["--state", "state"]

    assert run([*words, "--url", BASE]) == 0

    store = documents_at(Path("state"), bucket)
    names = set(store.names())
    heads = {"about", "capabilitylist", "changelist", "resourcelist"}
    lists = {name for name in names if "-sha256-" in name}
    assert names - lists == {
        ".well-known/resourcesync", *(f"resourcesync/{head}.xml" for head in heads)
    }  # fmt: skip
    assert len(lists) == 3
    for name in lists:
        stream = store.open(name)
        assert stream is not None
        with stream:
            assert hashlib.sha256(stream.read()).hexdigest()[:32] in name
    said.readouterr()
    assert run([*words, "--json"]) == 0
    assert rows(said)[-1]["written"] == []
    write_table(TABLE, told[1:])
    assert run(words) == 0
    assert len({name for name in store.names() if "/changelist-" in name}) == 1


def test_a_folder_with_a_catalogue_takes_no_table(tree: Path, said: Said) -> None:
    write_table(TABLE, [(f"{BASE}a", None, 1, "", "")])
    assert run(["publish", "public", "--url", BASE]) == 0

    assert run(["publish", "tables:table", "--url", BASE, "--out", "public"]) == 2

    assert "published from a catalogue already" in said.readouterr().err
