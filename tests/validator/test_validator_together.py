"""Rules between documents, of delivery, of packages and of messages; and that no rule is left."""

import pytest

from resourcesync.validator.rule import Checked
from resourcesync.validator.rules import RULES
from resourcesync.validator.together import judge_announced
from tests.support.rule_cases import CASES
from tests.support.rule_documents import CH
from tests.support.rule_facts import FACTS, Facts
from tests.support.rule_source import EDITS, SOURCE, Edit, judged, summarize


def test_a_good_source_has_no_finding() -> None:
    assert judged(SOURCE) == []


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.rule)
def test_an_edit_of_a_good_source_breaks_one_rule(edit: Edit) -> None:
    found = judged(edit.applied())

    assert {finding.rule.id for finding in found} == {edit.rule}
    assert (edit.at or edit.uri) in {finding.uri for finding in found}


def test_a_description_at_another_address_than_the_well_known_one_is_told() -> None:
    moved = {
        uri.replace(".well-known/resourcesync", "sd.xml"): text.replace(
            ".well-known/resourcesync", "sd.xml"
        )
        for uri, text in SOURCE.items()
    }

    assert [finding.rule.id for finding in judged(moved)] == ["SD08"]


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts.rule)
def test_facts_keep_a_rule_or_break_just_it(facts: Facts) -> None:
    assert list(facts.keeping()) == []

    assert {finding.rule.id for finding in facts.breaking()} == {facts.rule}


def test_a_promise_of_the_caller_is_held() -> None:
    changes = summarize("https://e.example/ch.xml", CH)

    assert list(judge_announced("changelist", changes)) == []
    assert [it.rule.id for it in judge_announced("resourcelist", changes)] == ["G08"]


def test_every_rule_has_a_case_or_says_why_not() -> None:
    tried = {case.rule for case in CASES} | {edit.rule for edit in EDITS}
    tried |= {facts.rule for facts in FACTS} | {"G20", "SD08"}
    left = {rule.id for rule in RULES.values()} - tried

    assert left == {rule.id for rule in RULES.values() if rule.checked is Checked.LIVE}
    assert all(
        rule.reason for rule in RULES.values() if rule.checked in (Checked.LIVE, Checked.PARTLY)
    )
