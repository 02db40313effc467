"""A small run of each campaign: the long ones are commands, ``python -m campaigns NAME``."""

import pytest

from campaigns.__main__ import main
from campaigns.outcome import Outcome, table

pytestmark = pytest.mark.night


def test_a_violation_is_told_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome()
    outcome.require(1, "never")
    outcome.require(0, "a file is gone")
    outcome.add("files", 12_345)

    assert list(table("title", outcome)) == [
        "title",
        "  files  12,345",
        "  VIOLATED  a file is gone",
    ]
    assert main(["uris", "--size", "1", "--seed", "7"]) == 1
    told = capsys.readouterr().out
    assert "nothing was proven" in told
    assert told.endswith("; the first again: python -m campaigns uris --seed 7 --size 1\n")


def test_a_campaign_of_uris_finds_no_violation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uris", "--size", "3000"]) == 0
    assert "places checked" in capsys.readouterr().out
