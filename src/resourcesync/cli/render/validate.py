"""The output of ``validate``: the fields of events, the lines of findings, the closing lines."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from resourcesync.cli.exit_codes import ExitCode, exit_code_for
from resourcesync.cli.output import DETAIL, NORMAL, QUIET, Screen, TextLine, clause_of
from resourcesync.model import formatting
from resourcesync.model.settings import RuleProfile
from resourcesync.model.vocabulary import Dialect
from resourcesync.validator import results
from resourcesync.validator.rule import AppliedRules, RuleFinding, Severity
from resourcesync.validator.sample import Unreached

SHOWN_PER_RULE: Final = 10
"""Findings of one rule in one document that are shown one by one unless ``-v`` is given."""
_GUTTER: Final = 5
_BLANK: Final = " " * (_GUTTER + 1)
_MOST_RULES: Final = 10_000
_GITHUB_COMMANDS: Final = {"error": "error", "warning": "warning", "advice": "notice"}


_NAMES: Final[Mapping[type, str]] = {
    results.Sampled: "sample",
    results.StandaloneDocument: "alone",
    results.Unopened: "unopened",
}


def encode_event(event: results.ValidationEvent) -> tuple[str, dict[str, Any]]:
    """Return an event's name and its fields."""
    match event:
        case RuleFinding():
            return "finding", _finding_fields(event)
        case results.Judged(summary, place):
            return "document", {
                "uri": place,
                "kind": summary.phrase,
                "dialect": summary.dialect.phrase_for(summary.capability),
                "entries": summary.entries,
                "bytes": summary.size,
                "complete": summary.complete,
            }
        case AppliedRules(uri, rules):
            return "applied", {"uri": uri, "rules": sorted(rules)}
        case results.CutShort():
            return "cut-short", {**asdict(event), "message": _cut_short_message(event)}
        case Unreached(error=error):
            return "unreached", {"uri": event.uri, "code": error.code, "message": error.message}
        case _:
            return _NAMES[type(event)], asdict(event)


def _cut_short_message(event: results.CutShort) -> str:
    number = formatting.counted(event.documents, "document")
    if event.all_read:
        return f"{number} list more than can be stored: their relations were checked only in part"
    return f"only the first {number} were checked, and more are listed"


def _finding_fields(finding: RuleFinding) -> dict[str, Any]:
    rule = finding.rule
    return {
        "code": rule.code,
        "rule": rule.id,
        "level": rule.level.value,
        "severity": finding.severity.value,
        "sentence": rule.sentence,
        "clause": rule.clause,
        "fix": rule.fix,
        **{name: value for name, value in asdict(finding).items() if name != "rule"},
    }


