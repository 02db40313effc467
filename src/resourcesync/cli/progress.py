"""Progress on the way: a bar on a terminal, a line now and then elsewhere, or nothing."""

from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Final, Protocol, TextIO

from resourcesync.cli import words
from resourcesync.cli.output import write_line
from resourcesync.ports import Clock

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

PLAIN_EVERY: Final = 30.0
"""Seconds between two lines where there is no terminal."""


class Progress(Protocol):
    """Shows how far a run is."""

    def show(self, fields: Mapping[str, object]) -> None:
        """Take the newest ``progress`` event."""
        ...

    def pause(self) -> None:
        """Clear the place where the next line of text goes."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class NoProgress:
    """Shows nothing."""

    def show(self, fields: Mapping[str, object]) -> None:
        """Show nothing."""

    def pause(self) -> None:
        """Clear nothing."""

    def close(self) -> None:
        """Leave everything as it is."""


class PlainProgress:
    """A whole line at most every 30 seconds, for cron, CI and the journal.

    Args:
        name: What is in progress, such as the mirror's name.
        stream: Where the lines go.
        clock: Time.
    """

    def __init__(self, *, name: str, stream: TextIO, clock: Clock) -> None:
        self._name = name
        self._stream = stream
        self._clock = clock
        self._began = self._last = clock.monotonic()

    def show(self, fields: Mapping[str, object]) -> None:
        """Write a line when the last one is 30 seconds old."""
        now = self._clock.monotonic()
        if now - self._last < PLAIN_EVERY:
            return
        self._last = now
        at = self._clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = plain_line(f"{at} {self._name}", fields, now - self._began)
        write_line(self._stream, words.escape(text))

    def pause(self) -> None:
        """Clear nothing: lines do not disturb each other."""

    def close(self) -> None:
        """Leave everything as it is."""


def plain_line(head: str, fields: Mapping[str, object], elapsed: float) -> str:
    """Return ``HEAD  54 %  2104/3877 resources  1.9 GB/3.4 GB  38.0 MB/s  failed 0  41 s left``."""
    done, total = count_field(fields, "done"), count_field(fields, "total")
    got, expected = count_field(fields, "bytes_done"), count_field(fields, "bytes_total")
    parts = [head]
    if total:
        parts.append(f"{100 * done // total} %")
    parts.append(f"{done}/{total} resources" if total else f"{done} resources")
    if got or expected:
        amount = f"{words.size(got)}/{words.size(expected)}" if expected else words.size(got)
        parts.append(amount)
    if got and elapsed > 0:
        parts.append(f"{words.size(int(got / elapsed))}/s")
    parts.append(f"failed {count_field(fields, 'failed')}")
    if done and total > done:
        parts.append(f"{words.duration(elapsed * (total - done) / done)} left")
    return "  ".join(parts)


def count_field(fields: Mapping[str, object], name: str) -> int:
    """Return a count of an event, 0 when it does not tell."""
    value = fields.get(name)
    return value if isinstance(value, int) else 0


class BarProgress:
    """A bar that is redrawn in place.

    Args:
        stream: The terminal.
    """

    def __init__(self, *, stream: TextIO) -> None:
        self._stream = stream
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def show(self, fields: Mapping[str, object]) -> None:
        """Move the bar; draw it first if a line of text has cleared it."""
        if self._bar is None:
            self._bar = _open_bar(self._stream)
            self._task = self._bar.add_task("resources", total=None, text="")
        if not self._bar.live.is_started:
            self._bar.start()
        assert self._task is not None
        done, total = count_field(fields, "done"), count_field(fields, "total")
        self._bar.update(
            self._task, completed=done, total=total or None, text=bar_text(done, total, fields)
        )

    def pause(self) -> None:
        """Take the bar away; the next ``show`` brings it back."""
        if self._bar is not None and self._bar.live.is_started:
            self._bar.stop()

    def close(self) -> None:
        """Take the bar away."""
        self.pause()


def bar_text(done: int, total: int, fields: Mapping[str, object]) -> str:
    """Return what stands behind the bar: ``37 / 48   2.4 MB / 3.1 MB``."""
    got, expected = count_field(fields, "bytes_done"), count_field(fields, "bytes_total")
    first = f"{done:,} / {total:,}" if total else f"{done:,}"
    if not expected:
        return f"{first}   {words.size(got)}" if got else first
    return f"{first}   {words.size(got)} / {words.size(expected)}"


def _open_bar(stream: TextIO) -> "RichProgress":
    # rich costs 100 ms to import; only a bar on a terminal is worth that.
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    return Progress(
        TextColumn("  {task.description}"),
        BarColumn(bar_width=28),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(compact=True),
        console=Console(file=stream),
        transient=True,
        refresh_per_second=5,
    )
