"""The rate that one host may be asked is held by all workers together, in the server's log."""

from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.ports import CancelToken
from resourcesync_cluster.engines.executors import open_engine
from resourcesync_cluster.politeness import HostLimits
from resourcesync_cluster.unit_runner import run_units
from tests.support.cluster.polite_work import Batch, busiest, fetch_batch
from tests.support.servers.nginx import installed, serving
from tests.support.waiting import wait_until

RATE = 40.0


@pytest.mark.skipif(not installed(), reason="nginx is not here")
def test_two_processes_together_ask_no_more_than_the_rate(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    names = [f"u{number}" for number in range(6)]
    for name in names:
        (tree / name).mkdir(parents=True)
        for number in range(15):
            (tree / name / f"{number}").write_text("content\n")

    with serving(tree, tmp_path / "nginx") as server, open_engine("processes:2") as engine:
        units = [Batch(name, server.url.removeprefix("http://"), 15) for name in names]
        found = list(
            run_units(
                engine,
                fetch_batch,
                units,
                limits=HostLimits(units=4, rate=RATE, jobs=4),
                cancel=CancelToken(SystemClock()),
            )
        )
        wait_until(lambda: len(server.moments()) >= 90)  # it logs after it answered
        moments = server.moments()

    worst = busiest(moments, RATE, lanes=2)
    assert [outcome.rows for outcome in found] == [15] * 6
    assert len(moments) == 90
    assert worst.asked <= worst.allowed
    assert len(moments) / (moments[-1][0] - moments[0][0]) <= RATE * 1.2
