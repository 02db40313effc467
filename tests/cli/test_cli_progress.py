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
from resourcesync.cli.terminal import Progress, choose_progress, open_screen
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
    ("options", "terminal", "live", "is_live"),
    [
        ({}, True, True, True),
        ({}, True, False, False),
        ({}, False, True, None),
        ({"progress": "bar"}, False, True, True),
        ({"progress": "plain"}, True, True, False),
        ({"progress": "off"}, True, True, None),
        ({"quiet": 1}, True, True, None),
    ],
)
def test_progress_suits_the_stream(
    options: dict[str, Any], terminal: bool, live: bool, is_live: bool | None
) -> None:
    stream = Terminal() if terminal else io.StringIO()

    chosen = choose_progress(job(**options), Environment(live=live), stream, ManualClock())

    assert (None if chosen is None else chosen.is_live) is is_live


def test_plain_progress_is_a_line_every_30_seconds() -> None:
    stream, clock = io.StringIO(), ManualClock(datetime(2026, 11, 21, tzinfo=UTC))
    progress = Progress(name="arxiv-pdf", stream=stream, clock=clock, is_live=False)

    for done in range(100):
        progress.show({"done": done, "total": 100, "bytes_done": done * 10, "bytes_total": 1000})
        clock.advance(seconds=1)
    progress.pause()

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


def test_a_line_of_progress_is_redrawn_and_gives_its_place_to_text() -> None:
    stream, clock = Terminal(), ManualClock()
    progress = Progress(name="museum", stream=stream, clock=clock, is_live=True)

    progress.pause()
    for done in (12, 37, 38):
        clock.advance(seconds=1 if done < 38 else 0.1)
        progress.show(
            {"done": done, "total": 48, "bytes_done": 2_400_000, "bytes_total": 3_100_000}
        )
    progress.pause()
    progress.pause()

    assert stream.getvalue().split("\r\x1b[K") == [
        "",
        "  [#####               ]  25 %  12/48 resources  2.4 MB/3.1 MB  2.4 MB/s  failed 0"[:79],
        "  [###############     ]  77 %  37/48 resources  2.4 MB/3.1 MB  1.2 MB/s  failed 0"[:79],
        "",
    ]


@pytest.mark.parametrize(("color", "colored"), [(True, True), (False, False), (None, False)])
def test_colour_may_be_forced(
    color: bool | None, colored: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = open_screen(job(), Environment(color=color))

    screen.problem(problem_of(StorageError("no room")))

    assert ("\x1b[" in capsys.readouterr().err) is colored
