"""Runs as traces: a span for each run, mirror and job, with the phases of a pull as its parts."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from resourcesync.app.machine import system_clock
from resourcesync.app.telemetry import AttributeValue, RunTrace
from resourcesync.cli.formatting import without_users
from resourcesync.cli.output import CommandOutcome, Job, Problem, Screen

_JOB: Final = "watch."
_JOBS: Final = frozenset({"watch.pull", "watch.audit", "watch.hand-on"})
_MOST_PARTS: Final = 1_000
_NOT_ATTRIBUTES: Final = frozenset({"time", "again", "hint", "message"})


class TracedScreen:
    """A screen that also exports the run as a trace.

    A service has no end: each of its jobs, and each publication, is a trace of its own.

    Args:
        job: The running command.
        screen: Shows the run.
        export: Exports a finished run.
    """

    def __init__(self, job: Job, screen: Screen, export: Callable[[RunTrace], None]) -> None:
        self._job, self._screen, self._export = job, screen, export
        self._clock = system_clock()
        self._started = self._clock.now()
        self._phases: defaultdict[str, list[RunTrace]] = defaultdict(list)
        self._parts: list[RunTrace] = []
        self._is_service = job.command == "watch"

    def start(self, fields: Mapping[str, object]) -> None:
        """Show the start of the run."""
        self._screen.start(fields)

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Show an event; export the end of a job, and collect that of a part of the run."""
        self._screen.report(event, fields)
        mirror = str(fields.get("mirror", ""))
        if event == "phase":
            if len(self._phases[mirror]) < _MOST_PARTS:
                self._phases[mirror].append(_phase(fields))
        elif event == "watching":
            self._is_service = True
        elif event == "mirror.end" and len(self._parts) < _MOST_PARTS:
            self._parts.append(self._ended(self._job.command, fields, mirror))
        elif event in _JOBS:
            self._export(self._ended(event.removeprefix(_JOB), fields, mirror))
        elif event == "published" or (event == "warning" and "exit" in fields):
            self._export(self._ended("publish", fields, mirror))

    def _ended(self, name: str, fields: Mapping[str, object], mirror: str) -> RunTrace:
        """Return what has just ended, with its phases."""
        now, seconds = self._clock.now(), fields.get("seconds", 0.0)
        assert isinstance(seconds, int | float)
        return RunTrace(
            name=name,
            started=now - timedelta(seconds=seconds),
            ended=now,
            attributes=_attributes(fields),
            code=_code(fields),
            parts=tuple(self._phases.pop(mirror, ())),
        )

    def problem(self, problem: Problem) -> None:
        """Show an error."""
        self._screen.problem(problem)

    def end(self, outcome: CommandOutcome) -> None:
        """Show the end of the run, and export it."""
        self._screen.end(outcome)
        if self._is_service:
            return
        phases = [phase for phases in self._phases.values() for phase in phases]
        fields = {**self._job.fields, **outcome.fields, "exit": int(outcome.exit)}
        self._export(
            RunTrace(
                name=self._job.command,
                started=self._started,
                ended=self._clock.now(),
                attributes=_attributes(fields),
                code=_code(fields),
                parts=(*phases, *self._parts),
            )
        )

    def close(self) -> None:
        """Restore the terminal."""
        self._screen.close()


def _phase(fields: Mapping[str, object]) -> RunTrace:
    ended, seconds = fields["time"], fields["seconds"]
    assert isinstance(ended, datetime)
    assert isinstance(seconds, int | float)
    started = ended - timedelta(seconds=seconds)
    return RunTrace(name=str(fields["name"]), started=started, ended=ended)


def _attributes(fields: Mapping[str, object]) -> dict[str, AttributeValue]:
    """Return the fields that are one value; no secret of an address is in them."""
    return {
        name: without_users(value) if isinstance(value, str) else value
        for name, value in fields.items()
        if isinstance(value, str | int | float) and name not in _NOT_ATTRIBUTES
    }


def _code(fields: Mapping[str, object]) -> str:
    """Return the code of the error, or the exit code in its place; empty for a good run."""
    return str(fields.get("code") or f"exit {fields['exit']}") if fields.get("exit") else ""
