"""What other systems tell, as far as it can be published: the rest is counted and left out."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from resourcesync.errors import ConfigurationError
from resourcesync.model.resources import Change, Resource
from resourcesync.ports import Omission
from resourcesync.source.round_trip import find_fault
from resourcesync.wiring import catalogues

_BATCH: Final = 500
_MOST_OMITTED: Final = 100

_Entry = TypeVar("_Entry", Resource, Change)


class PublishableFilter:
    """Lets through what can be published, and remembers what was left out."""

    def __init__(self) -> None:
        self._omitted = 0
        self._omissions: list[Omission] = []

    def select(
        self, told: Iterator[_Entry], known: Callable[[str], _Entry | None] = lambda _: None
    ) -> Iterator[_Entry]:
        """Yield what can be published; what cannot is counted, and does not stop the rest.

        Args:
            told: What is told.
            known: What stands in its place: who is not understood has not gone.
        """
        while some := list(islice(told, _BATCH)):
            if not _fault(some):
                yield from some
                continue
            for one in some:
                fault = _fault([one])
                if not fault:
                    yield one
                    continue
                self.omit(Omission(name=one.uri[:300], reason=fault))
                before = known(one.uri)
                if before is not None:
                    yield before

    def omit(self, omission: Omission) -> None:
        """Count something that is left out."""
        self._omitted += 1
        if len(self._omissions) < _MOST_OMITTED:
            self._omissions.append(omission)

    def pop_omissions(self) -> tuple[int, tuple[Omission, ...]]:
        """Return how many were left out since this was asked, and the first of them."""
        found = self._omitted, tuple(self._omissions)
        self._omitted, self._omissions = 0, []
        return found


def _fault(entries: Sequence[Resource] | Sequence[Change]) -> str:
    """Return why some entries cannot be published; empty when they can."""
    try:
        for entry in entries:
            catalogues.check_resource(entry.resource if isinstance(entry, Change) else entry)
    except ConfigurationError as error:
        return error.message
    return find_fault(entries)
