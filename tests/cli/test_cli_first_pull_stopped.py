"""A first pull that was stopped: nobody knows how much is missing, so nothing is in sync."""

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import TinySource

LARGE = {f"/{number:02}.bin": bytes([number]) * 50_000 for number in range(12)}


@pytest.fixture
def begun(source: TinySource, said: Said) -> str:
    """Stop the first pull of a mirror when a few of its resources are here."""
    source.offer(LARGE)
    assert run(["pull", source.url, "museum", "-o", "max_bytes=200k"]) == 10
    said.readouterr()
    return "museum"


def test_the_share_and_the_lag_of_a_mirror_that_is_not_counted_are_not_known(
    begun: str, said: Said
) -> None:
    assert run(["status", begun, "--check"]) == 1

    out = said.readouterr().out
    assert "%" not in out
    assert out.splitlines()[1].split()[:4] == ["museum", "behind", "-", "-"]
    assert (
        "so the number of missing resources is unknown; continue with: resourcesync pull museum"
        in out
    )
    assert run(["status", begun, "--json"]) == 0
    (mirror,) = [row for row in rows(said) if row["type"] == "mirror"]
    assert (mirror["is_counted"], mirror["lag_seconds"]) == (False, None)


def test_an_offline_audit_of_a_first_pull_that_was_stopped_is_not_in_sync(
    begun: str, said: Said
) -> None:
    assert run(["audit", begun, "--offline"]) == 1

    out = said.readouterr().out
    assert "coverage not known: the first pull never completed; " in out
    assert "resourcesync pull museum" in out
    assert "In sync " not in out
    assert run(["audit", begun, "--offline", "--json"]) == 1
    end = rows(said)[-1]
    assert (end["is_begun"], end["in_sync"], end["coverage"]) == (True, False, None)
