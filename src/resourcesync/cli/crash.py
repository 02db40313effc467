"""Crash reports: the details of a bug, without secrets.

A report is sent to strangers, so it hides queries too, and rather too much than too little.
"""

import os
import platform
import re
import sys
import tempfile
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from resourcesync import __version__, app
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.output import HIDDEN, Problem
from resourcesync.settings import environment

_ADDRESS: Final = re.compile(r"(//|[?#@]).*", re.DOTALL)
"""From where a text may be that of an address, with a secret in it; a message goes on after it."""
_VALUE: Final = re.compile(r"(//|[?#@=]).*", re.DOTALL)
_MIN_SECRET_LENGTH: Final = 4
MOST_REPORTS: Final = 100
"""Reports that are stored: a bug may be met in each run of a cron."""


def write_crash_report(error: Exception, arguments: Sequence[str]) -> Problem:
    """Write a report of an unexpected error; return the problem to show.

    The report goes to the user's state folder, or to the temporary folder if that is not writable;
    only the user may read it. Addresses are left out, and the values of all options with ``=``.
    """
    evidence = [("error", _message(error, _secret_strings(arguments))[:400])]
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
        "command": " ".join(_VALUE.sub(rf"\1{HIDDEN}", argument) for argument in arguments),
    }
    head = "".join(f"{name}: {value}\n" for name, value in facts.items())
    words = _secret_strings(arguments)
    return "\n".join(
        [head, *(_format_error(exception, words) for exception in _error_chain(error))]
    )


def _error_chain(error: BaseException) -> list[BaseException]:
    chain, seen = [error], {id(error)}
    for exception in chain:
        group = exception.exceptions if isinstance(exception, BaseExceptionGroup) else ()
        for cause in (exception.__cause__, exception.__context__, *group):
            if cause is not None and id(cause) not in seen:
                seen.add(id(cause))
                chain.append(cause)
    return chain[::-1]


def _format_error(error: BaseException, words: Iterable[str]) -> str:
    frames = [
        traceback.FrameSummary(
            at.filename, at.lineno, at.name, line=_ADDRESS.sub(HIDDEN, at.line or "")
        )
        for at in traceback.extract_tb(error.__traceback__)
    ]
    lines = "".join(traceback.StackSummary.from_list(frames).format())
    head = "Traceback (most recent call last):\n" if lines else ""
    return f"{head}{lines}{_message(error, words)}\n"


def _message(error: BaseException, words: Iterable[str]) -> str:
    kind, colon, text = "".join(traceback.format_exception_only(error)).rstrip().partition(": ")
    text = _ADDRESS.sub(rf"\1{HIDDEN}", text)
    for word in words:
        text = text.replace(word, HIDDEN)
    return kind + colon + text


def _save(text: str) -> Path:
    name = f"crash-{app.system.new_run_id(app.system.SystemClock())}.txt"
    folder = environment.state_folder() / "crashes"
    try:
        for old in sorted(folder.glob("crash-*.txt"))[: 1 - MOST_REPORTS]:
            old.unlink(missing_ok=True)
        return _write(folder / name, text)
    except OSError:
        return _write(Path(tempfile.gettempdir()) / name, text)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return path


def _secret_strings(arguments: Iterable[str]) -> list[str]:
    hidden = {found[0] for argument in arguments if (found := _VALUE.search(argument))}
    parts = {part for text in hidden for part in (text, *re.split(r"[/?#@=&:]+", text))}
    parts |= {unquote(part) for part in parts}
    parts |= {repr(part)[1:-1] for part in parts}
    return sorted(
        (part for part in parts if len(part) >= _MIN_SECRET_LENGTH), key=len, reverse=True
    )
