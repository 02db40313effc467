"""What is shown, where, and how much of it."""

import io
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.memory import ManualClock
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.job import Job, no_words
from resourcesync.cli.json_output import JsonScreen
from resourcesync.cli.output import (
    Outcome,
    OutputLostError,
    OutputOptions,
    Problem,
    problem_of,
    write_line,
)
from resourcesync.cli.progress import BarProgress, NoProgress, PlainProgress, plain_line
from resourcesync.cli.screens import choose_progress, open_screen
from resourcesync.cli.text_output import Streams, TextScreen
from resourcesync.cli.words import DETAIL, QUIET, Line
from resourcesync.config import Environment
from resourcesync.errors import MalformedDocumentError, StorageError
from resourcesync.model.digests import Digest

PROBLEM = Problem(
    code="source-not-found",
    message="no list at http://h/",
    evidence=(("tried", "/a   404"), ("tried", "/b   404"), ("kept", "nothing was changed")),
    hint="give the list's own address",
    exit=ExitCode.UNUSABLE,
)


def words(event: str, fields: Mapping[str, object]) -> Iterable[Line]:
    if event == "item":
        yield Line(f"{fields['uri']}", "+", DETAIL)
    elif event == "told":
        yield Line("usual", "Plan")
        yield Line("closing", "In sync", QUIET)


class Shown:
    """A text screen and what came out of it."""

    def __init__(self, *, color: bool = False, **options: Any) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        streams = Streams(out=self.out, err=self.err, color_out=color, color_err=color)
        self.screen = TextScreen(words=words, options=OutputOptions(**options), streams=streams)


def test_an_error_has_its_form() -> None:
    shown = Shown()

    shown.screen.problem(PROBLEM)
    shown.screen.end(Outcome(exit=PROBLEM.exit))

    assert shown.out.getvalue() == ""
    assert shown.err.getvalue() == (
        "error[source-not-found]: no list at http://h/\n"
        "  tried  /a   404\n"
        "         /b   404\n"
        "  kept   nothing was changed\n"
        "  fix    give the list's own address\n"
        "exit 5\n"
    )


def test_a_fault_in_a_document_has_a_place() -> None:
    shown = Shown()
    error = MalformedDocumentError("unclosed <url>", uri="http://h/list.xml", line=7, column=3)

    shown.screen.problem(problem_of(error))

    assert shown.err.getvalue().splitlines() == [
        "error[xml]: unclosed <url>",
        "  --> http://h/list.xml:7:3",
    ]


def test_long_labels_keep_the_evidence_aligned() -> None:
    shown = Shown()

    shown.screen.problem(
        Problem(
            code="x", message="m", evidence=(("capability", "a"), ("got", "b")), exit=ExitCode.BUG
        )
    )

    assert shown.err.getvalue().splitlines()[1:] == ["  capability  a", "  got         b"]


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
    shown.screen.end(Outcome())

    assert shown.out.getvalue() == said
    assert shown.err.getvalue() == ""


def test_nothing_at_all_is_said_when_asked_twice_not_even_an_error() -> None:
    shown = Shown(quiet=2)

    shown.screen.problem(PROBLEM)
    shown.screen.report("warning", {"code": "c", "message": "m"})
    shown.screen.end(Outcome(exit=ExitCode.UNUSABLE, closing=(Line("x", level=QUIET),)))

    assert shown.out.getvalue() + shown.err.getvalue() == ""


def test_a_run_that_fails_closes_with_its_exit_code_after_the_closing_lines() -> None:
    shown = Shown(quiet=1)

    shown.screen.problem(PROBLEM)
    shown.screen.end(
        Outcome(exit=ExitCode.FINDINGS, closing=(Line("coverage 0 %", "Not in sync", QUIET),))
    )

    assert shown.out.getvalue() == "Not in sync   coverage 0 %\nexit 1\n"


