"""Every rule: what keeps it, one that breaks just it, in one document and between documents."""

import pytest
from msgspec.structs import replace

from resourcesync.documents.packages.planning import PackageSize
from resourcesync.model.settings import RuleProfile
from resourcesync.validator.cross_document import judge_announced, judge_together
from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import RULES, CheckScope, Level, RuleFinding, find_rule, selected
from resourcesync.validator.served_responses import judge_media_type, judge_resource, judge_robots
from tests.support.rules.cases import CASES, Case
from tests.support.rules.documents import BASE, CH, GOOD, PLAIN, UP, url, urlset
from tests.support.rules.facts import ANSWER, FACTS, LISTED, Facts
from tests.support.rules.source import EDITS, SOURCE, Edit, judged, summarize
from tests.support.worlds.dumping import DumpedSource


def found_in(text: str, *, uri: str, profile: RuleProfile = "rs-1.1") -> list[RuleFinding]:
    return list(Examination([text.encode()], uri=uri, profile=profile))


def name(case: Case) -> str:
    return f"{case.rule}-{CASES.index(case)}"


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_document_has_no_finding(kind: str) -> None:
    assert found_in(GOOD[kind], uri="https://e.example/x.xml") == []


@pytest.mark.parametrize("case", CASES, ids=name)
def test_a_rule_is_kept_by_one_document_and_broken_by_another(case: Case) -> None:
    assert found_in(case.good, uri=case.uri, profile=case.profile) == []

    found = found_in(case.broken, uri=case.uri, profile=case.profile)

    ids = [finding.rule.id for finding in found]
    assert set(ids) - case.also == {case.rule} - case.also
    assert case.rule in ids
    assert case.also <= set(ids)
    if case.also.isdisjoint({case.rule}):
        assert ids.count(case.rule) == 1


@pytest.mark.parametrize("case", [case for case in CASES if case.shown], ids=name)
def test_a_finding_points_at_what_is_at_fault(case: Case) -> None:
    (finding,) = (
        finding
        for finding in found_in(case.broken, uri=case.uri, profile=case.profile)
        if finding.rule.id == case.rule
    )

    line = case.broken.split("\n")[finding.line - 1]
    assert line[finding.column - 1 :][: finding.length] == case.shown
    start = finding.excerpt_column - 1
    assert finding.excerpt[start : start + finding.length] == case.shown


def test_a_must_is_never_broken_beside_another_one() -> None:
    beside = {
        (case.rule, other)
        for case in CASES
        for other in case.also
        if RULES[other].level is Level.MUST and other != case.rule
    }

    assert beside == {
        ("SD01", "CA01"),
        ("SD01", "CA04"),
        ("G15", "RM04"),
        ("G44", "G07"),
        ("G44", "G36"),
        ("RL08", "RL06"),
    }


def test_packages_that_older_ones_no_longer_stand_before_keep_every_rule() -> None:
    source = DumpedSource(size=PackageSize(max_entries=2))
    for run in range(6):
        for name in "abc"[: run % 3 + 1]:
            source.put(name, f"{name} of run {run}")
        source.publish()
        source.dump(changes=True, oldest=source.now() - 90_000_000)

    listed = source.bytes_of("resourcesync/changedump.xml").decode()
    summaries, findings = [], []
    for name in source.documents.names():
        is_old = name.endswith("-manifest.xml") and name not in listed
        if name.endswith(".xml") and not name.endswith("about.xml") and not is_old:
            examination = Examination([source.bytes_of(name)], uri=source.uri(name))
            findings += list(examination)
            summaries.append(examination.summary)

    manifests = [summary for summary in summaries if summary.phrase == "Change Dump Manifest"]
    assert 0 < len(manifests) < 6
    assert findings == []
    assert list(judge_together(summaries)) == []


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
        "b", '<rs:md change="created" datetime="2026-03-02T01:00:00Z" type="text/html" path="/b"/>'
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
    undated = replace(ANSWER, headers={"last-modified": "?"})
    assert list(judge_resource(LISTED, undated, set())) == []
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


def test_lists_whose_index_or_archive_names_them_by_relative_addresses_are_in_it() -> None:
    source = {**SOURCE, f"{BASE}ch9.xml": SOURCE[f"{BASE}ch1.xml"]}
    archived = url("ch9.xml").replace(BASE, "") + "</urlset>"
    source[f"{BASE}old.xml"] = source[f"{BASE}old.xml"].replace("</urlset>", archived)
    source[f"{BASE}ch.xml"] = source[f"{BASE}ch.xml"].replace(f"{BASE}ch1.xml", "ch1.xml")

    assert "CI09" not in {finding.rule.id for finding in judged(source)}
