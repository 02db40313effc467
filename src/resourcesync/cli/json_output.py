"""The encoder of ``--json``: NDJSON on stdout, nothing on stderr; and the one writer of JSON.

Keys are snake_case with units in the name, times RFC 3339 in UTC. Fields may be added within
``"v": 1``, never renamed. The first line is ``run.start``, the last is ``run.end``.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Final, TextIO

import msgspec

from resourcesync.cli.output import SILENT, CommandOutcome, without_users, write_line
from resourcesync.model.digests import Digest
from resourcesync.model.formatting import stamp
from resourcesync.ports import Clock

VERSION: Final = 1
_PROGRESS_EVERY: Final = 1.0


class JsonEncoder:
    """An encoder that writes one JSON object per line."""

    def __init__(self, *, run: str, quiet: int, stream: TextIO, clock: Clock) -> None:
        self._run, self._quiet, self._stream, self._clock = run, quiet, stream, clock
        self._progress_at: float | None = None

    def write(self, event: str, fields: Mapping[str, object]) -> None:
        """Write an event; progress at most once a second, but always its last event."""
        is_failure = event in {"error", "run.end"} or (event == "warning" and fields.get("exit"))
        if self._quiet >= (SILENT if is_failure else 1):
            return
        if event != "progress" or self._reserve(fields):
            write_line(self._stream, json_text(json_row(event, self._run, fields)))

    def _reserve(self, fields: Mapping[str, object]) -> bool:
        now, last = self._clock.monotonic(), self._progress_at
        is_done = fields.get("done") == fields.get("total")
        if last is not None and now - last < _PROGRESS_EVERY and not is_done:
            return False
        self._progress_at = now
        return True

    def end(self, outcome: CommandOutcome, fields: Mapping[str, object]) -> None:
        """Write ``run.end`` with the exit code."""
        del outcome
        self.write("run.end", fields)

    def close(self) -> None:
        """Do nothing: every line is written already."""


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
    """Return a value as JSON may show it: times as text, no lone surrogates, no users."""
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


_encode: Final = msgspec.json.Encoder(enc_hook=lambda value: _without_surrogates(str(value))).encode
