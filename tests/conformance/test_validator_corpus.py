"""The specification's own examples under the validator: what it finds in each, and nothing else."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from resourcesync.cli.main import run
from resourcesync.model.vocabulary import Dialect
from resourcesync.validator.examining import Examination, validate_document
from resourcesync.validator.rule import Profile, Severity
from tests.support.command_line import Said, rows

CORPUS: Final = Path(__file__).parents[2].parent / "shared" / "corpus"
pytestmark = pytest.mark.skipif(
    not (CORPUS / "spec-1.1").is_dir(), reason="the specification's examples are not here"
)

NO_UP: Final = {
    1: "RL02",
    2: "RL02",
    3: "CH02a",
    4: "RD01a",
    5: "RM03",
    8: "RI02",
}
"""The walkthrough examples leave out the link that section 9 and the following ask for."""

SERIOUS: Final = {
    **{number: {rule: 1} for number, rule in NO_UP.items()},
    4: {"RD01a": 1, "RD02": 1},
    5: {"RM03": 1, "RM08": 2},
    27: {"G28": 4},
    29: {"LK06": 1},
}
"""Findings of 1.0 and 1.1 that are more than advice; every other example has none."""

UNDATED: Final = {19: 1, 24: 1, 27: 2, **dict.fromkeys(range(29, 34), 1)}
"""Changes of version 1.1 without a time: advice."""

OLD: Final = {
    "2_1": {"G38": 1, "RL01": 1, "RL02": 1},
    "2_2": {"G38": 1, "RL01": 1, "RL02": 1},
    "2_3": {"CH02a": 1},
    "2_4": {"G38": 1, "RD01a": 2, "RD02": 1},
    "2_5": {"G38": 1, "RM03": 2, "RM08": 2},
    "2_6": {"CA01": 1},
    "2_7": {"G07": 1},
    "2_8": {"G38": 1, "RI01": 1, "RI02": 1},
    "4_1": {"G38": 1, "RL01": 1, "RL02": 1},
    "4_2": {"G38": 1, "RI01": 1, "RI02": 1},
    "4_3": {"G38": 1, "RL01": 1},
    "5_1": {"G38": 1, "RD01a": 2},
    "5_2": {"G38": 1, "RM03": 2},
    "6_1": {"CH02a": 1},
    "7_1": {"CD01a": 1, "CD04": 3},
    "7_2": {"CM01": 1},
    "8_1": {"CH02a": 1},
    "8_2": {"CH02a": 1},
    "8_3": {"CH02a": 1},
    "8_4": {"CH02a": 1, "G28": 4},
    "8_5": {"CH02a": 1},
    "8_6": {"CH02a": 1, "LK06": 1},
    "8_7": {"CH02a": 1},
    "8_8": {"CH02a": 1},
    "8_9": {"CH02a": 1},
    "8_10": {"CH02a": 1, "LK08": 1},
    "9_1": {"G07": 1},
    "9_2": {"CA01": 1},
}
"""Version 0.9 by the text of 1.1: `from` for `at`, `resourcesync` for `up` and `description`."""

SILENT: Final = {"2_3", "2_6"}
"""Examples of 0.9 in which nothing shows the version."""


def examined(path: Path, profile: Profile) -> tuple[Examination, Counter[str], Counter[str]]:
    examination = validate_document([path.read_bytes()], uri=path.name, profile=profile)
    serious: Counter[str] = Counter()
    advice: Counter[str] = Counter()
    for finding in examination:
        (advice if finding.severity is Severity.ADVICE else serious)[finding.rule.id] += 1
        assert finding.line >= 1
        assert finding.excerpt
    assert examination.summary.complete
    return examination, serious, advice


def numbers(version: str) -> list[int]:
    folder = CORPUS / f"spec-{version}"
    return sorted(int(path.stem.rsplit("_", 1)[1]) for path in folder.glob("*.xml"))


@pytest.mark.parametrize(("version", "profile"), [("1.0", Profile.RS_1_0), ("1.1", Profile.RS_1_1)])
def test_the_examples_of_a_version_have_just_these_findings(version: str, profile: Profile) -> None:
    assert len(numbers(version)) == 30
    for number in numbers(version):
        path = CORPUS / f"spec-{version}" / f"resourcesync_ex_{number}.xml"
        _, serious, advice = examined(path, profile)

        assert serious == SERIOUS.get(number, {}), number
        undated = UNDATED.get(number, 0) if profile is Profile.RS_1_1 else 0
        bare = 2 if number == 1 else 0
        assert advice == Counter({"CH09": undated, "RL07": bare}) + Counter(), number


def test_the_examples_of_archives_have_nothing_but_advice() -> None:
    paths = sorted((CORPUS / "archives-1.0").glob("*.xml"))
    assert len(paths) == 7
    for path in paths:
        _, serious, advice = examined(path, Profile.RS_1_0)

        assert (serious, advice) == ({}, {}), path.name


@pytest.mark.parametrize("name", OLD)
def test_an_example_of_0_9_tells_its_version_and_what_is_different_today(name: str) -> None:
    examination, serious, advice = examined(
        CORPUS / "spec-0.9" / f"resourcesync_ex_{name}.xml", Profile.RS_1_1
    )

    assert serious == OLD[name]
    assert (examination.summary.dialect is Dialect.V0_9) is (name not in SILENT)
    assert advice["G44"] == (name not in SILENT)
    assert set(advice) <= {"G44", "CH09", "RL07", "LK10"}


def test_every_example_of_0_9_is_expected_to_be_something() -> None:
    names = {path.stem.removeprefix("resourcesync_ex_") for path in (CORPUS / "spec-0.9").iterdir()}

    assert names == OLD.keys()


@pytest.mark.parametrize(
    ("folder", "profile", "expected"),
    [
        ("spec-1.1", "rs-1.1", {f"{number}": found for number, found in SERIOUS.items()}),
        ("spec-1.0", "rs-1.0", {f"{number}": found for number, found in SERIOUS.items()}),
        ("archives-1.0", "rs-1.0", {}),
        ("spec-0.9", "rs-1.1", OLD),
    ],
)
def test_the_command_finds_the_same_in_the_whole_folder(
    folder: str, profile: str, expected: dict[str, dict[str, int]], capsys: Said
) -> None:
    code = run(["validate", str(CORPUS / folder), "--profile", profile, "--json"])

    found: dict[str, Counter[str]] = {}
    for row in rows(capsys):
        if row["type"] == "finding" and row["severity"] != "advice":
            number = Path(row["uri"]).stem.partition("_ex_")[2]
            found.setdefault(number, Counter())[row["rule"]] += 1
    assert found == expected
    assert code == (1 if expected else 0)
