"""How many entries go into one document (§7: 50,000 entries, 50 MB)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from resourcesync.errors import ConfigurationError
from resourcesync.model.vocabulary import MAX_BYTES, MAX_ENTRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that one document holds.

    Attributes:
        max_entries: Entries, 1 to 50,000.
        max_bytes: Bytes, uncompressed, 1 to 52,428,800. A single entry that is longer than that
            still gets a document, of its own.
    """

    max_entries: int = MAX_ENTRIES
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        """Refuse limits that the specification does not allow."""
        if not 1 <= self.max_entries <= MAX_ENTRIES or not 1 <= self.max_bytes <= MAX_BYTES:
            raise ConfigurationError(
                f"a document holds 1 to {MAX_ENTRIES:,} entries and 1 to {MAX_BYTES:,} bytes",
                evidence=(("given", f"{self.max_entries:,} entries, {self.max_bytes:,} bytes"),),
            )

    def allow(self, entries: int, size: int) -> bool:
        """Whether a document may have so many entries and bytes; one entry is always allowed."""
        return entries <= 1 or (entries <= self.max_entries and size <= self.max_bytes)


class Pages:
    """Entries, as bytes, cut into pages that are read one after the other.

    It is true while there is a page to read. Only one entry is held in memory.

    Args:
        fragments: The entries.
        limits: The most that a page holds.
        overhead: Bytes of a document around its entries.
    """

    def __init__(self, fragments: Iterable[bytes], limits: Limits, overhead: int) -> None:
        self._fragments = iter(fragments)
        self._limits = limits
        self._overhead = overhead
        self._next = next(self._fragments, None)

    def __bool__(self) -> bool:
        return self._next is not None

    def page(self) -> Iterator[bytes]:
        """Yield the entries of the next page; read it to its end before asking for another."""
        entries, size = 0, self._overhead
        while self._next is not None:
            entries, size = entries + 1, size + len(self._next)
            if not self._limits.allow(entries, size):
                return
            yield self._next
            self._next = next(self._fragments, None)
