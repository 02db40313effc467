"""The screen of ``--json``: NDJSON on stdout, nothing on stderr; and the one writer of JSON.

Keys are snake_case with units in the name, times RFC 3339 in UTC. Fields may be added within
``"v": 1``, never renamed. The first line is ``run.start``, the last is ``run.end``.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Final, TextIO

import msgspec

from resourcesync.cli.formatting import stamp, without_users
from resourcesync.cli.output import SILENT, CommandOutcome, Problem, labelled_evidence, write_line
from resourcesync.model.digests import Digest
from resourcesync.ports import Clock

VERSION: Final = 1
_PROGRESS_EVERY: Final = 1.0


class JsonScreen:
    """A screen that writes one JSON object per line."""

    def __init__(self, *, command: str, run: str, quiet: int, stream: TextIO, clock: Clock) -> None:
        self._command = command
        self._run = run
        self._quiet = quiet
        self._stream = stream
        self._clock = clock
        self._progress_at: float | None = None
        self._started = clock.monotonic()

    def start(self, fields: Mapping[str, object]) -> None:
        """Write ``run.start``."""
        if not self._quiet:
            head = {"time": stamp(self._clock.now())}
            self._write("run.start", {**head, "command": self._command, **fields})

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Write an event; progress at most once a second, but always its last event."""
        is_failure = event == "warning" and bool(fields.get("exit"))
        if self._quiet > is_failure or (event == "progress" and self._suppress_progress(fields)):
            return
        if event == "warning":
            fields = warning_event(fields)
        self._write(event, fields)

    def _suppress_progress(self, fields: Mapping[str, object]) -> bool:
        now = self._clock.monotonic()
        last = self._progress_at
        done = fields.get("done") == fields.get("total")
        if last is not None and now - last < _PROGRESS_EVERY and not done:
            return True
        self._progress_at = now
        return False

    def problem(self, problem: Problem) -> None:
        """Write an ``error``."""
        if self._quiet < SILENT:
            self._write("error", problem.fields())

    def end(self, outcome: CommandOutcome) -> None:
        """Write ``run.end`` with the exit code."""
        if self._quiet < SILENT:
            seconds = round(self._clock.monotonic() - self._started, 3)
            head = {"time": stamp(self._clock.now()), "command": self._command}
            tail = {"seconds": seconds, **outcome.fields, "exit": int(outcome.exit)}
            self._write("run.end", {**head, **tail})

    def close(self) -> None:
        """Do nothing: every line is written already."""

    def _write(self, kind: str, fields: Mapping[str, object]) -> None:
        write_line(self._stream, json_text(json_row(kind, self._run, fields)))


def warning_event(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a warning as its event has them."""
    found = fields
    return {**found, "evidence": labelled_evidence(found.get("evidence"))}


def json_row(kind: str, run: str, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the object of an event."""
    return {"v": VERSION, "type": kind, "run": run, **fields}


def json_line(kind: str, run: str, fields: Mapping[str, object]) -> bytes:
    """Return one line, with its line break, for another program."""
    return json_text(json_row(kind, run, fields)).encode() + b"\n"


def json_text(value: object) -> str:
    r"""Return JSON in which no character can fool a terminal or a reader.

    What is not printable is ``\uXXXX``, so the value is the same when it is read; é and 漢 stay.
    """
    text = _encode(_json_safe(value)).decode()
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _json_safe(value: object) -> object:
    """Return ``value`` as it may be shown in JSON.

    Times become text and lone surrogates are escaped, since JSON has neither; the user information
    of addresses is hidden.
    """
    if isinstance(value, Digest):
        return str(value)
    if isinstance(value, Mapping):
        return {_without_surrogates(str(key)): _json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_safe(item) for item in value]
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, str) and not isinstance(value, Enum):
        return _without_surrogates(without_users(value))
    return value


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: object) -> object:
    return _without_surrogates(str(value))


_encode: Final = msgspec.json.Encoder(enc_hook=_plain).encode
