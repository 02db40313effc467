"""The evidence of an audit: HTML, JSON, CSV, a BagIt manifest and PREMIS events.

HTML is one self-contained page. The BagIt manifest (RFC 8493) and the PREMIS 3 events name every
copy, so they need an audit that reads every byte.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Final

import msgspec

from resourcesync import __version__
from resourcesync.cli import formatting
from resourcesync.cli.render.audit import EVIDENCE_FILES, accuracy_of
from resourcesync.destination.audits.reports import AuditFinding, AuditReport, FindingKind
from resourcesync.documents.packages.bagit import PAYLOAD, manifest_line
from resourcesync.errors import StorageError
from resourcesync.model.digests import parse_digests
from resourcesync.ports.mirror import Copy
from resourcesync.server.dashboard.layout import card, fact_table, outcome, report_page, row, table
from resourcesync.server.dashboard.markup import tag

_MEANINGS: Final = {
    FindingKind.MISSING: "missing",
    FindingKind.DIFFERENT: "different",
    FindingKind.EXTRA: "not listed by the Source",
    FindingKind.FAILED: "failed",
    FindingKind.UNPROVEN: "not verifiable by a hash",
}
_PREMIS_NAMES: Final = {"md5": "MD5"}


class AuditEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the evidence of an audit.

    Attributes:
        mirror: The mirror's name.
        source: The Source's address.
        method: The method of the audit.
        when: Time at which the audit ended, UTC.
        copies: Yields the copies in the mirror's state; may be called several times.
        fields: The report's counts.
    """

    report: AuditReport
    mirror: str
    source: str
    method: str
    when: datetime
    copies: Callable[[], Iterable[Copy]]
    fields: Mapping[str, object]


def write_reports(evidence: AuditEvidence, forms: Iterable[str], out: Path) -> Path:
    """Write the evidence in each of the forms; return the folder.

    The folder is new and named after the time; nothing is overwritten.

    Raises:
        StorageError: It cannot be written.
    """
    name = evidence.when.strftime("%Y-%m-%dT%H%M%SZ")
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = out / name
        if folder.exists():
            folder = out / f"{name}-{evidence.report.run}"
        folder.mkdir()
        for form in forms:
            with (folder / EVIDENCE_FILES[form]).open("x", encoding="utf-8", newline="") as stream:
                stream.writelines(_WRITERS[form](evidence))
    except OSError as error:
        raise StorageError(
            f"cannot write the evidence to {out}: {error.strerror}",
            hint="name a writable folder: --out DIR",
        ) from error
    return folder


def _json(evidence: AuditEvidence) -> Iterator[str]:
    head = {
        "source": evidence.source,
        "method": evidence.method,
        "when": formatting.stamp(evidence.when),
        "software": f"resourcesync {__version__}",
        **{name: _plain(value) for name, value in evidence.fields.items()},
    }
    yield json.dumps(head, indent=1)[:-2] + ',\n "findings": ['
    for number, finding in enumerate(evidence.report.findings):
        row = {
            "kind": finding.kind.name.lower(),
            "uri": finding.uri,
            "path": finding.path,
            "reason": finding.reason,
        }
        yield f"{',' if number else ''}\n  {json.dumps(row)}"
    yield "\n ]\n}\n"


def _plain(value: object) -> object:
    return formatting.stamp(value) if isinstance(value, datetime) else value


def _csv(evidence: AuditEvidence) -> Iterator[str]:
    yield _row("kind", "uri", "path", "reason")
    for finding in evidence.report.findings:
        yield _row(finding.kind.name.lower(), finding.uri, finding.path, finding.reason)


