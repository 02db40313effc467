"""Rows of a catalogue that cannot be published: found, named, set aside."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from resourcesync.adapters.catalogue import FileCatalogue, bad_rows
from resourcesync.adapters.catalogue.bad_rows import BadRow
from resourcesync.errors import ConfigurationError, StateError
from resourcesync.model.digests import ALGORITHMS
from resourcesync.model.resources import Change, Resource
from resourcesync.ports import Clock
from resourcesync.ports.catalogue import BAD_ROW
from resourcesync.source.round_trip import find_fault

ROW_BATCH: Final = 10_000
"""Rows of one transaction."""


def _fault_of(entries: Sequence[Resource] | Sequence[Change]) -> str:
    """Return why some entries cannot be published, or proven by who reads of them."""
    return find_fault(entries) or next(filter(None, map(_bad_digest, entries)), "")


def _bad_digest(entry: Resource | Change) -> str:
    resource = entry.resource if isinstance(entry, Change) else entry
    for digest in resource.digests:
        if digest.algorithm in ALGORITHMS and not digest.is_usable:
            return f"its digest is none of {digest.algorithm}: {digest.value[:200]!r}"
    return ""


@contextmanager
def hinting_at_bad_rows(path: Path) -> Iterator[None]:
    """Add what mends it to the error that names a row."""
    try:
        yield
    except StateError as error:
        if error.code == BAD_ROW:
            error.hint = f"resourcesync catalogue check {path}"
        raise


def find_bad_rows(path: Path) -> Iterator[BadRow]:
    """Yield the rows of a catalogue that cannot be published; nothing is written.

    Raises:
        ConfigurationError: There is no such catalogue.
        StorageError: It cannot be read.
    """
    if not path.is_file():
        raise ConfigurationError(f"there is no catalogue {path}")
    yield from bad_rows.find_bad_rows(path, _fault_of)


def quarantine_rows(path: Path, clock: Clock) -> Iterator[BadRow]:
    """Set aside the rows that cannot be published, some thousand at a time; yield each.

    What was yielded is set aside, whatever comes after it.

    Raises:
        ConfigurationError: There is no such catalogue.
        LockedError: Another run is publishing it.
        StorageError: It cannot be read or written.
    """
    if not path.is_file():
        raise ConfigurationError(f"there is no catalogue {path}")
    with closing(FileCatalogue(path, clock)):  # nobody publishes meanwhile
        while rows := list(islice(find_bad_rows(path), ROW_BATCH)):
            bad_rows.quarantine_rows(path, rows, clock.now(), _fault_of)
            yield from rows
