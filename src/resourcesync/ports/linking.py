"""What links did to a mirror (``LinkLog``), and the links that entries have (``EntryLog``)."""

from collections.abc import Iterator, Sequence
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


class EntryLink(NamedTuple):
    """A link of an entry that matters to whoever publishes the copy again.

    Attributes:
        rel: The relation, in lower case.
        href: Its target.
        media_type: ``type``.
        hash: ``hash`` of the target, in our form.
        length: Bytes of the target, or ``None``.
        modified: When the target was modified, microseconds, or ``None``.
    """

    rel: str
    href: str
    media_type: str
    hash: str
    length: int | None
    modified: int | None


class EntryRow(NamedTuple):
    """What a listed entry links to, as the Source told it last.

    Attributes:
        uri: The entry, normalised.
        links: A JSON array of ``EntryLink`` s, each an array; empty for none.
        generation: The reading of the Source that told of it last.
    """

    uri: str
    links: str
    generation: int


class EntryLog(Protocol):
    """The links that entries have, whether or not they are followed."""

    def has_entries(self) -> bool:
        """Whether any entry has, or had, links that are remembered."""
        ...

    def entry_links(self, uri: str) -> str:
        """Return the links of an entry as in ``EntryRow.links``; empty when it has none."""
        ...

    def entry_changed(self, uri: str) -> int:
        """Return the number of the logged change that told that its links changed; 0 for none."""
        ...

    def entries_linking(self, targets: Sequence[str]) -> list[str]:
        """Return the entries that link to any of some URIs, normalised, in order."""
        ...


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

    def last_patch(self, uri: str) -> PatchRow | None:
        """Return what became of the last patch of a copy; ``None`` when there was none."""
        ...
