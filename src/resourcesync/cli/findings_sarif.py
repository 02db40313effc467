"""Findings as a SARIF 2.1.0 log, for code scanning."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from resourcesync import __version__
from resourcesync.cli.rule import clause_of
from resourcesync.cli.validate_words import ValidationTally, cut_short_message
from resourcesync.validator.findings import RuleFinding
from resourcesync.validator.rule import Rule, Severity
from resourcesync.wiring.resource_sample import Unreached
from resourcesync.wiring.validation import CutShort, ValidationEvent

_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "note",
}


def sarif_log(events: Sequence[ValidationEvent], tally: ValidationTally) -> str:
    """Return the findings as a SARIF log of one run."""
    findings = [event for event in events if isinstance(event, RuleFinding)]
    rules = {finding.rule.code: finding.rule for finding in findings}
    indexes = {code: index for index, code in enumerate(rules)}
    failures = [_sarif_notification(event) for event in events if isinstance(event, Unreached)]
    limits = [_sarif_limit(event) for event in events if isinstance(event, CutShort)]
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "resourcesync",
                "version": __version__,
                "rules": [_sarif_rule(rule) for rule in rules.values()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not failures,
                "toolExecutionNotifications": [*failures, *limits],
            }
        ],
        "results": [_sarif_result(finding, indexes[finding.rule.code]) for finding in findings],
        "properties": {"summary": tally.sentence()},
    }
    log = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=1).decode()


def _sarif_rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.id,
        "shortDescription": {"text": rule.sentence},
        "fullDescription": {"text": f"{rule.sentence} {rule.why}"},
        "help": {"text": f"{rule.fix} ({clause_of(rule.clause)})"},
        "defaultConfiguration": {"level": _SARIF_LEVELS[rule.severity]},
        "properties": {"level": rule.level.value, "document": rule.document},
    }


def _sarif_result(finding: RuleFinding, index: int) -> dict[str, object]:
    location: dict[str, object] = {"artifactLocation": {"uri": uri_reference(finding.uri)}}
    if finding.line:
        region: dict[str, object] = {"startLine": finding.line}
        if finding.column:
            region["startColumn"] = finding.column
            region["endColumn"] = finding.column + max(finding.length, 1)
        if finding.excerpt:
            region["snippet"] = {"text": _valid_unicode(finding.excerpt)}
        location["region"] = region
    return {
        "ruleId": finding.rule.code,
        "ruleIndex": index,
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": _valid_unicode(finding.message)},
        "locations": [{"physicalLocation": location}],
    }


def _sarif_limit(event: CutShort) -> dict[str, object]:
    location = {"physicalLocation": {"artifactLocation": {"uri": uri_reference(event.uri)}}}
    return {
        "level": "warning",
        "descriptor": {"id": "cut-short"},
        "message": {"text": _valid_unicode(cut_short_message(event))},
        "locations": [location],
    }


def _sarif_notification(event: Unreached) -> dict[str, object]:
    location = {"physicalLocation": {"artifactLocation": {"uri": uri_reference(event.uri)}}}
    return {
        "level": "error",
        "descriptor": {"id": event.error.code},
        "message": {"text": _valid_unicode(event.error.message)},
        "locations": [location],
    }


def uri_reference(uri: str) -> str:
    """Return an address, or the path of a file, as the URI reference that SARIF asks for."""
    safe = "/:?#[]@!$&'()*+,;=%~" if "://" in uri else "/~"
    return quote(uri, safe=safe, errors="replace")


def _valid_unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
