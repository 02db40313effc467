"""A Source whose resources and documents follow a script."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urljoin

import msgspec
from msgspec.structs import replace

from resourcesync.documents import (
    Capability,
    CapabilityEntry,
    Change,
    ChangeKind,
    Dialect,
    Digest,
    Entry,
    Header,
    Link,
    Part,
    Relation,
    Resource,
    write,
)
from tests.conformance.scenario_site import ScriptedAnswer, ScriptedSite

_PAST: Final = timedelta(hours=1)
_FOLDER: Final = "resourcesync/"
CAPABILITIES: Final = f"{_FOLDER}capabilitylist.xml"
RESOURCES: Final = f"{_FOLDER}resourcelist.xml"
CHANGES: Final = f"{_FOLDER}changelist.xml"


class ScriptedSource:
    """Resources with a past, and the documents that a correct Source has about them.

    Its history begins an hour before the present time, and each event is a second after the last.

    Attributes:
        base: The address of the Source, with a slash at its end.
        now: The time of the last event.

    Args:
        base: The address of the Source, with a slash at its end.
        now: The present time.
        dialect: The version of the documents.
    """

    def __init__(self, base: str, now: datetime, dialect: Dialect = Dialect.V1_1) -> None:
        self.base = base
        self.now = now.replace(microsecond=0) - _PAST
        self.contents: dict[str, bytes] = {}
        self._dialect = dialect
        self._since = self._listed_at = self.now
        self._times: dict[str, datetime] = {}
        self._listed: tuple[Resource, ...] = ()
        self._changes: list[Change] = []

    def put(self, *names: str, text: str = "first") -> None:
        """Create or update resources, and list the changes; contents of all names differ."""
        for name in names:
            kind = ChangeKind.UPDATED if name in self.contents else ChangeKind.CREATED
            self._tick()
            self.contents[name] = f"{text} content of {name}\n".encode()
            self._times[name] = self.now
            resource = self.resource(name)
            self._changes.append(Change(kind=kind, time=self.now, resource=resource))

    def remove(self, *names: str) -> None:
        """Delete resources, and list the changes."""
        for name in names:
            self._tick()
            del self.contents[name], self._times[name]
            gone = Resource(uri=self.uri(name), lastmod=self._deletion_time())
            self._changes.append(Change(kind=ChangeKind.DELETED, time=self.now, resource=gone))

    def list_resources(self) -> None:
        """Write the Resource List of this moment."""
        self._tick()
        self._listed = tuple(self.resource(name) for name in sorted(self.contents))
        self._listed_at = self.now

    def forget_changes(self) -> None:
        """Begin a new Change List where the Resource List ends: earlier changes are in neither."""
        self._changes.clear()
        self._since = self._listed_at

    def uri(self, name: str) -> str:
        """Return the URI of a resource."""
        return urljoin(self.base, quote(name, safe="/?=&~.-_+%"))

    def resource(self, name: str) -> Resource:
        """Return a resource as it is listed."""
        content = self.contents[name]
        return Resource(
            uri=self.uri(name),
            lastmod=self._times[name],
            length=len(content),
            digests=(Digest("sha-256", hashlib.sha256(content).hexdigest()),),
        )

    def site(self) -> ScriptedSite:
        """Return what is served now: the resources, and one list of each kind."""
        lists = {RESOURCES: Capability.RESOURCE_LIST, CHANGES: Capability.CHANGE_LIST}
        return self._site(
            lists,
            {
                RESOURCES: self.resource_list(self._listed),
                CHANGES: self.document(self._change_header(), self._changes),
            },
        )

    def site_without_changes(self) -> ScriptedSite:
        """Return what a Source serves that has a Resource List only."""
        return self._site(
            {RESOURCES: Capability.RESOURCE_LIST}, {RESOURCES: self.resource_list(self._listed)}
        )

    def site_of_parts(self, size: int) -> ScriptedSite:
        """Return what is served if the Resource List is an index of parts of some entries."""
        index = Header(capability=Capability.RESOURCE_LIST, is_index=True, at=self._listed_at)
        parts: dict[str, bytes] = {}
        for first in range(0, len(self._listed), size):
            name = f"{_FOLDER}resourcelist-{first // size}.xml"
            parts[name] = self.resource_list(
                self._listed[first : first + size], index=self.base + RESOURCES
            )
        entries = [Part(uri=self.base + name, at=self._listed_at) for name in parts]
        parts[RESOURCES] = self.document(self._with_up(index), entries)
        return self._site({RESOURCES: Capability.RESOURCE_LIST}, parts)

    def resource_list(self, resources: Sequence[Resource], *, index: str = "") -> bytes:
        """Return a Resource List; with ``index`` it is a part of that index."""
        header = Header(capability=Capability.RESOURCE_LIST, at=self._listed_at)
        links = (Link(rel=Relation.INDEX, href=index),) if index else ()
        return self.document(self._with_up(header, links), resources)

    def document(self, header: Header, entries: Iterable[Entry]) -> bytes:
        """Return a document in the dialect of the Source."""
        return b"".join(write(header, map(_dated, entries), self._dialect))

    def _site(
        self, lists: Mapping[str, Capability], documents: Mapping[str, bytes]
    ) -> ScriptedSite:
        description = self.document(
            Header(capability=Capability.DESCRIPTION),
            [_listed(self.base + CAPABILITIES, Capability.CAPABILITY_LIST)],
        )
        up = (Link(rel=Relation.UP, href=f"{self.base}.well-known/resourcesync"),)
        capabilities = self.document(
            Header(capability=Capability.CAPABILITY_LIST, links=up),
            [_listed(self.base + name, kind) for name, kind in lists.items()],
        )
        robots = f"User-agent: *\nDisallow:\nSitemap: {self.base}{RESOURCES}\n".encode()
        bodies = {
            **self.contents,
            **documents,
            ".well-known/resourcesync": description,
            CAPABILITIES: capabilities,
            "robots.txt": robots,
        }
        return ScriptedSite({name: ScriptedAnswer(body=body) for name, body in bodies.items()})

    def _change_header(self) -> Header:
        return self._with_up(Header(capability=Capability.CHANGE_LIST, from_=self._since))

    def _with_up(self, header: Header, links: tuple[Link, ...] = ()) -> Header:
        up = Link(rel=Relation.UP, href=self.base + CAPABILITIES)
        return msgspec.structs.replace(header, links=(up, *links))

    def _deletion_time(self) -> datetime | None:
        return self.now if self._dialect is not Dialect.V1_1 else None

    def _tick(self) -> None:
        self.now += timedelta(seconds=1)


def _listed(uri: str, capability: Capability) -> CapabilityEntry:
    return CapabilityEntry(uri=uri, capability=capability, label=capability.value)


def _dated(entry: Entry) -> Entry:
    """Return a change with its time as ``lastmod`` too, if that is absent: as 1.0 reads it."""
    if isinstance(entry, Change) and entry.resource.lastmod is None:
        return replace(entry, resource=replace(entry.resource, lastmod=entry.time))
    return entry
