"""What is shown, where, and how much of it."""

import io
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.output import (
    DETAIL,
    QUIET,
    CommandOutcome,
    Job,
    OutputOptions,
    Problem,
    Screen,
    TextLine,
    problem_of,
    with_local_times,
    write_line,
)
from resourcesync.cli.terminal import (
    Progress,
    TextEncoder,
    TextStream,
    choose_progress,
    open_screen,
)
from resourcesync.errors import StorageError
from resourcesync.model import formatting
from resourcesync.settings.environment import Environment
from tests.support.in_memory import ManualClock


def words(event: str, fields: Mapping[str, object]) -> Iterable[TextLine]:
    if event == "item":
        yield TextLine(f"{fields['uri']}", "+", DETAIL)
    elif event == "told":
        yield TextLine("usual", "Plan")
        yield TextLine("closing", "In sync", QUIET)


class Shown:
    def __init__(self, *, color: bool = False, **options: Any) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        out, err = TextStream(self.out, color), TextStream(self.err, color)
        text = TextEncoder(words=words, options=OutputOptions(**options), out=out, err=err)
        self.screen = Screen(encoders=[text])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Plan      usual\nIn sync   closing\n"),
        ({"verbose": 1}, "+ http://h/a\nPlan      usual\nIn sync   closing\n"),
        ({"quiet": 1}, "In sync   closing\n"),
        ({"quiet": 1, "verbose": 1}, "In sync   closing\n"),
        ({"quiet": 2}, ""),
    ],
)
def test_quiet_and_verbose_choose_the_lines(options: dict[str, Any], said: str) -> None:
    shown = Shown(**options)

    shown.screen.start({})
    shown.screen.report("item", {"uri": "http://h/a"})
    shown.screen.report("told", {})
    shown.screen.report("progress", {"done": 1})
    shown.screen.end(CommandOutcome())

    assert shown.out.getvalue() == said
    assert shown.err.getvalue() == ""


def test_what_a_source_writes_cannot_reach_the_terminal() -> None:
    shown = Shown(verbose=1)
    evil = "http://h/\x1b]0;owned\x07\u202egpj.exe\nIn sync   fake"

    shown.screen.report("item", {"uri": evil})
    shown.screen.report("warning", {"code": evil, "message": evil, "evidence": [(evil, evil)]})
    shown.screen.problem(
        Problem(
            code=evil,
            message=evil,
            place=evil,
            evidence=((evil, evil),),
            hint=evil,
            exit=ExitCode.BUG,
        )
    )

    said = shown.out.getvalue() + shown.err.getvalue()
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert not any(line.startswith("In sync") for line in said.splitlines())


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "8,114 → 8,230 B é"),
        ("ascii", "8,114 -> 8,230 B \\xe9"),
        ("latin-1", "8,114 -> 8,230 B é"),
    ],
)
def test_characters_that_a_stream_cannot_show_are_spelled_out(encoding: str, shown: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)

    write_line(stream, "8,114 → 8,230 B é")

    assert raw.getvalue().decode(encoding) == shown + "\n"


HOSTILE = "a\x1b[31mred\x07\r\nb\u202egnp.exe\u2066\u200b\x9b\ud800\x00\u2028"


@given(st.text())
def test_an_escaped_name_is_one_printable_line(text: str) -> None:
    shown = formatting.escape(text)

    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1


def test_a_hostile_name_shows_what_it_hides() -> None:
    shown = formatting.escape(HOSTILE)

    assert shown == (r"a\x1b[31mred\x07\r\nb\u202egnp.exe\u2066\u200b\x9b\ud800\x00\u2028")


@pytest.fixture(params=["Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "UTC"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


LOCAL = {
    "Europe/Berlin": ("2026-07-01 14:30:00 +02:00", "2026-11-21 00:04:09 +01:00"),
    "Asia/Kathmandu": ("2026-07-01 18:15:00 +05:45", "2026-11-21 04:49:09 +05:45"),
    "America/St_Johns": ("2026-07-01 10:00:00 -02:30", "2026-11-20 19:34:09 -03:30"),
    "UTC": ("2026-07-01 12:30:00Z", "2026-11-20 23:04:09Z"),
}


def test_times_become_local_with_the_offset_of_their_day(zone: str) -> None:
    summer = datetime(2026, 7, 1, 12, 30, tzinfo=UTC)
    winter = datetime(2026, 11, 20, 23, 4, 9, tzinfo=UTC)
    text = f"from {formatting.moment(summer)}, until {formatting.moment(winter)}: in sync"

    assert with_local_times(text) == (f"from {LOCAL[zone][0]}, until {LOCAL[zone][1]}: in sync")


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_only_all_is_100_percent_and_only_none_is_0(part: int, whole: int) -> None:
    part = min(part, whole)
    shown = formatting.share(part, whole)

    assert (shown == "100 %") == (part == whole)
    assert (shown == "0 %") == (part == 0)


def job(**options: Any) -> Job:
    return Job(
        command="pull",
        output=OutputOptions(**options),
        work=lambda _screen: CommandOutcome(),
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
    found = [line[:20] for line in lines]
    assert found == ["2026-11-21T00:00:30Z", "2026-11-21T00:01:00Z", "2026-11-21T00:01:30Z"]
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
