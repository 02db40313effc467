"""All campaigns in one run that may be killed and goes on, and the page of its results."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from campaigns import night
from campaigns.__main__ import main
from campaigns.sizes import SIZES

pytestmark = pytest.mark.night
ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="what was run is known by its commit")
def test_a_night_that_is_killed_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.jsonl"
    words = ["night", "--only", "uris,kill", "--scale", "0.003", "--results", str(results)]
    command = [sys.executable, "-m", "campaigns", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("uris: 3,000: held")
        os.kill(process.pid, signal.SIGKILL)
    with results.open("a") as file:
        file.write('{"campaign": "so')  # the kill may have cut off a line

    assert main(words) == 0

    told = capsys.readouterr().out
    assert "uris: held before" in told
    found = list(night.read(results))
    assert [(row["campaign"], row["status"]) for row in found] == [
        ("uris", "held"),
        ("kill", "held"),
    ]


def test_a_campaign_that_fails_stops_nothing_and_is_no_success(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    words = ["--scale", "0.000001", "--seed", "7", "--results", str(results)]

    assert main(["night", "--only", "uris,kill", *words]) == 1

    first, second = night.read(results)
    assert first["status"] == "violated"
    assert "nothing was proven" in first["violations"][0]
    assert (first["size"], first["seed"], first["tried"]) == (1, 7, 1)
    assert second["campaign"] == "kill"


def test_the_summary_has_the_last_result_of_each_and_says_how_much_was_run(tmp_path: Path) -> None:
    results, page = tmp_path / "results.jsonl", tmp_path / "page.md"
    common = {"campaign": "uris", "date": "2026-11-23T23:00:00+00:00", "commit": "abc", "seed": 7}
    held = {**common, "unit": "URIs", "violations": [], "status": "held"}
    lines = [
        {**held, "size": SIZES["uris"].release, "status": "violated", "violations": ["a | b"]},
        {**held, "size": 500_000, "seconds": 3.2, "processor": 2.0},
    ]
    results.write_text("".join(f"{json.dumps(item)}\n" for item in lines))

    assert main(["summary", "--results", str(results), "--page", str(page)]) == 0

    text = page.read_text("utf-8")
    assert f"Of {len(SIZES)} campaigns 1 held" in text
    assert "| `uris` | 500,000 URIs | 50.00% | 7 | held | 3 s | 2 s | " in text
    assert "Without a result: `ablation`, " in text
    assert "violations**" not in text
