"""A disk that is full: the next step that the errors name, in each place, is a command that works.

A limit of the size of files has the same effect on a download as a full disk.
"""

import re
import resource
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, Said
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource

ROOM = 1_000_000
COMMAND = re.compile(r"resourcesync (trash empty .*)")


@contextmanager
def full_disk() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "pull", [["SOURCE", "copies/museum"], ["museum"], ["museum", "copies/museum-2"], ["--all"]]
)
def test_a_pull_that_fails_names_the_command_that_makes_room(
    source: TinySource, said: Said, pull: list[str]
) -> None:
    put(museum(source))
    assert run(["pull", "museum", "-qq"]) == 0
    assert run(["pull", source.url, "copies/museum-2", "-qq"]) == 0
    source.offer({**FILES, "/large.bin": b"x" * 3 * ROOM})

    with full_disk():
        assert run(["pull", *(source.url if part == "SOURCE" else part for part in pull)]) == 8

    commands = COMMAND.findall(said.readouterr().err)
    assert commands
    for command in commands:
        assert run(shlex.split(command)) == 0
