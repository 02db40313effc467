"""One mirror that is damaged, gone, full or hanging: it is named with its reason, others go on."""

import html
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.app.watching.service import StateCache
from resourcesync.cli.main import run
from resourcesync.destination.reports import FailedRun, MirrorState
from resourcesync.errors import StorageError
from resourcesync.server.dashboard.views import EndedPull
from tests.support.commands.command_line import Said
from tests.support.commands.run import environment
from tests.support.commands.settings_file import museum, put
from tests.support.commands.started import Started
from tests.support.commands.watching import AdminPages
from tests.support.servers.tiny_source import TinySource
from tests.support.waiting import wait_until

SQUARE = '[mirror.square]\nsource = "{0}"\ndest = "copies/square"\n'


@pytest.fixture
def two(source: TinySource, here: Path, said: Said) -> Path:
    put(museum(source) + SQUARE.format(source.url))
    assert run(["pull", "--all", "-qq"]) == 0
    said.readouterr()
    return here / "copies/square"


def damage(folder: Path) -> None:
    (folder / ".resourcesync/state.db").write_bytes(b"SQLite format 3\0" + b"damaged" * 1000)


REASONS = [(shutil.rmtree, "was a mirror, and is none now"), (damage, "damaged")]


@pytest.mark.parametrize(("lose", "reason"), REASONS, ids=["gone", "damaged"])
def test_status_names_a_lost_mirror_with_the_reason_in_each_format(
    two: Path, said: Said, lose: object, reason: str
) -> None:
    assert callable(lose)
    lose(two)

    told = {}
    for style, how in (("text", []), ("json", ["--json"]), ("prom", ["--format", "prom"])):
        assert run(["status", *how]) == 8
        told[style] = said.readouterr()

    rows = [line.split() for line in told["text"].out.splitlines()]
    assert ["square", "unreadable", "-", "-", "-", "-", "-"] in rows
    assert ["museum", "in", "sync"] in [row[:3] for row in rows]
    assert reason in told["text"].err
    events = [json.loads(line) for line in told["json"].out.splitlines()]
    [error] = [event for event in events if event["type"] == "error"]
    assert error["mirror"] == "square"
    assert reason in error["message"]
    assert run(["doctor", "square"]) == 1
    checks = said.readouterr().out
    assert (reason in checks, "the Source's lists can be read" in checks) == (True, True)
    assert 'resourcesync_mirror_readable{mirror="square"} 0\n' in told["prom"].out
    assert 'resourcesync_mirror_readable{mirror="museum"} 1\n' in told["prom"].out


@contextmanager
def watching(here: Path, pages: AdminPages) -> Iterator[Started]:
    env = {**environment(here), "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    with Started(
        "watch", "--every", "1s", "--admin", pages.bind, "-v", cwd=here, env=env
    ) as service:
        wait_until(pages.answers)
        yield service


def hang(folder: Path) -> None:
    """Let who opens the lock wait for ever, unless they look what it is."""
    lock = folder / ".resourcesync/lock"
    lock.unlink(missing_ok=True)
    os.mkfifo(lock)


@pytest.mark.parametrize(
    ("lose", "reason"), [*REASONS, (hang, "")], ids=["gone", "damaged", "hanging"]
)
def test_a_lost_mirror_stops_no_page_and_no_job_of_the_others_and_no_end(
    two: Path, here: Path, source: TinySource, lose: object, reason: str
) -> None:
    assert callable(lose)
    lose(two)
    pages = AdminPages()
    with watching(here, pages) as service:
        rows = {row["mirror"]: row for row in pages.report()["mirrors"]}
        page, metrics = pages.get(), pages.metrics()
        if lose is not hang:  # what the service saw is told, and when it tries again
            wait_until(lambda: " times since " in pages.get("mirror?name=square"))
            history = html.unescape(pages.get("mirror?name=square")).partition("Pulls since")[2]
            assert reason in history
            wait_until(lambda: "(retry " in pages.get("mirror?name=square"))  # not while it runs
        asked = len(source.asked)
        wait_until(lambda: len(source.asked) > asked + 3)  # the other mirror is pulled
        began = time.monotonic()
        service.send_signal(signal.SIGTERM)
        assert service.wait(20) == 0
        assert time.monotonic() - began < 10

    assert rows["museum"]["state"] in {"in sync", "syncing"}
    assert "square" in page
    if lose is not hang:
        assert reason in rows["square"]["message"]
        assert reason in html.unescape(page)
        assert 'resourcesync_mirror_readable{mirror="square"} 0' in metrics
    assert 'resourcesync_mirror_readable{mirror="museum"} 1' in metrics


def test_a_read_that_hangs_is_given_up_and_not_begun_again_until_it_ends() -> None:
    cache, hanging = StateCache(patience=0.05), threading.Event()

    with pytest.raises(StorageError, match="the disk of a does not answer"):
        cache.apart("a", lambda: hanging.wait(30))
    with pytest.raises(StorageError, match="the disk of a does not answer"):
        cache.apart("a", lambda: pytest.fail("it hangs"))
    assert cache.apart("b", lambda: 1) == 1

    hanging.set()
    wait_until(lambda: not any(t.name == "resourcesync-read" for t in threading.enumerate()))
    assert cache.apart("a", lambda: 2) == 2


def test_a_failure_that_no_state_could_record_is_told_until_another_pull_ends(two: Path) -> None:
    cache = StateCache()
    before = cache.status(two)
    assert before.last_run is not None
    failed = FailedRun(code="disk", message="no space left")
    later = before.last_run.replace(year=2099)
    pull = EndedPull(started=later, ended=later, outcome="disk", failed=failed)

    cache.add_pull(two, pull)
    told = cache.status(two)
    cache.add_pull(two, replace(pull, started=before.last_run))

    assert (told.state, told.failed_run, told.outcome) == (MirrorState.FAILING, failed, "disk")
    assert told.failing_since == later
    assert cache.status(two) == before
