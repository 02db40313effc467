"""What links did to a mirror: copies that are here by links, and patches (``LinkLog``)."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class LinkRow(NamedTuple):
    """One entry that links to one thing that is not listed itself.

    Attributes:
        uri: The thing, normalised.
        via: The entry, normalised.
        generation: The reading of the Source that told of it last.
    """

    uri: str
    via: str
    generation: int


class PatchRow(NamedTuple):
    """What became of the last patch of a copy.

    Attributes:
        uri: The resource, normalised.
        time: When, microseconds.
        reason: Why it was of no use; empty when the copy was made by it.
    """

    uri: str
    time: int
    reason: str


class LinkLog(Protocol):
    """What is here by links, which entries lead to it, and what became of patches."""

    def is_linked(self, uri: str) -> bool:
        """Whether something is here, or wanted, only because entries link to it, or did so."""
        ...

    def referrers(self, uri: str, limit: int) -> list[str]:
        """Return the first entries that link to it, in order."""
        ...

    def orphans(self) -> Iterator[str]:
        """Yield, in order, what was linked to and is no more; safe while rows are written."""
        ...

    def linked_count(self) -> int:
        """Count the copies that are here only because entries link to them."""
        ...

    def patched(self, uri: str) -> PatchRow | None:
        """Return what became of the last patch of a copy; ``None`` when there was none."""
        ...
