"""The encoder of text: data and closing lines on stdout, errors and progress on stderr.

Progress is a bar on a terminal, a line every 30 seconds elsewhere, or nothing. `open_screen`
chooses between text and JSON.
"""

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC
from typing import Any, Final, NamedTuple, TextIO

import click

from resourcesync import app
from resourcesync.cli import output
from resourcesync.model import formatting
from resourcesync.model.formatting import escape
from resourcesync.ports import Clock
from resourcesync.settings.environment import Environment

PLAIN_EVERY: Final = 30.0
"""Seconds between two lines where there is no terminal."""
_LIVE_EVERY: Final = 0.2
_BAR: Final = 20
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """A line of progress: redrawn in place on a terminal, or written each 30 seconds elsewhere."""

    def __init__(self, *, name: str, stream: TextIO, clock: Clock, is_live: bool) -> None:
        self._name, self._stream, self._clock, self.is_live = name, stream, clock, is_live
        self._began = self._last = clock.monotonic()
        self._is_drawn = False

    def show(self, fields: Mapping[str, object]) -> None:
        """Show the newest ``progress`` event, unless the last one was just shown."""
        now = self._clock.monotonic()
        if now - self._last < (_LIVE_EVERY if self.is_live else PLAIN_EVERY):
            return
        self._last = now
        if self.is_live:
            line = progress_line(f"  {_bar(fields)}", fields, now - self._began)
            import shutil  # noqa: PLC0415 - quick start

            width = shutil.get_terminal_size().columns - 1
            with suppress(OSError):  # the line is lost, and no run for it
                self._stream.write(f"{_CLEAR}{formatting.escape(line)[:width]}")
                self._stream.flush()
            self._is_drawn = True
        else:
            at = self._clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            text = progress_line(f"{at} {self._name}", fields, now - self._began)
            output.write_line(self._stream, formatting.escape(text))

    def pause(self) -> None:
        """Clear the line for the next line of text."""
        if self._is_drawn:
            self._is_drawn = False
            with suppress(OSError):
                self._stream.write(_CLEAR)
                self._stream.flush()


def _bar(fields: Mapping[str, object]) -> str:
    done, total = count_field(fields, "done"), count_field(fields, "total")
    filled = _BAR * min(done, total) // total if total else 0
    return f"[{'#' * filled}{' ' * (_BAR - filled)}]"


def progress_line(head: str, fields: Mapping[str, object], elapsed: float) -> str:
    """Return ``HEAD  54 %  2104/3877 resources  1.9 GB/3.4 GB  38.0 MB/s  failed 0  41 s left``."""
    done, total = count_field(fields, "done"), count_field(fields, "total")
    got, expected = count_field(fields, "bytes_done"), count_field(fields, "bytes_total")
    of = f"/{formatting.size(expected)}" if expected else ""
    parts = [
        head,
        f"{100 * done // total} %" if total else "",
        f"{done}/{total} resources" if total else f"{done} resources",
        f"{formatting.size(got)}{of}" if got or expected else "",
        f"{formatting.size(int(got / elapsed))}/s" if got and elapsed > 0 else "",
        f"failed {count_field(fields, 'failed')}",
        f"{formatting.duration(elapsed * (total - done) / done)} left" if 0 < done < total else "",
    ]
    return "  ".join(filter(None, parts))


def count_field(fields: Mapping[str, object], name: str) -> int:
    """Return a count of an event; 0 if it is missing."""
    value = fields.get(name)
    return value if isinstance(value, int) else 0


_COLORS: Final = {
    "In sync": "green",
    "Not in sync": "red",
    "Same": "green",
    "Different": "red",
    "Stopped": "yellow",
    "+": "green",
    "-": "yellow",
    "!": "red",
    "*": "cyan",
}
_COLOR_OF: Final = {"error": "red", "warning": "yellow"}
_EVIDENCE_WIDTH: Final = 7
_MAX_FAILURES: Final = 10


class TextStream(NamedTuple):
    """A stream of text, and the use of colours and of local times on it."""

    file: TextIO
    is_colored: bool = False
    is_local: bool = False


