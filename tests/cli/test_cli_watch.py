"""``watch``: jobs, a configuration that changes, and what it does after failures."""

import html
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Mirror
from resourcesync.adapters.system import SystemClock
from resourcesync.app.configured_pulls import TargetResolver
from resourcesync.app.watching.watch_jobs import record_failed_pull
from resourcesync.app.watching.watch_settings import WatchSettings
from resourcesync.cli import options
from resourcesync.cli.main import run
from resourcesync.destination.reports import FailedRun
from resourcesync.settings.mirror import ServiceSettings
from tests.support.commands.command_line import FILES, MIRRORED, Said, rows
from tests.support.commands.meanwhile import meanwhile
from tests.support.commands.run import files_of, resourcesync
from tests.support.commands.settings_file import museum, put
from tests.support.commands.watching import AdminPages
from tests.support.servers.tiny_source import Answer, Asked, TinySource
from tests.support.sources.several_sets import SETS
from tests.support.sources.several_sets import offer as offer_sets

TELL = 'on_change = ["sh", "-c", "cat >> told.ndjson"]'
ALL = "\nall_sets = true"
RUNS = 'resourcesync_runs_total{mirror="museum",'


def told() -> list[dict[str, object]]:
    path = Path("told.ndjson")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def passed() -> bool:
    time.sleep(2)
    return True


def hang_up() -> bool:
    os.kill(os.getpid(), signal.SIGHUP)
    return True


def test_a_mirror_is_kept_in_step_audited_and_the_next_program_told(
    source: TinySource, said: Said
) -> None:
    more = f'every = "1s"\naudit_every = "1h"\nallow_origin = ["{source.url}"]\n{TELL}\n'
    put(museum(source, more))
    copies = Path("copies/museum")

    def change() -> bool:
        source.offer({**FILES, "/new.txt": b"new"})
        return True

    with meanwhile(
        lambda: len(told()) == len(MIRRORED),
        change,
        lambda: (copies / "new.txt").exists() and len(told()) == len(MIRRORED) + 1,
    ):
        assert run(["watch", "--json"]) == 0

    assert files_of(copies) == {**MIRRORED, "new.txt": b"new"}
    assert {fields["change"] for fields in told()} == {"created"}
    assert told()[-1]["path"] == "new.txt"
    lines = rows(said)
    kinds = [line["type"] for line in lines]
    assert (kinds[:2], kinds[-1]) == (["run.start", "watch"], "run.end")
    assert {"watch.pull", "watch.hand-on", "watch.audit"} < set(kinds)
    pulls = [line for line in lines if line["type"] == "watch.pull"]
    assert (pulls[0]["state"], pulls[0]["created"]) == ("in sync", len(MIRRORED))


def test_what_another_run_brought_is_told_after_the_next_pull(
    source: TinySource, said: Said
) -> None:
    put(museum(source, f'every = "1s"\n{TELL}\n'))
    pages = AdminPages()

    def begin_anew() -> bool:
        Path("copies/museum/.resourcesync/consumers/on_change.json").unlink()
        return True

    with meanwhile(
        lambda: len(told()) == len(MIRRORED),
        passed,
        begin_anew,  # there is something to tell, and no pull of ours brought it
        lambda: len(told()) == 2 * len(MIRRORED),
        passed,
        lambda: f'{RUNS}kind="hand-on",exit="0"}} 2' in pages.metrics(),
    ):
        assert run(["watch", "--json", "--admin", pages.bind]) == 0

    lines = [row for row in rows(said) if row["type"] == "watch.hand-on"]
    assert [line["changes"] for line in lines] == [len(MIRRORED)] * 2


def test_the_next_program_is_told_of_each_set(source: TinySource) -> None:
    offer_sets(source, SETS)
    put(museum(source, f'every = "1h"\nall_sets = true\n{TELL}\n'))

    with meanwhile(lambda: len(told()) == 4, passed):
        assert run(["watch"]) == 0

    paths = {str(fields["path"]) for fields in told()}
    assert len(told()) == len(paths) == 4
    assert all(Path("copies/museum", path).is_file() for path in paths)


def test_a_program_that_times_out_is_stopped_reported_and_run_again(
    source: TinySource, said: Said
) -> None:
    program = 'on_change = ["sh", "-c", "cat >> told.ndjson; (sleep 3; touch late) & sleep 60"]'
    put(museum(source, f'every = "1s"\n{program}\non_change_limit = "1s"\n'))
    asked = len(source.asked)

    with meanwhile(lambda: len(told()) == len(MIRRORED), lambda: len(source.asked) > asked + 34):
        assert run(["watch", "--json"]) == 0

    lines = [row for row in rows(said) if row["type"] == "watch.hand-on"]
    assert [(line["exit"], line["code"], line["tries"]) for line in lines] == [(3, "on-change", 1)]
    assert lines[0]["message"] == "sh was stopped: it took longer than 1.0 s"
    assert lines[0]["again"] is not None
    cursor = Path("copies/museum/.resourcesync/consumers/on_change.json")
    assert not cursor.exists()
    assert not Path("late").exists()


