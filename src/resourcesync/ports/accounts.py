"""Accounts: other systems that list their resources for a Source to publish (ADR 0057).

A repository, an index, a database or an event stream knows its resources; it is queried, never
changed. Its answers are recorded in our own catalogue, and only that is published.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import msgspec

from resourcesync.model.entries import Change, Resource
from resourcesync.ports import Clock, Fetcher
from resourcesync.ports.originals import Omission


class AccountOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options to open an account with.

    Attributes:
        address: Address of the other system, as the operator wrote it: ``SCHEME:`` and more,
            without any secret.
        base_uri: The address of the published Source, with a slash at its end.
        values: The operator's options by their keys; ``env:NAME`` and ``file:PATH`` are replaced
            by their targets already, so a secret may be among them.
        memory: A folder for the state of the account between runs; not made yet, and not public.
        out: The folder of the published documents, for an account that makes resources itself.
        clock: The clock.
        fetcher: Opens a fetcher over http for an origin, given by any URL of it, with the limits
            and secrets that the operator configured.
        allow_empty: True if the operator confirmed that most or all known resources may be gone, so
            that an account that checks this accepts it.
    """

    address: str
    base_uri: str
    memory: str
    out: str
    clock: Clock
    fetcher: Callable[[str], AbstractContextManager[Fetcher]]
    values: Mapping[str, str] = msgspec.field(default_factory=dict)
    allow_empty: bool = False

    def __repr__(self) -> str:
        return f"AccountOptions(address={self.address!r}, base_uri={self.base_uri!r})"


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of resources posted by a program.

    Attributes:
        created: Resources that were not known.
        updated: Known ones with other bytes, or another type or links.
        deleted: Known ones that are gone.
        touched: Known ones of which only the date is another.
    """

    created: int = 0
    updated: int = 0
    deleted: int = 0
    touched: int = 0


class ChangeBatch(NamedTuple):
    """Some changes, and where the log of changes stands after them.

    Attributes:
        position: The position for the next ``ResourceAccount.changes``, once these are recorded.
        changes: Oldest first, 10,000 at most; empty if only the position moved, or to give the
            caller a chance to stop. ``Change.time`` is recorded if it is later than all recorded
            before, and not in the future.
        omissions: Input that is no change, such as an event that is no JSON.
        warnings: Warnings for the operator on the log itself: a stable code and a sentence for
            each. Those of the last batch count.
        is_announced: True if the system announces its changes, and was not polled for these.
    """

    position: str
    changes: Sequence[Change]
    omissions: Sequence[Omission] = ()
    warnings: Sequence[tuple[str, str]] = ()
    is_announced: bool = False


class ResourceAccount(Protocol):
    """The resources of another system. One run uses it, from one thread.

    Derive from it: the last three methods are optional.

    Any method may raise a ``ResourceSyncError``: then nothing of that call is recorded. A truncated
    answer must raise; a shorter answer means deletions.
    """

    can_list_resources: bool
    """True if ``resources`` can list them all: an event stream has only ``changes``."""

    def position(self) -> str:
        """Return the present end of the log of changes; empty without a log.

        What ``resources`` yields when it is asked afterwards, together with what ``changes`` yields
        after this position, misses nothing.

        Raises:
            SourceError: The other system does not answer, or refuses.
        """

    def resources(self) -> Iterator[Resource]:
        """Yield every resource as it is now, each once, in any order.

        Raises:
            SourceError: Not all of them can be had.
        """

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield the changes after a position, until there are no more.

        A change may be told again; the last one of a resource says how it is now. The caller may
        let a long time pass before it asks for more, or close the iterator at any moment.

        Args:
            after: A position returned before.
            wait: Seconds from now for which news are waited for; 0 does not wait. What is told
                meanwhile is yielded at once, or about a second later.

        Raises:
            ChangesLostError: The changes after that position are no longer known.
            SourceError: The other system does not answer, or refuses.
        """

    def published(self) -> None:
        """Handle the publication of all recorded changes, such as by removing obsolete data.

        Raises:
            StorageError: It cannot be removed.
        """
        return

    def pop_counts(self) -> Mapping[str, int]:
        """Return what was read since the last call, in numbers by nouns such as ``record``."""
        return {}
