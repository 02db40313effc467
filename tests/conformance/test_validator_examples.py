"""Examples of every version under the validator: what it finds in each, and nothing else."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from resourcesync.cli.main import run
from resourcesync.model.vocabulary import Dialect
from resourcesync.validator.examination import Examination, validate_document
from resourcesync.validator.rule import Severity
from tests.support.commands.command_line import Said, rows
from tests.support.documents.examples import (
    DIALECTS,
    OURS,
    PROFILES,
    Example,
    examples,
    folders,
    name_of,
)

SERIOUS: Final = {
    "bare-resource-list": {"RL02": 1},
    "hashed-resource-list": {"RL02": 1},
    "closed-change-list": {"CH02a": 1},
    "bare-resource-dump": {"RD01a": 1, "RD02": 1},
    "bare-dump-manifest": {"RM03": 1, "RM08": 2},
    "bare-resource-list-index": {"RI02": 1},
    "link-patch": {"G28": 4},
    "link-memento": {"LK06": 1},
}
"""Findings of 1.0 and 1.1 that are more than advice; every other example has none."""

UNDATED: Final = {
    **dict.fromkeys(("open-change-list", "link-duplicate", "link-memento", "link-collection"), 1),
    **dict.fromkeys(("aggregated-original", "aggregated-first", "aggregated-again"), 1),
    "link-patch": 2,
}
"""Changes of version 1.1 without a time: advice."""

OLD: Final = {
    "bare-resource-list": {"G38": 1, "RL01": 1, "RL02": 1},
    "hashed-resource-list": {"G38": 1, "RL01": 1, "RL02": 1},
    "closed-change-list": {"CH02a": 1},
    "bare-resource-dump": {"G38": 1, "RD01a": 2, "RD02": 1},
    "bare-dump-manifest": {"G38": 1, "RM03": 2, "RM08": 2},
    "small-capability-list": {"CA01": 1},
    "small-description": {"G07": 1},
    "bare-resource-list-index": {"G38": 1, "RI01": 1, "RI02": 1},
    "resource-list": {"G38": 1, "RL01": 1, "RL02": 1},
    "resource-list-index": {"G38": 1, "RI01": 1, "RI02": 1},
    "resource-list-part": {"G38": 1, "RL01": 1},
    "resource-dump": {"G38": 1, "RD01a": 2},
    "resource-dump-manifest": {"G38": 1, "RM03": 2},
    "change-list": {"CH02a": 1},
    "change-dump": {"CD01a": 1, "CD04": 3},
    "change-dump-manifest": {"CM01": 1},
    "link-duplicate": {"CH02a": 1},
    "link-alternate": {"CH02a": 1},
    "link-canonical": {"CH02a": 1},
    "link-patch": {"CH02a": 1, "G28": 4},
    "link-describedby": {"CH02a": 1},
    "link-memento": {"CH02a": 1, "LK06": 1},
    "link-collection": {"CH02a": 1},
    "aggregated-original": {"CH02a": 1},
    "aggregated-first": {"CH02a": 1},
    "aggregated-again": {"CH02a": 1, "LK08": 1},
    "description": {"G07": 1},
    "capability-list": {"CA01": 1},
}
"""Version 0.9 by the text of 1.1: `from` for `at`, `resourcesync` for `up` and `description`."""

SILENT: Final = {"closed-change-list", "small-capability-list"}
"""Examples of 0.9 in which nothing shows the version."""

FINDINGS: Final = {"1.1": SERIOUS, "1.0": SERIOUS, "0.9": OLD, "archives": {}}


def examined(example: Example) -> tuple[Examination, Counter[str], Counter[str]]:
    examination = validate_document(
        [example.path.read_bytes()], uri=example.path.name, profile=PROFILES[example.version]
    )
    serious: Counter[str] = Counter()
    advice: Counter[str] = Counter()
    for finding in examination:
        (advice if finding.severity is Severity.ADVICE else serious)[finding.rule.id] += 1
        assert finding.line >= 1
        assert finding.excerpt
    assert examination.summary.complete
    return examination, serious, advice


@pytest.mark.parametrize("example", examples("1.0", "1.1", "archives"), ids=str)
def test_an_example_has_just_these_findings(example: Example) -> None:
    _, serious, advice = examined(example)

    undated = UNDATED.get(example.name, 0) if example.version == "1.1" else 0
    bare = 2 if example.name == "bare-resource-list" else 0
    assert serious == FINDINGS[example.version].get(example.name, {})
    assert advice == Counter({"CH09": undated, "RL07": bare}) + Counter()


@pytest.mark.parametrize("example", examples("0.9"), ids=str)
def test_an_example_of_0_9_tells_its_version_and_what_is_different_today(example: Example) -> None:
    examination, serious, advice = examined(example)

    assert serious == OLD[example.name]
    assert (examination.summary.dialect is Dialect.V0_9) is (example.name not in SILENT)
    assert advice["G44"] == (example.name not in SILENT)
    assert set(advice) <= {"G44", "CH09", "RL07", "LK10"}


@pytest.mark.parametrize(
    ("version", "folder"),
    [(version, folder) for version in DIALECTS for folder in folders(version)],
)
def test_the_command_finds_the_same_in_the_whole_folder(
    version: str, folder: Path, capsys: Said
) -> None:
    code = run(["validate", str(folder), "--profile", PROFILES[version].value, "--json"])

    found: dict[str, Counter[str]] = {}
    for row in rows(capsys):
        if row["type"] == "finding" and row["severity"] != "advice":
            name = name_of(version, Path(row["uri"]))
            found.setdefault(name, Counter())[row["rule"]] += 1
    present = {name_of(version, path) for path in folder.glob("*.xml")}
    expected = {name: fields for name, fields in FINDINGS[version].items() if name in present}
    assert found == expected
    assert code == (1 if expected else 0)


def test_the_page_has_the_numbers_of_the_examples() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "conformance.md").read_text("utf-8")
    all_ = examples(*DIALECTS)
    own = [example for example in all_ if example.path.is_relative_to(OURS)]
    assert f"{len(own)} documents have the structure" in page
    if len(all_) > len(own):
        assert f"the {len(all_) - len(own)} examples of the specification itself" in page
