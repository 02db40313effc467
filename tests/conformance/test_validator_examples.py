"""Examples of every version under the validator; a second judge: an XML schema of version 1.1."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from lxml import etree

from resourcesync.model.settings import RuleProfile
from resourcesync.model.vocabulary import Dialect
from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import Severity
from tests.support.documents.examples import DIALECTS, OURS, PROFILES, Example, examples
from tests.support.rules.cases import CASES, Case
from tests.support.rules.documents import CH_1_0, GOOD, PLAIN, RD
from tests.support.rules.source import SOURCE
from tests.support.sources.publishing import split_source

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
    "bare-resource-dump": {"RD02": 1},
    "bare-dump-manifest": {"RM08": 2},
    "link-patch": {"G28": 4},
    "link-memento": {"LK06": 1},
}
"""Findings of 0.9, where no document must link up, and all the hops of a copy are told."""

SILENT: Final = {"closed-change-list", "small-capability-list"}
"""Examples of 0.9 in which nothing shows the version."""

FINDINGS: Final = {"1.1": SERIOUS, "1.0": SERIOUS, "0.9": OLD, "archives": {}}


def examined(
    example: Example, profile: RuleProfile | None = None
) -> tuple[Examination, Counter[str], Counter[str]]:
    examination = Examination(
        [example.path.read_bytes()],
        uri=example.path.name,
        profile=profile or PROFILES[example.version],
    )
    serious: Counter[str] = Counter()
    advice: Counter[str] = Counter()
    for finding in examination:
        (advice if finding.severity is Severity.ADVICE else serious)[finding.rule.id] += 1
        assert finding.line >= 1
        assert finding.excerpt
    assert examination.summary.complete
    return examination, serious, advice


@pytest.mark.founding(
    "0.9 §2-9", "The examples are validated by their own text", "`validate --profile rs-0.9`"
)
@pytest.mark.parametrize("example", examples("0.9", "1.0", "1.1", "archives"), ids=str)
def test_an_example_has_just_these_findings(example: Example) -> None:
    _, serious, advice = examined(example)

    undated = UNDATED.get(example.name, 0) if example.version == "1.1" else 0
    bare = 2 if example.name == "bare-resource-list" else 0
    assert serious == FINDINGS[example.version].get(example.name, {})
    assert (
        Counter(advice) - Counter({"LK10": 1})
        == Counter({"CH09": undated, "RL07": bare}) + Counter()
    )


@pytest.mark.founding(
    "0.9 §3", "Attributes have the prefix of the namespace, or none", "`validate --profile rs-0.9`"
)
def test_attributes_of_0_9_may_have_the_prefix_of_their_namespace() -> None:
    names = b"capability|from|hash|length|rel|href"
    example = next(example for example in examples("0.9") if example.name == "resource-list")
    text = re.sub(rb"\s(" + names + rb")=", rb" rs:\1=", example.path.read_bytes())

    found = {
        profile: Counter(
            finding.rule.id
            for finding in Examination([text], uri="http://a/l.xml", profile=profile)
        )
        for profile in ("rs-0.9", "rs-0.6")
    }

    assert text.count(b"rs:from=") == 1
    assert found["rs-0.9"] == {}
    assert found["rs-0.6"]["G09"] > 4


@pytest.mark.parametrize("example", examples("0.9"), ids=str)
def test_an_example_of_0_9_is_told_by_the_text_of_today(example: Example) -> None:
    examination, _, advice = examined(example, "rs-1.1")

    assert (examination.summary.dialect is Dialect.V0_9) is (example.name not in SILENT)
    assert advice["G44"] == (example.name not in SILENT)


def test_the_page_has_the_numbers_of_the_examples() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "conformance.md").read_text("utf-8")
    all_ = examples(*DIALECTS)
    own = [example for example in all_ if example.path.is_relative_to(OURS)]
    assert f"{len(own)} documents have the structure" in page
    if len(all_) > len(own):
        assert f"the {len(all_) - len(own)} examples of the specification itself" in page


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
