"""The comparison of two listings of the same resources, both in URI order, in constant memory.

Everything this package does is such a comparison: publishing compares the catalogue with the
originals, baseline synchronization compares the mirror with the Resource List, and an audit
compares what the mirror really contains with what the Source lists.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, final


class Account(Protocol):
    """A row of one resource: all it must have is the URI."""

    @property
    def uri(self) -> str:
        """The resource's URI: the order of the listings."""


B = TypeVar("B", bound=Account)
A = TypeVar("A", bound=Account)


@final
class Created(NamedTuple, Generic[A]):
    """Only the second listing has it."""

    after: A


@final
class Updated(NamedTuple, Generic[B, A]):
    """Both listings have it, and they differ."""

    before: B
    after: A


@final
class Deleted(NamedTuple, Generic[B]):
    """Only the first listing has it."""

    before: B


@final
class Same(NamedTuple, Generic[B, A]):
    """Both listings have it, and they agree."""

    before: B
    after: A


# A large listing has millions of results: made without Python code.
_created: Final[Callable[[tuple[Any]], Created[Any]]] = partial(tuple.__new__, Created)
_same: Final[Callable[[tuple[Any, Any]], Same[Any, Any]]] = partial(tuple.__new__, Same)
_updated: Final[Callable[[tuple[Any, Any]], Updated[Any, Any]]] = partial(tuple.__new__, Updated)

Difference = Created[A] | Updated[B, A] | Deleted[B] | Same[B, A]


class UnorderedAccountError(ValueError):
    """An account was not in strictly rising URI order: a fault of the caller, not of a Source."""


def compare(
    before: Iterable[B], after: Iterable[A], *, same: Callable[[B, A], bool]
) -> Iterator[Difference[A, B]]:
    """Yield one difference for each URI of either account, in URI order."""
    lefts, rights = _rising(before), _rising(after)
    left, right = next(lefts, None), next(rights, None)
    while left is not None and right is not None:
        if left.uri == right.uri:
            pair = (left, right)
            yield _same(pair) if same(left, right) else _updated(pair)
            left, right = next(lefts, None), next(rights, None)
        elif left.uri < right.uri:
            yield Deleted(left)
            left = next(lefts, None)
        else:
            yield _created((right,))
            right = next(rights, None)
    if left is not None:
        yield Deleted(left)
    yield from map(Deleted, lefts)
    if right is not None:
        yield _created((right,))
    yield from map(_created, zip(rights))


T = TypeVar("T", bound=Account)


def _rising(account: Iterable[T]) -> Iterator[T]:
    items = iter(account)
    first = next(items, None)
    if first is None:
        return
    last = first.uri
    yield first
    for item in items:
        uri = item.uri
        if uri <= last:
            raise UnorderedAccountError(f"{uri!r} comes after {last!r}")
        last = uri
        yield item
