"""``pull`` with a limit of time or bytes, of lists only, and the figures that it leaves."""

import re
from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, MIRRORED, Said, rows
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

LARGE = {f"/{number:02}.bin": bytes([number]) * 50_000 for number in range(12)}


def figures(path: Path) -> dict[str, float]:
    lines = path.read_text(encoding="utf-8").splitlines()
    told = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in told}


# --- time and bytes ---


def test_a_pull_that_ran_out_of_bytes_says_what_remains_and_the_next_goes_on(
    source: TinySource, said: Said
) -> None:
    source.offer(LARGE)

    assert run(["pull", source.url, "museum", "-o", "max_bytes=200k"]) == 10

    *_, done, what, following = said.readouterr().out.splitlines()
    found = re.fullmatch(
        r"Not done  (\d+) of 12 in the mirror \(\1 created\); "
        r"(\d+) resources remain, (\d+).0 kB  exit 10",
        done,
    )
    assert found is not None, done
    here, rest, size = map(int, found.groups())
    assert here + rest == 12
    assert size == 50 * rest
    assert 1 <= here <= 4
    assert what == "          the limit of bytes was reached; all files are complete"
    assert following == "  next   run it again to continue: resourcesync pull museum"
    assert run(["status", "museum", "--check"]) == 1
    codes = [run(["pull", "museum", "-o", "max_bytes=200k"]) for _ in range(12)]
    assert codes[0] == 10
    assert codes[-1] == 0
    assert len(files_of(Path("museum"))) == 12


def test_a_pull_that_ran_out_of_time_before_the_lists_were_found_says_so(
    source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "museum", "--max-duration", "0s"]) == 10

    assert "error[budget]: the time limit of this run is reached" in said.readouterr().err
    assert not Path("museum").exists()


def test_a_mirror_whose_pull_had_no_time_stays_as_it_is(source: TinySource, said: Said) -> None:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()

    assert run(["pull", "museum", "--max-duration", "0s", "--json"]) == 10

    end = rows(said)[-1]
    assert (end["state"], end["spent"], end["exit"]) == ("behind", "time", 10)
    assert files_of(Path("museum")) == MIRRORED
    assert run(["pull", "museum"]) == 0


# --- lists only ---


def test_deletions_that_an_inventory_left_are_not_called_held_back(
    source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "museum"])
    source.offer({name: body for name, body in FILES.items() if "0003" not in name}, at=LATER)
    assert run(["pull", "museum", "--lists-only"]) == 3
    said.readouterr()

    assert run(["status", "museum"]) == 0

    text = said.readouterr().out
    assert "1 deletion pending until the next pull." in text
    assert "held back" not in text
    assert run(["pull", "museum"]) == 0
    assert not Path("museum/objects/0003.txt").exists()
