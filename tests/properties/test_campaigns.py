"""A small run of each campaign: the long ones are commands, ``python -m campaigns NAME``."""

from pathlib import Path

import pytest

from campaigns.__main__ import NAMES, load, main
from campaigns.dated import live_dated
from campaigns.outcome import Asked, Campaign, Outcome, table

pytestmark = pytest.mark.night


def test_every_campaign_has_a_name_and_can_be_started(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[2] / "campaigns"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__", "outcome"}

    assert set(NAMES) <= modules
    assert all(load(name).size > 0 for name in NAMES)
    with pytest.raises(SystemExit) as ended:
        main(["no-such"])
    assert ended.value.code == 2
    assert "no-such" in capsys.readouterr().err


def test_only_a_seed_that_fixes_all_is_said_to_show_the_first_violation_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def violated(_: Asked) -> Outcome:
        return Outcome(violations=["a file is gone"])

    for exact in (True, False):
        campaign = Campaign(run=violated, size=3, unit="things", exact=exact)
        monkeypatch.setattr("campaigns.__main__.load", lambda _, item=campaign: item)
        assert main(["race", "--seed", "7"]) == 1
        last = capsys.readouterr().out.splitlines()[-1]
        assert last.endswith("python -m campaigns race --seed 7 --size 3")
        assert ("the first again: " in last) is exact
        assert ("with the same choices, as chance has it: " in last) is not exact
    monkeypatch.undo()
    assert {name for name in NAMES if load(name).exact} == {
        *("ablation", "crash", "cursor", "foreign", "fuzz", "lives", "power", "uris")
    }


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


def test_short_lives_of_sources_whose_lists_lag_end_in_sync_each_time_alike() -> None:
    once, again = ([live_dated(seed) for seed in (3, 4, 7)] for _ in range(2))

    assert once == again == ["converged"] * 3


def test_a_campaign_of_fuzzing_gives_each_target_its_share(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from campaigns import fuzz  # what it imports makes its first documents
    from fuzz.targets import TARGETS

    assert set(fuzz.SHARES) == set(TARGETS)
    assert sum(fuzz.SHARES.values()) == 1_000

    assert main(["fuzz", "--size", "300", "--seed", "5"]) == 0
    told = capsys.readouterr().out
    assert ["documents:", "inputs", "30"] in [splitline.split() for splitline in told.splitlines()]
    assert told.splitlines()[-1].startswith("fuzz: 300 inputs, seed 5: 0 violations, ")
