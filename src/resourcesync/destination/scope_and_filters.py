"""Scope: the entries and links that a Source may list and that the operator selects. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync.discovery.known_addresses import MovedBases, present_uri
from resourcesync.discovery.uris import normalise, origin
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.model.digests import format_digests
from resourcesync.model.entries import Resource
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import Relation

if TYPE_CHECKING:
    from resourcesync.model.globs import Glob


class FilterVerdict(StrEnum):
    """Result of the operator's filters for an entry."""

    SELECTED = "selected"
    FILTERED = "filtered"


_LOOSE_PATH: Final = re.compile(
    r"\s*(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#]*)?/?([^?#]*)(\?[^#]*)?(?<=.)", re.DOTALL
)
"""Path and query in any text: what follows the host, or all of it."""
_MAX_FOLLOWED_LINKS: Final = 256
"""Links of one entry that are followed."""
_RESERVED_RELATIONS: Final = frozenset({Relation.DUPLICATE, Relation.PATCH})
_TYPE: Final = re.compile(r"(?:\*/\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+))")


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of the listed resources, stored with the mirror; `PullOptions` describes them."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    max_size: int | None = None
    since: datetime | None = None
    allow_origins: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    def is_after(self, before: "Filters", seconds: float) -> bool:
        """True if these are the filters before, but for a ``since`` that went on with the time."""
        if self.since is None or before.since is None:
            return False
        ahead = (self.since - before.since).total_seconds() - seconds
        return abs(ahead) < _ROUGHLY and replace(before, since=self.since) == self


_ROUGHLY: Final = 60.0
"""Seconds by which the beginnings of two pulls may differ from the times of their filters."""


class Scope(Filters, frozen=True, kw_only=True, dict=True):
    """Origins that a Source may list, and the operator's filters.

    Missing fields exclude nothing: an entry without a type, length or time passes the filter for it
    (plain sitemaps have none of them). ``origins`` are the Source's own and those that the operator
    allows; ``moved`` its bases now. Types are such as ``text/html`` or ``text/*``.
    """

    origins: frozenset[str]
    moved: MovedBases = ()

    def __post_init__(self) -> None:
        if self.max_size is not None and self.max_size < 0:
            raise ConfigurationError(
                "the largest size is negative",
                code="max-size",
                hint="use for example 5 MB: -o max_size=5M",
            )
        if self.since is not None and self.since.tzinfo is None:
            raise ConfigurationError(
                "the time to start from has no time zone",
                code="since",
                hint="use for example 2026-01-01T00:00:00Z",
            )
        _roots(self.origins)
        if self.include or self.exclude:
            _globs((*self.include, *self.exclude))
        for name in sorted(self._types):
            if _TYPE.fullmatch(name) is None:
                raise ConfigurationError(
                    f"{name!r} is not a media type", hint="use text/html or text/*", code="type"
                )

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        return _roots(self.origins)

    @cached_property
    def _include(self) -> "tuple[Glob, ...]":
        return _globs(self.include)

    @cached_property
    def _exclude(self) -> "tuple[Glob, ...]":
        return _globs(self.exclude)

    @cached_property
    def _types(self) -> frozenset[str]:
        return frozenset(name.strip().lower() for name in self.types)

    @cached_property
    def has_filters(self) -> bool:
        """True if the operator selects less than the Source may list."""
        limits = self.max_size is not None or self.since is not None
        return bool(limits or self.include or self.exclude or self.types)

    def judge(self, resource: Resource) -> FilterVerdict:
        """Return whether the filters select an entry; what they exclude is never refused.

        A deletion, which usually has only the URI, is judged by its URI.
        """
        uri = resource.uri
        if self.has_filters and not (
            (self.max_size is None or resource.length is None or resource.length <= self.max_size)
            and (self.since is None or resource.lastmod is None or resource.lastmod >= self.since)
            and self._fits_type(resource.media_type)
            and self.fits(uri)
        ):
            return FilterVerdict.FILTERED
        if not uri.startswith(self._roots) and origin(uri) not in self.origins:
            home = ", ".join(sorted(self.origins))
            raise OutOfScopeError(
                f"the Source may list {home}, not {origin(uri)}",
                uri=uri,
                evidence=(("uri", uri),),
                code="foreign",
            )
        return FilterVerdict.SELECTED

    def speaks_for(self, uri: str) -> bool:
        """True if the Source may list a URI that is in normal form."""
        return uri.startswith(self._roots)

    def _fits_type(self, media_type: str) -> bool:
        if not self._types:
            return True
        name = media_type.partition(";")[0].strip().lower()
        family, slash, _ = name.partition("/")
        return not name or not self._types.isdisjoint((name, f"{family}{slash}*", "*/*"))

    def fits(self, uri: str) -> bool:
        """True if the globs admit a URI: its present path, or that which the mirror knows."""
        if not (self.include or self.exclude):
            return True
        uris = {uri, present_uri(uri, self.moved)}
        places = [place for place in map(_path_and_query, uris) if place is not None]
        if self._include and places and not _any_matches(self._include, places):
            return False
        return not _any_matches(self._exclude, places)


