"""Signals, and output that nobody reads: a run ends, and says so if it can."""

import contextlib
import os
import pty
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from resourcesync.app.watching.watch_jobs import read_history
from resourcesync.cli import exit_codes, main
from resourcesync.cli.output import QUIET, CommandOutcome, Screen, TextLine
from tests.support.commands.command_line import Said
from tests.support.commands.run import environment, files_of, program
from tests.support.commands.started import Started, python
from tests.support.servers.tiny_source import TinySource


@pytest.mark.parametrize(
    ("number", "code", "by"),
    [
        (signal.SIGINT, 130, "Ctrl-C"),
        (signal.SIGTERM, 143, "a signal"),
        (signal.SIGHUP, 143, "a signal"),
    ],
)
def test_a_signal_ends_a_run_with_its_code_and_a_closing_line(
    with_job: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    code: int,
    by: str,
) -> None:
    def work(_screen: Screen) -> CommandOutcome:
        os.kill(os.getpid(), number)
        raise AssertionError("the signal did not come")

    with_job(work)
    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        pytest.skip("this signal is ignored here, as nohup has it; and so it stays")

    assert main.run(["demo"]) == code

    assert capsys.readouterr().out == (
        f"Stopped   by {by}; all files are consistent. Run again to continue: resourcesync demo\n"
        f"exit {code}\n"
    )
    assert signal.getsignal(number) is before


