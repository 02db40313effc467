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

_SECRET_OPTIONS: Final = frozenset({"--with"})
_HEADER: Final = re.compile(r"(-o|--option=)?header=")
_MIN_SECRET_LENGTH: Final = 4
MOST_REPORTS: Final = 100
"""Reports that are stored: a bug may be met in each run of a cron."""


def write_crash_report(error: Exception, arguments: Sequence[str]) -> Problem:
    """Write a report of an unexpected error; return the problem to show.

    The report goes to the user's state folder, or to the temporary folder if that is not writable;
    only the user may read it. Values of ``-o`` and ``--with`` are left out, and the user
    information and queries of all addresses.
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
        "command": " ".join(_shown_arguments(arguments)),
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
            at.filename, at.lineno, at.name, line=_without_queries(at.line or "")
        )
        for at in traceback.extract_tb(error.__traceback__)
    ]
    lines = "".join(traceback.StackSummary.from_list(frames).format())
    head = "Traceback (most recent call last):\n" if lines else ""
    return f"{head}{lines}{_message(error, words)}\n"


def _message(error: BaseException, words: Iterable[str]) -> str:
    kind, colon, text = "".join(traceback.format_exception_only(error)).rstrip().partition(": ")
    text = _without_queries(text)
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


def _without_queries(text: str) -> str:
    """Return a text with the possible secrets of addresses hidden: user information and query.

    All from the beginning of the first address to the last ``@``, and from the first ``?`` (in an
    address also ``#``) to the end, is hidden, wherever the secrets really begin and end.
    """
    return _split_address(text)[0]


def _shown_arguments(arguments: Sequence[str]) -> list[str]:
    shown, is_secret = [], False
    for argument in arguments:
        name = argument.partition("=")[0]
        header = _HEADER.match(argument)
        if header is not None:
            shown.append(f"{header[0]}{HIDDEN}")
        elif is_secret:
            shown.append(HIDDEN)
        elif name in _SECRET_OPTIONS and name != argument:
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(_without_queries(argument))
        is_secret = not is_secret and argument in _SECRET_OPTIONS
    return shown


def _secret_strings(arguments: Iterable[str]) -> list[str]:
    """Return the hidden parts of the addresses on a command line, longest first.

    A message may contain such a part without its address, so they are removed everywhere.
    """
    found: set[str] = set()
    for hidden in (piece for argument in arguments for piece in _split_address(argument)[1]):
        for part in (hidden, *hidden.split("&"), *hidden.split("@")):
            found.update((part, part.partition("=")[2], part.partition(":")[2]))
    found |= {unquote(word) for word in found}
    found |= {repr(word)[1:-1] for word in found}
    return sorted(
        (word for word in found if len(word) >= _MIN_SECRET_LENGTH), key=len, reverse=True
    )


def _split_address(text: str) -> tuple[str, tuple[str, ...]]:
    start = text.find("//")
    start = start + 2 if start >= 0 else 0
    asks = [text.find("?"), text.find("#", start) if start else -1]
    query = min((place for place in asks if place >= 0), default=len(text))
    at = text.rfind("@")
    begin = min(start, query)
    if at >= query:  # a password with a question mark, or a query with an @: both are possible
        return f"{text[:begin]}{HIDDEN}", (text[begin:at], text[begin:], text[query + 1 :])
    head = f"{text[:begin]}{HIDDEN}{text[at:query]}" if at >= begin else text[:query]
    tail = f"{text[query]}{HIDDEN}" if query < len(text) else ""
    return head + tail, (text[begin:at] if at >= begin else "", text[query + 1 :])
