"""Every rule that one document can break: a document that keeps it, one that breaks just it."""

import pytest

from resourcesync.documents.packages.planning import PackageSize
from resourcesync.model.settings import RuleProfile
from resourcesync.validator.cross_document import judge_together
from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import RULES, CheckScope, Level, RuleFinding
from resourcesync.validator.summaries import DocumentSummary
from tests.support.rules.cases import CASES, Case
from tests.support.rules.documents import GOOD
from tests.support.sources.publishing import BASE, Source, split_source
from tests.support.worlds.dumping import DumpedSource


def judged(text: str, *, uri: str, profile: RuleProfile = "rs-1.1") -> list[RuleFinding]:
    return list(Examination([text.encode()], uri=uri, profile=profile))


def name(case: Case) -> str:
    return f"{case.rule}-{CASES.index(case)}"


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_document_has_no_finding(kind: str) -> None:
    assert judged(GOOD[kind], uri="https://e.example/x.xml") == []


@pytest.mark.parametrize("case", CASES, ids=name)
def test_a_rule_is_kept_by_one_document_and_broken_by_another(case: Case) -> None:
    assert judged(case.good, uri=case.uri, profile=case.profile) == []

    found = judged(case.broken, uri=case.uri, profile=case.profile)

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
        for finding in judged(case.broken, uri=case.uri, profile=case.profile)
        if finding.rule.id == case.rule
    )

    line = case.broken.split("\n")[finding.line - 1]
    assert line[finding.column - 1 :][: finding.length] == case.shown
    start = finding.excerpt_column - 1
    assert finding.excerpt[start : start + finding.length] == case.shown


def test_every_rule_of_one_document_has_its_cases() -> None:
    of_documents = {rule.id for rule in RULES.values() if rule.checked is CheckScope.DOCUMENT}
    too_large = {"G20"}  # has a test of its own

    assert of_documents - too_large <= {case.rule for case in CASES}


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


# --- What we publish, under our own validator -----------------------------------------------------


def examined(source: Source) -> tuple[list[DocumentSummary], list[RuleFinding]]:
    summaries, findings = [], []
    for name, data in source.contents().items():
        examination = Examination([data], uri=BASE + name)
        findings += list(examination)
        summaries.append(examination.summary)
    return summaries, findings


def test_what_we_publish_keeps_every_rule() -> None:
    summaries, findings = examined(split_source())

    assert findings == []
    together = [finding.rule.id for finding in judge_together(summaries, whole_source=True)]
    assert together == ["SD08"]  # the test's Source lives in a folder, not at its host's top
    assert {summary.phrase for summary in summaries} >= {"Resource List Index", "Change List Index"}


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
