"""Checks that need more than one entry: order, repetition, life of a resource (§10 to §13)."""

from typing import Final

from resourcesync.model.vocabulary import MAX_ENTRIES
from resourcesync.validator._entries import ParsedEntry
from resourcesync.validator._nodes import TEXT, ElementNode
from resourcesync.validator._subject import DocumentKind, ExaminedDocument, ParsedTime
from resourcesync.validator.rule import RuleProfile

_IMPOSSIBLE: Final = frozenset(
    {
        ("created", "created"),
        ("updated", "created"),
        ("deleted", "updated"),
        ("deleted", "deleted"),
    }
)


class TimeOrderCheck:
    """Whether times come oldest first; entries without a time are passed over."""

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self._before: ParsedTime | None = None

    def check(
        self, subject: ExaminedDocument, moment: ParsedTime | None, node: ElementNode, part: str
    ) -> None:
        """Compare the time of an entry with that of the entries before."""
        if moment is None:
            return
        if self._before is not None and moment.last < self._before.first:
            name = node.name if part == TEXT else f"md/@{part}"
            message = f"{name} {moment.text} is before the {self._before.text} of an entry above it"
            subject.report(self._rule, message, node, part)
            return
        self._before = moment


class RepetitionCheck:
    """Whether a resource is listed twice; remembers as many entries as a document may have."""

    def __init__(self) -> None:
        self._marks: set[int] = set()

    def check(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Look for the address of an entry among those before."""
        if not entry.uri:
            return
        mark = hash(entry.uri)
        if mark in self._marks:
            subject.report("RL04", f"{entry.uri[:200]} is listed twice", entry.node)
        elif len(self._marks) < MAX_ENTRIES:
            self._marks.add(mark)


class ChangeSequenceCheck:
    """The changes of a Change List or its packaged form, one after the other (§12.1, §13.2)."""

    def __init__(self, kind: DocumentKind) -> None:
        self._list = kind is DocumentKind.CH
        self._order = TimeOrderCheck("CH05" if self._list else "CM05")
        self._last: dict[int, str] = {}
        self._moments: set[int] = set()

    def check(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        """Compare a change with those before."""
        self._check_order(subject, entry)
        if self._list and entry.uri:
            self._check_repeated(subject, entry)
            self._check_lifecycle(subject, entry)

    def _check_order(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        if subject.profile is RuleProfile.RS_1_0:
            if entry.lastmod_node is not None:
                self._order.check(subject, entry.lastmod, entry.lastmod_node, TEXT)
        elif entry.md is not None:
            self._order.check(subject, entry.times.get("datetime"), entry.md, "datetime")

    def _check_repeated(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        old = subject.profile is RuleProfile.RS_1_0
        moment = entry.lastmod if old else entry.times.get("datetime")
        if moment is None:
            return
        mark = hash((entry.uri, moment.first))
        if mark in self._moments:
            message = f"{entry.uri[:200]} changed twice at {moment.text}"
            subject.report("CH08a" if old else "CH08b", message, entry.node)
        elif len(self._moments) < MAX_ENTRIES:
            self._moments.add(mark)

    def _check_lifecycle(self, subject: ExaminedDocument, entry: ParsedEntry) -> None:
        mark = hash(entry.uri)
        before = self._last.get(mark)
        if before is not None and (before, entry.change) in _IMPOSSIBLE:
            message = f"{entry.uri[:200]} is {entry.change} after it was {before}"
            subject.report("CH12", message, entry.place, "change" if entry.md else "")
        if before is not None or len(self._last) < MAX_ENTRIES:
            self._last[mark] = entry.change