class ValidationTally(msgspec.Struct):
    """The counts of what was checked and found so far; the fields of ``run.end``."""

    documents: int = 0
    entries: int = 0
    plain_sitemaps: int = 0
    resources_checked: int = 0
    resources_listed: int = 0
    members_checked: int = 0
    members_listed: int = 0
    unreached: int = 0
    cut_short: int = 0
    judged_alone: int = 0
    packages_unopened: int = 0
    is_local: bool = False
    errors: int = 0
    warnings: int = 0
    advice: int = 0

    def add(self, event: results.ValidationEvent) -> None:
        """Count an event."""
        match event:
            case RuleFinding():
                self.errors += event.severity is Severity.ERROR
                self.warnings += event.severity is Severity.WARNING
                self.advice += event.severity is Severity.ADVICE
            case results.Judged(summary):
                self.documents += 1
                self.entries += summary.entries
                self.plain_sitemaps += summary.complete and summary.dialect is Dialect.SITEMAP
            case results.Sampled(is_packed=True):  # the resources in packages are in lists, too
                self.members_checked += event.checked
                self.members_listed += event.listed
            case results.Sampled():
                self.resources_checked += event.checked
                self.resources_listed += event.listed
            case results.Unopened():
                self.packages_unopened += event.packages
                self.is_local = event.is_local
            case _:
                self.cut_short += isinstance(event, results.CutShort)
                self.judged_alone += isinstance(event, results.StandaloneDocument)
                self.unreached += isinstance(event, Unreached)

    def has_failures(self, fail_on: str) -> bool:
        """True if a finding, or an incomplete check, counts as a failure."""
        return bool(self.errors or (fail_on == "warning" and (self.warnings or self.cut_short)))

    def sentence(self) -> str:
        """Return the summary in one line."""
        parts = [
            formatting.counted(self.documents, "document"),
            formatting.counted(self.entries, "entry", "entries"),
        ]
        for checked, listed, name in (
            (self.resources_checked, self.resources_listed, "resource"),
            (self.members_checked, self.members_listed, "package member"),
        ):
            if listed:
                parts.append(f"{formatting.count(checked)} of {formatting.counted(listed, name)}")
        if self.unreached:
            parts.append(f"{formatting.count(self.unreached)} not reachable")
        found = [
            formatting.counted(self.errors, "error"),
            formatting.counted(self.warnings, "warning"),
            *([f"{formatting.count(self.advice)} advice"] if self.advice else []),
        ]
        rest = "; not all documents were checked" if self.cut_short else ""
        if number := self.packages_unopened:
            were = "was" if number == 1 else "were"
            rest += f"; {formatting.counted(number, 'package')} {were} not opened"
        return f"Checked {', '.join(parts)}: {', '.join(found)}{rest}"

    def lines(self, profile: RuleProfile) -> Iterator[TextLine]:
        """Yield the closing lines."""
        yield TextLine(self.sentence(), level=QUIET)
        is_other = profile != "sitemap" and 0 < self.plain_sitemaps == self.documents
        if is_other and (self.errors or self.warnings or self.advice):
            is_one = self.plain_sitemaps == 1
            text = "this is a plain sitemap" if is_one else "these are plain sitemaps"
            yield TextLine(f"  next   {text}; to check by the Sitemap protocol: --profile sitemap")
        if self.packages_unopened:
            how = "check them with their folder" if self.is_local else "--sample 100% opens all"
            yield TextLine(f"  next   unopened packages were not checked; {how}")
        if self.resources_listed and not self.resources_checked:
            yield TextLine(
                "  next   no resource was fetched; at an address --sample 20 fetches some"
            )
        if self.judged_alone:
            is_one = self.judged_alone == 1
            judged = f"{formatting.count(self.judged_alone)} documents; --live follows their links"
            judged = "this document; --live follows its links" if is_one else judged
            yield TextLine(f"  checked only {judged}", level=QUIET)


def show_events(
    judged: Iterator[results.ValidationEvent], tally: ValidationTally, screen: Screen
) -> ExitCode:
    """Count and report the events of one target; return the exit code of what was not reached."""
    documents, code = tally.documents, ExitCode.OK
    for event in judged:
        tally.add(event)
        screen.report(*encode_event(event))
        if isinstance(event, Unreached):
            # If nothing could be checked, the exit code is that of the error, and not PARTIAL.
            is_all = tally.documents == documents and code is ExitCode.OK
            code = exit_code_for(event.error) if is_all else ExitCode.PARTIAL
        elif isinstance(event, results.Judged) and code is not ExitCode.OK:
            code = ExitCode.PARTIAL
    return code


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
            more = "" if fields["all_read"] else "; --max-documents sets the limit"
            yield TextLine(f"{fields['uri']}: warning: {fields['message']}{more}")
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
    place = ":".join(str(fields[name]) for name in ("uri", "line", "column") if fields[name])
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


def render_github(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    """Yield a finding as a workflow command of GitHub, which annotates files."""
    if event == "finding":
        marks = {"file": fields["uri"]}
        if fields["line"]:
            marks["line"] = fields["line"]
        if fields["column"]:
            marks["col"] = fields["column"]
            marks["endColumn"] = fields["column"] + max(fields["length"], 1)
        text = f"{fields['message']}. {fields['fix']}"
        yield _github_line(_GITHUB_COMMANDS[fields["severity"]], fields["code"], text, marks)
    elif event in {"unreached", "cut-short"}:
        word = "error" if event == "unreached" else "warning"
        text = f"{fields['uri']}: {fields['message']}"
        yield _github_line(word, fields.get("code", event), text, {})


def _github_line(word: str, title: str, text: str, marks: Mapping[str, object]) -> TextLine:
    properties = {**marks, "title": title}
    written = {
        name: _data(str(value)).replace(":", "%3A").replace(",", "%2C")
        for name, value in properties.items()
    }
    fields = ",".join(f"{name}={value}" for name, value in written.items())
    return TextLine(f"::{word} {fields}::{_data(text)}", level=QUIET)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
