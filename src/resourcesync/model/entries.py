"""Entries of documents: resources, their changes, links, and other documents; and headers."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice, repeat
from operator import attrgetter
from typing import Any, Final, Protocol, overload

import msgspec
from msgspec.structs import force_setattr, replace

from resourcesync.model.digests import Digest, many_digests
from resourcesync.model.vocabulary import Capability, ChangeKind, Relation

Extra = tuple[tuple[str, str], ...]
"""Attributes of other communities, as ``({namespace}name, value)``; preserved when written (§7)."""

Foreign = tuple[str, ...]
"""Elements of other communities, each as XML that stands alone; preserved when written (§7)."""

LAST_PRIORITY: Final = 999_999
"""The priority of a link without one: lower numbers come first (§14.2)."""


class Link(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link to a related resource or document.

    Attributes:
        rel: Relation types, separated by blanks, as written.
        href: The target's URI.
        media_type: ``type``.
        length: Bytes of the target.
        digests: ``hash`` of the target.
        encoding: Content coding of the target.
        modified: Last modification of the target, UTC.
        path: Place inside a package.
        priority: ``pri``, 1 (first) to 999999 (last).
        extra: Attributes of other communities.
    """

    rel: str
    href: str
    media_type: str = ""
    length: int | None = None
    digests: tuple[Digest, ...] = ()
    encoding: str = ""
    modified: datetime | None = None
    path: str = ""
    priority: int | None = None
    extra: Extra = ()

    def has_relation(self, name: str) -> bool:
        """True if ``name`` is among the relation types; registered names ignore case (RFC 8288)."""
        wanted = name.lower()
        return any(token.lower() == wanted for token in self.rel.split())


class _Links(Protocol):
    def __get__(self, linked: Any, owner: Any = None, /) -> tuple[Link, ...]: ...


class _First(Protocol):
    def __get__(self, linked: Any, owner: Any = None, /) -> Link | None: ...


def _links(relation: Relation, doc: str) -> _Links:
    return property(lambda linked: linked.links_to(relation), doc=doc)


def _first(relation: Relation, doc: str) -> _First:
    return property(lambda linked: linked.link_to(relation), doc=doc)


class Linked:
    """Targets of the links of a document or an entry, by relation (§14).

    A link that cannot be understood is no fault: then the entry's own URI is to be used (§14.1).
    """

    __slots__ = ()

    links: tuple[Link, ...]

    def links_to(self, relation: str) -> tuple[Link, ...]:
        """Return all links of a relation, in the order written."""
        return tuple(link for link in self.links if link.has_relation(relation))

    def link_to(self, relation: str) -> Link | None:
        """Return the first link of a relation, or ``None``."""
        return next((link for link in self.links if link.has_relation(relation)), None)

    @property
    def mirrors(self) -> tuple[Link, ...]:
        """Other places of the same bytes, the preferred one first (``duplicate``, §14.2)."""
        found = self.links_to(Relation.DUPLICATE)
        return tuple(sorted(found, key=lambda link: link.priority or LAST_PRIORITY))

    patches = _links(
        Relation.PATCH, "Links to patches from the version before to this one (§14.4)."
    )
    alternates = _links(Relation.ALTERNATE, "Other representations (§14.3).")
    canonical = _first(
        Relation.CANONICAL, "The generic resource that this is one representation of (§14.3)."
    )
    described_by = _links(Relation.DESCRIBED_BY, "Metadata about it (§8, §14.5).")
    describes = _links(Relation.DESCRIBES, "Links to the resources it is metadata about (§14.5).")
    profiles = _links(Relation.PROFILE, "The kinds of metadata it is (§14.5).")
    memento = _first(Relation.MEMENTO, "The very version that the entry lists (§14.6).")
    timegate = _first(
        Relation.TIMEGATE, "Links to the TimeGate, for the version of a given time (§14.6)."
    )
    timemap = _first(Relation.TIMEMAP, "The list of all versions (§14.6).")
    collections = _links(Relation.COLLECTION, "Links to the collections it is a member of (§14.7).")
    via = _links(
        Relation.VIA, "Links to the origin of a copy; since 1.0 the original Source only (§14.8)."
    )
    contents = _first(Relation.CONTENTS, "A copy of the manifest in a package (§11.1, §13.1).")
    archives = _first(Relation.ARCHIVES, "Documents of the past (Archives §2).")
    up = _first(Relation.UP, "The document above (§6.2).")
    index = _first(Relation.INDEX, "The index that a document is part of (§6.2).")
    hubs = _links(Relation.HUB, "Links to the hubs of a channel (Notification, WebSub §4).")
    itself = _first(Relation.SELF, "The address of the channel or document (``self``, WebSub §4).")


