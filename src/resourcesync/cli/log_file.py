"""``--log-file``: what the library notes while a command runs, apart from what the command says."""

import logging
import logging.handlers
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from resourcesync.cli.redaction import without_users
from resourcesync.errors import StorageError

_NAME = "resourcesync"
Say = Callable[[str], None]


@contextmanager
def keeping_log(path: Path, form: str, *, verbose: int) -> Iterator[Say]:
    """Append what is noted to a file; yield what notes a line of the command's own.

    A file that is moved away meanwhile, as logrotate does, is made anew. What cannot be written
    later is lost: a log is never needed to know the outcome.

    Args:
        path: The file.
        form: ``text`` or ``json``.
        verbose: From 2 on, also what is of use for those who look for a fault.

    Raises:
        StorageError: It cannot be opened.
    """
    handler = _opened(path)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logger = logging.getLogger(_NAME)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
    try:
        yield logging.getLogger(f"{_NAME}.cli").info
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        handler.close()


def check_log(path: Path) -> None:
    """Check that a log can be kept in a file; one that was not there is not there afterwards.

    Raises:
        StorageError: It cannot be opened.
    """
    is_there = os.path.lexists(path)
    _opened(path).close()
    if not is_there:
        path.unlink(missing_ok=True)


def _opened(path: Path) -> "_Handler":
    try:
        return _Handler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise StorageError(
            f"cannot write the log {path}: {error.strerror or error}",
            evidence=(("kept", "nothing was changed"),),
            hint="name a file in a folder that exists and may be written: --log-file FILE",
        ) from error


class _Handler(logging.handlers.WatchedFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base's name
        """Let the line go: stderr is not the place to tell of it."""


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one line, however many the message has."""
        message = " ".join(without_users(record.getMessage()).split())
        return f"{_time(record)} {record.levelname.lower()} {record.name} {message}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object."""
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_users(record.getMessage()),
        }
        return msgspec.json.encode(fields).decode()


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"