def test_a_valid_new_configuration_is_applied_and_an_invalid_one_is_not(
    source: TinySource, said: Said
) -> None:
    put(one := museum(source, 'every = "1h"\n'))

    def reload(text: str) -> bool:
        put(text)
        return hang_up()

    with meanwhile(
        lambda: files_of(Path("copies/museum")) == MIRRORED,
        lambda: reload(one + one.replace("museum", "two")),
        lambda: files_of(Path("copies/two")) == MIRRORED,
        lambda: reload(museum(source)),
        passed,
        lambda: reload("[defaults]\nevrey = 1\n"),
        passed,
    ):
        assert run(["watch"]) == 0

    out, err = said.readouterr()
    for words in ("no mirror has a schedule", "unknown key `evrey`", "the previous configuration"):
        assert words in err
    assert "2 mirrors: museum, two" in out
    assert "cleanly" in out


def test_a_service_manager_is_told(source: TinySource, monkeypatch: pytest.MonkeyPatch) -> None:
    put(museum(source, 'every = "1s"\n'))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("notify")
        manager.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", "notify")
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        heard: list[str] = []

        def listen() -> bool:
            try:
                heard.append(manager.recv(4096).decode())
            except BlockingIOError:
                return False
            return sum("WATCHDOG=1" in name for name in heard) > 3

        with meanwhile(listen):
            assert run(["watch"]) == 0
        while not listen() or heard[-1] != "STOPPING=1":
            pass

    assert heard[0].startswith("READY=1\nSTATUS=1 mirrors")


def test_a_mirror_is_watched_by_its_folder_alone(source: TinySource) -> None:
    assert run(["pull", source.url, "docs"]) == 0
    before = len(source.asked)

    with meanwhile(lambda: len(source.asked) > before + 4):
        assert run(["watch", "docs", "--every", "1s"]) == 0


