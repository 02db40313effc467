"""One answer for many pages: a login, an error page, a notice of an outage. Pure.

A sitemap has no hashes, so nothing else shows that such an answer is not the page: pages that
differed become the same bytes, or are redirected to the same address. Their copies stay, and the
mirror is behind, until the Source serves them again or the operator vouches for it by a baseline.
"""

from collections.abc import Mapping
from typing import Final

MANY: Final = 5
"""Different copies that one answer would replace, from which it is taken for none of them."""
_MOST: Final = 512
"""Answers that are told apart: more than one group has."""


class SharedAnswers:
    """The answers that would replace many copies: false while they are held, true if accepted."""

    def __init__(self, known: Mapping[str, bool]) -> None:
        self.known = dict(known)
        self._formers: dict[str, set[str]] = {}

    def add(self, answer: str, former: str, *, is_accepted: bool) -> None:
        """Add that an answer would replace a copy with these digests."""
        formers = self._formers[answer] = self._formers.pop(answer, set())
        if len(formers) < MANY:
            formers.add(former)
        if len(formers) == MANY or (is_accepted and answer in self.known):
            self.known[answer] = is_accepted or self.known.get(answer, False)
        for seen in (self._formers, self.known):
            if len(seen) > _MOST:
                del seen[next(iter(seen))]

    def holds(self, answer: str) -> bool:
        """True if an answer is held: it replaces no copy."""
        return self.known.get(answer) is False
