"""The log of answers: its lines, and that it stops nobody."""

import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.errors import StorageError
from resourcesync.server.access_log import AccessLog
from tests.support.in_memory import ManualClock
from tests.support.servers.asgi import ask
from tests.support.servers.served_tree import application, plant, settled
from tests.support.waiting import wait_until

CLOCK = ManualClock(datetime(2026, 1, 31, 23, 59, 58, 7_000, UTC))
STAMP = "[31/Jan/2026:23:59:58 +0000]"
FIELDS = {"referer": "https://one.example/", "user-agent": "curl/8"}


@pytest.fixture
def app(tmp_path: Path) -> ASGIApp:
    return application(plant(tmp_path / "tree"), settled())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Send an empty answer."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


def test_each_answer_has_a_line_in_the_combined_format(app: ASGIApp, file: Path) -> None:
    with AccessLog(app, file, CLOCK) as log:
        ask(log, "/a/one.txt", fields=FIELDS)
        ask(log, "/a/one.txt", fields={"range": "bytes=2-4"})
        ask(log, "/a/big.bin", method="HEAD")
        ask(log, "/no%0Asuch")

    assert file.read_text().splitlines() == [
        f'- - - {STAMP} "GET /a/one.txt HTTP/1.1" 200 10 "https://one.example/" "curl/8"',
        f'- - - {STAMP} "GET /a/one.txt HTTP/1.1" 206 3 "-" "-"',
        f'- - - {STAMP} "HEAD /a/big.bin HTTP/1.1" 200 0 "-" "-"',
        f'- - - {STAMP} "GET /no%0Asuch HTTP/1.1" 404 11 "-" "-"',
    ]
    assert file.stat().st_mode & 0o007 == 0, "it has addresses of people"


@pytest.mark.parametrize("is_json", [False, True])
@given(raw=st.binary(max_size=20), text=st.text(st.characters(max_codepoint=255), max_size=20))
def test_no_request_forges_a_line_or_controls_a_terminal(
    tmp_path_factory: pytest.TempPathFactory, is_json: bool, raw: bytes, text: str
) -> None:
    file = tmp_path_factory.mktemp("log") / "access.log"
    with AccessLog(nothing, file, CLOCK, is_json=is_json) as log:
        ask(log, b"/" + raw, fields={"user-agent": text, "referer": text})

    line = file.read_text("ascii")
    assert line[-1:] == "\n"
    assert line[:-1].isprintable()
    if is_json:
        assert json.loads(line)["status"] == 204
    else:
        assert line.count('"') == 6


@pytest.mark.parametrize("kind", ["folder", "pipe", "no folder"])
def test_a_log_that_cannot_be_written_stops_nothing(app: ASGIApp, file: Path, kind: str) -> None:
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file = file / "access.log"
    with AccessLog(app, file, CLOCK) as log:
        with pytest.raises(StorageError) as caught:
            log.check()
        assert ask(log, "/a/one.txt").status == 200

    assert caught.value.code == "log"


def test_lines_that_a_full_disk_loses_are_counted(
    app: ASGIApp, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.symlink_to("/dev/full")
    caplog.set_level(logging.WARNING)
    with AccessLog(app, file, CLOCK) as log:
        ask(log, "/a/one.txt")
        ask(log, "/a/one.txt")
        wait_until(lambda: bool(caplog.messages))
        file.unlink()
        ask(log, "/a/one.txt")

    assert caplog.messages == [
        "the access log cannot be written: No space left on device",
        "the access log is written again; 2 lines of it are lost",
    ]
    assert file.read_text().count("\n") == 1


def test_a_log_that_was_moved_away_is_begun_again(app: ASGIApp, file: Path) -> None:
    old = file.with_name("access.log.1")
    with AccessLog(app, file, CLOCK) as log:
        ask(log, "/a/one.txt")
        wait_until(lambda: file.exists() and bool(file.read_text()))
        file.rename(old)
        ask(log, "/nope")

    assert '"GET /a/one.txt HTTP/1.1" 200' in old.read_text()
    assert '"GET /nope HTTP/1.1" 404' in file.read_text()


def test_lines_that_wait_for_a_slow_disk_have_bytes_for_a_limit(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, long = AccessLog(nothing, file, CLOCK), "a" * 1_000_000
    for _ in range(100):  # nobody writes them yet
        ask(log, "/", fields={"user-agent": long})
    with log:
        pass

    written = file.read_text().count("\n")
    assert written * len(long) <= 32 * 1024 * 1024
    assert caplog.messages == [
        f"the access log is written again; {100 - written} lines of it are lost"
    ]
    with AccessLog(nothing, file, CLOCK) as again:
        ask(again, "/", fields={"user-agent": long})
    assert file.read_text().count("\n") == written + 1
