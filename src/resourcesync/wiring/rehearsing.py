"""A catalogue for a dry run: it can be compared with, and nothing is written."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

from resourcesync.model.resources import Resource
from resourcesync.ports import CatalogueEntry, CatalogueRecording, CatalogueSnapshot, CatalogueStore


class ReadOnlyCatalogue:
    """A catalogue that can be compared with and never changes: for a dry run."""

    def __init__(self, catalogue: CatalogueStore) -> None:
        self._catalogue = catalogue

    def entries(self) -> Iterator[CatalogueEntry]:
        """Yield what is recorded."""
        return self._catalogue.entries()

    @contextmanager
    def record(self, now: datetime) -> Iterator[CatalogueRecording]:
        """Open a recording that records nothing."""
        del now
        yield _NullRecording()

    def snapshot(self) -> AbstractContextManager[CatalogueSnapshot]:
        """Open a view of what is recorded."""
        return self._catalogue.snapshot()

    def note(self, key: str) -> str | None:
        """Return a note."""
        return self._catalogue.note(key)

    def forget_edits(self, last: int) -> None:
        """Forget nothing."""

    def forget_changes(self, last: int) -> bool:
        """Forget nothing."""
        del last
        return False

    def latest(self) -> datetime | None:
        """Return the latest moment that was given away."""
        return self._catalogue.latest()

    def rewind(self, moment: datetime) -> None:
        """Forget nothing."""

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Write nothing."""


class _NullRecording:
    """A recording that records nothing."""

    def created(self, resource: Resource, fingerprint: str) -> None:
        """Record nothing."""

    def updated(self, resource: Resource, fingerprint: str) -> None:
        """Record nothing."""

    def deleted(self, resource: Resource) -> None:
        """Record nothing."""

    def touched(self, resource: Resource, fingerprint: str) -> None:
        """Record nothing."""

    def advance_time(self) -> None:
        """Record nothing."""
