"""An audit as a self-contained page, for the operators of ``watch``."""

from collections.abc import Iterator
from typing import Final

from resourcesync import __version__
from resourcesync.cli import formatting
from resourcesync.cli.render.audit import accuracy_of
from resourcesync.destination.audits.reports import FindingKind
from resourcesync.server.dashboard.layout import card, fact_table, outcome, report_page, row, table
from resourcesync.server.dashboard.markup import tag
from resourcesync.server.dashboard.views import EndedAudit

_MEANINGS: Final = {
    FindingKind.MISSING: "missing",
    FindingKind.DIFFERENT: "different",
    FindingKind.EXTRA: "not listed by the Source",
    FindingKind.FAILED: "failed",
    FindingKind.UNPROVEN: "not verifiable by a hash",
}


def audit_page(audit: EndedAudit, source: str) -> str:
    """Return a self-contained page about an audit."""
    report = audit.report
    verdict = "In sync" if report.in_sync else "Not in sync"
    title = f"Audit of {audit.mirror}"
    heads = ("Resource", "Finding", "Reason")
    rows = (
        row(
            heads,
            (
                f"/{finding.path}" if finding.path else finding.uri,
                _MEANINGS[finding.kind],
                finding.reason,
            ),
        )
        for finding in report.findings
    )
    return report_page(
        title,
        tag("h1", title),
        tag("p", outcome(is_good=report.in_sync, word=verdict)),
        card(fact_table(_facts(audit, source))),
        card(table(heads, rows), title="Findings") if report.findings else None,
    )


def _facts(audit: EndedAudit, source: str) -> Iterator[tuple[str, str]]:
    report = audit.report
    yield "Source", source
    if report.at is not None:
        yield "Reference", f"what the Source lists at {formatting.moment(report.at)}"
    yield "Method", audit.method
    yield "When", f"{formatting.moment(audit.ended)}, {formatting.duration(report.seconds)}"
    covered = f"{formatting.count(report.present)} of {formatting.count(report.listed)}"
    share = "not known" if report.is_begun else formatting.share(report.present, report.listed)
    yield "Coverage", f"{share} ({covered})"
    yield "Accuracy", accuracy_of(report)
    not_given = formatting.not_given(report.absent, report.skipped, report.unknown)
    if not_given:
        yield "Not known", not_given
    if report.proven is not None:
        yield "Checked", formatting.counted(report.proven, "file")
    yield "Not verifiable (no hash)", formatting.count(report.unproven)
    yield "Read", formatting.size(report.read)
    yield "Audit", report.run
    yield "Software", f"resourcesync {__version__}"
