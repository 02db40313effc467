"""Which screen a command gets: text or JSON, with a bar, with colours."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO

from resourcesync.cli.job import Job
from resourcesync.cli.output import OutputLostError, OutputOptions, Screen
from resourcesync.cli.progress import BarProgress, NoProgress, PlainProgress, Progress
from resourcesync.cli.text_output import Streams, TextScreen
from resourcesync.config import Environment
from resourcesync.ports import Clock
from resourcesync.wiring.machine import new_run_id, system_clock

_LOGGERS: Final = ("resourcesync", "uvicorn", "asyncio")
_COMMAND_LOGGER: Final = "resourcesync.cli"
_HOUR: Final = 3_600.0
_MOST_WARNINGS: Final = 20


def open_screen(job: Job, environment: Environment) -> Screen:
    """Return the screen that a job asks for."""
    _silence_logs()
    clock = system_clock()
    if job.output.json:
        from resourcesync.cli.json_output import JsonScreen  # noqa: PLC0415 - msgspec takes a while

        return JsonScreen(
            command=job.command,
            run=new_run_id(clock),
            quiet=job.output.quiet,
            stream=sys.stdout,
            clock=clock,
        )
    streams = Streams(
        out=sys.stdout,
        err=sys.stderr,
        color_out=_is_colored(sys.stdout, job.output, environment),
        color_err=_is_colored(sys.stderr, job.output, environment),
    )
    return TextScreen(
        words=job.render,
        options=job.output,
        streams=streams,
        progress=choose_progress(job, environment, sys.stderr, clock),
        acts=job.acts,
    )


@contextmanager
def warnings_on_screen(screen: Screen) -> Iterator[None]:
    """Show what the library warns of by Python's logging, while a command runs."""
    handler, logger = _WarningHandler(screen), logging.getLogger(_LOGGERS[0])
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _WarningHandler(logging.Handler):
    """Shows warnings of the library on a screen: each once in an hour, and so many at most.

    Args:
        screen: Where warnings are shown that runs report; what the command itself logs was there.
    """

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._since = 0.0
        self._shown: set[str] = set()

    def createLock(self) -> None:  # noqa: N802 - the base's name
        """Have no lock: a thread that holds it and waits for the screen's would stop the others."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        """Show a warning, unless it was shown already."""
        if record.name == _COMMAND_LOGGER:
            return
        if record.created - self._since > _HOUR:
            self._since = record.created
            self._shown.clear()
        message = record.getMessage()
        if message in self._shown or len(self._shown) > _MOST_WARNINGS:
            return
        self._shown.add(message)
        if len(self._shown) > _MOST_WARNINGS:
            message = "there are more warnings; --log-file FILE takes them all"
        with suppress(OutputLostError):  # this may be any thread; the command itself will notice
            self._screen.report("warning", {"code": "library", "message": message, "evidence": ()})


def _silence_logs() -> None:
    """Keep Python from writing warnings to stderr that nobody asked for: the screen speaks."""
    for name in _LOGGERS:
        log = logging.getLogger(name)
        if not log.handlers:
            log.addHandler(logging.NullHandler())


def _is_colored(stream: TextIO, options: OutputOptions, environment: Environment) -> bool:
    if options.color != "auto":
        return options.color == "always"
    if environment.color is not None:
        return environment.color
    return stream.isatty()


def choose_progress(job: Job, environment: Environment, stream: TextIO, clock: Clock) -> Progress:
    """Return how a job shows progress: what was asked for, else what the stream can do."""
    style = job.output.progress
    if job.output.quiet or style == "off":
        return NoProgress()
    if style == "auto" and not stream.isatty():
        return NoProgress()
    if style == "auto":
        style = "bar" if environment.live else "plain"
    if style == "bar":
        return BarProgress(stream=stream)
    return PlainProgress(name=job.subject or job.command, stream=stream, clock=clock)
