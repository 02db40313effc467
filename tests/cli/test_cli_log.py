"""``--log-file`` and ``[log]``: notes apart from what a command says."""

import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.cli.log_file import LogEncoder, open_log
from resourcesync.cli.main import run
from resourcesync.cli.output import CommandOutcome, Job, Screen
from resourcesync.cli.terminal import warnings_on_screen
from tests.support.commands.command_line import MIRRORED, Said, rows
from tests.support.commands.meanwhile import meanwhile
from tests.support.commands.run import files_of
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource, dead_address

OWN = logging.getLogger("resourcesync.cli")

LINE = re.compile(
    r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning|error) resourcesync[\w.]* \S.*"
)


def test_a_log_has_a_line_for_the_beginning_and_the_end_and_stdout_stays_as_it_was(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "museum", "--json", "--log-file", "pull.log"]) == 0
    assert rows(said)[-1]["exit"] == 0
    source.answers.clear()
    assert run(["pull", "museum", "-o", "retries=0", "--log-file", "pull.log"]) == 5

    lines = Path("pull.log").read_text().splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    own = [line.split(maxsplit=3)[3] for line in lines if " resourcesync.cli " in line]
    assert [re.sub(r" after [\d.e-]+ s$", "", name) for name in own if ": " not in name] == [
        "pull museum begins",
        "pull museum ends with exit 0",
        "pull museum begins",
        "pull museum ends with exit 5",
    ]
    assert own[1].startswith("pull museum: In sync 12 resources")
    [error] = [name for name in own if name.startswith("error[missing]: ")]
    assert source.url in error
    assert any("resourcesync.destination" in line for line in lines), "the library's own notes"


def test_the_configuration_says_where_and_how_and_the_command_line_stands_above_it(
    source: TinySource,
) -> None:
    put(museum(source, "retries = 0") + '[log]\nfile = "logs/all.ndjson"\n')
    Path("logs").mkdir()

    assert run(["pull", "museum"]) == 0
    assert run(["status", "museum", "--log-file", "other.log"]) == 0
    source.answers.clear()
    assert run(["pull", "museum"]) == 5

    found = [json.loads(line) for line in Path("logs/all.ndjson").read_text().splitlines()]
    assert all(
        {"v", "type", "run", "time", "level", "logger", "message"} <= set(row) for row in found
    )
    good, bad = (row for row in found if row["type"] == "run.end")
    assert good["message"].startswith("pull museum ends with exit 0 after ")
    assert (good["exit"], good["created"]) == (0, 12)
    [error] = [row for row in found if row["type"] == "error"]
    assert (error["code"], error["exit"], error["level"]) == ("missing", 5, "error")
    assert (bad["exit"], bad["code"], bad["level"]) == (5, "missing", "warning")
    assert bad["uri"] == error["uri"] == f"{source.url}/resourcelist.xml"
    assert LINE.fullmatch(Path("other.log").read_text().splitlines()[0])


def test_a_log_that_cannot_be_opened_is_a_warning_and_the_command_goes_on(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "museum", "--log-file", "not/there.log"]) == 0
    err = said.readouterr().err
    assert "warning[log]: cannot write the log not/there.log: No such file or directory" in err
    assert "fix    name a file in a folder that exists" in err
    assert files_of(Path("museum")) == MIRRORED


def test_the_log_of_a_service_has_what_it_reports(source: TinySource, said: Said) -> None:
    log = Path("watch.ndjson")

    def logged(event: str) -> dict[str, dict[str, Any]]:
        lines = log.read_text().splitlines() if log.exists() else []
        return {item["mirror"]: item for item in map(json.loads, lines) if item["type"] == event}

    with dead_address() as dead:
        put(
            museum(source)
            + f'[mirror.dead]\nsource = "{dead}"\ndest = "dead"\nretries = 0\n'
            + f'[defaults]\nevery = "1h"\n[log]\nfile = "{log}"\n'
        )
        with meanwhile(lambda: len(logged("watch.pull")) == 2):
            assert run(["watch", "-q"]) == 0

    good, bad = logged("watch.pull")["museum"], logged("watch.pull")["dead"]
    assert (good["exit"], good["created"], good["level"]) == (0, 12, "info")
    assert (bad["exit"], bad["code"], bad["tries"], bad["level"]) == (4, "connect", 1, "warning")
    assert bad["uri"].startswith(dead)
    assert "museum in sync 12 changes" in good["message"]
    address = dead.removeprefix("http://").rstrip("/")
    assert bad["message"] == f"cannot connect to {address}"
    assert "museum" not in said.readouterr().out  # -q is of the screen
    assert '"message":"watch begins"' in log.read_text()
    assert '"message":"watch ends with exit 0 after ' in log.read_text()


def warned(screen: Screen) -> CommandOutcome:
    log = logging.getLogger("resourcesync.somewhere")
    for number in range(30):
        log.info("of no interest")
        log.warning("row %d is left out", number)
        log.warning("the same each time")
    screen.report("warning", {"code": "cut-list", "message": "told as an event"})
    return CommandOutcome()


def test_warnings_of_the_library_are_shown_each_once_and_not_too_many(
    with_job: Callable[..., None], said: Said
) -> None:
    with_job(warned)
    assert run(["demo"]) == 0

    lines = said.readouterr().err.splitlines()
    assert lines[:2] == [
        "warning[library]: row 0 is left out",
        "warning[library]: the same each time",
    ]
    assert len(lines) == 22
    assert "see them all with --log-file FILE" in lines[-2]

    logging.getLogger("resourcesync.somewhere").warning("nobody runs now")
    assert said.readouterr().err == ""


def test_a_warning_of_the_library_is_in_the_log_once(tmp_path: Path) -> None:
    with open_log(tmp_path / "log"):
        screen = Screen("demo", [LogEncoder(Job(work=warned))])
        with warnings_on_screen(screen):
            warned(screen)

    text = (tmp_path / "log").read_text()
    assert text.count("row 7 is left out") == text.count("told as an event") == 1


def test_a_log_whose_folder_goes_and_comes_back_loses_lines_and_nothing_else(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    with open_log(folder / "x.log"):
        OWN.info("first")
        shutil.rmtree(folder)
        OWN.info("lost")
        folder.mkdir()
        OWN.info("again")

    assert (folder / "x.log").read_text().endswith(" again\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_of_the_log_does_not_stop_a_pull(source: TinySource, said: Said) -> None:
    assert run(["pull", source.url, "museum", "-q", "--log-file", "/dev/full"]) == 0
    assert files_of(Path("museum")) == MIRRORED
    assert said.readouterr() == ("", "")


def test_a_text_of_a_source_controls_no_terminal_that_shows_the_log(tmp_path: Path) -> None:
    for name in ("log", "log.json"):
        with open_log(tmp_path / name):
            OWN.info(
                "error: \x1b]0;title\x07 \x9b2J \u202etxt\nall \u2028 is well",
                extra={"fields": {"uri": "http://h/\x7f"}},
            )

    shown = (tmp_path / "log").read_text()
    assert shown[:-1].isprintable()
    assert r"error: \x1b]0;title\x07 \x9b2J \u202etxt all " in shown
    (line,) = (tmp_path / "log.json").read_text().split("\n")[:-1]
    assert line.isprintable()
    assert (
        json.loads(line)["message"]
        == "error: \x1b]0;title\x07 \x9b2J \u202etxt\nall \u2028 is well"
    )