class TextEncoder:
    """An encoder that writes lines of text."""

    def __init__(
        self,
        *,
        words: output.Renderer,
        options: output.OutputOptions,
        out: TextStream,
        err: TextStream,
        progress: Progress | None = None,
        acts: bool = False,
    ) -> None:
        self._render = words
        self._out, self._err = out, err
        self._progress = progress
        self._level = output.DETAIL if options.verbose else output.NORMAL
        if options.quiet:
            self._level = output.QUIET
        self._silent = options.quiet >= output.SILENT
        self._ended_on_stderr = False
        self._is_brief = acts and options.quiet > 0
        self._failures = 0
        self._failed_lines: list[output.TextLine] = []

    def write(self, event: str, fields: Mapping[str, object]) -> None:
        """Show the lines of an event, down to the chosen level."""
        if event in _COLOR_OF:
            if not self._silent and (self._level > output.QUIET or fields.get("exit")):
                self._write_problem(event, fields)
                self._ended_on_stderr |= event == "error"
        elif event == "progress":
            if self._progress is not None:
                self._progress.show(fields)
        else:
            for line in self._render(event, fields):
                self._show(line)
                if self._is_brief and line.label == "!":
                    self._collect_failure(line, fields)

    def _collect_failure(self, line: output.TextLine, fields: Mapping[str, object]) -> None:
        self._failures += 1
        if self._failures <= _MAX_FAILURES and line.level > self._level:
            of = f"{fields['mirror']}  " if "mirror" in fields else ""
            self._failed_lines.append(line._replace(text=f"{of}{line.text}", level=output.QUIET))

    def _write_problem(self, word: str, fields: Mapping[str, Any]) -> None:
        code, hint = str(fields.get("code", word)), str(fields.get("hint", ""))
        head = f"{word}[{escape(code)}]"
        if self._err.is_colored:
            head = click.style(head, fg=_COLOR_OF[word], bold=True)
        message = _shown_text(self._err, str(fields.get("message", "")))
        self._write(self._err, f"{head}: {message}")
        if place := fields.get("place"):
            self._write(self._err, f"  --> {_safe_text(place)}")
        if word == "error" and not hint:
            self._write_evidence([*fields["evidence"], _row("more", f"resourcesync why {code}")])
        else:
            fix = [_row("fix", hint)] if hint else []
            self._write_evidence([*fields["evidence"], *fix])

    def end(self, outcome: output.CommandOutcome, fields: Mapping[str, object]) -> None:
        """Show the closing lines and, unless they contain it, a last line ``exit N``."""
        del fields
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
            stream = self._err if self._ended_on_stderr else self._out
            self._write(stream, f"exit {int(outcome.exit)}")

    def _write_failures(self, outcome: output.CommandOutcome) -> None:
        more = self._failures - len(self._failed_lines)
        rest = (
            [output.TextLine(f"  and {more:,} more that failed", level=output.QUIET)]
            if more
            else []
        )
        closing = outcome.closing if outcome.failed is None else outcome.failed
        for line in (*self._failed_lines, *rest, *closing):
            if line.level <= output.NORMAL:
                self._write_line(self._err, line)
        if not outcome.shows_exit:
            self._write(self._err, f"exit {int(outcome.exit)}")

    def close(self) -> None:
        """Remove the line of progress."""
        if self._progress is not None:
            self._progress.pause()

    def _show(self, line: output.TextLine) -> None:
        if not self._silent and line.level <= self._level:
            self._write_line(self._out, line)

    def _write_line(self, stream: TextStream, line: output.TextLine) -> None:
        label, text = output.labelled(line)
        shown = f"{line.time}  " if line.time else escape(label)
        color = _COLORS.get(line.label)
        if color and stream.is_colored:
            shown = click.style(shown, fg=color, bold=True)
        self._write(stream, (shown + _shown_text(stream, text)).rstrip(" "))

    def _write_evidence(self, rows: Sequence[Mapping[str, str]]) -> None:
        width = max((len(row["label"]) + 2 for row in rows), default=0)
        width = max(width, _EVIDENCE_WIDTH)
        last = ""
        for row in rows:
            shown = "" if row["label"] == last else row["label"]
            line = _shown_text(self._err, row["text"])
            self._write(self._err, f"  {escape(shown).ljust(width)}{line}".rstrip())
            last = row["label"]

    def _write(self, stream: TextStream, text: str) -> None:
        self.close()
        output.write_line(stream.file, text)


