"""Which listed entries a Source may speak for, and which of them the operator wants. Pure.

A glob is compared with the path of the URI in its normal form, so ``%7e`` is ``~``:

- ``*`` stands for any characters of one segment, ``**`` between slashes for any folders;
- ``/docs/*.html`` starts at the root; ``docs/*.html`` fits below any folder; ``*.pdf``, without
  a slash, fits a last segment anywhere;
- ``drafts/`` is everything below a folder of that name;
- after a ``?`` the glob speaks of the query too (``*?lang=en*``); without one the query does not
  count. ``?`` never stands for a character.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final

from resourcesync.destination.uris import MAX_URI, normalise, origin
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import format_w3c


class FilterVerdict(StrEnum):
    """What the operator's filters say of an entry."""

    SELECTED = "selected"
    FILTERED = "filtered"


# --- globs -------------------------------------------------------------------------------------

_FOREIGN_SYNTAX: Final = re.compile(r"[\[\]{}\\#]|^!")
_ESCAPED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_TO_ESCAPE: Final = re.compile(r"[^A-Za-z0-9._~!$&'()*+,;=:@/?%-]|%(?![0-9A-Fa-f]{2})")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]")
_ANY_FOLDERS: Final = "**"


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern for URIs.

    Attributes:
        text: As the operator wrote it.
        reads_query: Whether it is compared with path and query, or with the path alone.
        expression: The regular expression for the whole of that.
    """

    text: str
    matches_query: bool
    expression: re.Pattern[str]

    def matches(self, path: str, query: str | None) -> bool:
        """Whether it fits.

        Args:
            path: The path of a normalised URI.
            query: Its query without ``?``; ``None`` when it has none.
        """
        if not self.matches_query:
            return self.expression.fullmatch(path) is not None
        return query is not None and self.expression.fullmatch(f"{path}?{query}") is not None


@lru_cache(maxsize=256)
def parse_glob(text: str) -> Glob:
    """Return the pattern that a glob stands for.

    Its regular expression never takes back what a ``*`` has matched, except in a last segment, so
    the time it takes is bounded by the product of the two lengths, whatever is written.

    Raises:
        ConfigurationError: It is empty, too long, or means something only to other programs.
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
    """Whether a glob fits a path of a file, which may have any characters."""
    return glob.matches(_normal_glob(path.replace("%", "%25").replace("?", "%3F")), None)


def _check_glob(text: str) -> None:
    hint = ""
    if not text or len(text) > MAX_URI:
        reason = f"it must have 1 to {MAX_URI:,} characters"
    elif _FOREIGN_SYNTAX.search(text):
        reason = "it has [ ] { } \\ or #, or begins with !, which mean nothing here"
        hint = "write several globs, or use --exclude"
    elif any(_ANY_FOLDERS in s and s != _ANY_FOLDERS for s in text.partition("?")[0].split("/")):
        reason = "** must stand alone between slashes"
        hint = "write it as in /docs/**/*.html"
    else:
        return
    raise ConfigurationError(f"{text[:100]!r} is no glob: {reason}", hint=hint, code="glob")


def _normal_glob(text: str) -> str:
    """Write a glob in the characters of a normalised URI."""
    text = _TO_ESCAPE.sub(lambda found: _percent(found[0]), text)
    return _ESCAPED.sub(lambda found: _normal_escape(found[0]), text)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _normal_escape(triplet: str) -> str:
    character = chr(int(triplet[1:], 16))
    return character if _UNRESERVED.fullmatch(character) else triplet.upper()


