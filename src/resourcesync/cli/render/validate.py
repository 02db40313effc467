"""The output of ``validate``: the fields of events, the lines of findings, the closing lines."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import asdict

from resourcesync.cli import formatting
from resourcesync.cli.formatting import DETAIL, NORMAL, QUIET, TextLine, clause_of
from resourcesync.model.vocabulary import Dialect
from resourcesync.validator.events import (
    CutShort,
    Judged,
    Sampled,
    StandaloneDocument,
    Unopened,
    ValidationEvent,
)
from resourcesync.validator.rule import AppliedRules, RuleFinding, Severity
from resourcesync.validator.sample import Unreached

SHOWN_PER_RULE: Final = 10
"""Findings of one rule in one document that are shown one by one unless ``-v`` is given."""
_GUTTER: Final = 5
_BLANK: Final = " " * (_GUTTER + 1)
_MOST_RULES: Final = 10_000
_NAMES: Final[Mapping[type, str]] = {
    StandaloneDocument: "alone",
    Unopened: "unopened",
}


def encode_event(event: ValidationEvent) -> tuple[str, dict[str, object]]:
    """Return an event's name and its fields."""
    match event:
        case RuleFinding():
            return "finding", finding_fields(event)
        case Judged(summary, place):
            return "document", {
                "uri": place,
                "kind": summary.phrase,
                "dialect": summary.dialect.phrase_for(summary.capability),
                "entries": summary.entries,
                "bytes": summary.size,
                "complete": summary.complete,
            }
        case Sampled(uri, checked, listed):
            return "sample", {"uri": uri, "checked": checked, "listed": listed}
        case StandaloneDocument() | Unopened():
            return _NAMES[type(event)], asdict(event)
        case AppliedRules(uri, rules):
            return "applied", {"uri": uri, "rules": sorted(rules)}
        case CutShort(uri=uri, documents=documents):
            return "cut-short", {
                "uri": uri,
                "documents": documents,
                "all_read": event.all_read,
                "message": cut_short_message(event),
            }
        case Unreached():
            error = event.error
            return "unreached", {"uri": event.uri, "code": error.code, "message": error.message}


def cut_short_message(event: CutShort) -> str:
    """Return the message about a Source with more documents than were read."""
    number = formatting.counted(event.documents, "document")
    if event.all_read:
        return f"{number} list more than can be stored: their relations were checked only in part"
    return f"only the first {number} were checked, and more are listed"


def finding_fields(finding: RuleFinding) -> dict[str, object]:
    """Return a finding as the fields of its event."""
    rule = finding.rule
    return {
        "code": rule.code,
        "rule": rule.id,
        "level": rule.level.value,
        "severity": finding.severity.value,
        "uri": finding.uri,
        "line": finding.line,
        "column": finding.column,
        "length": finding.length,
        "message": finding.message,
        "sentence": rule.sentence,
        "clause": rule.clause,
        "fix": rule.fix,
        "excerpt": finding.excerpt,
        "excerpt_column": finding.excerpt_column,
    }


