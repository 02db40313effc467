"""Lines of the package that the tests execute in their own processes, held against a floor.

It is on where ``TESTS_COVERAGE`` is set: ``check`` prints the figure and fails a run that is below
``fail-under`` of pyproject.toml, ``show`` also prints the lines that were not executed. SlipCover
puts a probe on each line when a module is imported, and takes it off when it was hit: that costs
some seconds for each worker, and nothing after. What only runs in programs that tests start, or in
children that they fork, is not counted.
"""

import json
import os
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import slipcover
from slipcover.importer import FileMatcher, ImportManager

_LINES: Final = "line_coverage"


class LineCoverage:
    """The plug-in for one process of a run: a worker hands its lines to who started it."""

    def __init__(self, settings: dict[str, Any], *, is_worker: bool, is_shown: bool) -> None:
        self._floor = float(settings["fail-under"])
        self._is_worker = is_worker
        self._is_shown = is_shown
        source = [str(path) for glob in settings["source"] for path in sorted(Path().glob(glob))]
        self._probes = slipcover.Slipcover(
            immediate=True,
            source=None if is_worker else source,  # looks also at what nobody imported
            exclude_also=settings["exclude-also"],
        )
        self._others: list[dict[str, Any]] = []
        self._found: dict[str, Any] = {}
        ImportManager(self._probes, FileMatcher(source)).__enter__()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if lines := getattr(node, "workeroutput", {}).get(_LINES):
            self._others.append(json.loads(lines))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Add up what was executed; a run of which all tests passed fails below the floor."""
        found: dict[str, Any] = self._probes.get_coverage()
        if self._is_worker:
            output: dict[str, str] = session.config.workeroutput  # type: ignore[attr-defined]  # of xdist
            output[_LINES] = json.dumps(found)
            return
        for other in self._others:
            slipcover.merge_coverage(found, other)
        self._found = found
        if self.is_below and not self._is_shown and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._found:
            return
        if self._is_shown:
            slipcover.print_coverage(self._found, outfile=_Reported(terminalreporter))
        text = f"the tests execute {self.percent:.2f} % of the lines of the package"
        below = f": less than the {self._floor:g} % of pyproject.toml; write the tests that lack"
        terminalreporter.write_line(text + below if self.is_below else text, red=self.is_below)

    @property
    def percent(self) -> float:
        return float(self._found["summary"]["percent_covered"])

    @property
    def is_below(self) -> bool:
        return self.percent < self._floor


class _Reported:
    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def write(self, text: str) -> None:
        self._reporter.write(text)


def plugin() -> LineCoverage:
    settings = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["tool"]["slipcover"]
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    return LineCoverage(
        settings, is_worker=is_worker, is_shown=os.environ["TESTS_COVERAGE"] == "show"
    )
