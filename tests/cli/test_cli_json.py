"""NDJSON: every line an object, the first the start, the last the end."""

import io
import json
from datetime import UTC
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.json_output import JsonEncoder, json_line
from resourcesync.cli.output import Screen
from tests.support.in_memory import ManualClock


def json_screen(**options: int) -> tuple[Screen, io.StringIO, ManualClock]:
    stream, clock = io.StringIO(), ManualClock()
    lines = JsonEncoder(run="01JD", quiet=options.get("quiet", 0), stream=stream, clock=clock)
    return Screen("pull", [lines], clock), stream, clock


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


# C1, DEL, bidirectional, line ends that JSON leaves alone, and one beyond the first plane.
HIDDEN = "\x9b31m \x7f \x85 \u202etxt.exe\u2066 \u200b \u2028\u2029 \U000e0001 \x1b[2J"


@pytest.mark.parametrize("name", ["uri", HIDDEN])
def test_json_lets_no_text_of_a_source_control_a_terminal_and_keeps_its_value(name: str) -> None:
    screen, stream, _ = json_screen()
    text = f"caf\u00e9 \u6f22\u5b57 {HIDDEN}"

    screen.report("item", {name: [text, text]})

    shown = stream.getvalue()
    assert shown[:-1].isprintable()
    assert "caf\u00e9 \u6f22\u5b57 \\u009b31m \\u007f" in shown
    assert json.loads(shown)[name] == [text, text]
    assert msgspec.json.decode(shown)[name] == [text, text]
    assert json_line("item", "", {name: text}).decode()[:-1].isprintable()


def test_json_has_a_form_for_a_name_that_is_no_text() -> None:
    screen, stream, _ = json_screen()

    screen.report("item", {"uri\udc80": ["\ud800", Path("\udcff")]})

    row = msgspec.json.decode(stream.getvalue())
    assert row["uri\\udc80"] == ["\\ud800", "\\udcff"]
