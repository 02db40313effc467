"""The lines of a log: for each run and each failure, as ``--json`` has them, and never fatal."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from resourcesync.cli.log_file import open_log
from resourcesync.cli.main import run
from tests.support.commands.command_line import MIRRORED, Said, rows
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource, dead_address

LOG = "all.ndjson"
JSON = ["--log-file", LOG]
OF_A_LOG = {"time", "level", "logger", "message"}


def logged(*kinds: str) -> list[dict[str, Any]]:
    """Return the lines of some kinds; each line of the log has the fields of all."""
    found = [json.loads(line) for line in Path(LOG).read_text().splitlines()]
    for row in found:
        assert {"v", "type", "run", *OF_A_LOG} <= row.keys()
    return [row for row in found if row["type"] in kinds]


def test_a_failure_is_a_line_with_its_code_and_its_address(said: Said) -> None:
    with dead_address() as dead:
        assert run(["pull", dead, "museum", "-o", "retries=0", "--json", *JSON]) == 4

    [error] = logged("error")
    assert (error["code"], error["exit"], error["level"]) == ("connect", 4, "error")
    assert error["uri"].startswith(dead)
    [end] = logged("run.end")
    assert (end["exit"], end["code"], end["level"]) == (4, "connect", "warning")
    assert end["uri"] == error["uri"]
    assert rows(said)[-1]["code"] == "connect"


# --- a log never stops a run ----------------------------------------------------------------------


def test_a_log_whose_folder_goes_and_comes_back_loses_lines_and_nothing_else(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    with open_log(folder / "x.log") as note:
        note("first")
        shutil.rmtree(folder)
        note("lost")
        folder.mkdir()
        note("again")

    assert (folder / "x.log").read_text().endswith(" again\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_of_the_log_does_not_stop_a_pull(source: TinySource, said: Said) -> None:
    assert run(["pull", source.url, "museum", "-q", "--log-file", "/dev/full"]) == 0
    assert files_of(Path("museum")) == MIRRORED
    assert said.readouterr() == ("", "")


def test_a_text_of_a_source_controls_no_terminal_that_shows_the_log(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as note:
        note("error: \x1b]0;title\x07 \u202etxt\nall is well")

    line = r"error: \x1b]0;title\x07 \u202etxt all is well" "\n"
    assert (tmp_path / "log").read_text().endswith(line)


def test_a_log_in_json_controls_no_terminal_either(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.json") as note:
        note("error: \x9b2J \u202etxt \u2028", {"uri": "http://h/\x7f"})

    (line,) = (tmp_path / "log.json").read_text().split("\n")[:-1]
    assert line.isprintable()
    assert json.loads(line)["message"] == "error: \x9b2J \u202etxt \u2028"
