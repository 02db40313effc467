"""Rules between documents, of delivery, of packages and of messages; and that no rule is left."""

import pytest
from msgspec.structs import replace

from resourcesync.validator.cross_document import judge_announced
from resourcesync.validator.delivery import judge_media_type, judge_resource, judge_robots
from resourcesync.validator.rule import RULES, CheckScope, find_rule, selected
from tests.support.rules.cases import CASES
from tests.support.rules.documents import BASE, CH, PLAIN, UP, url, urlset
from tests.support.rules.facts import ANSWER, FACTS, LISTED, Facts
from tests.support.rules.source import EDITS, SOURCE, Edit, judged, summarize


def test_a_good_source_has_no_finding() -> None:
    assert judged(SOURCE) == []


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.rule)
def test_an_edit_of_a_good_source_breaks_one_rule(edit: Edit) -> None:
    found = judged(edit.applied())

    assert {finding.rule.id for finding in found} == {edit.rule}
    assert (edit.at or edit.uri) in {finding.uri for finding in found}


BORDER = "2026-03-02T00:00:00Z"
LATER_PACKAGE = urlset(
    UP,
    f'<rs:md capability="changedump-manifest" from="{BORDER}" until="2026-03-03T00:00:00Z"/>',
    url(
        "b",
        '<rs:md change="created" datetime="2026-03-02T01:00:00Z" type="text/html" path="/b"/>',
    ),
)


@pytest.mark.parametrize(
    ("first_has_it", "second_has_it", "first_is_there", "told"),
    [
        (True, False, True, []),
        (False, True, True, []),
        (True, True, True, []),
        (False, False, True, ["cd1.zip"]),
        (False, False, False, []),  # it may have been in the package before
    ],
)
def test_a_change_at_the_border_of_two_packages_is_in_either(
    first_has_it: bool, second_has_it: bool, first_is_there: bool, told: list[str]
) -> None:
    packed = url("x", f'<rs:md change="deleted" datetime="{BORDER}"/>')
    first, second = BASE + "cd1.zip/manifest.xml", BASE + "cd2.zip/manifest.xml"
    source = {**SOURCE, second: LATER_PACKAGE}
    source[BASE + "ch1.xml"] = source[BASE + "ch1.xml"].replace("</urlset>", f"{packed}</urlset>")
    if first_has_it:
        source[first] = source[first].replace("</urlset>", f"{packed}</urlset>")
    if second_has_it:
        source[second] = source[second].replace("<url>", f"{packed}<url>", 1)
    if not first_is_there:
        del source[first]

    found = [(finding.rule.id, finding.uri) for finding in judged(source)]

    assert found == [("CM06", f"{BASE}{name}/manifest.xml") for name in told]


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts.rule)
def test_facts_keep_a_rule_or_break_just_it(facts: Facts) -> None:
    assert list(facts.keeping()) == []

    assert {finding.rule.id for finding in facts.breaking()} == {facts.rule}


def test_a_promise_of_the_caller_is_held() -> None:
    changes = summarize("https://e.example/ch.xml", CH)

    assert list(judge_announced("changelist", changes)) == []
    assert [finding.rule.id for finding in judge_announced("resourcelist", changes)] == ["G08"]


def test_every_rule_has_a_case_or_says_why_not() -> None:
    tried = {case.rule for case in CASES} | {edit.rule for edit in EDITS}
    tried |= {facts.rule for facts in FACTS} | {"G20", "SD08", "RM01", "RM10"}
    left = {rule.id for rule in RULES.values()} - tried

    assert left == {rule.id for rule in RULES.values() if rule.checked is CheckScope.LIVE}
    assert all(
        rule.reason
        for rule in RULES.values()
        if rule.checked in (CheckScope.LIVE, CheckScope.PARTLY)
    )


def test_what_is_right_or_none_of_our_business_is_not_told() -> None:
    plain = summarize("https://e.example/sitemap.xml", PLAIN)

    assert list(judge_robots("https://e.example/robots.txt", [plain])) == []
    assert list(judge_media_type("https://e.example/rl.xml.gz", "application/gzip")) == []
    assert (
        list(judge_resource(LISTED, replace(ANSWER, headers={"last-modified": "?"}), set())) == []
    )
    as_text = replace(ANSWER, headers={"content-type": "text/xml"})
    assert list(judge_resource(replace(LISTED, media_type="application/xml"), as_text, set())) == []


def test_rules_are_found_by_id_and_code_and_chosen_by_their_beginnings() -> None:
    assert find_rule(" ch05 ") is find_rule("RS402") is RULES["CH05"]
    assert find_rule("RS999") is None
    assert selected() == set(RULES)
    assert selected(["RS402", "ca01"]) == {"CH05", "CA01"}
    assert selected(["CH"], ["rs9", "CH05"]) < {rule for rule in RULES if rule.startswith("CH")}
    assert "CH05" not in selected(ignore=["RS4"])
    assert RULES["CH05"].family == "RS4"
