"""Progress and colours suit the place where they are shown."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest

from resourcesync.cli.output import (
    CommandOutcome,
    Job,
    OutputOptions,
    problem_of,
    render_nothing,
)
from resourcesync.cli.terminal import (
    BarProgress,
    NoProgress,
    PlainProgress,
    choose_progress,
    open_screen,
)
from resourcesync.errors import StorageError
from resourcesync.settings.environment import Environment
from tests.support.in_memory import ManualClock


def job(**options: Any) -> Job:
    return Job(
        command="pull",
        output=OutputOptions(**options),
        work=lambda _screen: CommandOutcome(),
        render=render_nothing,
        subject="museum",
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("options", "terminal", "live", "kind"),
    [
        ({}, True, True, BarProgress),
        ({}, True, False, PlainProgress),
        ({}, False, True, NoProgress),
        ({"progress": "bar"}, False, True, BarProgress),
        ({"progress": "plain"}, True, True, PlainProgress),
        ({"progress": "off"}, True, True, NoProgress),
        ({"quiet": 1}, True, True, NoProgress),
    ],
)
def test_progress_suits_the_stream(
    options: dict[str, Any], terminal: bool, live: bool, kind: type
) -> None:
    stream = Terminal() if terminal else io.StringIO()

    chosen = choose_progress(job(**options), Environment(live=live), stream, ManualClock())

    assert type(chosen) is kind


def test_plain_progress_is_a_line_every_30_seconds() -> None:
    stream, clock = io.StringIO(), ManualClock(datetime(2026, 11, 21, tzinfo=UTC))
    progress = PlainProgress(name="arxiv-pdf", stream=stream, clock=clock)

    for done in range(100):
        progress.show({"done": done, "total": 100, "bytes_done": done * 10, "bytes_total": 1000})
        clock.advance(seconds=1)
    progress.pause()
    progress.close()

    lines = stream.getvalue().splitlines()
    assert [line[:20] for line in lines] == [
        "2026-11-21T00:00:30Z",
        "2026-11-21T00:01:00Z",
        "2026-11-21T00:01:30Z",
    ]
    assert lines[0] == (
        "2026-11-21T00:00:30Z arxiv-pdf  30 %  30/100 resources  300 B/1.0 kB  10 B/s  failed 0"
        "  1 min 10 s left"
    )


def test_a_bar_gives_the_terminal_back() -> None:
    stream = Terminal()
    bar = BarProgress(stream=stream)

    bar.pause()
    bar.show({"done": 37, "total": 48, "bytes_done": 2_400_000, "bytes_total": 3_100_000})
    bar.pause()
    bar.show({"done": 48, "total": 48})
    bar.show({"done": 48})
    bar.close()
    bar.close()

    said = stream.getvalue()
    assert "37 / 48   2.4 MB / 3.1 MB" in said
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h") == 2


@pytest.mark.parametrize(("color", "colored"), [(True, True), (False, False), (None, False)])
def test_colour_may_be_forced(
    color: bool | None, colored: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = open_screen(job(), Environment(color=color))

    screen.problem(problem_of(StorageError("no room")))

    assert ("\x1b[" in capsys.readouterr().err) is colored
