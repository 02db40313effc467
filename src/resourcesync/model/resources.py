"""Resources and their changes: the entries of Resource Lists and Change Lists (§10.1, §12.1)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice, repeat
from operator import attrgetter
from typing import Any, Final, overload

import msgspec
from msgspec.structs import force_setattr, replace

from resourcesync.model.digests import Digest, many_digests
from resourcesync.model.links import Extra, Foreign, Link, Linked
from resourcesync.model.vocabulary import ChangeKind, Relation


class Resource(msgspec.Struct, Linked, frozen=True):
    """A URI with the metadata of its representation (§7, §10.1).

    Attributes:
        uri: ``loc``, exactly as the Source wrote it (surrounding blanks removed).
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
