"""Accounts: other systems that list their resources for a Source to publish (ADR 0057).

A repository, an index, a database or a feed knows its resources; it is queried, never changed. Its
answers are recorded in our own catalogue, and only that is published.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from resourcesync.model.resources import Change, Resource
from resourcesync.ports import Clock, Fetcher
from resourcesync.ports.catalogue import Omission, Posted


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOptions:
    """What an account is opened with.

    Attributes:
        address: Where the other system is, as the operator wrote it: ``SCHEME:`` and more, without
            any secret.
        base_uri: The address of the Source, ``publish --url``, with a slash at its end.
        values: What was given by ``--with KEY=VALUE``; ``env:NAME`` and ``file:PATH`` are replaced
            already by what they point to, so a secret may be among them.
        memory: A folder for what the account remembers between runs; not made yet, and not public.
        out: The folder of the published documents, for an account that makes resources itself.
        clock: Time. It may end a run by raising, wherever it is asked.
        fetcher: Opens what fetches over http for an origin, given by any URL of it, as politely
            and with the secrets that the operator asked for.
        allow_empty: True if the operator said that most of what was known, or all, may be gone.
            Who refuses that by himself believes it then.
    """

    address: str
    base_uri: str
    memory: str
    out: str
    clock: Clock
    fetcher: Callable[[str], AbstractContextManager[Fetcher]] = field(repr=False)
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    allow_empty: bool = False


class ChangeBatch(NamedTuple):
    """Some changes, and where the log of changes stands after them.

    Attributes:
        position: What ``Account.changes`` goes on from, once these are recorded.
        changes: Oldest first, 10,000 at most; none, where only the position moved, or where the
            caller is to have a chance to stop. ``Change.time`` is kept where it is later than all
            that was recorded before, and not in the future.
        omissions: What was told and says nothing that could be a change: a line that is no JSON.
        is_last: True if nothing will ever follow: the other system closed the feed.
        warnings: What the operator is to know of the log itself: a stable word and a sentence for
            each. Those of the last one count.
    """

    position: str
    changes: Sequence[Change]
    omissions: Sequence[Omission] = ()
    is_last: bool = False
    warnings: Sequence[tuple[str, str]] = ()


class ResourceAccount(Protocol):
    """What another system says of its resources. One run uses it, from one thread.

    Any method may raise a ``ResourceSyncError``: then nothing of what it was asked for is
    recorded. What is cut short must raise; a shorter answer means deletions.
    """

    @property
    def can_list_resources(self) -> bool:
        """True if ``resources`` can be asked: a mere feed of changes has only ``changes``."""
        ...

    def position(self) -> str:
        """Return where the log of changes stands now; empty when there is none.

        What ``resources`` yields when it is asked afterwards, together with what ``changes`` yields
        after this position, misses nothing.

        Raises:
            SourceError: The other system does not answer, or refuses.
        """
        ...

    def resources(self) -> Iterator[Resource]:
        """Yield every resource as it is now, each once, in any order.

        Raises:
            SourceError: Not all of them can be had.
        """
        ...

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield what changed after a position, until nothing more is known.

        A change may be told again; the last one of a resource says how it is now. The caller may
        let a long time pass before it asks for more, or close the iterator at any moment.

        Args:
            after: A position that was told before.
            wait: Seconds from now for which news are waited for; 0 does not wait. What is told
                meanwhile is yielded at once, or about a second later.

        Raises:
            DiscontinuityError: What changed after that position is not known any more.
            SourceError: The other system does not answer, or refuses.
        """
        ...


@runtime_checkable
class WritableAccount(Protocol):
    """An account that also takes what became of resources (``resourcesync catalogue post``)."""

    def post(self, changes: Sequence[Change]) -> Posted:
        """Write changes into the other system, in order; some of them, when it raises.

        Raises:
            SourceError: The other system does not answer, or refuses. To post all again is right.
        """
        ...


@runtime_checkable
class PublishedAccount(Protocol):
    """An account that is told when what it told is public: it can tidy up then."""

    def published(self) -> None:
        """Take note that all that was recorded is published.

        Raises:
            StorageError: What is not needed any more cannot be removed.
        """
        ...


AccountFactory = Callable[[AccountOptions], AbstractContextManager[ResourceAccount]]
"""Opens an account; what it holds is given back when the ``with`` block ends."""