def test_closing_lines_that_name_the_exit_code_are_the_last() -> None:
    shown = Shown()
    line = Line("46 of 48  exit 3", "Not in sync", QUIET)

    shown.screen.end(Outcome(exit=ExitCode.PARTIAL, closing=(line,), says_exit=True))

    assert shown.out.getvalue() == "Not in sync   46 of 48  exit 3\n"


def test_a_warning_is_told_beside_the_output() -> None:
    shown = Shown()
    fields = {
        "code": "change-gap",
        "message": "the lists do not reach back",
        "evidence": [("here", "complete to August"), "nonsense", 7],
        "hint": "nothing needs to be done",
    }

    shown.screen.report("warning", fields)

    assert shown.out.getvalue() == ""
    assert shown.err.getvalue() == (
        "warning[change-gap]: the lists do not reach back\n"
        "  here   complete to August\n"
        "  fix    nothing needs to be done\n"
    )


def test_a_warning_without_evidence_is_one_line_and_none_when_quiet() -> None:
    loud, quiet = Shown(), Shown(quiet=1)

    for shown in (loud, quiet):
        shown.screen.report("warning", {"message": "m", "evidence": None})

    assert loud.err.getvalue() == "warning[warning]: m\n"
    assert quiet.err.getvalue() == ""


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


def test_words_are_coloured_when_asked_and_otherwise_not() -> None:
    colored, plain = Shown(color=True), Shown()

    for shown in (colored, plain):
        shown.screen.report("told", {})
        shown.screen.problem(PROBLEM)

    assert "\x1b[" in colored.out.getvalue()
    assert "\x1b[" in colored.err.getvalue()
    assert "\x1b" not in plain.out.getvalue() + plain.err.getvalue()


# --- JSON ---


def json_screen(**options: int) -> tuple[JsonScreen, io.StringIO, ManualClock]:
    stream, clock = io.StringIO(), ManualClock()
    screen = JsonScreen(
        command="pull", run="01JD", quiet=options.get("quiet", 0), stream=stream, clock=clock
    )
    return screen, stream, clock


def test_json_begins_with_the_start_and_ends_with_the_end() -> None:
    screen, stream, clock = json_screen()

    screen.start({"mirror": "museum"})
    screen.report("item", {"status": "ok", "uri": "http://h/a", "hash": Digest("md5", "00")})
    screen.problem(PROBLEM)
    clock.advance(seconds=1.5)
    screen.end(Outcome(exit=ExitCode.UNUSABLE, fields={"created": 1}))
    screen.close()

    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [row["type"] for row in rows] == ["run.start", "item", "error", "run.end"]
    assert {(row["v"], row["run"]) for row in rows} == {(1, "01JD")}
    assert rows[0]["command"] == "pull"
    assert rows[0]["mirror"] == "museum"
    assert rows[0]["time"].endswith("Z")
    assert rows[1]["hash"] == "md5:00"
    assert rows[2]["code"] == "source-not-found"
    assert rows[2]["exit"] == 5
    assert rows[2]["evidence"][0] == {"label": "tried", "text": "/a   404"}
    assert rows[3]["exit"] == 5
    assert rows[3]["created"] == 1
    assert rows[3]["seconds"] == 1.5


def test_json_and_quiet_leave_the_end_and_errors() -> None:
    screen, stream, _ = json_screen(quiet=1)

    screen.start({})
    screen.report("item", {})
    screen.problem(PROBLEM)
    screen.end(Outcome())

    types = [json.loads(line)["type"] for line in stream.getvalue().splitlines()]
    assert types == ["error", "run.end"]


def test_json_and_twice_quiet_leave_nothing() -> None:
    screen, stream, _ = json_screen(quiet=2)

    screen.start({})
    screen.problem(PROBLEM)
    screen.end(Outcome())

    assert stream.getvalue() == ""


