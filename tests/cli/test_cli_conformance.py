"""``resourcesync conformance``: clients are judged by their copies and their exit codes."""

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from resourcesync.adapters.in_memory import ManualClock
from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from resourcesync.conformance.judge import JudgedClient, judge
from resourcesync.conformance.scenarios import SCENARIOS, ClientScenario, Step
from resourcesync.conformance.scripted_source import ScriptedSource
from tests.support.commands.command_line import Said, rows

NAIVE = Path(__file__).parents[1] / "support" / "software" / "naive_client.py"
OURS = (sys.executable, "-m", "resourcesync", "pull", "{url}", "{folder}", "--retries", "1")
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def naive(mistake: str = "") -> list[str]:
    return [sys.executable, str(NAIVE), "{url}", "{folder}", *([mistake] if mistake else [])]


@pytest.mark.parametrize("name", BY_NAME)
def test_our_own_client_conforms_in_each_scenario(name: str, tmp_path: Path) -> None:
    clock = ManualClock(SystemClock().now())  # it does not wait until dates have come
    results = list(judge(BY_NAME[name], JudgedClient(command=OURS), tmp_path / "home", clock))

    assert [(result.step, result.faults) for result in results] == [
        (result.step, ()) for result in results
    ], results
    assert results


def test_changes_are_dated_after_the_run_before_them_and_never_later_than_now(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    begin, dates = clock.now(), list[datetime]()

    def script(source: ScriptedSource) -> Iterator[Step]:
        for step in ("first", "second", "third"):
            source.put("a.txt", "b.txt", text=step)
            source.list_resources()
            dates.append(source.now)
            yield Step(title=step, site=source.site(), expected=dict(source.contents))
            assert source.now == clock.now()

    scenario = ClientScenario(name="dates", title="Dates", clause="12.1", script=script)
    results = list(judge(scenario, JudgedClient(command=tuple(naive())), tmp_path / "home", clock))

    assert not any(result.faults for result in results)
    seconds = timedelta(seconds=1)
    assert dates == [
        begin - timedelta(hours=1) + 3 * seconds,
        begin + 3 * seconds,
        begin + 6 * seconds,
    ]


@pytest.mark.parametrize(
    ("mistake", "scenario", "faults"),
    [
        ("lazy", "baseline", {"missing", "false-success"}),
        ("hoarding", "changes", {"stale", "false-success"}),
        ("trusting", "hash", {"stale"}),
        ("cheerful", "missing", {"false-success"}),
        ("gloomy", "baseline", {"false-failure"}),
        ("escaping", "escape", {"escaped"}),
        ("", "changes-alone", {"missing"}),
    ],
)
def test_each_mistake_of_a_client_is_named(
    mistake: str, scenario: str, faults: set[str], said: Said
) -> None:
    code = run(["conformance", "--json", "--scenario", scenario, "--", *naive(mistake)])

    assert code == 1
    found = [row for row in rows(said) if row["type"] == "conformance"]
    assert {fault for row in found for fault in row["faults"]} == faults


@pytest.mark.parametrize("scenario", ["baseline", "changes", "lists-alone", "hash", "missing"])
def test_a_client_without_a_mistake_conforms(scenario: str) -> None:
    assert run(["conformance", "--scenario", scenario, "-q", "--", *naive()]) == 0


def test_a_client_that_does_not_end_is_ended(said: Said) -> None:
    words = ["--json", "--scenario", "baseline", "--timeout", "1s", "--", *naive("endless")]

    assert run(["conformance", *words]) == 1

    found = [row for row in rows(said) if row["type"] == "conformance"]
    assert all("timeout" in row["faults"] and row["exit"] is None for row in found)


def test_the_first_run_may_be_another_command(said: Said) -> None:
    first = " ".join(naive())

    words = ["--scenario", "changes", "--json", "--first", first, "--", *naive("lazy")]
    assert run(["conformance", *words]) == 1

    found = [row["conforms"] for row in rows(said) if row["type"] == "conformance"]
    assert found == [True, False, False, False]


def test_the_results_are_a_page_and_a_badge(tmp_path: Path) -> None:
    page, badge = tmp_path / "report.html", tmp_path / "badge.svg"
    files = ["--report", str(page), "--badge", str(badge)]

    assert run(["conformance", "--scenario", "hash", *files, "-q", "--", *naive("trusting")]) == 1

    text = page.read_text("utf-8")
    assert "content is there that was replaced, deleted, or is not as listed: a/one.txt" in text
    assert "<script" not in text
    drawn = ET.parse(badge).getroot()
    assert "0/1 scenarios" in "".join(drawn.itertext())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--", "client", "{url}"], "needs {url} and {folder}"),
        (["--scenario", "none", "--", "client", "{url}", "{folder}"], "there is no scenario none"),
        (["--", "/no/client", "{url}", "{folder}"], "/no/client cannot be started"),
        (["--first", "a 'b", "--", "client", "{url}", "{folder}"], "is not a command"),
        (["--report", "no/r.html", "--scenario", "names", "--", *naive()], "cannot write no/r"),
    ],
)
def test_what_cannot_be_judged_is_refused(words: list[str], reason: str, said: Said) -> None:
    assert run(["conformance", *words]) in {2, 8}
    assert reason in said.readouterr().err
