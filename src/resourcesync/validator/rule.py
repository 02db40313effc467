"""A rule: its identity, its severity, and how it can be checked."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How strongly the standard asks. A GUIDE is not in its text, but wise."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    GUIDE = "GUIDE"


class Severity(StrEnum):
    """How loudly a finding is told."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


class RuleProfile(StrEnum):
    """Which text a document is judged by."""

    RS_1_1 = "rs-1.1"
    RS_1_0 = "rs-1.0"
    SITEMAP = "sitemap"


class CheckScope(StrEnum):
    """What a check has to see.

    ``MESSAGE`` has to see what passes between a hub and a receiver, recorded in a file. ``PARTLY``
    finds some of the faults and ``LIVE`` none of them; both say why in `Rule.reason`.
    """

    DOCUMENT = "document"
    TOGETHER = "together"
    DELIVERY = "delivery"
    MESSAGE = "message"
    PACKAGE = "package"
    PARTLY = "partly"
    LIVE = "live"


RESOURCESYNC = frozenset({RuleProfile.RS_1_1, RuleProfile.RS_1_0})
EVERY_PROFILE = frozenset(RuleProfile)

_SEVERITIES = {
    Level.MUST: Severity.ERROR,
    Level.SHOULD: Severity.WARNING,
    Level.GUIDE: Severity.ADVICE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that the standard asks.

    Attributes:
        id: Its row in the table of requirements, such as ``CH05``.
        code: What reports print, such as ``RS402``; the first digit is the family.
        level: How strongly it is asked.
        clause: Section of ANSI/NISO Z39.99-2017; ``Sitemaps``, ``XSD``, ``Archives``, ``WebSub``
            and ``Notification`` are the documents around it.
        document: The kind of document it is about, as a heading.
        sentence: What it asks, in one sentence.
        why: What goes wrong for readers when it is broken.
        fix: What mends it.
        profiles: The texts it belongs to.
        checked: What a check has to see.
        reason: Reason why it is checked in part or not at all; empty for all others.
        softened: A MUST that is told as a warning, because published documents break it.
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
        """How loudly its findings are told."""
        severity = _SEVERITIES[self.level]
        return Severity.WARNING if self.softened and severity is Severity.ERROR else severity

    @property
    def family(self) -> str:
        """The first digit of the code with its prefix, such as ``RS4``."""
        return self.code[:3]