def test_json_progress_comes_once_a_second_and_at_the_end() -> None:
    screen, stream, clock = json_screen()

    for done in range(101):
        screen.report("progress", {"done": done, "total": 100})
        clock.advance(seconds=0.1)

    shown = [json.loads(line)["done"] for line in stream.getvalue().splitlines()]
    assert shown[0] == 0
    assert shown[-1] == 100
    assert 10 <= len(shown) <= 12


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.text()
        | st.datetimes(timezones=st.just(UTC)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_every_json_line_is_one_line_of_json_whatever_a_source_wrote(value: object) -> None:
    screen, stream, _ = json_screen()

    screen.report("item", {"uri": value})

    (line,) = stream.getvalue().split("\n")[:-1]
    assert json.loads(line)["type"] == "item"


def test_json_spells_out_what_has_no_form_of_its_own() -> None:
    screen, stream, _ = json_screen()

    screen.report("item", {"at": datetime(2026, 1, 2, tzinfo=UTC), "odd": complex(1, 2), "t": (1,)})

    row = json.loads(stream.getvalue())
    assert row["at"] == "2026-01-02T00:00:00.000Z"
    assert row["odd"] == "(1+2j)"
    assert row["t"] == [1]


# --- streams ---


class Full(io.StringIO):
    """A stream on a disk that is full, or that nobody reads."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def write(self, text: str) -> int:
        raise OSError(self._number, "gone")


@pytest.mark.parametrize(("number", "code"), [(32, 141), (28, 8)])
def test_output_that_is_lost_ends_the_run(number: int, code: int) -> None:
    with pytest.raises(OutputLostError) as caught:
        write_line(Full(number), "text")

    assert caught.value.exit == code
    assert caught.value.reason == "gone"


def test_lost_output_is_no_failure_of_a_resource() -> None:
    assert not issubclass(OutputLostError, Exception)


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


# --- progress ---


def job(**options: Any) -> Job:
    return Job(
        command="pull",
        output=OutputOptions(**options),
        work=lambda _screen: Outcome(),
        words=no_words,
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
        ({}, False, True, PlainProgress),
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


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "x  0 resources  failed 0"),
        ({"done": 5, "failed": 2}, "x  5 resources  failed 2"),
        ({"done": 2, "total": 2, "bytes_done": 7}, "x  100 %  2/2 resources  7 B  7 B/s  failed 0"),
        ({"done": "many", "total": None}, "x  0 resources  failed 0"),
    ],
)
def test_a_plain_line_says_what_is_known(fields: dict[str, object], line: str) -> None:
    assert plain_line("x", fields, 1.0) == line


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


def test_a_bar_makes_room_for_lines() -> None:
    out, terminal = io.StringIO(), Terminal()
    screen = TextScreen(
        words=words,
        options=OutputOptions(verbose=1),
        streams=Streams(out=out, err=terminal),
        progress=BarProgress(stream=terminal),
    )

    screen.report("progress", {"done": 1, "total": 2, "bytes_done": 3})
    screen.report("item", {"uri": "http://h/a"})
    screen.end(Outcome())

    assert out.getvalue() == "+ http://h/a\n"
    assert terminal.getvalue().endswith("\x1b[2K") or "\x1b[?25h" in terminal.getvalue()


@pytest.mark.parametrize(
    ("color", "colored"), [("always", True), ("never", False), ("auto", False)]
)
def test_colour_may_be_forced(
    color: str, colored: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = open_screen(job(color=color), Environment())

    screen.problem(problem_of(StorageError("no room")))

    assert ("\x1b[" in capsys.readouterr().err) is colored


@pytest.mark.parametrize("color", [True, False])
def test_colour_follows_the_environment(color: bool, capsys: pytest.CaptureFixture[str]) -> None:
    screen = open_screen(job(), Environment(color=color))

    screen.problem(problem_of(StorageError("no room")))

    assert ("\x1b[" in capsys.readouterr().err) is color
