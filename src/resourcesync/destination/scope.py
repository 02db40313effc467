"""Scope: the entries that a Source may list and that the operator selects. Pure.

A glob is compared with the path of the URI in its normal form, so ``%7e`` is ``~``:

- ``*`` matches any characters of one segment, ``**`` between slashes any folders;
- ``/docs/*.html`` starts at the root; ``docs/*.html`` matches below any folder; ``*.pdf``, without
  a slash, matches a last segment anywhere;
- ``drafts/`` is everything below a folder of that name;
- after a ``?`` the glob applies to the query too (``*?lang=en*``); without one the query does not
  count. ``?`` never matches a single character.
"""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from resourcesync.discovery.uris import MAX_URI, normalise, origin
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import format_w3c


class FilterVerdict(StrEnum):
    """Result of the operator's filters for an entry."""

    SELECTED = "selected"
    FILTERED = "filtered"


_FOREIGN_SYNTAX: Final = re.compile(r"[\[\]{}\\#]|^!")
_ESCAPED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_TO_ESCAPE: Final = re.compile(r"[^A-Za-z0-9._~!$&'()*+,;=:@/?%-]|%(?![0-9A-Fa-f]{2})")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]")
_ANY_FOLDERS: Final = "**"


class Glob(msgspec.Struct, frozen=True):
    """Pattern for URIs.

    Attributes:
        text: The glob as the operator wrote it.
        matches_query: It is compared with path and query, not with the path alone.
        expression: Regular expression for the whole of that.
    """

    text: str
    matches_query: bool
    expression: re.Pattern[str]

    def matches(self, path: str, query: str | None) -> bool:
        """True if the glob matches."""
        if not self.matches_query:
            return self.expression.fullmatch(path) is not None
        return query is not None and self.expression.fullmatch(f"{path}?{query}") is not None


@lru_cache(maxsize=256)
def parse_glob(text: str) -> Glob:
    """Return the pattern of a glob.

    Its regular expression never backtracks over a ``*``, except in a last segment, so its time is
    bounded by the product of the two lengths, whatever is written.
    """
    _check_glob(text)
    location, question, query = _normal_glob(text).partition("?")
    segments = location.split("/")
    if location.startswith("/"):
        segments = segments[1:]
    else:
        segments = [_ANY_FOLDERS, *segments] if location else [_ANY_FOLDERS]
    if segments[-1] == "" and location:
        segments[-1] = _ANY_FOLDERS
    expression = _path_expression(segments)
    if question:
        expression += r"\?" + _literals(query, ".", "")
    return Glob(text, bool(question), re.compile(expression, re.DOTALL))


def fits_path(glob: Glob, path: str) -> bool:
    """True if a glob matches a file's path, which may have any characters."""
    return glob.matches(_normal_glob(path.replace("%", "%25").replace("?", "%3F")), None)


def _check_glob(text: str) -> None:
    hint = ""
    if not text or len(text) > MAX_URI:
        reason = f"it must have 1 to {MAX_URI:,} characters"
    elif _FOREIGN_SYNTAX.search(text):
        reason = "[ ] { } \\ # and a leading ! are not supported"
        hint = "write several globs, or exclude by a glob"
    elif any(_ANY_FOLDERS in s and s != _ANY_FOLDERS for s in text.partition("?")[0].split("/")):
        reason = "** must be alone between slashes"
        hint = "write it as in /docs/**/*.html"
    else:
        return
    raise ConfigurationError(
        f"{text[:100]!r} is not a valid glob: {reason}", hint=hint, code="glob"
    )


def _normal_glob(text: str) -> str:
    """Return a glob in the characters of a normalised URI."""
    text = _TO_ESCAPE.sub(lambda found: _percent(found[0]), text)
    return _ESCAPED.sub(lambda found: _normal_escape(found[0]), text)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _normal_escape(triplet: str) -> str:
    character = chr(int(triplet[1:], 16))
    return character if _UNRESERVED.fullmatch(character) else triplet.upper()


def _path_expression(segments: list[str]) -> str:
    """Return the expression for a path; each segment includes the slash before it.

    The text between two ``**`` is matched at its first occurrence only: no later one could allow
    more. Only the text after the last ``**`` must be tried at each segment.
    """
    groups: list[list[str]] = [[]]
    for segment in segments:
        if segment == _ANY_FOLDERS:
            groups.append([])
        else:
            groups[-1].append(segment)
    first, *later = (
        "".join("/" + _literals(s, "[^/?]", r"(?=[/?]|\Z)") for s in g) for g in groups
    )
    if not later:
        return first
    *middle, last = later
    held = "".join(f"(?>(?:/[^/?]*+)*?{group})" for group in middle if group)
    return first + held + (f"(?:/[^/?]*+)*?{last}" if last else "(?:/[^/?]*+)++")


