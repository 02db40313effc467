"""Findings as a SARIF 2.1.0 log, for code scanning."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from resourcesync import __version__
from resourcesync.cli.rule import clause_of
from resourcesync.cli.validate_words import ValidationTally, cut_short
from resourcesync.validator.findings import RuleFinding
from resourcesync.validator.rule import Rule, Severity
from resourcesync.wiring.sampling import Unreached
from resourcesync.wiring.validating import CutShort, ValidationEvent

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "note",
}


def sarif_log(events: Sequence[ValidationEvent], tally: ValidationTally) -> str:
    """Return the findings as a SARIF log of one run."""
    findings = [event for event in events if isinstance(event, RuleFinding)]
    rules = {finding.rule.code: finding.rule for finding in findings}
    indexes = {code: index for index, code in enumerate(rules)}
    failures = [_notification(event) for event in events if isinstance(event, Unreached)]
    limits = [_limit(event) for event in events if isinstance(event, CutShort)]
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "resourcesync",
                "version": __version__,
                "rules": [_rule(rule) for rule in rules.values()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not failures,
                "toolExecutionNotifications": [*failures, *limits],
            }
        ],
        "results": [_result(finding, indexes[finding.rule.code]) for finding in findings],
        "properties": {"summary": tally.sentence()},
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=1).decode()


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.id,
        "shortDescription": {"text": rule.sentence},
        "fullDescription": {"text": f"{rule.sentence} {rule.why}"},
        "help": {"text": f"{rule.fix} ({clause_of(rule.clause)})"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"level": rule.level.value, "document": rule.document},
    }


def _result(finding: RuleFinding, index: int) -> dict[str, object]:
    location: dict[str, object] = {"artifactLocation": {"uri": reference(finding.uri)}}
    if finding.line:
        region: dict[str, object] = {"startLine": finding.line}
        if finding.column:
            region["startColumn"] = finding.column
            region["endColumn"] = finding.column + max(finding.length, 1)
        if finding.excerpt:
            region["snippet"] = {"text": _sound(finding.excerpt)}
        location["region"] = region
    return {
        "ruleId": finding.rule.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": _sound(finding.message)},
        "locations": [{"physicalLocation": location}],
    }


def _limit(event: CutShort) -> dict[str, object]:
    location = {"physicalLocation": {"artifactLocation": {"uri": reference(event.uri)}}}
    return {
        "level": "warning",
        "descriptor": {"id": "cut-short"},
        "message": {"text": _sound(cut_short(event))},
        "locations": [location],
    }


def _notification(event: Unreached) -> dict[str, object]:
    location = {"physicalLocation": {"artifactLocation": {"uri": reference(event.uri)}}}
    return {
        "level": "error",
        "descriptor": {"id": event.error.code},
        "message": {"text": _sound(event.error.message)},
        "locations": [location],
    }


def reference(uri: str) -> str:
    """Return an address, or the path of a file, as the URI reference that SARIF asks for."""
    safe = "/:?#[]@!$&'()*+,;=%~" if "://" in uri else "/~"
    return quote(uri, safe=safe, errors="replace")


def _sound(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