def _shown_text(stream: TextStream, text: str) -> str:
    return _safe_text(output.with_local_times(text) if stream.is_local else text)


def _safe_text(text: str) -> str:
    return escape(output.without_users(text))


def _row(label: str, text: str) -> dict[str, str]:
    return {"label": label, "text": text}


_OF_DOCUMENTS: Final = frozenset({"explore", "validate"})
"""Commands about documents: they show times in UTC, as the documents have them."""
_LOGGERS: Final = ("resourcesync", "uvicorn", "asyncio")
_COMMAND_LOGGER: Final = "resourcesync.cli"
_HOUR: Final = 3_600.0
_MOST_WARNINGS: Final = 20


def open_screen(job: output.Job, environment: Environment, run: str = "") -> output.Screen:
    """Return the screen for a job, of a run with an id."""
    for name in _LOGGERS:
        log = logging.getLogger(name)
        if not log.handlers:
            log.addHandler(logging.NullHandler())
    clock, chosen = app.system.SystemClock(), job.output
    if chosen.json:
        from resourcesync.cli.json_output import JsonEncoder  # noqa: PLC0415 - msgspec is slow to import

        lines = JsonEncoder(run=run, quiet=chosen.quiet, stream=sys.stdout, clock=clock)
        return output.Screen(job.command, [lines], clock)

    def stream(file: TextIO) -> TextStream:
        is_local = file.isatty() and job.command not in _OF_DOCUMENTS
        color = file.isatty() if environment.color is None else environment.color
        return TextStream(file, color, is_local)

    text = TextEncoder(
        words=job.render,
        options=chosen,
        out=stream(sys.stdout),
        err=stream(sys.stderr),
        progress=choose_progress(job, environment, sys.stderr, clock),
        acts=job.acts,
    )
    return output.Screen(job.command, [text], clock)


@contextmanager
def warnings_on_screen(screen: output.Screen) -> Iterator[None]:
    """Show the library's log messages of level WARNING, while a command runs."""
    handler, logger = _WarningHandler(screen), logging.getLogger(_LOGGERS[0])
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _WarningHandler(logging.Handler):
    def __init__(self, screen: output.Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._since = 0.0
        self._shown: set[str] = set()

    def createLock(self) -> None:  # noqa: N802 - the base's name
        """Create no lock: a thread that waits for the screen would block the others."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """Show a record without a lock, which the method of the base needs since Python 3.13."""
        is_shown = bool(self.filter(record))
        if is_shown:
            self.emit(record)
        return is_shown

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == _COMMAND_LOGGER:
            return
        if record.created - self._since > _HOUR:
            self._since = record.created
            self._shown.clear()
        message = record.getMessage()
        if message in self._shown or len(self._shown) > _MOST_WARNINGS:
            return
        self._shown.add(message)
        if len(self._shown) > _MOST_WARNINGS:
            message = "there are more warnings; see them all with --log-file FILE"
        with suppress(
            output.OutputLostError
        ):  # this may be any thread; the command itself notices it
            self._screen.report(
                "warning", {"code": output.LIBRARY, "message": message, "evidence": ()}
            )


def choose_progress(
    job: output.Job, environment: Environment, stream: TextIO, clock: Clock
) -> Progress | None:
    """Return the display of progress: the chosen style, else what the stream can show."""
    style = job.output.progress
    if job.output.quiet or style == "off" or (style == "auto" and not stream.isatty()):
        return None
    is_live = style == "bar" or (style == "auto" and environment.live)
    return Progress(name=job.subject or job.command, stream=stream, clock=clock, is_live=is_live)
