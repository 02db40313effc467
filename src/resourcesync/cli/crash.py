"""Crash reports: the details of a bug, without secrets."""

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

from resourcesync import __version__, app
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import HIDDEN, secret_strings, shown_arguments, without_queries
from resourcesync.cli.output import Problem
from resourcesync.settings import environment


def write_crash_report(error: Exception, arguments: Sequence[str]) -> Problem:
    """Write a report of an unexpected error; return the problem to show.

    The report goes to the user's state folder, or to the temporary folder if that is not writable;
    only the user may read it. Values of ``-o`` and ``--with`` are left out, and the user
    information and queries of all addresses.
    """
    evidence = [("error", _message(error, secret_strings(arguments))[:400])]
    try:
        evidence.append(("report", str(_save(_report_text(error, arguments)))))
    except OSError as failure:
        evidence.append(("report", f"could not be written: {failure.strerror}"))
    return Problem(
        code="bug",
        message="this is a bug in resourcesync, not a mistake of yours or of the Source",
        evidence=tuple(evidence),
        hint="please send the report to the project; RESOURCESYNC_DEBUG=1 shows it here",
        exit=ExitCode.BUG,
    )


def _report_text(error: Exception, arguments: Sequence[str]) -> str:
    facts = {
        "time": app.system.SystemClock().now().isoformat(),
        "resourcesync": __version__,
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        "command": " ".join(shown_arguments(arguments)),
    }
    head = "".join(f"{name}: {value}\n" for name, value in facts.items())
    words = secret_strings(arguments)
    return "\n".join(
        [head, *(_format_error(exception, words) for exception in _error_chain(error))]
    )


def _error_chain(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, the first cause first."""
    chain, seen = [error], {id(error)}
    for exception in chain:
        group = exception.exceptions if isinstance(exception, BaseExceptionGroup) else ()
        for cause in (exception.__cause__, exception.__context__, *group):
            if cause is not None and id(cause) not in seen:
                seen.add(id(cause))
                chain.append(cause)
    return chain[::-1]


def _format_error(error: BaseException, words: Iterable[str]) -> str:
    """Return the traceback and the message of an error, without secrets."""
    frames = [
        traceback.FrameSummary(
            summary.filename, summary.lineno, summary.name, line=without_queries(summary.line or "")
        )
        for summary in traceback.extract_tb(error.__traceback__)
    ]
    lines = "".join(traceback.StackSummary.from_list(frames).format())
    head = "Traceback (most recent call last):\n" if lines else ""
    return f"{head}{lines}{_message(error, words)}\n"


def _message(error: BaseException, words: Iterable[str]) -> str:
    """Return the type and the message of an error, without secrets."""
    kind, colon, text = "".join(traceback.format_exception_only(error)).rstrip().partition(": ")
    text = without_queries(text)
    for word in words:
        text = text.replace(word, HIDDEN)
    return kind + colon + text


def _save(text: str) -> Path:
    name = f"crash-{app.system.new_run_id(app.system.SystemClock())}.txt"
    try:
        return _write(environment.state_folder() / "crashes" / name, text)
    except OSError:
        return _write(Path(tempfile.gettempdir()) / name, text)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return path
