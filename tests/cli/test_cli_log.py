"""``--log-file`` and ``[log]``: notes apart from what a command says."""

import json
import logging
import re
from pathlib import Path

import pytest

from resourcesync.cli.log_file import keeping_log
from resourcesync.cli.main import run
from tests.support.command_line import Said, rows
from tests.support.settings_file import museum, put
from tests.support.tiny_source import TinySource

LINE = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning) resourcesync[\w.]* \S.*")


def test_a_log_has_a_line_for_the_beginning_and_the_end_and_stdout_stays_as_it_was(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "museum", "--json", "--log-file", "pull.log"]) == 0
    assert rows(said)[-1]["exit"] == 0
    source.answers.clear()
    assert run(["pull", "museum", "--retries", "0", "--log-file", "pull.log"]) == 5

    lines = Path("pull.log").read_text().splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    texts = [line.split(maxsplit=3)[3] for line in lines]
    assert [text for text in texts if text.startswith("pull ")] == [
        "pull begins",
        "pull ends with exit 0",
        "pull begins",
        "pull ends with exit 5",
    ]
    assert [text for text in texts if text.startswith("error[missing]: ")]
    assert any("resourcesync.destination" in line for line in lines), "the library's own notes"


def test_the_configuration_says_where_and_how_and_the_command_line_stands_above_it(
    source: TinySource,
) -> None:
    put(museum(source) + '[log]\nfile = "logs/all.ndjson"\nformat = "json"\n')
    Path("logs").mkdir()

    assert run(["pull", "museum"]) == 0
    assert run(["status", "museum", "--log-file", "other.log", "--log-format", "text"]) == 0

    found = [json.loads(line) for line in Path("logs/all.ndjson").read_text().splitlines()]
    assert [set(row) for row in found] == [{"time", "level", "logger", "message"}] * len(found)
    assert found[-1]["message"] == "pull ends with exit 0"
    assert LINE.fullmatch(Path("other.log").read_text().splitlines()[0])


@pytest.mark.parametrize(
    ("table", "told"),
    [('file = ""', "must be a file"), ('format = "xml"', "format"), ('fil = "x"', "`file`")],
)
def test_a_mistake_in_the_table_is_told(
    table: str, told: str, source: TinySource, said: Said
) -> None:
    put(f"{museum(source)}[log]\n{table}\n")

    assert run(["pull", "museum"]) == 2
    assert told in said.readouterr().err


def test_a_log_that_cannot_be_opened_ends_the_command_before_anything_is_done(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "museum", "--log-file", "not/there.log"]) == 8
    assert "cannot write the log not/there.log" in said.readouterr().err
    assert not Path("museum").exists()


def test_the_log_of_one_command_is_over_with_it(tmp_path: Path, said: Said) -> None:
    path, logger = tmp_path / "x.log", logging.getLogger("resourcesync")
    with keeping_log(path, "text", verbose=2) as note:
        note("two\nlines")
        logger.debug("fine")
        path.rename(tmp_path / "moved.log")  # as logrotate does
        note("after")
    logger.info("too late")

    assert [
        line.split(maxsplit=3)[3] for line in (tmp_path / "moved.log").read_text().splitlines()
    ] == ["two lines", "fine"]
    assert path.read_text().endswith(" after\n")
    assert not [it for it in logger.handlers if not isinstance(it, logging.NullHandler)]
    assert said.readouterr().err == ""
