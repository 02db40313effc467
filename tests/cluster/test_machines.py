"""Pulls by machines of our own; the long run is ``python -m campaigns machines``."""

import subprocess
import sys

import pytest

from campaigns.__main__ import main
from tests.support.cluster.engines import ROOT, children, gone
from tests.support.cluster.machines import ALONE, missing

HOLDER = """
import sys
from tests.support.cluster.machines import machines
with machines(2):
    print("here", flush=True)
    sys.stdin.read()
"""


@pytest.mark.timeout(400)  # twelve seconds of processor time, of ten programs
def test_a_machine_is_killed_and_the_copies_are_equal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machines", "--size", "300"]) == 0

    told = capsys.readouterr().out
    if missing():
        assert "nothing was done" in told
        pytest.skip(missing())
    assert "a machine killed" in told or "not installed" in told


def test_machines_end_with_the_one_that_began_them_even_if_that_is_killed() -> None:
    if reason := missing():
        pytest.skip(reason)
    words = [*ALONE, sys.executable, "-c", HOLDER]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        pids = children("infinity")
        assert len(pids) >= 2
        process.kill()

    assert gone(pids)