class Resource(msgspec.Struct, Linked, frozen=True):
    """A URI with the metadata of its representation (§7, §10.1).

    Attributes:
        uri: ``loc`` as the Source wrote it, without blanks around it; a relative one is resolved.
        lastmod: Last-Modified of the resource, UTC; in 1.0 Change Lists also the time of change.
        length: Bytes of the representation as transferred (Content-Length).
        digests: ``hash`` of the representation.
        media_type: ``type``.
        encoding: Content coding of the representation.
        changefreq: The Sitemap hint, as written.
        links: ``rs:ln`` of this entry.
        path: Place inside a package, with its leading slash; in manifests only (§11.2, §13.2).
        extra: Attributes of other communities on ``rs:md``.
        foreign: Elements of other communities in the entry.
    """

    uri: str
    lastmod: datetime | None = None
    length: int | None = None
    digests: tuple[Digest, ...] = ()
    media_type: str = ""
    encoding: str = ""
    changefreq: str = ""
    links: tuple[Link, ...] = ()
    path: str = ""
    extra: Extra = ()
    foreign: Foreign = ()


_DIFF_TYPE: Final = re.compile(r"^[^/;]*/[^;]*?\b(?:patch|diff)\b", re.IGNORECASE)
"""Media types of diffs: ``application/json-patch``, ``text/x-diff`` and whatever is named so."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one resource (§12.1).

    Attributes:
        kind: The kind of change.
        time: Time of the change, UTC: ``datetime`` (1.1), else ``lastmod`` (1.0), else ``None``,
            and then only the position in the list orders it.
        resource: The resource after the change; for a deletion usually the URI alone.

    Raises:
        ValueError: ``kind`` is no word of `ChangeKind`.
    """

    kind: ChangeKind
    time: datetime | None = None
    resource: Resource

    def __post_init__(self) -> None:
        if type(self.kind) is not ChangeKind:  # "deleted" is equal to a kind, but is none
            force_setattr(self, "kind", ChangeKind(self.kind))

    @property
    def uri(self) -> str:
        """The URI of the resource that changed."""
        return self.resource.uri

    @property
    def is_diff(self) -> bool:
        """True if the bytes of an entry of a manifest are a diff to the version before.

        Its media type says so; ``hash`` and ``length`` are those of the diff, then.
        """
        is_packed = self.kind is ChangeKind.UPDATED and self.resource.path != ""
        return is_packed and _DIFF_TYPE.search(self.resource.media_type) is not None


def without_patches(resource: Resource) -> Resource:
    """Return the resource without the links to its patches (§14.4)."""
    if not resource.links:
        return resource
    links = tuple(link for link in resource.links if not link.has_relation(Relation.PATCH))
    return replace(resource, links=links)


def many_resources(count: int, columns: Mapping[str, Iterable[Any]]) -> list[Resource]:
    """Return many resources at once, in a third of the time of single calls with keywords."""
    others = (columns.get(name, repeat(default)) for name, default in _DEFAULTS)
    return list(islice(map(Resource, columns["uri"], *others), count))


class ResourceRun(Sequence[Resource]):
    """Many resources as columns, which become values only on request.

    It suits resources with the usual metadata. Writers of lists of millions read the columns.
    """

    __slots__ = ("hashes", "lastmods", "lengths", "media_types", "paths", "uris")

    def __init__(
        self,
        *,
        uris: Sequence[str],
        lastmods: Sequence[datetime | None],
        lengths: Sequence[int | None],
        hashes: Sequence[str],
        media_types: Sequence[str],
        paths: Sequence[str] = (),
    ) -> None:
        self.uris = uris
        self.lastmods = lastmods
        self.lengths = lengths
        self.hashes = hashes
        self.media_types = media_types
        self.paths = paths

    def __len__(self) -> int:
        return len(self.uris)

    def __iter__(self) -> Iterator[Resource]:
        return iter(
            many_resources(
                len(self.uris),
                {
                    "uri": self.uris,
                    "lastmod": self.lastmods,
                    "length": self.lengths,
                    "digests": many_digests(self.hashes),
                    "media_type": self.media_types,
                    "path": self.paths or repeat(""),
                },
            )
        )

    @overload
    def __getitem__(self, at: int) -> Resource: ...

    @overload
    def __getitem__(self, at: slice) -> "ResourceRun": ...

    def __getitem__(self, at: int | slice) -> "Resource | ResourceRun":
        if isinstance(at, int):
            (resource,) = self[at : at + 1 or None]
            return resource
        return ResourceRun(
            uris=self.uris[at],
            lastmods=self.lastmods[at],
            lengths=self.lengths[at],
            hashes=self.hashes[at],
            media_types=self.media_types[at],
            paths=self.paths[at],
        )

    def with_paths(self, paths: Sequence[str]) -> "ResourceRun":
        """Return the same resources with paths, one for each."""
        columns = {name: getattr(self, name) for name in self.__slots__}
        return ResourceRun(**{**columns, "paths": paths})


def joined_runs(runs: Sequence[ResourceRun]) -> ResourceRun:
    """Return several runs as one; at least one, all of them with paths or none."""
    if len(runs) == 1:
        return runs[0]
    names = ResourceRun.__slots__
    columns = {name: [*chain.from_iterable(map(attrgetter(name), runs))] for name in names}
    return ResourceRun(**columns)


_DEFAULTS: Final = tuple(
    zip(Resource.__struct_fields__[1:], Resource.__struct_defaults__, strict=True)
)


