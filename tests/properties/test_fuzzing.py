"""The fuzz targets, for a few seconds; ``python -m fuzz`` runs them for as long as wanted."""

from pathlib import Path
from random import Random

import pytest

from fuzz.campaign import campaign, fault_of
from fuzz.targets import SEEDS, TARGETS, WrongAnswerError, hold

RUNS = {
    "documents": (1000, "read"),
    "validator": (200, "found"),
    "long-lists": (200, "read"),
    "datetimes": (6000, "moment"),
    "hashes": (3000, "digests"),
    "link-fields": (3000, "link"),
    "zips": (3000, "read"),
    "tars": (600, "read"),
    "paths": (4000, "names"),
    "oai": (200, "records"),
    "lines": (500, "lines"),
    "json-patches": (500, "patched"),
    "xml-patches": (500, "patched"),
    "forms": (500, "form"),
    "http-fields": (1000, "field"),
}
"""How many inputs each target gets, and its answer to one that it understands."""
OPEN: dict[str, str] = {}
"""Faults that are known and not yet mended."""


def marked(name: str) -> pytest.MarkDecorator | tuple[()]:
    return pytest.mark.xfail(strict=True, reason=OPEN[name]) if name in OPEN else ()


@pytest.mark.parametrize("name", [pytest.param(target, marks=marked(target)) for target in TARGETS])
def test_nothing_but_the_documented_errors_comes_out_and_a_good_part_is_understood(
    name: str,
) -> None:
    count, good = RUNS[name]

    outcome = campaign(TARGETS[name], count=count, seed="smoke")

    assert outcome.findings == []
    assert outcome.count == count
    assert outcome.slowest < 1
    assert outcome.answers[good] >= count / 10


KEPT = [path for path in sorted(SEEDS.rglob("*")) if path.is_file() and path.suffix != ".md"]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=marked(path.parent.name), id=f"{path.parent.name}/{path.name}")
        for path in KEPT
    ],
)
def test_an_input_that_once_showed_a_fault_shows_none_now(path: Path) -> None:
    assert fault_of(TARGETS[path.parent.name], path.read_bytes()) == ""


# --- the machine itself ------------------------------------------------------------------------


class Brittle:
    """Fails in every way that is a finding."""

    name = "brittle"
    roughness = 0.0
    seeds: tuple[bytes, ...] = (b"good", b"crash <here>", b"law")

    def __init__(self) -> None:
        self.runs = 0

    def make(self, random: Random) -> bytes:
        return b"good" + random.randbytes(4)

    def run(self, data: bytes) -> str:
        self.runs += 1
        if b"here" in data:
            raise KeyError(data)
        hold(b"law" not in data, "a law")
        return "good"


def test_the_machine_finds_a_crash_and_makes_it_small() -> None:
    outcome = campaign(Brittle(), count=50)

    assert [(finding.what.split(" ")[0], finding.data) for finding in outcome.findings] == [
        ("KeyError", b"here"),
        (WrongAnswerError.__name__, b"law"),
    ]
    assert outcome.answers["fault"] >= 2
    assert outcome.answers["good"] + outcome.answers["fault"] == 50
