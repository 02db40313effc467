"""Compare two accounts of the same resources, both in URI order, in constant memory.

Everything this package does is such a comparison: publishing compares the catalogue with the
originals, baseline synchronization compares the mirror with the Resource List, and an audit
compares what the mirror really holds with what the Source lists.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar, final


class Account(Protocol):
    """Anything that tells of one resource: all it must have is the URI."""

    @property
    def uri(self) -> str:
        """The resource's URI: what the accounts are ordered by."""
        ...


B = TypeVar("B", bound=Account)
A = TypeVar("A", bound=Account)


@final
class Created(NamedTuple, Generic[A]):
    """Only the second account has it."""

    after: A


@final
class Updated(NamedTuple, Generic[B, A]):
    """Both accounts have it, and they differ."""

    before: B
    after: A


@final
class Deleted(NamedTuple, Generic[B]):
    """Only the first account has it."""

    before: B


@final
class Same(NamedTuple, Generic[B, A]):
    """Both accounts have it, and they agree."""

    before: B
    after: A


Difference = Created[A] | Updated[B, A] | Deleted[B] | Same[B, A]


class UnorderedAccountError(ValueError):
    """An account was not in strictly rising URI order: a fault of the caller, not of a Source."""


def compare(
    before: Iterable[B], after: Iterable[A], *, same: Callable[[B, A], bool]
) -> Iterator[Difference[A, B]]:
    """Yield one difference for each URI of either account, in URI order.

    Args:
        before: What was; in strictly rising URI order (compared as strings of code points).
        after: What is; in the same order.
        same: Whether two tellings of one URI agree.

    Raises:
        UnorderedAccountError: An account repeats a URI or goes back.
    """
    lefts, rights = _rising(before), _rising(after)
    left, right = next(lefts, None), next(rights, None)
    while left is not None and right is not None:
        if left.uri == right.uri:
            yield Same(left, right) if same(left, right) else Updated(left, right)
            left, right = next(lefts, None), next(rights, None)
        elif left.uri < right.uri:
            yield Deleted(left)
            left = next(lefts, None)
        else:
            yield Created(right)
            right = next(rights, None)
    while left is not None:
        yield Deleted(left)
        left = next(lefts, None)
    while right is not None:
        yield Created(right)
        right = next(rights, None)


T = TypeVar("T", bound=Account)


def _rising(account: Iterable[T]) -> Iterator[T]:
    last: str | None = None
    for item in account:
        if last is not None and item.uri <= last:
            raise UnorderedAccountError(f"{item.uri!r} comes after {last!r}")
        last = item.uri
        yield item