class ValidationTally:
    """The counts of what was checked and found so far."""

    def __init__(self, *, fail_on: str) -> None:
        self._failing = _failing_severities(fail_on)
        self.documents = 0
        self.entries = 0
        self.sampled = (0, 0)
        self.packed = (0, 0)
        self.unreached = 0
        self.cut_short = 0
        self.alone = 0
        self.unopened = 0
        self._is_local = False
        self.sitemaps = 0
        self.found: Counter[Severity] = Counter()

    def add(self, event: ValidationEvent) -> None:
        """Count an event."""
        match event:
            case RuleFinding():
                self.found[event.severity] += 1
            case Judged(summary):
                self.documents += 1
                self.entries += summary.entries
                self.sitemaps += summary.complete and summary.dialect is Dialect.SITEMAP
            case Sampled(_, checked, listed, is_packed=False):
                self.sampled = (self.sampled[0] + checked, self.sampled[1] + listed)
            case CutShort():
                self.cut_short += 1
            case Sampled() | StandaloneDocument() | Unopened() | AppliedRules():
                self._add_more(event)
            case Unreached():
                self.unreached += 1

    def _add_more(self, event: Sampled | StandaloneDocument | Unopened | AppliedRules) -> None:
        match event:
            case Sampled(_, checked, listed):
                self.packed = (self.packed[0] + checked, self.packed[1] + listed)
            case StandaloneDocument():
                self.alone += 1
            case Unopened():
                self.unopened += event.packages
                self._is_local = event.is_local
            case AppliedRules():
                pass  # for reports by clause

    @property
    def resources(self) -> tuple[int, int]:
        """Number of resources checked and listed, each once: those in packages are in lists too."""
        return self.sampled if self.sampled[1] else self.packed

    @property
    def has_failures(self) -> bool:
        """True if a finding, or an incomplete check, counts as a failure."""
        is_cut = bool(self.cut_short) and Severity.WARNING in self._failing
        return is_cut or any(self.found[severity] for severity in self._failing)

    def sentence(self) -> str:
        """Return the summary in one line."""
        parts = [
            formatting.counted(self.documents, "document"),
            f"{formatting.count(self.entries)} {'entry' if self.entries == 1 else 'entries'}",
        ]
        checked, listed = self.resources
        if listed:
            parts.append(f"{formatting.count(checked)} of {formatting.counted(listed, 'resource')}")
        if self.sampled[1] and self.packed[1]:
            parts.append(f"{formatting.count(self.packed[0])} in packages")
        if self.unreached:
            parts.append(f"{formatting.count(self.unreached)} not reachable")
        found = [
            formatting.counted(self.found[Severity.ERROR], "error"),
            formatting.counted(self.found[Severity.WARNING], "warning"),
        ]
        if advice := self.found[Severity.ADVICE]:
            found.append(f"{formatting.count(advice)} advice")
        rest = "; not all documents were checked" if self.cut_short else ""
        if self.unopened:
            were = "was" if self.unopened == 1 else "were"
            rest += f"; {formatting.counted(self.unopened, 'package')} {were} not opened"
        return f"Checked {', '.join(parts)}: {', '.join(found)}{rest}"

    def lines(self) -> tuple[TextLine, ...]:
        """Return the closing lines."""
        lines: tuple[TextLine, ...] = (TextLine(self.sentence(), level=QUIET),)
        if self.sitemaps and self.sitemaps == self.documents and any(self.found.values()):
            text = "these are plain sitemaps" if self.sitemaps > 1 else "this is a plain sitemap"
            how = "to check by the Sitemap protocol: --profile sitemap"
            lines = (*lines, TextLine(f"  next   {text}; {how}"))
        if self.unopened:
            how = "check them with their folder" if self._is_local else "--sample 100% opens all"
            lines = (*lines, TextLine(f"  next   unopened packages were not checked; {how}"))
        if not self.alone:
            return lines
        judged = "this document" if self.alone == 1 else f"{formatting.count(self.alone)} documents"
        links = "its links" if self.alone == 1 else "their links"
        return (*lines, TextLine(f"  checked only {judged}; --live follows {links}", level=QUIET))

    def fields(self) -> dict[str, object]:
        """Return the counts as the fields of ``run.end``."""
        return {
            "documents": self.documents,
            "entries": self.entries,
            "plain_sitemaps": self.sitemaps,
            "resources_checked": self.resources[0],
            "resources_listed": self.resources[1],
            "unreached": self.unreached,
            "cut_short": self.cut_short,
            "judged_alone": self.alone,
            "packages_unopened": self.unopened,
            "errors": self.found[Severity.ERROR],
            "warnings": self.found[Severity.WARNING],
            "advice": self.found[Severity.ADVICE],
        }


def _failing_severities(fail_on: str) -> frozenset[Severity]:
    """Return the severities that count as failures."""
    errors = frozenset({Severity.ERROR})
    return errors if fail_on == "error" else errors | {Severity.WARNING}


class ValidateRenderer:
    """A renderer of findings: the location and rule, the line at fault, the clause, the fix."""

    def __init__(self) -> None:
        self._shown: Counter[tuple[str, str]] = Counter()

    def __call__(self, event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
        """Yield the lines for one event."""
        if event == "finding":
            yield from self._finding(fields)
        elif event == "unreached":
            yield TextLine(f"{fields['uri']}: {fields['code']} failed: {fields['message']}")
        elif event == "cut-short":
            text = f"{fields['uri']}: warning: {fields['message']}"
            yield TextLine(
                text if fields["all_read"] else f"{text}; --max-documents sets the limit"
            )
        elif event == "document":
            counted = f"{formatting.count(fields['entries'])} entries"
            yield TextLine(f"{fields['uri']}: {fields['kind'].lower()}, {counted}", level=DETAIL)

    def _finding(self, fields: Mapping[str, Any]) -> Iterator[TextLine]:
        key = (str(fields["uri"]), str(fields["code"]))
        if len(self._shown) > _MOST_RULES:
            self._shown.clear()
        self._shown[key] += 1
        number = self._shown[key]
        level = NORMAL if number <= SHOWN_PER_RULE else DETAIL
        for text in _finding_lines(fields, brief=number > 1):
            yield TextLine(text, level=level)
        if number == SHOWN_PER_RULE + 1:
            yield TextLine(f"{key[0]}: more findings of {key[1]} are not shown; -v shows all")


def _finding_lines(fields: Mapping[str, Any], *, brief: bool = False) -> Iterator[str]:
    """Yield a finding as lines of text."""
    place = str(fields["uri"])
    if fields["line"]:
        place += f":{fields['line']}"
        place += f":{fields['column']}" if fields["column"] else ""
    yield f"{place}: {fields['code']} {fields['severity']}: {fields['message']}"
    if fields["excerpt"]:
        excerpt = "".join(c if c.isprintable() else "·" for c in fields["excerpt"])
        yield f"{fields['line']:>{_GUTTER}} |  {excerpt}"
        if start := fields["excerpt_column"]:
            marks = "^" * max(1, min(fields["length"], len(excerpt) - start + 1))
            yield f"{_BLANK}|  {' ' * (start - 1)}{marks}"
    if not brief:
        yield f"{_BLANK}= {fields['sentence']} ({clause_of(fields['clause'])})"
        yield f"{_BLANK}= fix: {fields['fix']}"
