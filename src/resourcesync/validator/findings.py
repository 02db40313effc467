"""Findings: one broken rule at one place."""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Final

import msgspec

from resourcesync.validator.rule import Rule, Severity

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
    """Rules that were applied to what the Source has; others had nothing to be applied to.

    Attributes:
        uri: The Source, or the package.
        rules: The ids of the rules.
    """

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
