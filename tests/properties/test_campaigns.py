"""A small run of each campaign: the long ones are commands, ``python -m campaigns NAME``."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from campaigns import fuzz
from campaigns.__main__ import NAMES, load, main
from campaigns.dated import live_dated
from campaigns.generated import installed
from campaigns.outcome import Asked, Campaign, Outcome, line, table
from fuzz.targets import TARGETS
from tests.support.storage.racing import race

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
        *("ablation", "crash", "cursor", "foreign", "fuzz", "lives", "power", "soak", "uris")
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


def test_the_first_violation_is_the_one_to_see_again() -> None:
    outcome, asked = Outcome(), Asked(size=20, seed=1, folder=Path())
    campaign = Campaign(run=lambda _: outcome, size=1, unit="states", exact=True)

    assert line("power", campaign, asked, outcome, 2.0) == (
        "power: 20 states, seed 1: 0 violations, 2.0 s"
    )
    outcome.require(0, "first", again=(7, 3))
    outcome.require(0, "second", again=(8, 3))
    assert line("power", campaign, asked, outcome, 2.0).endswith(
        "2 violations, 2.0 s; the first again: python -m campaigns power --seed 7 --size 3"
    )


def test_a_campaign_of_uris_finds_no_violation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uris", "--size", "3000"]) == 0
    assert "places checked" in capsys.readouterr().out


def test_short_lives_of_sources_whose_lists_lag_end_in_sync_each_time_alike() -> None:
    once, again = ([live_dated(seed) for seed in (3, 4, 7)] for _ in range(2))

    assert once == again == ["converged"] * 3


def test_a_campaign_of_fuzzing_gives_each_target_its_share(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert set(fuzz.SHARES) == set(TARGETS)
    assert sum(fuzz.SHARES.values()) == 1_000

    assert main(["fuzz", "--size", "300", "--seed", "5"]) == 0
    told = capsys.readouterr().out
    assert ["documents:", "inputs", "30"] in [splitline.split() for splitline in told.splitlines()]
    assert told.splitlines()[-1].startswith("fuzz: 300 inputs, seed 5: 0 violations, ")


def test_the_seed_that_finds_a_fault_finds_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object, data: bytes) -> str:
        assert b"-" not in data, "a fault"
        return "moment"

    monkeypatch.setattr(type(TARGETS["datetimes"]), "run", fail)
    monkeypatch.setattr(fuzz, "SHARES", {"datetimes": 1_000})
    monkeypatch.setattr(fuzz, "ROUND", 20)
    monkeypatch.setattr(fuzz, "ProcessPoolExecutor", ThreadPoolExecutor)

    first = fuzz.run(Asked(size=60, seed=3, folder=tmp_path))

    assert first.again == (3, 20)
    assert "AssertionError" in first.violations[0]
    assert first.violations[0].endswith("b'-'")
    assert fuzz.run(Asked(size=20, seed=3, folder=tmp_path)).violations == first.violations[:1]


def test_a_watch_that_is_killed_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watched", "--size", "2"]) == 0
    assert "kills" in capsys.readouterr().out


def test_indexes_equal_the_mirror_after_kills_of_the_pull_and_of_those_who_fill_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["index", "--size", "60"]) == 0
    assert ["comparisons", "1"] in [row.split() for row in capsys.readouterr().out.splitlines()]


@pytest.mark.skipif(not installed(), reason="nginx is not here")
def test_a_campaign_of_lists_plans_and_audits_what_it_should(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["lists", "--size", "6000"]) == 0
    told = capsys.readouterr().out
    assert "audit by lists, peak MiB" in told
    assert "to fetch" in told


@pytest.mark.skipif(not installed(), reason="nginx is not here")
def test_a_large_pull_that_is_killed_ends_complete_and_in_little_memory(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["large", "--size", "4000", "--kills", "1"]) == 0
    told = capsys.readouterr().out
    assert ["killed", "1"] in [row.split() for row in told.splitlines()]
    assert "audit by lists, peak MiB" in told


def test_two_thousand_operations_are_not_led_out_of_the_mirror(tmp_path: Path) -> None:
    result = race(tmp_path, operations=2_000, seed=1)

    assert result.escapes == []
    assert result.operations >= 2_000
    assert result.refused > 20
    assert result.swaps > 100
    assert result.done > 500


def test_clients_that_cannot_be_had_are_named_with_the_reason_and_prove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("RESOURCESYNC_CLIENTS", raising=False)
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "python").write_text("in the place of the environment")

    outcome = load("clients").run(Asked(size=6, seed=1, folder=tmp_path))

    told = dict(outcome.rows)
    assert told["rs-aggregator is skipped"] == "java is not installed"
    assert told["resync-client (Ruby) is skipped"] == "ruby is not installed"
    assert str(told["scrapy SitemapSpider is skipped"]).startswith(
        ("pip cannot install them", "python3.11 is not installed")
    )
    assert told["clients that could be had"] == 0
    assert outcome.missing == "no client could be had here"
