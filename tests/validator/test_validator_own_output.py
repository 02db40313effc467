"""What we publish, under our own validator."""

from resourcesync.documents.packages.planning import PackageSize
from resourcesync.validator.cross_document import judge_together
from resourcesync.validator.examination import validate_document
from resourcesync.validator.rule import RuleFinding
from resourcesync.validator.summaries import DocumentSummary
from tests.support.sources.publishing import BASE, Source, split_source
from tests.support.worlds.dumping import DumpedSource


def examined(source: Source) -> tuple[list[DocumentSummary], list[RuleFinding]]:
    summaries, findings = [], []
    for name, data in source.contents().items():
        examination = validate_document([data], uri=BASE + name)
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
            examination = validate_document([source.bytes_of(name)], uri=source.uri(name))
            findings += list(examination)
            summaries.append(examination.summary)

    manifests = [summary for summary in summaries if summary.phrase == "Change Dump Manifest"]
    assert 0 < len(manifests) < 6
    assert findings == []
    assert list(judge_together(summaries)) == []
