"""A second judge: an XML schema of version 1.1 accepts what we publish and what we call good.

The schema that was published for 0.9.1 knows no ``datetime`` and wants at least one entry; ours,
written for these tests, mends both, and checks values more closely.
"""

from pathlib import Path
from typing import Final

import pytest
from lxml import etree

from tests.support.documents.examples import Example, examples
from tests.support.rules.cases import CASES, Case
from tests.support.rules.documents import CH_1_0, GOOD, PLAIN, RD
from tests.support.rules.source import SOURCE
from tests.support.sources.publishing import split_source

SCHEMAS: Final = Path(__file__).parents[1] / "support" / "schemas"
SCHEMA: Final = etree.XMLSchema(etree.parse(SCHEMAS / "sitemap.xsd"))

SEEN: Final = {
    *("G03", "G09", "G10", "G11", "G12", "G13a", "G14", "G16", "G17", "G22", "G23", "G25"),
    *("G26", "G27", "G30", "G33", "G36", "RM05a"),
}
"""Rules that a schema can hold too; not where it takes the kind of document to know."""


def faults(data: bytes) -> list[str]:
    SCHEMA.validate(etree.fromstring(data))
    return [f"{error.line}: {error.message}" for error in SCHEMA.error_log]


@pytest.mark.parametrize("text", [*GOOD.values(), *SOURCE.values(), CH_1_0, PLAIN])
def test_what_the_validator_calls_good_fits_the_schema(text: str) -> None:
    assert faults(text.encode()) == []


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.rule in SEEN and case.good != RD],
    ids=lambda case: case.rule,
)
def test_what_breaks_a_rule_of_form_does_not_fit_the_schema(case: Case) -> None:
    assert faults(case.broken.encode()) != []


def test_what_we_publish_fits_the_schema() -> None:
    contents = split_source().contents()

    assert len(contents) > 5
    assert [fault for data in contents.values() for fault in faults(data)] == []


FITTING: Final = [
    example
    for example in examples("1.0", "1.1", "archives")
    if example.name != "resource-list-with-other-markup"  # the schema knows no such elements
]


@pytest.mark.parametrize("example", FITTING, ids=str)
def test_an_example_fits_the_schema_unless_its_hashes_are_wrong(example: Example) -> None:
    assert bool(faults(example.path.read_bytes())) is (example.name == "link-patch")
