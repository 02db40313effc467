"""Crash reports: what we need to mend our own fault, and no secret."""

import platform
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from resourcesync import __version__, config
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.output import Problem
from resourcesync.wiring.machine import new_run_id, system_clock

_SECRET_OPTIONS: Final = frozenset({"--header"})
_USER: Final = re.compile(r"(?<=://)[^/?#@\s]+@")


def write_crash_report(error: Exception, arguments: Sequence[str]) -> Problem:
    """Write down an unexpected error; return what to tell the operator.

    The report goes to the user's state folder, or to the temporary folder where that cannot be
    written. Values of ``--header`` and passwords in addresses are left out.
    """
    evidence = [("error", f"{type(error).__name__}: {error}"[:400])]
    try:
        evidence.append(("report", str(_save(_text(error, arguments)))))
    except OSError as failure:
        evidence.append(("report", f"could not be written: {failure.strerror}"))
    return Problem(
        code="bug",
        message="this is a fault of resourcesync, not of you or the Source",
        evidence=tuple(evidence),
        hint="please send the report to the project; RESOURCESYNC_DEBUG=1 shows it here",
        exit=ExitCode.BUG,
    )


def redacted(arguments: Sequence[str]) -> list[str]:
    """Return a command line without the secrets that may stand on it."""
    shown, hide = [], False
    for argument in arguments:
        name = argument.partition("=")[0]
        if hide:
            shown.append("(hidden)")
        elif name in _SECRET_OPTIONS and name != argument:
            shown.append(f"{name}=(hidden)")
        else:
            shown.append(_USER.sub("(hidden)@", argument))
        hide = not hide and argument in _SECRET_OPTIONS
    return shown


def _text(error: Exception, arguments: Sequence[str]) -> str:
    facts = {
        "time": system_clock().now().isoformat(),
        "resourcesync": __version__,
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        "command": " ".join(redacted(arguments)),
    }
    head = "".join(f"{name}: {value}\n" for name, value in facts.items())
    trace = "".join(traceback.format_exception(error))
    return f"{head}\n{_USER.sub('(hidden)@', trace)}"


def _save(text: str) -> Path:
    name = f"crash-{new_run_id(system_clock())}.txt"
    try:
        return _write(config.state_folder() / "crashes" / name, text)
    except OSError:
        return _write(Path(tempfile.gettempdir()) / name, text)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return path
