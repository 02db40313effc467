"""Foreign suites: their page says what they are, and a line of one can be red."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from campaigns.outcome import Outcome
from campaigns.suite_judges import judge_json_patch, judge_xml
from campaigns.suites import SUITES, judge, rows

PAGE = Path(__file__).parents[2] / "docs/explanation/campaigns.md"
SUITE = replace(SUITES[0], name="small", cases=2, exceptions={})


def violations(found: dict[str, str], **exceptions: str) -> list[str]:
    outcome = Outcome()
    judge(replace(SUITE, exceptions=exceptions), found, outcome)
    return outcome.violations


def test_the_page_has_the_rows_of_the_campaign() -> None:
    assert "\n".join(rows()) in PAGE.read_text("utf-8")


@pytest.mark.parametrize(
    ("found", "exceptions", "reason"),
    [
        ({"a": "", "b": "bad"}, {}, "small: b: bad"),
        ({"a": ""}, {}, "small: 1 cases, fewer than 2"),
        ({"a": "", "b": ""}, {"b": "why"}, "small: b was expected to fail, and did not"),
    ],
)
def test_a_fault_too_few_cases_and_a_passed_exception_are_violations(
    found: dict[str, str], exceptions: dict[str, str], reason: str
) -> None:
    assert violations(found, **exceptions) == [reason]


def test_passed_cases_and_expected_failures_are_no_violations() -> None:
    assert violations({"a": "", "b": "bad"}, b="why") == []


def test_documents_are_compared_with_expat_and_a_list_that_is_read_is_a_fault(
    tmp_path: Path,
) -> None:
    place = tmp_path / "package/build/dist/xmlconf"
    place.mkdir(parents=True)
    (place / "sound.xml").write_bytes(b"<?xml version='1.0'?><a b='c'>d</a>")
    (place / "broken.xml").write_bytes(b"<a b='c'>d</b>")
    (place / "list.xml").write_text(
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>'
    )
    found = judge_xml(tmp_path)

    assert [case for case, fault in found.items() if fault] == ["read list.xml"]
    assert len(found) == 6


def test_a_patch_with_another_result_is_a_fault(tmp_path: Path) -> None:
    place = tmp_path / "package"
    place.mkdir()
    patch = [{"op": "add", "path": "/a", "value": 1}]
    (place / "spec_tests.json").write_text("[]")
    cases = [
        {"doc": {}, "patch": patch, "expected": {"a": 1}},
        {"doc": {}, "patch": patch, "expected": {"a": 2}},
        {"doc": [], "patch": patch, "error": "it does not fit"},
        {"doc": {}, "patch": patch, "error": "it does not fit"},
        {"doc": {}, "patch": patch, "disabled": True},
    ]
    (place / "tests.json").write_text(json.dumps(cases))
    found = judge_json_patch(tmp_path)

    assert [case for case, fault in found.items() if fault] == ["tests.json 1", "tests.json 3"]
    assert len(found) == 4
