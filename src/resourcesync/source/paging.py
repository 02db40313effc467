"""Distribution of entries to documents of limited size (§7: 50,000 entries, 50 MB)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Final, Generic, NamedTuple, TypeVar

import msgspec

from resourcesync.errors import ConfigurationError
from resourcesync.model.settings import Section, Setting, size_from, whole
from resourcesync.model.vocabulary import MAX_BYTES, MAX_ENTRIES

E = TypeVar("E")

_BLOCK: Final = 512


class PageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one document; a single entry that is longer still gets a document of its own."""

    max_entries: Annotated[
        int, Setting("Most entries in one document.", Section.DOCUMENTS, whole(1, MAX_ENTRIES))
    ] = MAX_ENTRIES
    max_bytes: Annotated[
        int,
        Setting(
            "Most bytes in one document, such as 10M.", Section.DOCUMENTS, size_from(1, MAX_BYTES)
        ),
    ] = MAX_BYTES

    def __post_init__(self) -> None:
        """Refuse limits that the specification does not allow."""
        if not 1 <= self.max_entries <= MAX_ENTRIES or not 1 <= self.max_bytes <= MAX_BYTES:
            raise ConfigurationError(
                f"a document has 1 to {MAX_ENTRIES:,} entries and 1 to {MAX_BYTES:,} bytes",
                evidence=(("given", f"{self.max_entries:,} entries, {self.max_bytes:,} bytes"),),
            )

    def allow(self, entries: int, size: int) -> bool:
        """True if a document may have so many entries and bytes; one entry is always allowed."""
        return entries <= 1 or (entries <= self.max_entries and size <= self.max_bytes)


class Block(NamedTuple, Generic[E]):
    """Consecutive entries and their bytes."""

    entries: Sequence[E]
    text: bytes


def blocks(
    entries: Iterable[E], render: Callable[[Sequence[E]], bytes], most: int = _BLOCK
) -> Iterator[Block[E]]:
    """Yield entries some hundred at a time, which is faster to render than one by one."""
    remaining = iter(entries)
    while some := list(islice(remaining, most)):
        yield Block(some, render(some))


class Paginator(Generic[E]):
    """Entries cut into pages that are read one after the other, each as full as it may be.

    It is true while there is a page to read. Some hundred entries are in memory.
    """

    def __init__(
        self,
        entries: Iterable[E],
        render: Callable[[Sequence[E]], bytes],
        limits: PageLimits,
        *,
        block: int = _BLOCK,
    ) -> None:
        self._remaining = blocks(entries, render, block)
        self._render = render
        self._limits = limits
        self._ahead: list[Block[E]] = []  # the next block is the last of these
        self._advance()

    @classmethod
    def of_runs(
        cls, runs: Iterable[Sequence[E]], render: Callable[[Sequence[E]], bytes], limits: PageLimits
    ) -> "Paginator[E]":
        """Return the pages of entries that come some hundred at a time."""
        pages = cls((), render, limits)
        pages._remaining = (Block(run, render(run)) for run in runs)
        pages._advance()
        return pages

    def __bool__(self) -> bool:
        return bool(self._ahead)

    def page(self, size: int, entries: int = 0) -> Iterator[Block[E]]:
        """Yield the blocks of the next page; read it to its end before the next one."""
        while self._ahead:
            block = self._ahead[-1]
            count, length = entries + len(block.entries), size + len(block.text)
            if self._limits.allow(count, length):
                yield block
                entries, size = count, length
                self._ahead.pop()
                self._advance()
            elif len(block.entries) > 1:
                self._halve()
            else:
                return

    def _advance(self) -> None:
        if not self._ahead:
            self._ahead.extend(islice(self._remaining, 1))

    def _halve(self) -> None:
        entries = self._ahead.pop().entries
        middle = len(entries) // 2
        for half in (entries[middle:], entries[:middle]):
            self._ahead.append(Block(half, self._render(half)))
