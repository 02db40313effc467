"""What is shown, where, and how much of it."""

import io
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import DETAIL, QUIET, TextLine
from resourcesync.cli.output import (
    CommandOutcome,
    OutputLostError,
    OutputOptions,
    Problem,
    Screen,
    write_line,
)
from resourcesync.cli.terminal import Streams, TextEncoder


def words(event: str, fields: Mapping[str, object]) -> Iterable[TextLine]:
    if event == "item":
        yield TextLine(f"{fields['uri']}", "+", DETAIL)
    elif event == "told":
        yield TextLine("usual", "Plan")
        yield TextLine("closing", "In sync", QUIET)


class Shown:
    """A text screen and what came out of it."""

    def __init__(self, *, color: bool = False, **options: Any) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        streams = Streams(out=self.out, err=self.err, color_out=color, color_err=color)
        text = TextEncoder(words=words, options=OutputOptions(**options), streams=streams)
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
