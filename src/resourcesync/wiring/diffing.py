"""Compare any two accounts of resources: Sources, lists, mirrors. Nothing is written."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec

from resourcesync.adapters.mirror import mirror_folder
from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.compare import Created, Deleted, Same, Updated, compare
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.uris import normalise
from resourcesync.discovery.listing import (
    ListingComparison,
    ListingReader,
    ListingRow,
    ListingSummary,
    compare_rows,
    latest_rows,
)
from resourcesync.errors import OutOfScopeError
from resourcesync.ports import Clock
from resourcesync.ports.mirror import Copy
from resourcesync.wiring import states
from resourcesync.wiring.exploring import is_web_address, open_documents
from resourcesync.wiring.mirrors import Network, is_mirror


class Sign(StrEnum):
    """What a comparison says of one resource; the value is the symbol that is printed."""

    ONLY_B = "+"
    ONLY_A = "-"
    DIFFERENT = "*"
    UNPROVEN = "?"


@dataclass(frozen=True, slots=True)
class Difference:
    """One resource that there is something to say of."""

    sign: Sign
    uri: str
    reason: str


@dataclass(slots=True, kw_only=True)
class ResourceComparison:
    """The two accounts, read whole, and what the comparison has counted so far.

    Attributes:
        a: What was read of the first.
        b: What was read of the second.
        same: Resources that both tell of alike, those not proven included.
        unproven: How many of those have no hash in common.
        different: Resources that they tell of differently.
        only_a: Resources of the first only.
        only_b: Resources of the second only.
    """

    a: ListingSummary
    b: ListingSummary
    same: int = 0
    unproven: int = 0
    different: int = 0
    only_a: int = 0
    only_b: int = 0
    _sorters: tuple[ExternalSorter[ListingRow], ...] = field(default=())

    @property
    def is_equal(self) -> bool:
        """Whether both tell of the same resources, as far as they tell."""
        return not (self.different or self.only_a or self.only_b)

    def findings(self) -> Iterator[Difference]:
        """Compare; yield all but what is the same, in URI order.

        Raises:
            StorageError: A temporary file failed.
        """
        left, right = (latest_rows(spool) for spool in self._sorters)
        for difference in compare(left, right, same=_is_never_same):
            match difference:
                case Created(told):
                    self.only_b += 1
                    yield Difference(Sign.ONLY_B, told.uri, "only in B")
                case Deleted(told):
                    self.only_a += 1
                    yield Difference(Sign.ONLY_A, told.uri, "only in A")
                case Updated(one, other) | Same(one, other):
                    yield from self._compare_pair(one, other)

    def _compare_pair(self, one: ListingRow, other: ListingRow) -> Iterator[Difference]:
        verdict, reason = compare_rows(one, other)
        match verdict:
            case ListingComparison.DIFFERENT:
                self.different += 1
                yield Difference(Sign.DIFFERENT, one.uri, reason)
            case ListingComparison.UNPROVEN:
                self.same += 1
                self.unproven += 1
                yield Difference(Sign.UNPROVEN, one.uri, reason)
            case ListingComparison.SAME:
                self.same += 1


def _is_never_same(one: ListingRow, other: ListingRow) -> bool:
    del one, other
    return False


@contextmanager
def open_comparison(
    a: str, b: str, *, network: Network, clock: Clock
) -> Iterator[ResourceComparison]:
    """Read two accounts; memory does not grow with their size.

    Args:
        a: An address, a path of documents, or a mirror's folder.
        b: The same.
        network: How Sources are asked.
        clock: Time.

    Raises:
        SourceError: A document could not be had.
        DocumentError: A document cannot be used.
        StorageError: A file or a mirror cannot be read.
        ConfigurationError: There is nothing of that name, or a setting cannot work.
    """
    with ExitStack() as held:
        spools = tuple(held.enter_context(_new_sorter()) for _ in range(2))
        tellings = [
            _read_target(target, spool, network, clock)
            for target, spool in zip((a, b), spools, strict=True)
        ]
        yield ResourceComparison(a=tellings[0], b=tellings[1], _sorters=spools)


def _new_sorter() -> ExternalSorter[ListingRow]:
    return ExternalSorter(
        key=lambda told: told.uri,
        dump=msgspec.msgpack.Encoder().encode,
        load=msgspec.msgpack.Decoder(ListingRow).decode,
        spill=tempfile.TemporaryFile,
    )


def _read_target(
    target: str, spool: ExternalSorter[ListingRow], network: Network, clock: Clock
) -> ListingSummary:
    if not is_web_address(target) and is_mirror(Path(target)):
        return _read_mirror(Path(target), spool)

    def add(told: ListingRow) -> None:
        plain = _normalised(told.uri)
        spool.add(told if plain == told.uri else told._replace(uri=plain))

    with open_documents(target, network, clock) as (documents, first):
        return ListingReader(documents, add, network.allow_origins).read(first)


def _normalised(uri: str) -> str:
    """Return the form that all spellings of a URI share, as mirrors keep it."""
    try:
        return normalise(uri)
    except OutOfScopeError:
        return uri


def _read_mirror(folder: Path, spool: ExternalSorter[ListingRow]) -> ListingSummary:
    telling = ListingSummary(documents=[str(folder)])
    with states.open_snapshot(folder / OWN_FOLDER / mirror_folder.STATE_FILE) as state:
        for copy in state.copies():
            telling.entries += 1
            spool.add(_entry_of_copy(copy))
    return telling


def _entry_of_copy(copy: Copy) -> ListingRow:
    if copy.length < 0:  # nothing is known of it: a run was killed while its file was changed
        return ListingRow(copy.uri)
    return ListingRow(copy.uri, copy.digests, copy.length, copy.lastmod)
