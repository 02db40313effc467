"""Other programs are fed, and none of them holds us up."""

import sys
from itertools import count
from pathlib import Path

import pytest

from resourcesync.adapters import consumer_programs
from resourcesync.adapters.consumer_programs import run_program
from resourcesync.adapters.system import SystemClock
from resourcesync.errors import ConfigurationError, StoppedError
from resourcesync.ports import CancelToken
from tests.support.waiting import wait_until


def never() -> CancelToken:
    return CancelToken(SystemClock())


@pytest.mark.parametrize("code", [0, 3])
def test_a_program_that_reads_nothing_is_fine_and_its_exit_code_counts(code: int) -> None:
    lines = (b"x" * 1000 + b"\n" for _ in range(10_000))
    assert run_program(["sh", "-c", f"exit {code}"], lines, never()) == code


@pytest.mark.parametrize("reads", [True, False])
def test_a_program_that_hangs_is_ended_when_all_is_to_stop(*, reads: bool) -> None:
    program = "import sys, time\n" + ("sys.stdin.read()\n" if reads else "") + "time.sleep(600)"
    asked = count()
    lines = (b"x" * 1000 + b"\n" for _ in range(10 if reads else 10_000))
    with pytest.raises(StoppedError):
        run_program(
            [sys.executable, "-c", program],
            lines,
            CancelToken(SystemClock(), lambda: next(asked) > 3),
        )


@pytest.mark.parametrize("command", [["/no/such/program"], ["/"], ["a\0b"]])
def test_what_is_no_program_is_told(command: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="cannot run"):
        run_program(command, [b"x\n"], never())


def has_ended(number: int) -> bool:
    """Tell whether a process has ended; whoever is its parent by now may not know it yet."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text("ascii")
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("child", ["sleep 60", "(trap '' TERM; sleep 60)"])
def test_what_a_stopped_program_began_ends_with_it_also_if_it_heeds_no_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: str
) -> None:
    monkeypatch.setattr(consumer_programs, "END_CHECKS", 3)
    ready = tmp_path / "ready"
    script = f"{child} & echo $! > {ready}.pid; mv {ready}.pid {ready}; wait"

    with pytest.raises(StoppedError):
        run_program(["sh", "-c", script], [], CancelToken(SystemClock(), ready.exists))

    wait_until(lambda: has_ended(int(ready.read_text())))
