"""A first pull that was stopped: nobody knows how much is missing, so nothing is in sync."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, Said, rows
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


def test_figures_of_a_mirror_that_is_not_counted_have_no_ratio_and_no_lag(
    begun: str, said: Said
) -> None:
    assert run(["status", begun, "--format", "prom"]) == 0
    prom = said.readouterr().out
    assert run(["status", begun, "--check", "--max-lag", "1h"]) == 1

    assert 'resourcesync_mirror_resources{mirror="museum"}' in prom
    assert "in_sync_ratio" not in prom
    assert "lag_seconds" not in prom


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


def test_what_was_unknown_is_known_again_when_the_pull_has_come_to_its_end(
    begun: str, said: Said
) -> None:
    assert run(["pull", begun]) == 0
    assert run(["status", begun, "--check"]) == 0
    assert run(["audit", begun, "--offline"]) == 0
    said.readouterr()


def test_an_offline_audit_tells_of_what_waits(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    new = {**FILES, "/new.txt": b"new", "/objects/0001.txt": b"another"}
    source.offer(new, at="2026-01-02T00:00:00Z")
    del source.answers["/new.txt"], source.answers["/objects/0001.txt"]
    assert run(["pull", "museum"]) == 3
    said.readouterr()

    assert run(["audit", "museum", "--offline"]) == 1

    out = said.readouterr().out
    assert "+ /new.txt   missing, to be fetched: " in out
    assert "* /objects/0001.txt   " in out
    assert "coverage 92.3 % (12 of 13)" in out


def test_an_audit_of_a_mirror_where_nothing_is_advises_to_pull(
    source: TinySource, said: Said
) -> None:
    source.offer({})
    run(["pull", source.url, "museum"])
    source.offer(FILES, at="2026-01-02T00:00:00Z")
    said.readouterr()

    assert run(["audit", "museum"]) == 1

    out = said.readouterr().out
    assert "next        resourcesync pull museum" in out
    assert not Path("museum/objects").exists()
