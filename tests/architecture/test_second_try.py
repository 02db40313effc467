"""A server that a test starts gets a second try on another port."""

import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.commands.run import free_port
from tests.support.servers import second_try
from tests.support.servers.second_try import NotStartedError, Program, started

SERVER = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    server.accept()[0].close()
"""


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def taken_first(taken: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Have the first port that a server gets be a taken one."""
    ports = iter([taken])
    monkeypatch.setattr(second_try, "free_port", lambda: next(ports, None) or free_port())
    return taken


def words(ports: Mapping[str, int]) -> list[str]:
    return [sys.executable, "-c", SERVER, str(ports[""])]


def is_listening(found: Program) -> bool:
    return "listening" in found.said()


def test_a_server_whose_port_is_taken_starts_on_another(taken_first: int, tmp_path: Path) -> None:
    with started(words, tmp_path / "said", ready=is_listening) as found:
        assert found.port != taken_first
        assert found.accepts()
        assert found.said() == "listening\n"
    assert not found.lives()


def test_a_second_failure_is_reported_with_what_the_server_said(
    taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_try, "free_port", lambda: taken)
    with (
        pytest.raises(NotStartedError) as error,
        started(words, tmp_path / "said", ready=is_listening),
    ):
        raise AssertionError("it started")
    assert str(error.value).count("Address already in use") == second_try.TRIES


def test_a_server_that_never_becomes_ready_is_ended_and_tried_again(tmp_path: Path) -> None:
    tried: list[Program] = []

    def ready(found: Program) -> bool:
        tried.append(found)
        return False

    with (
        pytest.raises(NotStartedError),
        started(words, tmp_path / "said", ready=ready, seconds=0.1),
    ):
        raise AssertionError("it started")
    assert len({found.port for found in tried}) == second_try.TRIES
    assert not any(found.lives() for found in tried)
