"""``pull`` with a limit of time or bytes, of lists only, and the figures that it leaves."""

from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import MIRRORED, Said, rows
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource


def figures(path: Path) -> dict[str, float]:
    lines = path.read_text(encoding="utf-8").splitlines()
    told = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in told}


# --- time and bytes ---


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