def _literals(text: str, wild: str, end: str) -> str:
    """Return the expression for text with ``*``: each piece matches where it first occurs."""
    head, *pieces = map(re.escape, re.split(r"\*+", text))
    if not pieces:
        return head + end
    *middle, tail = pieces
    held = "".join(f"(?>{wild}*?{piece})" for piece in middle)
    return head + held + (f"{wild}*{tail}" if tail else f"{wild}*+") + end


_LOOSE_PATH: Final = re.compile(
    r"\s*(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#]*)?/?([^?#]*)(\?[^#]*)?(?<=.)", re.DOTALL
)
"""Path and query in any text: what follows the host, or all of it."""
_TYPE: Final = re.compile(r"(?:\*/\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+))")


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of the listed resources. They are stored with the mirror.

    Attributes:
        include, exclude: Globs on the URI's path.
        types: Media types.
        max_size: Bytes.
        since: Only resources modified since, UTC.
        allow_origins: Origins that the Source may list besides its own.
        links: Relations; targets of such links of selected entries are selected too.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    max_size: int | None = None
    since: datetime | None = None
    allow_origins: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


class Scope(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Origins that a Source may list, and the operator's filters.

    Missing fields exclude nothing: an entry without a type, length or time passes the filter for it
    (plain sitemaps have none of them).

    Attributes:
        origins: Origins that the Source may list: its own and those the operator allows.
        include: Globs; if there are any, one must match.
        exclude: Globs; none may match.
        types: Media types such as ``text/html`` or ``text/*``; if there are any, one must match.
        max_size: Largest number of bytes of a resource.
        since: Only resources modified at this moment or later.
    """

    origins: frozenset[str]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    max_size: int | None = None
    since: datetime | None = None

    def __post_init__(self) -> None:
        if self.max_size is not None and self.max_size < 0:
            raise ConfigurationError(
                "the largest size is negative",
                code="max-size",
                hint="use for example 5 MB: --max-size 5M",
            )
        if self.since is not None and self.since.tzinfo is None:
            raise ConfigurationError(
                "the time to start from has no time zone",
                code="since",
                hint="use for example 2026-01-01T00:00:00Z",
            )
        _roots(self.origins)
        for pattern in (*self.include, *self.exclude):
            parse_glob(pattern)
        for name in sorted(self._types):
            if _TYPE.fullmatch(name) is None:
                raise ConfigurationError(
                    f"{name!r} is not a media type", hint="use text/html or text/*", code="type"
                )

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        return _roots(self.origins)

    @cached_property
    def _include(self) -> tuple[Glob, ...]:
        return tuple(map(parse_glob, self.include))

    @cached_property
    def _exclude(self) -> tuple[Glob, ...]:
        return tuple(map(parse_glob, self.exclude))

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

    def fingerprint(self) -> str:
        """Return text that is equal for scopes that select alike, to be stored with a mirror."""
        parts = {
            "origins": sorted(self.origins),
            "include": sorted(set(self.include)),
            "exclude": sorted(set(self.exclude)),
            "types": sorted(self._types),
            "max_size": self.max_size,
            "since": None if self.since is None else format_w3c(self.since),
        }
        return json.dumps(parts, sort_keys=True, separators=(",", ":"))

    def _fits_type(self, media_type: str) -> bool:
        if not self._types:
            return True
        name = media_type.partition(";")[0].strip().lower()
        family, slash, _ = name.partition("/")
        return not name or not self._types.isdisjoint((name, f"{family}{slash}*", "*/*"))

    def fits(self, uri: str) -> bool:
        """True if the globs admit a URI, or the path of an invalid one."""
        if not (self._include or self._exclude):
            return True
        place = _path_and_query(uri)
        if place is None:
            return True
        path, question, text = place.partition("?")
        query = text if question else None
        if self._include and not any(glob.matches(path, query) for glob in self._include):
            return False
        return not any(glob.matches(path, query) for glob in self._exclude)


def _path_and_query(uri: str) -> str | None:
    """Return path and query of a URI, normalised as far as possible; ``None`` if it has none."""
    try:
        normal = normalise(uri)
    except OutOfScopeError:
        match = _LOOSE_PATH.match(uri)
        return None if match is None else _normal_glob(f"/{match[1] or ''}{match[2] or ''}")
    return normal[normal.index("/", normal.index("://") + 3) :]


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
