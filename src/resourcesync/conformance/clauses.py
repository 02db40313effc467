"""The report of a Source by clause: what was kept, broken, not there, and not tested."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from resourcesync.model.vocabulary import Capability
from resourcesync.validator.events import (
    CutShort,
    Judged,
    Sampled,
    Unopened,
    ValidationEvent,
    ValidationOptions,
)
from resourcesync.validator.rule import RULES, AppliedRules, CheckScope, Level, Rule, RuleFinding
from resourcesync.validator.sample import Unreached
from resourcesync.validator.summaries import DocumentSummary

MOST_EVIDENCE: Final = 5
"""Most findings of one clause that are stored as evidence."""
UNREAD: Final = "not all documents were read"
"""Reason why clauses were not tested that need documents which were not read."""
BY_MESSAGES: Final = (
    "only a subscriber sees it: subscribe at the hub, record its messages,"
    " and check them with validate"
)
"""Reason why clauses were not tested that are about messages of a hub."""
_MOST_NAMED: Final = 5

_BY_ALL_LISTS: Final = frozenset({"HT01", "HT02", "HT03", "HT04"})
"""Rules about a resource and its last entry, which may be in a list that was not read."""
_SAMPLED: Final = _BY_ALL_LISTS | {"DI02"}
_VISITED_TWICE: Final = frozenset({"CH10", "CH11", "CH14"})
_BY_MESSAGES: Final = frozenset({"NT01", "NT05"})
_ALWAYS: Final = frozenset({"Every document", "Links", "Delivery", "Discovery"})
_OF_THE_SOURCE: Final = frozenset({"SD08", "SD09"})
_DUMPS: Final = {
    Capability.RESOURCE_DUMP: "Resource Dump",
    Capability.CHANGE_DUMP: "Change Dump",
}
_NOTHING: Final = {
    "DI01": "no page that was read links to the Source",
    "DI03": "robots.txt names no document of the Source",
    "NT04": "it is about receivers of notifications, not about Sources",
    "NT06": "no document is served with a link to a hub",
    "CH10": "no Change List was closed at the first visit",
    "CH11": "no Change List was open at the first visit",
}


class ClauseResult(StrEnum):
    """The result for a clause."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not-applicable"
    NOT_TESTED = "not-tested"


class SourceVerdict(StrEnum):
    """The verdict on a Source."""

    CONFORMS = "conforms"
    """All clauses with a MUST that apply were tested and passed."""
    DIFFERS = "differs"
    """A clause with a MUST is broken."""
    INCOMPLETE = "incomplete"
    """No such clause is broken, as far as they were tested; some were not."""


class ClauseOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one rule.

    Attributes:
        reason: Reason why it does not apply or was not tested, or was tested in part.
        findings: Number of findings.
        evidence: The first of them.
    """

    rule: Rule
    result: ClauseResult
    reason: str = ""
    findings: int = 0
    evidence: tuple[RuleFinding, ...] = ()


class ClauseReport:
    """Collects the events of the validation of one Source.

    Args:
        source: Its address.
    """

    def __init__(self, source: str, options: ValidationOptions) -> None:
        self._source = source
        self._options = options
        self._kinds = set(_ALWAYS)
        self._applied: set[str] = set()
        self._counts: dict[str, int] = {}
        self._evidence: dict[str, list[RuleFinding]] = {}
        self._unreached: list[str] = []
        self._sampled: Sampled | None = None
        self._documents = 0
        self._unopened = 0
        self._is_cut = False

    def add(self, event: ValidationEvent) -> None:
        """Add an event."""
        match event:
            case RuleFinding():
                self._add_finding(event)
            case AppliedRules(rules=rules):
                self._applied |= rules
                self._kinds.update(RULES[rule].document for rule in rules)
            case Judged(summary):
                self._documents += 1
                self._kinds.update(_headings(summary))
            case Unreached(uri=uri):
                self._unreached.append(uri)
            case _:
                self._add_bounds(event)

    def _add_bounds(self, event: ValidationEvent) -> None:
        match event:
            case Sampled(uri=self._source):
                self._sampled = event
            case Unopened(packages=packages):
                self._unopened += packages
            case CutShort():
                self._is_cut = True
            case _:
                pass  # messages of a hub, and the members of packages

    def _add_finding(self, finding: RuleFinding) -> None:
        rule = finding.rule.id
        self._counts[rule] = self._counts.get(rule, 0) + 1
        evidence = self._evidence.setdefault(rule, [])
        if len(evidence) < MOST_EVIDENCE:
            evidence.append(finding)

    def outcomes(self) -> list[ClauseOutcome]:
        """Return the outcome of each rule of the profile, by clause."""
        rules = [rule for rule in RULES.values() if self._options.profile in rule.profiles]
        return [self._outcome(rule) for rule in sorted(rules, key=_by_clause)]

    def verdict(self) -> SourceVerdict:
        """Return the verdict; the clauses with a MUST decide."""
        results = {out.result for out in self.outcomes() if out.rule.level is Level.MUST}
        if ClauseResult.FAILED in results:
            return SourceVerdict.DIFFERS
        if ClauseResult.NOT_TESTED in results or self._is_incomplete:
            return SourceVerdict.INCOMPLETE
        return SourceVerdict.CONFORMS

    def bounds(self) -> list[str]:
        """Return what was looked at, and what was not, in sentences."""
        again, sampled = self._options.again, self._sampled
        documents = f"{self._documents} documents were read"
        lines = [f"{documents}, and more are listed." if self._is_cut else f"{documents}: all."]
        if sampled is not None:
            lines.append(f"{sampled.checked} of {sampled.listed} resources were fetched.")
        lines.append("There was one visit." if again is None else f"Two visits, {again:g} s apart.")
        if self._unopened:
            lines.append(f"{self._unopened} packages of dumps were not opened.")
        if self._unreached:
            named = ", ".join(self._unreached[:_MOST_NAMED])
            lines.append(f"{len(self._unreached)} addresses could not be fetched: {named}.")
        return lines

    @property
    def _is_incomplete(self) -> bool:
        return self._is_cut or bool(self._unreached)

    def _outcome(self, rule: Rule) -> ClauseOutcome:
        if rule.id in self._counts:
            is_open = rule.id in _BY_ALL_LISTS and self._is_incomplete
            return ClauseOutcome(
                rule=rule,
                result=ClauseResult.NOT_TESTED if is_open else ClauseResult.FAILED,
                reason=UNREAD if is_open else "",
                findings=self._counts[rule.id],
                evidence=tuple(self._evidence[rule.id]),
            )
        result, reason = self._without_finding(rule)
        return ClauseOutcome(rule=rule, result=result, reason=reason)

    def _without_finding(self, rule: Rule) -> tuple[ClauseResult, str]:
        """Return the result of a rule without a finding, and its reason."""
        if rule.id in self._applied:
            return ClauseResult.PASSED, rule.reason
        if rule.document not in self._kinds and rule.id not in _OF_THE_SOURCE:
            if self._is_incomplete:
                return ClauseResult.NOT_TESTED, UNREAD
            return ClauseResult.NOT_APPLICABLE, f"the Source has nothing for: {rule.document}"
        if missing := self._missing_test(rule):
            return ClauseResult.NOT_TESTED, missing
        if rule.id in _NOTHING:
            return ClauseResult.NOT_APPLICABLE, _NOTHING[rule.id]
        if rule.id in _SAMPLED:
            return ClauseResult.NOT_APPLICABLE, "it applies to no resource that was fetched"
        return ClauseResult.PASSED, rule.reason

    def _missing_test(self, rule: Rule) -> str:
        """Return why a rule that applies was not tested; empty if it was."""
        if rule.id in _VISITED_TWICE and self._options.again is None:
            return "the Source was visited once"
        if rule.id == "CH14":
            return "nothing that was compared changed between the visits"
        if rule.checked is CheckScope.LIVE:
            return rule.reason
        if rule.id in _SAMPLED and self._sampled is None:
            return "no resource was fetched"
        if rule.checked is CheckScope.PACKAGE:
            return "no package was opened"
        if rule.checked is CheckScope.MESSAGE or rule.id in _BY_MESSAGES:
            return BY_MESSAGES
        is_between = rule.checked in (CheckScope.TOGETHER, CheckScope.PARTLY)
        return UNREAD if is_between and self._is_incomplete else ""


def _headings(summary: DocumentSummary) -> Iterator[str]:
    """Yield the headings in the table of rules under which the rules of a document are."""
    capability = summary.capability
    yield summary.phrase
    if capability in _DUMPS:
        yield _DUMPS[capability]
        if summary.targets:
            yield "Manifests"
    elif capability is not None and (capability.is_manifest or capability.is_archive):
        yield "Manifests" if capability.is_manifest else "Archives"
    if summary.has_originals:
        yield "Aggregators"
    if summary.link("hub") or any("notification" in target.label for target in summary.targets):
        yield "Notification"


def _by_clause(rule: Rule) -> tuple[tuple[int, ...], str]:
    """Return the order of a rule: sections by their numbers, then the documents around."""
    first = rule.clause.partition(",")[0].partition("-")[0]
    parts = first.split(".")
    numbers = tuple(int(part) for part in parts) if all(map(str.isdigit, parts)) else (99,)
    return numbers, "" if numbers != (99,) else first
