"""The screen for people: data and closing lines on stdout, errors and progress on stderr."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TextIO

import click

from resourcesync.cli.output import (
    SILENT,
    CommandOutcome,
    OutputOptions,
    Problem,
    Renderer,
    write_line,
)
from resourcesync.cli.progress import NoProgress, Progress
from resourcesync.cli.redaction import without_users
from resourcesync.cli.words import DETAIL, NORMAL, QUIET, TextLine, escape, labelled
from resourcesync.errors import Evidence

_COLORS: Final = {
    "In sync": "green",
    "Not in sync": "red",
    "Stopped": "yellow",
    "+": "green",
    "-": "yellow",
    "!": "red",
    "*": "cyan",
}
_EVIDENCE_WIDTH: Final = 7
_MAX_FAILURES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Where text goes, and whether it is coloured there."""

    out: TextIO
    err: TextIO
    color_out: bool = False
    color_err: bool = False


class TextScreen:
    """Shows a run as lines of text.

    Args:
        words: Turns events into lines.
        options: How much is shown.
        streams: Where it goes.
        progress: Shows progress events.
        acts: Whether it does something: with ``-q`` there is nothing to say when that went well.
    """

    def __init__(
        self,
        *,
        words: Renderer,
        options: OutputOptions,
        streams: Streams,
        progress: Progress | None = None,
        acts: bool = False,
    ) -> None:
        self._render = words
        self._streams = streams
        self._progress = progress or NoProgress()
        self._level = DETAIL if options.verbose else NORMAL
        if options.quiet:
            self._level = QUIET
        self._silent = options.quiet >= SILENT
        self._ended_on_stderr = False
        self._is_brief = acts and options.quiet > 0
        self._failures = 0
        self._failed_lines: list[TextLine] = []

    def start(self, fields: Mapping[str, object]) -> None:
        """Say nothing: the first line of a run is about its subject."""

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Show the lines of an event that are wanted."""
        if event == "progress":
            if self._level > QUIET:
                self._progress.show(fields)
        elif event == "warning":
            self._warn(fields)
        else:
            for line in self._render(event, fields):
                self._show(line)
                if self._is_brief and line.label == "!":
                    self._collect_failure(line, fields)

    def _collect_failure(self, line: TextLine, fields: Mapping[str, object]) -> None:
        """Keep what failed for the end: with ``-q`` only a run that went wrong says it."""
        self._failures += 1
        if self._failures <= _MAX_FAILURES and line.level > self._level:
            of = f"{fields['mirror']}  " if "mirror" in fields else ""
            self._failed_lines.append(line._replace(text=f"{of}{line.text}", level=QUIET))

    def _warn(self, fields: Mapping[str, object]) -> None:
        if self._level == QUIET:
            return
        code = str(fields.get("code", "warning"))
        self._write_error("warning", "yellow", code, str(fields.get("message", "")))
        self._write_evidence(_evidence_pairs(fields.get("evidence")), str(fields.get("hint", "")))

    def problem(self, problem: Problem) -> None:
        """Show an error: what happened, the evidence, what to do."""
        if self._silent:
            return
        self._write_error("error", "red", problem.code, problem.message)
        if problem.place:
            self._write(self._streams.err, f"  --> {_safe_text(problem.place)}")
        self._write_evidence(problem.evidence, problem.hint)
        self._ended_on_stderr = True

    def end(self, outcome: CommandOutcome) -> None:
        """Show the closing lines and, unless they say it, a last line ``exit N``."""
        self.close()
        if self._silent or (self._is_brief and not outcome.exit):
            return
        if self._is_brief:
            self._write_failures(outcome)
            return
        for line in outcome.closing:
            self._show(line)
            self._ended_on_stderr = False
        if outcome.exit and not outcome.shows_exit:
            stream = self._streams.err if self._ended_on_stderr else self._streams.out
            self._write(stream, f"exit {int(outcome.exit)}")

    def _write_failures(self, outcome: CommandOutcome) -> None:
        """Say on stderr what went wrong, how it ended and what to do, though ``-q`` was given."""
        more = self._failures - len(self._failed_lines)
        rest = [TextLine(f"  and {more:,} more that failed", level=QUIET)] if more else []
        for line in (*self._failed_lines, *rest, *outcome.closing):
            if line.level <= NORMAL:
                self._write_line(self._streams.err, line, colored=self._streams.color_err)
        if not outcome.shows_exit:
            self._write(self._streams.err, f"exit {int(outcome.exit)}")

    def close(self) -> None:
        """Take the progress bar away."""
        self._progress.close()

    def _show(self, line: TextLine) -> None:
        if not self._silent and line.level <= self._level:
            self._write_line(self._streams.out, line, colored=self._streams.color_out)

    def _write_line(self, stream: TextIO, line: TextLine, *, colored: bool) -> None:
        label, text = labelled(line)
        shown = escape(label)
        color = _COLORS.get(line.label)
        if color and colored:
            shown = click.style(shown, fg=color, bold=True)
        self._write(stream, (shown + _safe_text(text)).rstrip(" "))

    def _write_error(self, word: str, color: str, code: str, message: str) -> None:
        head = f"{word}[{escape(code)}]"
        if self._streams.color_err:
            head = click.style(head, fg=color, bold=True)
        self._write(self._streams.err, f"{head}: {_safe_text(message)}")

    def _write_evidence(self, evidence: Evidence, hint: str) -> None:
        pairs = (*evidence, ("fix", hint)) if hint else evidence
        width = max((len(label) + 2 for label, _ in pairs), default=0)
        width = max(width, _EVIDENCE_WIDTH)
        last = ""
        for label, text in pairs:
            shown = "" if label == last else label
            self._write(
                self._streams.err, f"  {escape(shown).ljust(width)}{_safe_text(text)}".rstrip()
            )
            last = label

    def _write(self, stream: TextIO, text: str) -> None:
        self._progress.pause()
        write_line(stream, text)


def _safe_text(text: str) -> str:
    return escape(without_users(text))


def _evidence_pairs(value: object) -> Evidence:
    """Return the evidence of a warning event; anything that is not pairs of text is left out."""
    if not isinstance(value, list | tuple):
        return ()
    return tuple(
        (str(pair[0]), str(pair[1]))
        for pair in value
        if isinstance(pair, list | tuple) and len(pair) == 2  # noqa: PLR2004 - label and text
    )
