"""The log of ``--log-file``: what a command reports without ``-q``, and the library's messages."""

import logging
import logging.handlers
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import msgspec

from resourcesync.cli.formatting import DETAIL, NORMAL, TextLine, labelled, without_users
from resourcesync.cli.json_output import json_safe
from resourcesync.cli.output import CommandOutcome, Job, Problem, Screen
from resourcesync.cli.remedies import warning_fields
from resourcesync.errors import StorageError

_NAME = "resourcesync"
_RESERVED_FIELDS: Final = ("time", "level", "logger", "message")


class LogFunction(Protocol):
    """A function that logs a line of the command."""

    def __call__(
        self, message: str, fields: Mapping[str, object] | None = None, level: int = logging.INFO
    ) -> None:
        """Log a message; a log in JSON has the fields too."""


@contextmanager
def open_log(path: Path, form: str, *, verbose: int) -> Iterator[LogFunction]:
    """Append log messages to a file; yield the function that logs a line of the command.

    A file that is moved away, as by logrotate, is created again. A message that cannot be written
    later is lost: the log is for diagnostics only.

    Args:
        path: The file.
        form: ``text`` or ``json``.
        verbose: From 2 on, also debug messages.

    Raises:
        StorageError: The file cannot be opened.
    """
    handler = _open_handler(path)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    logger = logging.getLogger(_NAME)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
    own = logging.getLogger(f"{_NAME}.cli")

    def note(
        message: str, fields: Mapping[str, object] | None = None, level: int = logging.INFO
    ) -> None:
        own.log(level, "%s", message, extra={"fields": fields or {}})

    try:
        yield note
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        handler.close()


def check_log(path: Path) -> None:
    """Check that a log can be written to a file; a file that the check creates is removed.

    Raises:
        StorageError: The file cannot be opened.
    """
    has_file = os.path.lexists(path)
    _open_handler(path).close()
    if not has_file:
        path.unlink(missing_ok=True)


def _open_handler(path: Path) -> "_LogHandler":
    try:
        return _LogHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise StorageError(
            f"cannot write the log {path}: {error.strerror or error}",
            code="log",
            hint="name a file in a folder that exists and is writable: --log-file FILE",
        ) from error


class _LogHandler(logging.handlers.WatchedFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base's name
        """Drop the message: stderr belongs to the screen."""


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return the message as one line."""
        message = " ".join(without_users(record.getMessage()).split())
        return f"{_time(record)} {record.levelname.lower()} {record.name} {message}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object."""
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_users(record.getMessage()),
        }
        more = getattr(record, "fields", {})
        fields |= {name: value for name, value in more.items() if name not in _RESERVED_FIELDS}
        return msgspec.json.encode(json_safe(fields), enc_hook=str).decode()


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


class LoggedScreen:
    """A screen that also logs the run: its start and end, its errors and warnings.

    For ``watch``, which has no end, each line that it writes without ``-q`` is logged.

    Args:
        job: The running command.
        screen: Shows the run.
        note: Logs a line.
    """

    def __init__(self, job: Job, screen: Screen, note: LogFunction) -> None:
        self._job, self._screen, self._note = job, screen, note
        self._level = DETAIL if job.output.verbose else NORMAL
        of = "" if job.subject in {"", job.command} else f" {job.subject}"
        self._name = f"{job.command}{of}"
        note(f"{self._name} begins", job.fields)

    def start(self, fields: Mapping[str, object]) -> None:
        """Show the start of the run."""
        self._screen.start(fields)

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Show an event, and log it if it is a warning or a line of ``watch``."""
        self._screen.report(event, fields)
        if event == "warning":
            fields = warning_fields(fields)
            of = f"{fields['mirror']}  " if "mirror" in fields else ""
            text = f"{of}warning[{fields.get('code')}]: {fields.get('message')}"
            self._note(text, {"event": event, **fields}, logging.WARNING)
        elif self._job.command == "watch":
            level = logging.WARNING if fields.get("exit") else logging.INFO
            for line in self._job.render(event, fields):
                if line.level <= self._level:
                    self._note(_line_text(line), {"event": event, **fields}, level)

    def problem(self, problem: Problem) -> None:
        """Show an error, and log it with its evidence."""
        self._screen.problem(problem)
        evidence = "".join(f"  {label}: {text}" for label, text in problem.evidence)
        fields = {"event": "error", "code": problem.code, "exit": int(problem.exit)}
        self._note(
            f"error[{problem.code}]: {problem.message}{evidence}",
            {**fields, "place": problem.place, **dict(problem.evidence)},
            logging.ERROR,
        )

    def end(self, outcome: CommandOutcome) -> None:
        """Log the end of the run, and show it."""
        for line in outcome.closing if self._job.acts else ():
            if line.level <= self._level:
                self._note(f"{self._name}: {_line_text(line)}")
        fields = {"event": "run.end", **outcome.fields, "exit": int(outcome.exit)}
        self._note(f"{self._name} ends with exit {int(outcome.exit)}", fields)
        self._screen.end(outcome)

    def close(self) -> None:
        """Restore the terminal."""
        self._screen.close()


def _line_text(line: TextLine) -> str:
    return " ".join("".join(labelled(line)).split())
