"""Documents in the shapes of other writers: what they say, and what is wrong in them.

They are of our own making, in ``tests/data/writers``; ``expected.json`` there has the values of
each, and the rules that its writer is known to break.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from fuzz.accounts import Fields, ours
from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import Severity

FOLDER: Final = Path(__file__).parents[1] / "data" / "writers"
EXPECTED: Final[dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text("utf-8"))
TIMES: Final = {"at", "completed", "from", "until", "lastmod", "time", "modified"}
BREAKING: Final = {name: told["faults"] for name, told in EXPECTED.items() if told["faults"]}


def read(name: str) -> bytes:
    return (FOLDER / f"{name}.xml").read_bytes()


def written(fields: Fields) -> Fields:
    """Return what a reader says as the document writes it."""
    found = {name: as_written(name, value) for name, value in fields.items() if name != "label"}
    return found | {"index": True} if found.pop("is_index", False) else found


def as_written(name: str, value: Any) -> Any:
    if name in TIMES:
        return datetime.fromtimestamp(value / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if name == "digests":
        return " ".join(f"{digest.algorithm}:{digest.value}" for digest in value)
    if name == "links":
        return [written(dict(link)) for link in value]
    return dict(value) if name == "extra" else value


def test_each_document_is_expected() -> None:
    assert {path.stem for path in FOLDER.glob("*.xml")} == EXPECTED.keys()
    assert {name.partition("-")[0] for name in EXPECTED} >= {
        "resync",
        "py",
        "rspub",
        "cdluc3",
        "hyrax",
        "dspace",
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_every_value_of_a_foreign_document_is_read(name: str) -> None:
    account = ours(read(name))

    assert (account.failure, account.refusals) == ("", [])
    assert written(account.header) == EXPECTED[name]["root"]
    assert [written(entry) for entry in account.entries] == EXPECTED[name]["entries"]


@pytest.mark.parametrize("name", EXPECTED)
def test_validate_names_the_faults_of_a_writer_and_raises_no_false_alarm(name: str) -> None:
    findings = Examination([read(name)], uri=f"{name}.xml")

    found = sorted(
        finding.rule.id for finding in findings if finding.severity is not Severity.ADVICE
    )
    assert found == EXPECTED[name]["faults"]


def test_the_faults_that_these_writers_are_known_for_are_all_here() -> None:
    assert BREAKING == {
        "dspace-changelist-archive": ["G35"],
        "hyrax-sourcedescription": ["SD02", "SD06"],
        "py-resourcesync-resourcedump": ["G13a"],
        "resync-changelist": ["CH01"],
        "resync-manifest": ["RM03", "RM03", "RM05a", "RM08"],
        "resync-simulator-changelist": ["CH01", "G40a"],
    }


def test_the_page_has_the_numbers_of_these_documents() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "conformance.md").read_text("utf-8")
    right = len(EXPECTED) - len(BREAKING)
    assert f"{len(EXPECTED)} documents in the shapes of six other writers, {right} are" in page
    assert f"in {len(BREAKING)} the faults are found" in page
