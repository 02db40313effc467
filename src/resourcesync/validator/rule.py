"""A rule: its identity, its severity, and how it can be checked."""

from enum import StrEnum

import msgspec


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


class RuleProfile(StrEnum):
    """The text that a document is checked against."""

    RS_1_1 = "rs-1.1"
    RS_1_0 = "rs-1.0"
    SITEMAP = "sitemap"


class CheckScope(StrEnum):
    """The input that a check needs.

    ``MESSAGE`` needs the messages between a hub and a receiver, recorded in a file. ``PARTLY``
    finds some of the faults and ``LIVE`` none of them; `Rule.reason` explains both.
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