@pytest.mark.parametrize(
    ("own", "jobs", "parallel", "share"),
    [("", 64, 4, 16), ("jobs = 5", 64, 4, 5), ("jobs = 50", 64, 4, 16), ("", 2, 4, 1)],
)
def test_each_mirror_has_its_share_of_all_requests_or_its_own_lower_limit(
    own: str, jobs: int, parallel: int, share: int, tmp_path: Path
) -> None:
    file = tmp_path / "resourcesync.toml"
    file.write_text(f'[mirror.a]\nsource = "https://h.example/"\ndest = "a"\n{own}\n')
    settings = WatchSettings(
        configuration=options.load(file),
        names=("a",),
        service=ServiceSettings(jobs=jobs, parallel=parallel),
    )

    watched, _ = settings.watched_mirrors()

    assert watched["a"].target.network.jobs == share


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
    ("change", "why", "sets", "new"),
    [
        ("/other", "follows another address", False, False),
        ('"\nmap = "no-such-rule', "no-such-rule", True, False),
        ("", "gone cannot be read", False, True),
        ("", "gone cannot be read", True, True),
    ],
    ids=["another Source", "another mapping", "no secret", "no secret for sets"],
)
def test_a_pull_of_the_service_that_its_configuration_ended_is_failing_everywhere(
    change: str, why: str, source: TinySource, *, sets: bool, new: bool
) -> None:
    if sets:
        offer_sets(source, SETS)
    more = 'every = "1s"\nall_sets = true' if sets else 'every = "1s"'
    more += '\nauth = "k"\n[auth.k]\ntype = "bearer"\ntoken = { file = "gone" }' if new else ""
    put(museum(source, more))
    assert resourcesync("pull", "museum", cwd=Path.cwd()).code == (2 if new else 0)
    put(museum(source, more).replace(source.url, f"{source.url}{change}"))
    pages = AdminPages()

    def is_failing_everywhere() -> bool:
        status = resourcesync("status", "museum", "--check", cwd=Path.cwd())
        by_service = sets and new  # which sets there are is unknown
        return (
            (status.code, by_service or why in status.stdout) == (1, True)
            and ("next: resourcesync pull" if by_service else "failing") in status.stdout
            and 'state="failing"} 1' in "\n".join(pages.metrics())
            and all(text in html.unescape(pages.get()) for text in (why, "Failing since"))
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


@pytest.mark.parametrize(("more", "gone"), [("", ""), (ALL, ""), (ALL, "/maps")])
def test_a_mirror_whose_folder_vanished_is_not_fetched_again_by_the_service(
    source: TinySource, said: Said, more: str, gone: str
) -> None:
    if more:
        offer_sets(source, SETS)
    put(museum(source, f'every = "3s"\naudit_every = "1s"{more}'))  # none runs while it vanishes
    folder, away, pages = Path(f"copies/museum{gone}"), Path("away"), AdminPages()

    def vanish() -> bool:
        folder.rename(away)
        folder.mkdir()  # as where its disk is mounted
        return True

    def is_refused() -> bool:
        return pages.reason() == "retry"

    def is_audit_refused() -> bool:
        return any(f'{RUNS}kind="audit",exit="8"' in line for line in pages.metrics())

    pulled = [pages.answers, lambda: bool(pages.report()["ended"])]
    before = [*pulled, vanish, is_refused, is_audit_refused]
    for steps in (before, [is_refused]):  # also after a restart
        with meanwhile(*steps):
            assert run(["watch", "--admin", pages.bind]) == 0
        assert "was a mirror, and is none now" in said.readouterr().out
        assert list(folder.iterdir()) == []
    assert [run([command, "museum"]) for command in ("pull", "status", "doctor")] == [8, 8, 1]

    folder.rmdir()
    away.rename(folder)
    assert run(["pull", "museum"]) == 0


def test_the_wish_to_wait_of_one_set_is_kept_also_after_a_restart(source: TinySource) -> None:
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

    for most_requests in (inf, 0):
        before = len(source.asked)
        with meanwhile(is_waiting):
            assert run(["watch", "--admin", pages.bind]) == 0
        assert datetime.fromisoformat(waits[0]) - datetime.now(UTC) > timedelta(minutes=50)
        assert len(source.asked) - before <= most_requests
        for state in [*Path().rglob("state.db")]:  # as if a later pull was killed
            state.with_name("state.db-wal").write_bytes(b"cut")


def test_the_line_of_a_mirror_says_what_its_sets_did(source: TinySource, said: Said) -> None:
    offer_sets(source, SETS)
    put(museum(source, 'every = "1s"\nall_sets = true'))
    assert run(["pull", "museum", "-o", "retries=0"]) == 0
    offer_sets(source, {**SETS, "maps": {"/maps/c.txt": b"c"}}, at="2026-01-02T00:00:00Z")
    source.answers["/rs/texts/resourcelist.xml"] = Answer(status=403)
    pages = AdminPages()
    said.readouterr()

    with meanwhile(pages.answers, lambda: any("runs_total{" in line for line in pages.metrics())):
        assert run(["watch", "--admin", pages.bind]) == 0

    line = next(line for line in said.readouterr().out.splitlines() if "museum  " in line)
    for words in ("1 set failed", "refuses access", "1 change", "2 deletions held"):
        assert words in line


def test_an_audit_of_one_set_that_fails_keeps_no_other_set_from_its_own(source: TinySource) -> None:
    offer_sets(source, SETS)
    put(museum(source, 'every = "1h"\naudit_every = "1s"\nall_sets = true'))
    assert [run([word, "museum"]) for word in ("pull", "audit")] == [0, 0]
    Path("copies/museum/maps").rename("away")
    Path("copies/museum/texts/texts/b.txt").write_text("damage")
    pages, found = AdminPages(), 'audit_accuracy_ratio{mirror="copies/museum/texts"} 0.5'

    with meanwhile(pages.answers, lambda: found in pages.get("metrics")):
        assert run(["watch", "--admin", pages.bind]) == 0


def is_failing() -> bool:
    return resourcesync("status", "museum", "--check", cwd=Path.cwd()).code == 1


def test_a_failure_of_the_service_is_recorded_once_and_not_while_another_run_goes_on(
    source: TinySource,
) -> None:
    put(museum(source, 'every = "1h"'))
    before = datetime.now(UTC)
    assert run(["pull", "museum"]) == 0
    target = TargetResolver(options.load(None), {}).target("museum")
    error = {"": FailedRun(code="config", message="no")}
    after = datetime.now(UTC)

    record_failed_pull(target, error, before, SystemClock())  # this pull recorded its own end
    assert not is_failing()
    with Mirror(None, target.folder):
        record_failed_pull(target, error, after, SystemClock())
    assert not is_failing()

    record_failed_pull(target, error, after, SystemClock())
    assert is_failing()


def test_sighup_tries_at_once_what_waits_after_a_failure(source: TinySource) -> None:
    service = Service(source)

    service.run(
        service.mend, hang_up, lambda: files_of(Path("copies/museum")) == MIRRORED
    )  # it would take most of a minute otherwise