def _path_expression(segments: list[str]) -> str:
    """Return the expression for a path; each segment takes the slash before it along.

    What stands between two ``**`` is matched at the first place it fits and held to it: no later
    place could allow more. Only what follows the last ``**`` must try each segment in turn.
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
    """Return the expression for text with ``*``: each piece is held to the first place it fits."""
    head, *pieces = map(re.escape, re.split(r"\*+", text))
    if not pieces:
        return head + end
    *middle, tail = pieces
    held = "".join(f"(?>{wild}*?{piece})" for piece in middle)
    return head + held + (f"{wild}*{tail}" if tail else f"{wild}*+") + end


# --- the scope ---------------------------------------------------------------------------------

_LOOSE_PATH: Final = re.compile(
    r"\s*(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#]*)?/?([^?#]*)(\?[^#]*)?(?<=.)", re.DOTALL
)
"""Any text as a URI: what stands behind the host, or all of it."""
_TYPE: Final = re.compile(r"(?:\*/\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whom a Source may speak for, and what the operator wants of it.

    What a list does not tell is no reason to leave a resource out: an entry without a type, length
    or time passes the filter that asks for it (plain sitemaps tell none of them).

    Attributes:
        origins: Origins that the Source may speak for: its own and those the operator allows.
        include: Globs; when there are any, one must fit.
        exclude: Globs; none may fit.
        types: Media types such as ``text/html`` or ``text/*``; when there are any, one must fit.
        max_size: Most bytes of a resource.
        since: Only what was modified at this moment or later.

    Raises:
        ConfigurationError: One of them makes no sense.
    """

    origins: frozenset[str]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    max_size: int | None = None
    since: datetime | None = None
    _roots: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _include: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    _exclude: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    _types: frozenset[str] = field(init=False, repr=False, compare=False)
    _filters: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_size is not None and self.max_size < 0:
            raise ConfigurationError(
                "the largest size cannot be negative", code="max-size", hint="such as --max-size 5M"
            )
        if self.since is not None and self.since.tzinfo is None:
            raise ConfigurationError(
                "the time to start from has no time zone",
                code="since",
                hint="such as 2026-01-01T00:00:00Z",
            )
        object.__setattr__(self, "_roots", _roots(self.origins))
        object.__setattr__(self, "_include", tuple(map(parse_glob, self.include)))
        object.__setattr__(self, "_exclude", tuple(map(parse_glob, self.exclude)))
        object.__setattr__(self, "_types", _media_types(self.types))
        limits = self.max_size is not None or self.since is not None
        object.__setattr__(
            self, "_filters", bool(limits or self.include or self.exclude or self.types)
        )

    def judge(self, resource: Resource) -> FilterVerdict:
        """Say whether the filters select an entry; what they leave out is never refused.

        A deletion, which usually tells no more than the URI, is judged by its URI.

        Raises:
            OutOfScopeError: The Source may not speak for this URI (``code`` is ``foreign``), or it
                is none (see ``normalise``).
        """
        uri = resource.uri
        if self._filters and not (
            self._fits_size(resource.length)
            and self._fits_time(resource.lastmod)
            and self._fits_type(resource.media_type)
            and self.fits(uri)
        ):
            return FilterVerdict.FILTERED
        if not uri.startswith(self._roots) and origin(uri) not in self.origins:
            home = ", ".join(sorted(self.origins))
            raise OutOfScopeError(
                f"the Source speaks for {home}, not for {origin(uri)}", uri=uri, code="foreign"
            )
        return FilterVerdict.SELECTED

    def speaks_for(self, uri: str) -> bool:
        """Whether the Source may speak for a URI that is normal as it stands."""
        return uri.startswith(self._roots)

    @property
    def has_filters(self) -> bool:
        """Whether the operator wants less than the Source may speak for."""
        return self._filters

    def fingerprint(self) -> str:
        """Return text that is equal for scopes that select alike, to be kept with a mirror."""
        parts = {
            "origins": sorted(self.origins),
            "include": sorted(set(self.include)),
            "exclude": sorted(set(self.exclude)),
            "types": sorted(self._types),
            "max_size": self.max_size,
            "since": None if self.since is None else format_w3c(self.since),
        }
        return json.dumps(parts, sort_keys=True, separators=(",", ":"))

    def _fits_size(self, length: int | None) -> bool:
        return self.max_size is None or length is None or length <= self.max_size

    def _fits_time(self, lastmod: datetime | None) -> bool:
        return self.since is None or lastmod is None or lastmod >= self.since

    def _fits_type(self, media_type: str) -> bool:
        if not self._types:
            return True
        name = media_type.partition(";")[0].strip().lower()
        family, slash, _ = name.partition("/")
        return not name or not self._types.isdisjoint((name, f"{family}{slash}*", "*/*"))

    def fits(self, uri: str) -> bool:
        """Whether the globs let a URI in; also one that cannot be used, as far as it has a path."""
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
    """Return path and query of a URI, normalised as far as it goes; ``None`` when it has none."""
    try:
        normal = normalise(uri)
    except OutOfScopeError:
        match = _LOOSE_PATH.match(uri)
        return None if match is None else _normal_glob(f"/{match[1] or ''}{match[2] or ''}")
    return normal[normal.index("/", normal.index("://") + 3) :]


def _roots(origins: Iterable[str]) -> tuple[str, ...]:
    roots = tuple(f"{name}/" for name in sorted(origins))
    if not roots:
        raise ConfigurationError("a Source speaks for one origin at least", code="origins")
    for root in roots:
        try:
            home = origin(root)
        except OutOfScopeError as error:
            raise ConfigurationError(
                f"{root[:-1]} is no origin: {error.message}",
                code="origins",
                hint="write it as https://HOST or http://HOST:PORT",
            ) from error
        if home != root[:-1]:
            raise ConfigurationError(
                f"{root[:-1]} is no origin", hint=f"use {home}", code="origins"
            )
    return roots


def _media_types(types: Iterable[str]) -> frozenset[str]:
    names = frozenset(name.strip().lower() for name in types)
    for name in sorted(names):
        if _TYPE.fullmatch(name) is None:
            raise ConfigurationError(
                f"{name!r} is no media type", hint="write text/html or text/*", code="type"
            )
    return names
