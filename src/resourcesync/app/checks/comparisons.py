"""Comparisons: of a mirror with the tree it mirrors, byte for byte, and of any two inventories.

The byte comparison walks the tree and reads every byte; it uses no catalogue, list or hash. Only
the names come from elsewhere: the URI of a path, and the path of a URI. Nothing is written.
"""

import filecmp
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec

from resourcesync.adapters.files.names import to_segment
from resourcesync.adapters.mirror.own_folder import OWN_FOLDER, STATE_FILE, is_mirror
from resourcesync.adapters.mirror.state import SqliteMirrorState, StateSnapshot
from resourcesync.app import plugins
from resourcesync.app.document_access import is_web_address, open_documents
from resourcesync.compare import Created, Deleted, Same, Updated, compare
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.sync_state import SyncState
from resourcesync.discovery.listing import (
    ListingComparison,
    ListingReader,
    ListingRow,
    ListingSummary,
    compare_rows,
    latest_rows,
)
from resourcesync.discovery.uris import normalise_if_possible
from resourcesync.errors import ConfigurationError, Remedy
from resourcesync.ports import Clock
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.mirror import Copy
from resourcesync.settings.network import Network


class ByteComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a comparison.

    Attributes:
        files: Files of the tree.
        bytes: Their bytes.
        equal: Number of them that are in the mirror with the same bytes.
        surplus: Files of the mirror without a file of the tree.
        differences: The first that are not equal, or surplus.
    """

    files: int
    bytes: int
    equal: int
    surplus: int
    differences: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """True if the mirror equals the tree."""
        return self.equal == self.files and not self.surplus


def compare_bytes(tree: Path, mirror: Path, base: str, *, shown: int = 20) -> ByteComparison:
    """Compare the published files of a tree with the content of a mirror.

    Args:
        tree: The published tree.
        mirror: The mirror; it must not be pulled meanwhile.
        base: The address that the tree was published for, with ``/`` at its end.
        shown: Most differences to record.

    Raises:
        ConfigurationError: The folder is not a mirror.
        StateError: The mirror's state is damaged.
        OSError: A file cannot be read.
    """
    with SqliteMirrorState(mirror / OWN_FOLDER / STATE_FILE, read_only=True) as state:
        mapping = SyncState(state).mapping(plugins.mapper)
    if mapping is None:
        raise ConfigurationError(
            f"{mirror} is not a mirror",
            hint="make it one",
            code="not-a-mirror",
            remedy=Remedy("pull-from", target=str(mirror)),
        )
    files = size = 0
    expected: set[str] = set()
    differences: list[str] = []
    for path in _files(tree, {"resourcesync"}):
        place = mapping.path(base + "/".join(map(to_segment, path.split("/"))))
        expected.add(place)
        files += 1
        size += (tree / path).stat().st_size
        copy = mirror / place
        if not copy.is_file() or not filecmp.cmp(tree / path, copy, shallow=False):
            differences.append(path)
    surplus = [path for path in _files(mirror, set()) if path not in expected]
    filecmp.clear_cache()
    return ByteComparison(
        files=files,
        bytes=size,
        equal=files - len(differences),
        surplus=len(surplus),
        differences=tuple([*differences, *surplus][:shown]),
    )


def _files(root: Path, skipped: set[str]) -> Iterator[str]:
    """Yield the paths of the files that are not hidden, except in the root's skipped folders."""
    for folder, folders, names in os.walk(root):
        relative = Path(folder).relative_to(root)
        at_root = relative == Path()
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and not (at_root and name in skipped)
        ]
        for name in names:
            if not name.startswith(".") and not name.endswith("~"):
                yield (relative / name).as_posix()


class Sign(StrEnum):
    """The result for one resource; the value is the symbol that is printed."""

    ONLY_B = "+"
    ONLY_A = "-"
    DIFFERENT = "*"
    UNPROVEN = "?"


class Difference(msgspec.Struct, frozen=True):
    """One resource with a remark."""

    sign: Sign
    uri: str
    reason: str


class ResourceComparison(msgspec.Struct, kw_only=True):
    """The two inventories, read whole, and the counts of the comparison so far.

    Attributes:
        a: Summary of the first.
        b: Summary of the second.
        same: Resources with the same entry in each, those not proven included.
        unproven: Number of those that have no hash in common.
        different: Resources with different entries.
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
    _sorters: tuple[ExternalSorter[ListingRow], ...] = msgspec.field(default=())

    @property
    def is_equal(self) -> bool:
        """True if each lists the same resources, as far as the entries can be compared."""
        return not (self.different or self.only_a or self.only_b)

    def findings(self) -> Iterator[Difference]:
        """Compare; yield all but unchanged resources, in URI order.

        Raises:
            StorageError: A temporary file failed.
        """
        left, right = (latest_rows(sorter) for sorter in self._sorters)
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

    def _compare_pair(self, row: ListingRow, other: ListingRow) -> Iterator[Difference]:
        verdict, reason = compare_rows(row, other)
        match verdict:
            case ListingComparison.DIFFERENT:
                self.different += 1
                yield Difference(Sign.DIFFERENT, row.uri, reason)
            case ListingComparison.UNPROVEN:
                self.same += 1
                self.unproven += 1
                yield Difference(Sign.UNPROVEN, row.uri, reason)
            case ListingComparison.SAME:
                self.same += 1


def _is_never_same(row: ListingRow, other: ListingRow) -> bool:
    del row, other
    return False


@contextmanager
def open_comparison(
    a: str, b: str, *, network: Network, clock: Clock
) -> Iterator[ResourceComparison]:
    """Read two inventories; memory does not grow with their size.

    Args:
        a: An address, a path of documents, or a mirror's folder.
        b: The same.
        network: Settings for requests to Sources.
        clock: Time.

    Raises:
        SourceError: A document cannot be fetched.
        DocumentError: A document cannot be used.
        StorageError: A file or a mirror cannot be read.
        ConfigurationError: There is nothing of that name, or a setting cannot work.
    """
    with ExitStack() as stack:
        spools = tuple(stack.enter_context(_new_sorter()) for _ in range(2))
        tellings = [
            _read_target(target, sorter, network, clock)
            for target, sorter in zip((a, b), spools, strict=True)
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
    target: str, sorter: ExternalSorter[ListingRow], network: Network, clock: Clock
) -> ListingSummary:
    if not is_web_address(target) and is_mirror(Path(target)):
        folder = Path(target)
        telling = ListingSummary(documents=[str(folder)])
        with StateSnapshot(folder / OWN_FOLDER / STATE_FILE) as state:
            for copy in state.copies():
                telling.entries += 1
                sorter.add(_entry_of_copy(copy))
        return telling

    def add(row: ListingRow) -> None:
        plain = normalise_if_possible(row.uri)
        sorter.add(row if plain == row.uri else row._replace(uri=plain))

    with open_documents(target, network, CancelToken(clock)) as (documents, first):
        return ListingReader(documents, add, network.allow_origins).read(first)


def _entry_of_copy(copy: Copy) -> ListingRow:
    if copy.length < 0:  # unknown: a run was killed while its file was changed
        return ListingRow(copy.uri)
    return ListingRow(copy.uri, copy.digests, copy.length, copy.lastmod)
