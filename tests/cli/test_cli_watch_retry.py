"""``watch`` after a failure: when it tries again, where that is shown, and what ends the wait."""

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Mirror
from resourcesync.adapters.system import SystemClock
from resourcesync.app.watching.watch_jobs import record_failed_pull
from resourcesync.cli.main import run
from resourcesync.destination.reports import FailedRun
from tests.support.commands.command_line import FILES, MIRRORED, Said
from tests.support.commands.meanwhile import meanwhile
from tests.support.commands.run import files_of, resourcesync
from tests.support.commands.settings_file import museum, put
from tests.support.commands.watching import AdminPages
from tests.support.servers.tiny_source import Answer, Asked, TinySource
from tests.support.sources.several_sets import SETS
from tests.support.sources.several_sets import offer as offer_sets


class Service(AdminPages):
    def __init__(self, source: TinySource) -> None:
        super().__init__()
        self.source = source
        source.answers.clear()
        put(museum(source, 'every = "2h"\n'))

    def run(self, *steps: Callable[[], object]) -> None:
        with meanwhile(lambda: self.reason() == "retry", *steps):
            assert run(["watch", "--admin", self.bind]) == 0

    def mend(self) -> bool:
        self.source.offer(FILES)
        return True


def test_a_source_that_is_down_is_tried_again_within_a_minute_and_the_pages_say_so(
    source: TinySource,
) -> None:
    service = Service(source)
    seen: dict[str, Any] = {}

    def look() -> bool:
        seen.update(
            service.next_pull(), page=service.get(), mirror=service.get("mirror?name=museum")
        )
        return True

    service.run(look)

    wait = datetime.fromisoformat(seen["at"]) - datetime.now(UTC)
    assert timedelta(seconds=20) < wait < timedelta(seconds=61)
    assert (seen["mirror"].count("(retry 1)"), seen["tries"]) == (2, 1)
    assert "(retry 1)</time></td>" in seen["page"]
    assert "Failing since <time" in seen["page"]


@pytest.mark.parametrize(
    ("change", "why", "sets"),
    [
        ("/other", "is a mirror of another Source", False),
        ('"\nmap = "no-such-rule', "no-such-rule", True),
    ],
    ids=["another Source", "another mapping"],
)
def test_a_pull_of_the_service_that_its_configuration_ended_is_failing_everywhere(
    change: str, why: str, source: TinySource, *, sets: bool
) -> None:
    if sets:
        offer_sets(source, SETS)
    more = 'every = "1s"\nall_sets = true' if sets else 'every = "1s"'
    put(museum(source, more))
    assert resourcesync("pull", "museum", cwd=Path.cwd()).code == 0
    put(museum(source, more).replace(source.url, f"{source.url}{change}"))
    pages = AdminPages()

    def is_failing_everywhere() -> bool:
        status = resourcesync("status", "museum", "--check", cwd=Path.cwd())
        return (
            (status.code, why in status.stdout, "failing" in status.stdout) == (1, True, True)
            and 'state="failing"} 1' in "\n".join(pages.metrics())
            and "failing" in pages.get()
        )

    with meanwhile(pages.answers, is_failing_everywhere):
        assert run(["watch", "--admin", pages.bind]) == 0


def test_a_disk_that_goes_while_a_set_is_pulled_is_not_written_to_by_the_next_one(
    source: TinySource, said: Said
) -> None:
    offer_sets(source, SETS)
    put(museum(source, "all_sets = true"))
    assert run(["pull", "museum"]) == 0
    folder = Path("copies/museum")

    def vanish(asked: Asked) -> Answer | None:
        if asked.target != "/maps/new.txt":
            return None
        folder.rename("away")
        folder.mkdir()  # as where its disk is mounted
        return Answer(body=b"new")

    offer_sets(source, {**SETS, "maps": {"/maps/new.txt": b"new"}}, at="2026-01-02T00:00:00Z")
    del source.answers["/maps/new.txt"]
    source.respond = vanish

    assert run(["pull", "museum"]) == 8

    assert "was a mirror, and is none now" in said.readouterr().err
    assert list(folder.glob("*")) == []


@pytest.mark.parametrize("sets", [False, True])
def test_a_mirror_whose_folder_vanished_is_not_fetched_again_by_the_service(
    source: TinySource, said: Said, *, sets: bool
) -> None:
    if sets:
        offer_sets(source, SETS)
    put(museum(source, 'every = "1s"\nall_sets = true' if sets else 'every = "1s"'))
    folder, away, pages = Path("copies/museum"), Path("away"), AdminPages()

    def vanish() -> bool:
        folder.rename(away)
        folder.mkdir()  # as where its disk is mounted
        return True

    def is_refused() -> bool:
        return pages.reason() == "retry"

    pulled = [pages.answers, lambda: bool(pages.report()["ended"])]
    for steps in ([*pulled, vanish, is_refused], [is_refused]):  # also after a restart
        with meanwhile(*steps):
            assert run(["watch", "--admin", pages.bind]) == 0
        assert "was a mirror, and is none now" in said.readouterr().out
        assert list(folder.iterdir()) == []

    folder.rmdir()
    away.rename(folder)
    assert run(["pull", "museum"]) == 0


def test_the_wish_to_wait_of_one_set_is_kept(source: TinySource) -> None:
    offer_sets(source, SETS)
    put(museum(source, 'every = "1s"\nall_sets = true'))
    assert run(["pull", "museum"]) == 0
    pages, hour = AdminPages(), {"Retry-After": "3600"}
    for path in [path for path in source.answers if "list" in path]:
        source.answers[path] = Answer(status=503, headers=hour)
    waits: list[str] = []

    def is_waiting() -> bool:
        found = pages.next_pull()
        waits[:] = [found["at"]] if found.get("reason") == "asked_to_wait" else []
        return bool(waits)

    with meanwhile(is_waiting):
        assert run(["watch", "--admin", pages.bind]) == 0

    assert datetime.fromisoformat(waits[0]) - datetime.now(UTC) > timedelta(minutes=50)


def is_failing() -> bool:
    return resourcesync("status", "museum", "--check", cwd=Path.cwd()).code == 1


def test_a_failure_of_the_service_is_recorded_once_and_not_while_another_run_goes_on(
    source: TinySource,
) -> None:
    put(museum(source, 'every = "1h"'))
    before = datetime.now(UTC)
    assert run(["pull", "museum"]) == 0
    folder, error = Path("copies/museum"), {"": FailedRun(code="config", message="no")}
    after = datetime.now(UTC)

    record_failed_pull(folder, error, before, SystemClock())  # this pull recorded its own end
    assert not is_failing()
    with Mirror(None, folder):
        record_failed_pull(folder, error, after, SystemClock())
    assert not is_failing()

    record_failed_pull(folder, error, after, SystemClock())
    assert is_failing()


def hang_up() -> bool:
    os.kill(os.getpid(), signal.SIGHUP)
    return True


def test_sighup_tries_at_once_what_waits_after_a_failure(source: TinySource) -> None:
    service = Service(source)

    service.run(
        service.mend, hang_up, lambda: files_of(Path("copies/museum")) == MIRRORED
    )  # it would take most of a minute otherwise