def _row(*cells: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([formatting.escape(cell) for cell in cells])
    return line.getvalue()


def html_report(evidence: AuditEvidence) -> Iterator[str]:
    """Yield a self-contained page."""
    report = evidence.report
    verdict = "In sync" if report.in_sync else "Not in sync"
    title = f"Audit of {evidence.mirror}"
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
    yield report_page(
        title,
        tag("h1", title),
        tag("p", outcome(is_good=report.in_sync, word=verdict)),
        card(fact_table(_facts(evidence))),
        card(table(heads, rows), title="Findings") if report.findings else None,
    )


def _facts(evidence: AuditEvidence) -> Iterator[tuple[str, str]]:
    report = evidence.report
    yield "Source", evidence.source
    if report.at is not None:
        yield "Reference", f"what the Source lists at {formatting.moment(report.at)}"
    yield "Method", evidence.method
    yield "When", f"{formatting.moment(evidence.when)}, {formatting.duration(report.seconds)}"
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


def _text(text: str) -> str:
    return escape(formatting.escape(text))


def _bagit(evidence: AuditEvidence) -> Iterator[str]:
    bad = _failed_findings(evidence)
    for copy in evidence.copies():
        digest = _sha256(copy)
        if digest and copy.uri not in bad:
            yield manifest_line(digest, PAYLOAD + copy.path)


def _sha256(copy: Copy) -> str:
    found = (
        digest.value for digest in parse_digests(copy.digests) if digest.algorithm == "sha-256"
    )
    return next(found, "")


def _failed_findings(evidence: AuditEvidence) -> dict[str, AuditFinding]:
    kinds = {FindingKind.MISSING, FindingKind.DIFFERENT, FindingKind.FAILED}
    return {finding.uri: finding for finding in evidence.report.findings if finding.kind in kinds}


def _premis(evidence: AuditEvidence) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<premis xmlns="http://www.loc.gov/premis/v3" version="3.0"'
    yield ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
    for copy in evidence.copies():
        yield _premis_object(copy)
    bad = _failed_findings(evidence)
    when = formatting.stamp(evidence.when)
    for number, copy in enumerate(evidence.copies(), 1):
        yield _premis_event(copy, bad.get(copy.uri), f"{evidence.report.run}-{number}", when)
    yield (
        "<agent><agentIdentifier><agentIdentifierType>local</agentIdentifierType>"
        "<agentIdentifierValue>resourcesync</agentIdentifierValue></agentIdentifier>"
        "<agentName>resourcesync</agentName><agentType>software</agentType>"
        f"<agentVersion>{escape(__version__)}</agentVersion></agent>\n</premis>\n"
    )


def _premis_object(copy: Copy) -> str:
    fixity = "".join(
        "<fixity><messageDigestAlgorithm>"
        f"{_PREMIS_NAMES.get(digest.algorithm, digest.algorithm.upper())}"
        f"</messageDigestAlgorithm><messageDigest>{escape(digest.value)}</messageDigest></fixity>"
        for digest in parse_digests(copy.digests)
    )
    size = f"<size>{copy.length}</size>" if copy.length >= 0 else ""
    return (
        '<object xsi:type="file"><objectIdentifier><objectIdentifierType>URI'
        f"</objectIdentifierType><objectIdentifierValue>{_text(copy.uri)}"
        f"</objectIdentifierValue></objectIdentifier><objectCharacteristics>{fixity}{size}"
        "<format><formatDesignation><formatName>unknown</formatName></formatDesignation></format>"
        f"</objectCharacteristics><originalName>{_text(copy.path)}</originalName></object>\n"
    )


def _premis_event(copy: Copy, bad: AuditFinding | None, name: str, when: str) -> str:
    outcome = "<eventOutcome>success</eventOutcome>"
    if bad is not None:
        outcome = (
            "<eventOutcome>failure</eventOutcome><eventOutcomeDetail><eventOutcomeDetailNote>"
            f"{_text(bad.reason)}</eventOutcomeDetailNote></eventOutcomeDetail>"
        )
    return (
        "<event><eventIdentifier><eventIdentifierType>local</eventIdentifierType>"
        f"<eventIdentifierValue>{name}</eventIdentifierValue></eventIdentifier>"
        f"<eventType>fixity check</eventType><eventDateTime>{when}</eventDateTime>"
        f"<eventOutcomeInformation>{outcome}</eventOutcomeInformation>"
        "<linkingAgentIdentifier><linkingAgentIdentifierType>local</linkingAgentIdentifierType>"
        "<linkingAgentIdentifierValue>resourcesync</linkingAgentIdentifierValue>"
        "</linkingAgentIdentifier><linkingObjectIdentifier><linkingObjectIdentifierType>URI"
        "</linkingObjectIdentifierType><linkingObjectIdentifierValue>"
        f"{_text(copy.uri)}</linkingObjectIdentifierValue></linkingObjectIdentifier></event>\n"
    )


_WRITERS: Final[Mapping[str, Callable[[AuditEvidence], Iterator[str]]]] = {
    "html": html_report,
    "json": _json,
    "csv": _csv,
    "bagit": _bagit,
    "premis": _premis,
}
