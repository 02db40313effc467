"""``watch``: mirrors are kept in step, others are told, signals are heeded."""

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from resourcesync.app.watching.watch_settings import WatchSettings
from resourcesync.cli import options
from resourcesync.cli.main import run
from resourcesync.settings.mirror import ServiceSettings
from tests.support.commands.command_line import FILES, MIRRORED, Said, rows
from tests.support.commands.meanwhile import meanwhile
from tests.support.commands.run import files_of
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.several_sets import SETS, offer

TELL = 'on_change = ["sh", "-c", "cat >> told.ndjson"]'


def told() -> list[dict[str, object]]:
    path = Path("told.ndjson")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def passed() -> bool:
    time.sleep(0.5)
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
    assert kinds[:2] == ["run.start", "watch"]
    assert kinds[-1] == "run.end"
    assert {"watch.pull", "watch.hand-on", "watch.audit"} < set(kinds)
    pulls = [line for line in lines if line["type"] == "watch.pull"]
    assert pulls[0]["state"] == "in sync"
    assert pulls[0]["created"] == len(MIRRORED)


def test_what_another_run_brought_is_told_after_the_next_pull(
    source: TinySource, said: Said
) -> None:
    put(museum(source, f'every = "1s"\n{TELL}\n'))

    def begin_anew() -> bool:
        Path("copies/museum/.resourcesync/consumers/on_change.json").unlink()
        return True

    with meanwhile(
        lambda: len(told()) == len(MIRRORED),
        passed,
        begin_anew,  # there is something to tell, and no pull of ours brought it
        lambda: len(told()) == 2 * len(MIRRORED),
        passed,
    ):
        assert run(["watch", "--json"]) == 0

    lines = [row for row in rows(said) if row["type"] == "watch.hand-on"]
    assert [line["changes"] for line in lines] == [len(MIRRORED)] * 2


def test_the_next_program_is_told_of_each_set(source: TinySource) -> None:
    offer(source, SETS)
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
    put(museum(source, 'every = "1h"\n'))

    def another() -> bool:
        put(
            museum(source, 'every = "1h"\n')
            + museum(source, 'every = "1h"\n').replace("museum", "two")
        )
        return hang_up()

    def never() -> bool:
        put(museum(source, ""))
        return hang_up()

    def mistake() -> bool:
        put("[defaults]\nevrey = 1\n")
        return hang_up()

    with meanwhile(
        lambda: files_of(Path("copies/museum")) == MIRRORED,
        another,
        lambda: files_of(Path("copies/two")) == MIRRORED,
        never,
        passed,
        mistake,
        passed,
    ):
        assert run(["watch"]) == 0

    out, err = said.readouterr()
    assert "no mirror has a schedule" in err
    assert "unknown key `evrey`" in err
    assert "the previous configuration" in err
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
