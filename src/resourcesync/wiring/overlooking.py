"""What there is to say of a published tree: for its page, its operators, its followers."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, final

from resourcesync import __version__
from resourcesync.adapters.catalogue import FileChangeLog
from resourcesync.documents import reader
from resourcesync.errors import StorageError
from resourcesync.model.capabilities import CapabilityEntry
from resourcesync.model.timestamps import to_microseconds
from resourcesync.server.dashboard.views import DocumentFile
from resourcesync.server.metrics import Metric
from resourcesync.server.pages import Overview

_CAPABILITY_LIST_NAME: Final = "capabilitylist.xml"
_MOST_DOCUMENTS: Final = 500
Rates = dict[tuple[int, str], int]
_URL_PREFIXES: Final = ("http://", "https://")


@final
class SourceStatus:
    """Looks at a tree's documents and catalogue anew each time it is asked.

    Args:
        address: The address that the tree was published for.
        documents: The folder of its documents.
        log: Its log of changes; ``None`` where it has no catalogue.
        name: What the tree is called in figures.
    """

    def __init__(self, address: str, documents: Path, log: FileChangeLog | None, name: str) -> None:
        self._address = address
        self._documents = documents
        self._log = log
        self._name = name
        self._counted: tuple[tuple[int, int], int] | None = None
        self._rates: tuple[tuple[object, ...], Rates] | None = None

    def check(self) -> None:
        """See that the tree can be served.

        Raises:
            DocumentError: Its Capability List is none.
            StorageError: It, or the catalogue, cannot be read.
        """
        self._lists()
        if self._log is not None:
            self._log.last()

    def overview(self) -> Overview:
        """Return what the page tells.

        Raises:
            DocumentError: The Capability List is none.
            StorageError: It, or the catalogue, cannot be read.
        """
        lists = self._lists()
        if self._log is None:
            return Overview(address=self._address, lists=lists)
        last = self._log.last()
        return Overview(
            address=self._address, lists=lists, resources=self._count(last), changes=last[0]
        )

    def figures(self) -> Iterator[Metric]:
        """Yield the figures of the Source.

        Raises:
            DocumentError: The Capability List is none.
            StorageError: It, or the catalogue, cannot be read.
        """
        overview = self.overview()
        yield Metric(
            name="resourcesync_build_info",
            kind="gauge",
            help_text="The version of this program.",
            values=(((("version", __version__),), 1),),
        )
        yield Metric(
            name="resourcesync_source_last_publish_timestamp_seconds",
            kind="gauge",
            help_text="When a head of the documents was last written.",
            values=(((), self._written()),),
        )
        counts = (("resourcelist", overview.resources), ("changelist", overview.changes))
        yield Metric(
            name="resourcesync_source_entries",
            kind="gauge",
            help_text="Resources now, and changes since the first publication.",
            values=tuple(
                ((("set", self._name), ("capability", capability)), count)
                for capability, count in counts
                if count is not None
            ),
        )

    def documents(self) -> tuple[DocumentFile, ...]:
        """Return the documents of the tree, those written last first; at most 500.

        Raises:
            StorageError: They cannot be looked at.
        """
        try:
            with os.scandir(self._documents) as entries:
                found = [(it.name, it.stat()) for it in entries if it.is_file()]
        except OSError as error:
            raise StorageError(f"cannot look into {self._documents}: {error.strerror}") from error
        found.sort(key=lambda one: (-one[1].st_mtime, one[0]))
        return tuple(
            DocumentFile(
                name=name,
                size=info.st_size,
                written=datetime.fromtimestamp(info.st_mtime, UTC),
            )
            for name, info in found[:_MOST_DOCUMENTS]
        )

    def rates(self, since: datetime, step: timedelta) -> Rates:
        """Return how many changes of each kind there were in each interval, by its number.

        Counted anew only when there were changes: there may be millions.

        Raises:
            StorageError: The catalogue cannot be read.
        """
        if self._log is None:
            return {}
        asked = (since, step, self._log.last())
        if self._rates is None or self._rates[0] != asked:
            width = step // timedelta(microseconds=1)
            self._rates = asked, self._log.rates(to_microseconds(since), width)
        return self._rates[1]

    def _count(self, last: tuple[int, int]) -> int:
        """Count the resources, anew only when there were changes: there may be millions."""
        assert self._log is not None
        if self._counted is None or self._counted[0] != last:
            self._counted = (last, self._log.resources())
        return self._counted[1]

    def _lists(self) -> tuple[tuple[str, str], ...]:
        path = self._documents / _CAPABILITY_LIST_NAME
        try:
            with path.open("rb") as stream:
                entries = list(reader.read_stream(stream, uri=str(path)).entries())
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        return tuple(
            (entry.capability.value, entry.uri)
            for entry in entries
            if isinstance(entry, CapabilityEntry)
            and entry.capability is not None
            and entry.uri.startswith(_URL_PREFIXES)
        )

    def _written(self) -> float:
        try:
            with os.scandir(self._documents) as entries:
                return max(entry.stat().st_mtime for entry in entries)
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot look into {self._documents}: {error}") from error
