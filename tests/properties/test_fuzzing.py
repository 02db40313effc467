"""The fuzz targets, for a few seconds; ``python -m fuzz`` runs them for as long as wanted."""

import io
from pathlib import Path
from random import Random

import pytest

from fuzz.campaign import campaign, fault_of
from fuzz.packages import files, zipped_with
from fuzz.randomness import chance
from fuzz.targets import SEEDS, TARGETS, WrongAnswerError, hold
from resourcesync.documents.packages.reader import open_package

COUNTS = {
    "documents": 1000,
    "validator": 200,
    "long-lists": 200,
    "datetimes": 6000,
    "hashes": 3000,
    "link-fields": 3000,
    "zips": 3000,
    "tars": 600,
    "paths": 4000,
    "oai": 200,
    "lines": 500,
    "json-patches": 500,
    "xml-patches": 500,
    "forms": 500,
    "http-fields": 1000,
}
OPEN: dict[str, str] = {}
"""Faults that are known and not yet mended."""


def marked(name: str) -> pytest.MarkDecorator | tuple[()]:
    return pytest.mark.xfail(strict=True, reason=OPEN[name]) if name in OPEN else ()


@pytest.mark.parametrize("name", [pytest.param(target, marks=marked(target)) for target in TARGETS])
def test_nothing_but_the_documented_errors_comes_out(name: str) -> None:
    outcome = campaign(TARGETS[name], count=COUNTS[name], seed="smoke")

    assert outcome.findings == []
    assert outcome.count == COUNTS[name]
    assert outcome.slowest < 1


@pytest.mark.parametrize("name", TARGETS)
def test_a_good_part_of_the_inputs_is_understood(name: str) -> None:
    good = {
        "long-lists": "read",
        "documents": "read",
        "validator": "found",
        "datetimes": "moment",
        "hashes": "digests",
    }
    good |= {"link-fields": "link", "zips": "read", "tars": "read", "paths": "names"}
    good |= {"oai": "records", "lines": "lines", "forms": "form"}
    good |= {"json-patches": "patched", "xml-patches": "patched", "http-fields": "field"}

    outcome = campaign(TARGETS[name], count=200, seed="understood")

    assert outcome.answers[good[name]] >= 20


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


def test_every_seed_belongs_to_a_target() -> None:
    assert {path.parent.name for path in KEPT} <= set(TARGETS)
    assert KEPT
    for path in KEPT:
        assert path.read_bytes() in TARGETS[path.parent.name].seeds


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


class Fickle(Brittle):
    def run(self, data: bytes) -> str:
        self.runs += 1
        return f"good {self.runs}"


def test_the_machine_finds_a_crash_and_makes_it_small() -> None:
    outcome = campaign(Brittle(), count=50)

    assert [(finding.what.split(" ")[0], finding.data) for finding in outcome.findings] == [
        ("KeyError", b"here"),
        (WrongAnswerError.__name__, b"law"),
    ]
    assert outcome.answers["fault"] >= 2
    assert outcome.answers["good"] + outcome.answers["fault"] == 50


def test_the_machine_finds_an_answer_that_changes() -> None:
    outcome = campaign(Fickle(), count=200)

    assert [finding.what for finding in outcome.findings] == ["not the same twice"]


def test_an_honest_package_of_the_generator_is_read() -> None:
    manifest = files(chance("m"))[0]
    for number in range(50):
        data = zipped_with(chance(number), [manifest, ("a", b"x")], lies=10**9)

        assert open_package(io.BytesIO(data)).unlisted == ["a"]
