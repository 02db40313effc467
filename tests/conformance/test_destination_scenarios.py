"""Our Destination in the scenarios: its files and its exit code are compared with the Source."""

from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from resourcesync.documents import Dialect
from tests.conformance.destination_scenarios import SCENARIOS, Step
from tests.conformance.scenario_site import SiteServer
from tests.conformance.scenario_source import ScriptedSource
from tests.support.in_memory import ManualClock

RUNS = [*((name, Dialect.V1_1) for name in SCENARIOS), ("changes", Dialect.V1_0)]


def files(folder: Path) -> set[bytes]:
    """Return the contents of all files but those in hidden folders."""
    return {
        path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    }


def compare(step: Step, code: int, home: Path, copy: Path) -> None:
    """Fail if the copy or the exit code is not what the step expects."""
    expected = set(step.expected.values())
    found = files(copy)

    assert expected - found == set(), step.title
    assert found - expected <= step.tolerated, step.title
    assert files(home) == found, f"{step.title}: written outside the folder"
    if step.is_possible is not None:
        assert (code == 0) is step.is_possible, f"{step.title}: exit {code}"


@pytest.mark.parametrize(("name", "dialect"), RUNS)
def test_the_copy_is_what_the_source_serves_after_each_step(
    name: str, dialect: Dialect, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    copy = home / "outer" / "middle" / "copy"  # so deep that names which lead out of it are seen
    copy.parent.mkdir(parents=True)
    clock = ManualClock(SystemClock().now())  # nobody waits until dates have come
    with SiteServer() as server:
        source = ScriptedSource(server.base, clock.now(), dialect)
        for step in SCENARIOS[name](source):
            clock.sleep((source.now - clock.now()).total_seconds())
            server.serve(step.site)
            code = run(["pull", server.base, str(copy), "--retries", "1", "-q"])
            source.now = max(source.now, clock.now().replace(microsecond=0))
            compare(step, code, home, copy)
