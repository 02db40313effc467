"""The log of ``--log-file``: what a command reports without ``-q``, and the library's messages."""

import logging
import logging.handlers
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from resourcesync.cli import output
from resourcesync.cli.json_output import VERSION, json_text
from resourcesync.errors import StorageError
from resourcesync.model.formatting import escape, stamp

_NAME = "resourcesync"
_OWN = logging.getLogger(f"{_NAME}.cli")


def is_json(path: Path) -> bool:
    """True if a log is to have lines of JSON, by the ending of its name."""
    return path.suffix in {".json", ".jsonl", ".ndjson"}


@contextmanager
def open_log(path: Path, *, level: str = "info", run: str = "") -> Iterator[None]:
    """Append log messages to a file while the block runs.

    A file that is moved away, as by logrotate, is created again. A message that cannot be written
    later is lost, and nothing is raised: the log is for diagnostics only.
    """
    handler = _open_handler(path, run)
    least = logging.getLevelNamesMapping()[level.upper()]
    handler.setLevel(least)
    logger = logging.getLogger(_NAME)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(least, logging.INFO))
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        with suppress(OSError):  # the rest of a message, on a full disk
            handler.close()


def check_log(path: Path) -> None:
    """Check that a log can be written to a file; a file that the check creates is removed."""
    has_file = os.path.lexists(path)
    _open_handler(path, "").close()
    if not has_file:
        path.unlink(missing_ok=True)


def _open_handler(path: Path, run: str) -> logging.Handler:
    try:
        handler = _LogHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise StorageError(
            f"cannot write the log {path}: {error.strerror or error}",
            code="log",
            hint="name a file in a folder that exists and is writable: --log-file FILE",
        ) from error
    handler.setFormatter(_JsonFormatter(run) if is_json(path) else _TextFormatter())
    return handler


class _LogHandler(logging.handlers.WatchedFileHandler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write a message; if the file cannot be opened again, the message is lost."""
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base's name
        """Drop the message: stderr belongs to the screen."""


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = escape(" ".join(output.without_users(record.getMessage()).split()))
        return f"{_time(record)} {record.levelname.lower()} {record.name} {text}"


class _JsonFormatter(logging.Formatter):
    def __init__(self, run: str) -> None:
        super().__init__()
        self._run = run

    def format(self, record: logging.LogRecord) -> str:
        """Return a line of ``--json`` with time, level and logger; no event is an event ``log``."""
        head = {"v": VERSION, "type": "log", "run": self._run, "message": record.getMessage()}
        tail = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        return json_text({**head, **getattr(record, "fields", {}), **tail})


def _time(record: logging.LogRecord) -> str:
    return stamp(datetime.fromtimestamp(record.created, UTC))


_LOGGED: Final = ("watch", "admin", "ready", "watching", "published", "mirror.end")


class LogEncoder:
    """An encoder that logs the run: its start and end, its errors and warnings.

    So is the end of each of several mirrors or Sources. For services, which have no end, each job,
    each publication and each change of a subscription is logged, whatever the screen shows.
    """

    def __init__(self, job: output.Job) -> None:
        self._job = job
        self._level = output.DETAIL if job.output.verbose else output.NORMAL
        of = "" if job.subject in {"", job.command} else f" {job.subject}"
        self._name = f"{job.command}{of}"
        fields = {"type": "run.start", "command": job.command, **job.fields}
        self._note(f"{self._name} begins", fields)

    def _note(
        self, message: str, fields: Mapping[str, object] | None = None, level: int = logging.INFO
    ) -> None:
        _OWN.log(level, "%s", message, extra={"fields": fields or {}})

    def write(self, event: str, fields: Mapping[str, Any]) -> None:
        """Log an event if it is an error, a warning, or the result of a part of the run."""
        if fields.get("code") == output.LIBRARY:  # its own message is in the log already
            return
        if event in {"error", "warning"}:
            of = f"{fields['mirror']}  " if event == "warning" and "mirror" in fields else ""
            rows = fields["evidence"] if event == "error" else ()
            evidence = "".join(f"  {row['label']}: {row['text']}" for row in rows)
            text = f"{of}{event}[{fields.get('code')}]: {fields.get('message')}{evidence}"
            level = logging.ERROR if event == "error" else logging.WARNING
            self._note(text, {"type": event, **fields}, level)
        elif event in _LOGGED or event.startswith("watch."):
            level = logging.WARNING if fields.get("exit") else logging.INFO
            self._note(self._event_text(event, fields), {"type": event, **fields}, level)

    def _event_text(self, event: str, fields: Mapping[str, object]) -> str:
        if event == "mirror.end":
            return f"{fields.get('mirror', fields.get('name'))} ends with exit {fields['exit']}"
        text = "; ".join(_line_text(line) for line in self._job.render(event, fields))
        return text or f"{self._name}: nothing changed"

    def end(self, outcome: output.CommandOutcome, fields: Mapping[str, object]) -> None:
        """Log the end of the run."""
        for line in outcome.closing if self._job.acts else ():
            if line.level <= self._level:
                self._note(f"{self._name}: {_line_text(line)}")
        level = logging.WARNING if outcome.exit else logging.INFO
        text = f"{self._name} ends with exit {int(outcome.exit)} after {fields['seconds']:g} s"
        self._note(text, {"type": "run.end", **fields}, level)

    def close(self) -> None:
        """Do nothing: the log is closed by its owner."""


def _line_text(line: output.TextLine) -> str:
    return " ".join("".join(output.labelled(line)).split())
