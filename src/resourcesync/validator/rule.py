"""The rules, read from their table, and the findings of a document that breaks them."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from heapq import heappop, heappush
from importlib import resources
from typing import Final

import msgspec

from resourcesync.model.settings import RuleProfile


class Level(StrEnum):
    """The level of a requirement. A GUIDE is not in the standard, but good practice."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    GUIDE = "GUIDE"


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


class CheckScope(StrEnum):
    """The input that a check needs.

    ``PARTLY`` finds some of the faults and ``LIVE`` none of them; `Rule.reason` explains both.
    """

    DOCUMENT = "document"
    TOGETHER = "together"
    DELIVERY = "delivery"
    PACKAGE = "package"
    PARTLY = "partly"
    LIVE = "live"


DRAFTS: Final = frozenset[RuleProfile]({"rs-0.9", "rs-0.6"})
DATED_BY_LASTMOD: Final = DRAFTS | {"rs-1.0"}
"""Profiles in which ``lastmod`` is the time of a change: ``datetime`` came with 1.1."""
RESOURCESYNC: Final = frozenset[RuleProfile]({"rs-1.1", "rs-1.0"})

_SEVERITIES = {
    Level.MUST: Severity.ERROR,
    Level.SHOULD: Severity.WARNING,
    Level.GUIDE: Severity.ADVICE,
}


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement of the standard.

    Attributes:
        id: Its row in the table of requirements, such as ``CH05``.
        code: The code in reports, such as ``RS402``; the first digit is the family.
        level: Its level.
        clause: Section of ANSI/NISO Z39.99-2017; ``Sitemaps``, ``XSD``, ``Archives``, ``WebSub``
            and ``Notification`` are the documents around it.
        document: The kind of document it is about, as a heading.
        sentence: The requirement, in one sentence.
        why: The consequence for readers when it is broken.
        fix: The fix.
        profiles: The texts it belongs to.
        checked: The input that its check needs.
        reason: Reason why it is checked in part or not at all; empty for all others.
        softened: True for a MUST that is reported as a warning, because published documents break
            it.
    """

    id: str
    code: str
    level: Level
    clause: str
    document: str
    sentence: str
    why: str
    fix: str
    profiles: frozenset[RuleProfile] = RESOURCESYNC
    checked: CheckScope = CheckScope.DOCUMENT
    reason: str = ""
    softened: bool = False

    @property
    def severity(self) -> Severity:
        """Severity of its findings."""
        severity = _SEVERITIES[self.level]
        return Severity.WARNING if self.softened and severity is Severity.ERROR else severity

    @property
    def family(self) -> str:
        """The first digit of the code with its prefix, such as ``RS4``."""
        return self.code[:3]


_MAX_WAITING: Final = 1_000


class RuleFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that is broken at one place.

    Attributes:
        rule: The rule.
        uri: The document, package or resource it is about.
        line: 1-based line in the document; 0 when the finding has no place.
        column: 1-based column, in characters; 0 when it has no place.
        length: Characters that are at fault from there, on this line; at least 1 with a place.
        message: The fault, with the value that causes it.
        excerpt: The line at fault, or the part of it around the fault; empty when not at hand.
        excerpt_column: 1-based position in ``excerpt`` where the fault begins; 0 without one.
    """

    rule: Rule
    uri: str
    message: str
    line: int = 0
    column: int = 0
    length: int = 0
    excerpt: str = ""
    excerpt_column: int = 0

    @property
    def severity(self) -> Severity:
        """Severity of the finding."""
        return self.rule.severity


class AppliedRules(msgspec.Struct, frozen=True):
    """Rules that were applied to a Source or package; others had nothing to be applied to."""

    uri: str
    rules: frozenset[str]


def by_place(findings: Iterable[RuleFinding]) -> Iterator[RuleFinding]:
    """Yield the findings of one document by line and column.

    What is missing is known only at the end, and belongs at the top. At most 1,000 findings wait,
    so the order of more than that is nearly right.
    """
    waiting: list[tuple[int, int, int, RuleFinding]] = []
    for number, finding in enumerate(findings):
        heappush(waiting, (finding.line, finding.column, number, finding))
        if len(waiting) > _MAX_WAITING:
            yield heappop(waiting)[3]
    while waiting:
        yield heappop(waiting)[3]


def _load() -> dict[str, Rule]:
    text = resources.files(__package__).joinpath("rules.toml").read_text("utf-8")
    rules = msgspec.convert(tomllib.loads(text)["rule"], list[Rule])
    return {rule.id: _with_drafts(rule) for rule in rules}


def _with_drafts(rule: Rule) -> Rule:
    if "rs-1.0" not in rule.profiles:
        return rule
    drafts = {draft for draft in DRAFTS if rule.id not in _NEWER_THAN[draft]}
    return msgspec.structs.replace(rule, profiles=rule.profiles | drafts)


_NEWER_THAN_0_9: Final = frozenset({"AR02", "CA07", "CD04", "G44", "LK08", "CI03", "CI04"})
_NEWER_THAN: Final = {
    "rs-0.9": _NEWER_THAN_0_9 | {"G09"},  # its attributes are in the namespace (3)
    "rs-0.6": _NEWER_THAN_0_9 | {"G43", "SD09"},  # it has no Source Description
}
"""Rules of 1.0 about what a draft does not have."""


RULES: Final[Mapping[str, Rule]] = _load()
"""Every rule by its id, in the order of the table."""

FAMILIES: Final[Mapping[str, str]] = {
    "RS1": "XML and sitemap",
    "RS2": "Metadata",
    "RS3": "Links and structure",
    "RS4": "Times",
    "RS5": "HTTP delivery",
    "RS6": "Fixity",
    "RS7": "Dumps and manifests",
    "RS8": "Notification",
    "RS9": "Advice",
}
"""Families of rules by the first digit of their codes."""

_FOLDED: Final = {
    **{rule.id.lower(): rule for rule in RULES.values()},
    **{rule.code.lower(): rule for rule in RULES.values()},
}


def find_rule(name: str) -> Rule | None:
    """Return the rule of this id or code, in any case, or ``None``."""
    return _FOLDED.get(name.strip().lower())


def selected(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> frozenset[str]:
    """Return the ids of the rules that are wanted."""
    wanted, unwanted = _beginnings(select) or ("",), _beginnings(ignore)
    return frozenset(
        rule.id
        for rule in RULES.values()
        if _begins(rule, wanted) and not (unwanted and _begins(rule, unwanted))
    )


def _beginnings(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in names if name.strip())


def _begins(rule: Rule, beginnings: tuple[str, ...]) -> bool:
    return rule.code.lower().startswith(beginnings) or rule.id.lower().startswith(beginnings)
