"""``pull``: what it says before and after a run that is not all that it seems."""

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.servers.tiny_source import Answer, TinySource


def test_what_the_server_refuses_is_not_advised_to_run_again(
    source: TinySource, said: Said
) -> None:
    source.answers["/objects/0004.txt"] = Answer(status=403)

    assert run(["pull", source.url, "museum"]) == 3

    last, *steps = said.readouterr().out.splitlines()[-3:]
    assert last.startswith("Not in sync   11 of 12 (11 created, 1 failed)")
    assert steps == [
        "  next   1 listed resource refused by the server (401, 403): give its credentials",
        "         (--auth NAME), leave it out (--exclude GLOB), or ask the Source",
    ]
