"""A copy of a process: its result, its end, and that it is made only where that is safe."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from resourcesync.adapters import second_process
from tests.support.commands.run import environment
from tests.support.commands.started import python

START = """
import os, signal, sys, threading
from resourcesync.adapters.second_process import ForkedProcess, can_fork
second = ForkedProcess()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux only")


def said(code: str, *arguments: str, home: Path) -> str:
    done = python(START + code, *arguments, home=home)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_result_of_a_function_comes_back_and_nothing_else_of_it(tmp_path: Path) -> None:
    code = """
changed = []
print("printed once", end=" ")
second.start(lambda: changed.append(1) or b"x" * 5_000_000)
here = len(changed)
print(len(second.result()), here, len(changed))
second.stop()
"""

    assert said(code, home=tmp_path) == "printed once 5000000 0 0\n"


@pytest.mark.parametrize(
    ("function", "result"),
    [
        ("1 / 0", None),
        ("sys.exit(3)", None),
        ("os.kill(os.getpid(), signal.SIGKILL)", None),
        ("os._exit(5)", None),
        ("threading.Lock()", None),
        ("os.kill(os.getpid(), signal.SIGINT) or 7", 7),  # Ctrl-C is left to the first process
    ],
)
def test_a_function_that_fails_has_no_result(
    function: str, result: int | None, tmp_path: Path
) -> None:
    code = f"second.start(lambda: {function}); print(second.result())"

    assert said(code, home=tmp_path) == f"{result}\n"


def test_several_functions_run_one_after_the_other_and_leave_nothing_open(tmp_path: Path) -> None:
    code = """
before = sorted(os.listdir("/proc/self/fd"))
for number in range(5):
    second.start(lambda: number * 2)
    print(second.result(), end=" ")
    second.start(lambda: os.read(os.pipe()[0], 1))
    second.stop()
print(sorted(os.listdir("/proc/self/fd")) == before)
"""

    assert said(code, home=tmp_path) == "0 2 4 6 8 True\n"


WAITING = """
def wait():
    open(sys.argv[1], "x").close()
    try:
        os.write(told, b"x")
        os.read(os.pipe()[0], 1)  # for ever
    finally:
        os.unlink(sys.argv[1])
reading, told = os.pipe()
second.start(wait)
os.read(reading, 1)
"""


def test_a_function_that_is_stopped_cleans_up(tmp_path: Path) -> None:
    file = tmp_path / "half"

    assert (
        said(WAITING + "second.stop(); print('stopped')", str(file), home=tmp_path) == "stopped\n"
    )
    assert not file.exists()


def test_a_copy_ends_with_the_first_process_also_if_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "half"
    code = START + WAITING + "os.kill(os.getpid(), signal.SIGKILL)"

    # The copy has the other end of this pipe, too: it is read to its end when both are gone.
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
        env=environment(tmp_path),
    )

    assert done.returncode == -signal.SIGKILL
    assert not file.exists()


WATCHED = "end = threading.Event(); threading.Thread(target=end.wait).start();"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print(can_fork())", "True"),
        (f"{WATCHED} print(can_fork()); end.set()", "False"),
        ("os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(can_fork())", "False"),
    ],
    ids=["one thread", "several threads", "one processor"],
)
def test_only_a_process_with_one_thread_and_two_processors_is_copied(
    tmp_path: Path, code: str, expected: str
) -> None:
    assert said(code, home=tmp_path) == f"{expected}\n"


def test_without_another_process_to_be_had_there_is_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_many() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", too_many)
    second = second_process.ForkedProcess()
    before = sorted(os.listdir("/proc/self/fd"))

    second.start(lambda: 1)

    assert second.result() is None
    second.stop()
    assert sorted(os.listdir("/proc/self/fd")) == before