def test_a_stop_that_python_drops_is_not_told_of_and_comes_again(
    with_job: Callable[..., None], monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.setattr(exit_codes, "REPEAT_SECONDS", 0.02)
    others: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", others.append)

    class Gone:
        def __init__(self, act: Callable[[], object]) -> None:
            self._act = act

        def __del__(self) -> None:  # what it raises cannot be raised, only told
            self._act()

    def work(_screen: Screen) -> CommandOutcome:
        Gone(lambda: int("no number"))
        Gone(lambda: os.kill(os.getpid(), signal.SIGINT))
        time.sleep(30)
        raise AssertionError("it did not come again")

    with_job(work)

    assert main.run(["demo"]) == 130
    assert len(others) == 1  # faults of others are told as ever
    assert "Interrupted" not in said.readouterr().err


def test_a_stop_that_is_on_its_way_does_not_disturb_the_cleaning_up(
    with_job: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exit_codes, "REPEAT_SECONDS", 0.01)
    cleaned = []

    def work(_screen: Screen) -> CommandOutcome:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                os.kill(os.getpid(), number)
            try:
                int("cleaning up has troubles of its own")
            except ValueError:
                time.sleep(0.1)
            cleaned.append(True)
        raise AssertionError("not reached")

    with_job(work)

    assert main.run(["demo"]) == 143
    assert cleaned == [True]


def test_a_stop_that_was_heard_does_not_knock_at_the_end(
    with_job: Callable[..., None], monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.setattr(exit_codes, "REPEAT_SECONDS", 0.02)
    end = Screen.end

    def slowly(screen: Screen, outcome: CommandOutcome) -> None:
        time.sleep(0.1)
        end(screen, outcome)

    monkeypatch.setattr(Screen, "end", slowly)
    with_job(lambda _screen: os.kill(os.getpid(), signal.SIGINT))

    assert main.run(["demo"]) == 130
    assert said.readouterr().out.endswith("exit 130\n")


def test_a_stop_inside_exec_keeps_its_exit_code(here: Path) -> None:
    code = (
        "import os, signal, resourcesync.app.mirror_home as m\n"
        "import resourcesync.cli.main as main\n"
        "m.is_mirror = lambda folder: exec('os.kill(os.getpid(), signal.SIGINT)')\n"
        "main.main()"
    )

    ran = python(code, "audit", "x", home=here)

    assert (ran.returncode, ran.stderr) == (130, "")


def test_a_signal_that_is_ignored_stays_ignored(with_job: Callable[..., None]) -> None:
    def work(_screen: Screen) -> CommandOutcome:
        os.kill(os.getpid(), signal.SIGHUP)
        return CommandOutcome()

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with_job(work)

        assert main.run(["demo"]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_run_in_a_thread_leaves_signals_alone(
    with_job: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    with_job(lambda _screen: CommandOutcome(closing=(TextLine("done", level=QUIET),)))
    codes: list[int] = []

    thread = threading.Thread(target=lambda: codes.append(main.run(["demo"])))
    thread.start()
    thread.join()

    assert codes == [0]
    assert capsys.readouterr().out == "done\n"


def test_a_stop_while_options_are_read_is_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_command(*_: object) -> click.Command:
        raise KeyboardInterrupt

    monkeypatch.setattr(main.LazyGroup, "get_command", get_command)

    assert main.run(["demo"]) == 130


def test_a_stop_while_the_end_is_told_is_a_stop(
    with_job: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*_: object) -> None:
        raise exit_codes.Terminated

    with_job(lambda _screen: CommandOutcome())
    monkeypatch.setattr("resourcesync.cli.output.Screen.end", end)

    assert main.run(["demo"]) == 143


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize("arguments", [["--help"], ["status", "--json"], ["--version"]])
def test_a_closed_pipe_ends_a_run_quietly(
    arguments: list[str], closed_pipe: int, tmp_path: Path
) -> None:
    command, env = (sys.executable, "-m", "resourcesync", *arguments), environment(tmp_path)

    ran = program(*command, cwd=tmp_path, env=env, stdout=closed_pipe)

    assert (ran.code, ran.stderr) == (141, "")


def test_a_full_disk_behind_stdout_is_no_success(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        command = (sys.executable, "-m", "resourcesync", "status", "--json")
        ran = program(*command, cwd=tmp_path, env=environment(tmp_path), stdout=full)

    assert (ran.code, ran.stderr) == (8, "error[output]: No space left on device\nexit 8\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_locale_is_good_enough(encoding: str, tmp_path: Path) -> None:
    folder = tmp_path / "čára\u202e"
    folder.mkdir()

    more = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C"}
    command = (sys.executable, "-m", "resourcesync", "audit", os.fsencode(folder))
    ran = program(*command, env={**environment(tmp_path), **more})

    assert ran.code == 2
    assert "is not a mirror" in ran.stderr
    assert "Traceback" not in ran.stderr


def pulling(source: TinySource, home: Path, *options: str, terminal: int | None = None) -> Started:
    return Started("pull", source.url, "museum", *options, cwd=home, terminal=terminal)


def slow_files() -> dict[str, bytes]:
    return {f"/{number:03d}": os.urandom(20_000) for number in range(40)}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_pull_that_is_stopped_goes_on_with_the_next_run(
    here: Path, number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    files = slow_files()
    with TinySource() as source:
        source.offer(files)
        with pulling(source, here, "-o", "bwlimit=100k") as slow:
            while not any(asked.target == "/003" for asked in source.asked):
                time.sleep(0.01)
            slow.send_signal(number)
            out, err = slow.communicate(timeout=30)

        assert (slow.returncode, err) == (code, "")
        closing, last = out.splitlines()[-2:]
        assert closing.startswith("Stopped   by ")
        assert closing.endswith("Run again to continue: resourcesync pull museum")
        assert last == f"exit {code}"
        whole = {name: files[f"/{name.removesuffix('!9')}"] for name in files_of(Path("museum"))}
        assert files_of(Path("museum")) == whole
        main.run(["status", "museum"])
        status = capsys.readouterr().out
        assert re.search(r"(?m)^museum +behind ", status)
        assert "asked to stop" in status
        assert read_history(Path("museum")).pulled is None  # a service that starts goes on at once
        assert main.run(["pull", "museum"]) == 0

    assert sorted(files_of(Path("museum")).values()) == sorted(files.values())


def test_a_pull_that_was_killed_is_due_as_soon_as_a_service_starts(here: Path) -> None:
    with TinySource() as source:
        source.offer({"/first": b"1"})
        assert main.run(["pull", source.url, "museum", "-q"]) == 0
        assert read_history(Path("museum")).pulled is not None
        source.offer(slow_files())
        with pulling(source, here, "-o", "bwlimit=100k") as slow:
            while not any(asked.target == "/003" for asked in source.asked):
                time.sleep(0.01)
            slow.send_signal(signal.SIGKILL)

    assert read_history(Path("museum")).pulled is None


def test_on_a_terminal_a_bar_is_drawn_and_the_lines_come_out_whole(here: Path) -> None:
    leader, follower = pty.openpty()
    with TinySource() as source:
        source.offer(slow_files())
        with pulling(source, here, "-o", "bwlimit=400k", terminal=follower) as shown:
            os.close(follower)
            text = b""
            with contextlib.suppress(OSError):
                while chunk := os.read(leader, 65_536):
                    text += chunk
            shown.wait(timeout=30)
        os.close(leader)

    said = text.decode()
    assert shown.returncode == 0
    assert "/40 resources" in said
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said)
    assert re.search(
        r"(?m)^In sync   40 resources in museum, 800\.0 kB fetched", plain.replace("\r", "\n")
    )