_GROWING: Final = frozenset({Capability.CHANGE_LIST, Capability.CHANGE_DUMP})


class Header(msgspec.Struct, Linked, frozen=True, kw_only=True):
    """The header of a document: ``rs:md`` and ``rs:ln`` of its root (§7).

    Attributes:
        capability: Its capability; ``None`` for a plain sitemap.
        is_index: True if the root is ``sitemapindex``: an index over documents of one capability.
        at: Snapshot start, UTC: every entry includes all changes up to here (resource side).
        completed: Snapshot end, UTC (resource side).
        from_: All changes since here are listed, UTC (change side).
        until: All changes up to here are listed, UTC; its presence closes the document
            (change side).
        modified: Last update of the document, UTC; only in dialects before 0.9.
        links: ``rs:ln`` under the root.
        extra: Attributes of other communities on the root's ``rs:md``.
        foreign: Elements of other communities under the root, before the first entry.
    """

    capability: Capability | None
    is_index: bool = False
    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None
    modified: datetime | None = None
    links: tuple[Link, ...] = ()
    extra: Extra = ()
    foreign: Foreign = ()

    def link(self, relation: Relation) -> str | None:
        """Return the target of the first root link of this relation, or ``None``."""
        found = self.link_to(relation)
        return None if found is None else found.href

    @property
    def is_open(self) -> bool:
        """True if further changes will be added to this very document (§12.1)."""
        return self.capability in _GROWING and self.until is None

    @property
    def phrase(self) -> str:
        """Name of such a document for people, such as ``Change List Index``."""
        name = "sitemap" if self.capability is None else self.capability.phrase
        return f"{name} Index" if self.is_index else name


class DocumentPointer(msgspec.Struct, Linked, frozen=True, kw_only=True):
    """An entry that points to a document or a package of the Source.

    Attributes:
        uri: URI of the document or package.
        lastmod: Its Last-Modified, UTC.
        links: ``rs:ln`` of this entry, such as ``describedby`` or ``contents``.
        extra: Attributes of other communities on ``rs:md``.
        foreign: Elements of other communities in the entry.
    """

    uri: str
    lastmod: datetime | None = None
    links: tuple[Link, ...] = ()
    extra: Extra = ()
    foreign: Foreign = ()


class TimedPointer(DocumentPointer, frozen=True, kw_only=True):
    """A pointer with times of what it points to.

    Attributes:
        at, completed: Its own snapshot times, UTC (resource side).
        from_, until: Its own interval, UTC (change side); ``until`` only when it is closed.
    """

    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None


class Package(TimedPointer, frozen=True, kw_only=True):
    """A package of a Resource Dump or a Change Dump (§11.1, §13.1).

    Attributes:
        length: Bytes of the package.
        digests: ``hash`` of the package.
        media_type: ``type``; ``application/zip`` is recommended.
        encoding: Content coding of the package.
    """

    length: int | None = None
    digests: tuple[Digest, ...] = ()
    media_type: str = ""
    encoding: str = ""


class Part(TimedPointer, frozen=True, kw_only=True):
    """A document of the same capability in an index, or one of the past in an archive.

    §10.2, §12.2; Archives §3 to §6.

    Attributes:
        length: Bytes of the document.
        digests: ``hash`` of the document.
        media_type: ``type``.
        encoding: Content coding of the document.
        path: Place inside a package; only 0.5 has manifests that are indexes.
    """

    length: int | None = None
    digests: tuple[Digest, ...] = ()
    media_type: str = ""
    encoding: str = ""
    path: str = ""


class CapabilityEntry(DocumentPointer, frozen=True, kw_only=True):
    """An entry of a Source Description or a Capability List (§8, §9).

    Attributes:
        capability: Capability of that document; ``None`` where the entry has none.
        label: The capability exactly as written; differs from ``capability`` for values that this
            version does not know, which are stored and skipped.
    """

    capability: Capability | None = None
    label: str = ""


class DocumentChange(TimedPointer, frozen=True, kw_only=True):
    """An entry of a Framework Notification: one document of the Source changed.

    Attributes:
        kind: The kind of change.
        time: Time of the change, UTC.
        capability: Capability of that document; ``None`` where the entry has none, or one that this
            version does not know.
        label: The capability exactly as written.

    Raises:
        ValueError: ``kind`` is no word of `ChangeKind`.
    """

    kind: ChangeKind
    time: datetime | None = None
    capability: Capability | None = None
    label: str = ""

    def __post_init__(self) -> None:
        if type(self.kind) is not ChangeKind:
            force_setattr(self, "kind", ChangeKind(self.kind))


Entry = Resource | Change | Part | Package | CapabilityEntry | DocumentChange
"""An entry of a document; the document's capability says which of them."""


class RefusedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that cannot be used; the rest of its document can (§7).

    Attributes:
        line: 1-based line of the entry in its document; 0 when it has none.
        code: A stable code of the reason.
        reason: The reason in a sentence.
        uri: The entry's ``loc`` as written, cut to 2,048 characters; empty when it has none.
    """

    line: int
    code: str
    reason: str
    uri: str = ""
