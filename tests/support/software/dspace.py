"""The documents of the first ResourceSync for DSpace, of May and of July 2013.

Each update writes a new Change List, also an empty one, and adds it to an archive, whose root is
``sitemapindex``. In May (0.6) the archive is what the Capability List calls the Change List; in
July (0.9) the newest list is, and the archive is named beside it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime

from tests.support.software.software_source import (
    Event,
    Known,
    document,
    link,
    loc,
    offering,
    points_to,
    zulu,
)

CAPABILITY_LIST = "resourcesync/capabilitylist.xml"
ARCHIVE = "resourcesync/changelistarchive.xml"
_RESOURCE_LIST = "resourcesync/resourcelist.xml"
_DESCRIPTION = "resourcesync/resourcesync.xml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One Change List: all that happened since the one before."""

    start: datetime
    end: datetime
    events: list[Event]

    @property
    def path(self) -> str:
        return f"resourcesync/changelist_{zulu(self.end)}.xml"


class DSpace(ABC):
    """The software. Like there, an operator says what it has to do: `initialise` comes first."""

    def __init__(self) -> None:
        self._updates: list[Update] = []
        self._files: dict[str, bytes] = {}
        self._last: datetime | None = None

    def documents(self, known: Known) -> dict[str, bytes]:
        if self._last is None:
            self.initialise(known)
        return self._files

    def initialise(self, known: Known) -> None:
        self._last = known.now
        self._write_resource_list(known)
        self._files[CAPABILITY_LIST] = self.capability_list(known.now, None)

    def update(self, known: Known) -> None:
        assert self._last is not None
        last = Update(start=self._last, end=known.now, events=known.between(self._last, known.now))
        self._updates.append(last)
        self._last = known.now
        self._files[last.path] = self.change_list(last)
        self._files[ARCHIVE] = self.archive(self._updates)
        self._files[CAPABILITY_LIST] = self.capability_list(known.now, last)

    def rebase(self, known: Known) -> None:
        self._write_resource_list(known)
        self.update(known)

    def _write_resource_list(self, known: Known) -> None:
        entries = [loc(uri, lastmod=known.modified(uri)) for uri in known.contents]
        self._files[_RESOURCE_LIST] = document(
            f'capability="resourcelist" {self.since(known.now)}',
            entries,
            links=link("resourcesync", CAPABILITY_LIST),
        )

    def change_list(self, update: Update) -> bytes:
        kinds = {"created": "updated"}  # it does not tell the one from the other
        return document(
            f'capability="changelist" {self.interval(update)}',
            [
                loc(event.uri, f'change="{kinds.get(event.change, event.change)}"', event.time)
                for event in update.events
            ],
            links=self.links_of_a_list,
        )

    def archive(self, updates: list[Update]) -> bytes:
        whole = Update(start=updates[0].end, end=updates[-1].end, events=[])
        return document(
            f'capability="changelist-archive" {self.interval(whole)}',
            [points_to(update.path, lastmod=update.end) for update in updates],
            links=link("resourcesync", CAPABILITY_LIST),
            is_index=True,
        )

    links_of_a_list = link("resourcesync", CAPABILITY_LIST)

    @abstractmethod
    def since(self, moment: datetime) -> str:
        """The time of a snapshot."""

    @abstractmethod
    def interval(self, update: Update) -> str:
        """The times of a Change List."""

    @abstractmethod
    def capability_list(self, now: datetime, last: Update | None) -> bytes:
        """The Capability List, with the newest Change List, if there is one."""


class DSpaceOfMay(DSpace):
    """In version 0.6."""

    links_of_a_list = link("resourcesync", CAPABILITY_LIST) + link("up", ARCHIVE)

    def since(self, moment: datetime) -> str:
        return f'modified="{zulu(moment)}"'

    def interval(self, update: Update) -> str:
        return f'modified="{zulu(update.end)}"'

    def capability_list(self, now: datetime, last: Update | None) -> bytes:
        changes = {} if last is None else {"changelist": ARCHIVE}
        metadata = f'capability="capabilitylist" modified="{zulu(now)}"'
        return offering(metadata, resourcelist=_RESOURCE_LIST, **changes)


class DSpaceOfJuly(DSpace):
    """In version 0.9."""

    def documents(self, known: Known) -> dict[str, bytes]:
        description = offering('capability="resourcesync"', capabilitylist=CAPABILITY_LIST)
        return super().documents(known) | {_DESCRIPTION: description}

    def since(self, moment: datetime) -> str:
        return f'from="{zulu(moment)}"'

    def interval(self, update: Update) -> str:
        return f'from="{zulu(update.start)}" until="{zulu(update.end)}"'

    def capability_list(self, now: datetime, last: Update | None) -> bytes:
        changes = {} if last is None else {"changelist_archive": ARCHIVE, "changelist": last.path}
        links = link("resourcesync", _DESCRIPTION)
        return offering(
            'capability="capabilitylist"', links=links, resourcelist=_RESOURCE_LIST, **changes
        )