def _any_matches(globs: "Iterable[Glob]", places: list[tuple[str, str | None]]) -> bool:
    return any(glob.matches(*place) for glob in globs for place in places)


def _globs(texts: tuple[str, ...]) -> "tuple[Glob, ...]":
    from resourcesync.model.globs import parse_glob  # noqa: PLC0415 - most pulls filter nothing

    return tuple(map(parse_glob, texts))


def _path_and_query(uri: str) -> tuple[str, str | None] | None:
    from resourcesync.model.globs import normal_glob  # noqa: PLC0415 - most pulls filter nothing

    try:
        normal = normalise(uri)
        place = normal[normal.index("/", normal.index("://") + 3) :]
    except OutOfScopeError:
        if (match := _LOOSE_PATH.match(uri)) is None:
            return None
        place = normal_glob(f"/{match[1] or ''}{match[2] or ''}")
    path, question, query = place.partition("?")
    return path, query if question else None


def _roots(origins: Iterable[str]) -> tuple[str, ...]:
    roots = tuple(f"{name}/" for name in sorted(origins))
    if not roots:
        raise ConfigurationError("a Source has at least one origin", code="origins")
    for root in roots:
        try:
            home = origin(root)
        except OutOfScopeError as error:
            raise ConfigurationError(
                f"{root[:-1]} is not an origin: {error.message}",
                code="origins",
                hint="write it as https://HOST or http://HOST:PORT",
            ) from error
        if home != root[:-1]:
            raise ConfigurationError(
                f"{root[:-1]} is not an origin", hint=f"use {home}", code="origins"
            )
    return roots


class LinkTarget(NamedTuple):
    """Target of a link."""

    href: str
    hash: str
    length: int | None
    modified: int | None


class LinkFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of the links to follow; registered relations ignore case."""

    relations: frozenset[str]
    scope: Scope

    def targets_of(self, resource: Resource) -> tuple[LinkTarget, ...]:
        """Return the selected link targets of an entry, each once."""
        found: dict[str, LinkTarget] = {}
        for link in resource.links:
            if self.relations.isdisjoint(link.rel.lower().split()) or link.href in found:
                continue
            modified = known_microseconds(link.modified)
            digests = format_digests(link.digests)
            found[link.href] = LinkTarget(link.href, digests, link.length, modified)
        return tuple(found.values())[:_MAX_FOLLOWED_LINKS]


def link_filter(scope: Scope, filters: Filters) -> LinkFilter | None:
    """Return the filter of links: those of selected entries, whatever their target.

    Filters that include entries do not apply to links; those that exclude do.
    """
    if not filters.links:
        return None
    wide = replace(scope, include=(), types=(), since=None)
    return LinkFilter(relations=frozenset(map(_check_relation, filters.links)), scope=wide)


def _check_relation(name: str) -> str:
    relation = name.strip().lower()
    if not relation or len(relation.split()) > 1:
        raise ConfigurationError(
            f"{name!r} is not a link relation", hint="use for example describedby"
        )
    if relation in _RESERVED_RELATIONS:
        raise ConfigurationError(
            f"links of the relation {relation} are not separate resources",
            hint="omit it: every pull uses these links where they help",
        )
    return relation
