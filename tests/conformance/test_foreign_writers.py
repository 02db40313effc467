"""Documents in the shapes of other writers, and what is wrong in them.

They are of our own making, in ``tests/data/writers``. What they say is held against another reader
in ``tests/properties``.
"""

from pathlib import Path
from typing import Final

import pytest

from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import Severity

PATHS: Final = sorted((Path(__file__).parents[1] / "data" / "writers").glob("*.xml"))
KNOWN_FOR: Final = {
    "dspace-changelist-archive": ["G35"],
    "hyrax-sourcedescription": ["SD02", "SD06"],
    "py-resourcesync-resourcedump": ["G13a"],
    "resync-changelist": ["CH01"],
    "resync-manifest": ["RM03", "RM03", "RM05a", "RM08"],
    "resync-simulator-changelist": ["CH01", "G40a"],
}
"""The rules that a writer is known to break."""


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_validate_names_the_faults_of_a_writer_and_raises_no_false_alarm(path: Path) -> None:
    findings = Examination([path.read_bytes()], uri=path.name)

    found = sorted(
        finding.rule.id for finding in findings if finding.severity is not Severity.ADVICE
    )
    assert found == KNOWN_FOR.get(path.stem, [])


def test_the_page_has_the_numbers_of_these_documents() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "conformance.md").read_text("utf-8")
    right = len(PATHS) - len(KNOWN_FOR)
    assert f"{len(PATHS)} documents in the shapes of six other writers, {right} are" in page
    assert f"in {len(KNOWN_FOR)} the faults are found" in page
    assert {path.stem for path in PATHS} > KNOWN_FOR.keys()
    assert len({path.stem.partition("-")[0] for path in PATHS}) == 6
