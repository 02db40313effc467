"""Conversion of resources and changes to catalogue rows, and back."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import product, repeat
from typing import Any, Final

import msgspec
from msgspec import structs

from resourcesync.catalogue.schema import BAD_ROW
from resourcesync.errors import StateError
from resourcesync.model.digests import Digest, format_digests
from resourcesync.model.entries import Change, Extra, Foreign, Link, Resource, ResourceRun
from resourcesync.model.timestamps import from_microseconds, known_microseconds
from resourcesync.model.vocabulary import ChangeKind

Row = tuple[Any, ...]
"""``uri, lastmod_us, length, hash, media_type, more``: the columns of both tables."""

_NAMES: Final = ("uri", "lastmod_us", "length", "hash", "media_type", "more")
_TEXT: Final = frozenset({str})
_NUMBER: Final = frozenset({int, type(None)})
_TYPES: Final = (_TEXT, _NUMBER, _NUMBER, _TEXT, _TEXT, _TEXT)
_SHAPES: Final = frozenset(product(*_TYPES))
_BAD: Final = (
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    msgspec.MsgspecError,
)
_KINDS: Final = {kind.value: kind for kind in ChangeKind}


def to_row(resource: Resource) -> Row:
    """Return the row of a resource."""
    return (
        resource.uri,
        _to_time(resource.lastmod),
        resource.length,
        format_digests(resource.digests),
        resource.media_type,
        _to_more(resource),
    )


def to_rows(resources: ResourceRun, *more: Iterable[object]) -> Iterator[Row]:
    """Yield the row of each resource, with more columns behind it."""
    return zip(
        resources.uris,
        map(_to_time, resources.lastmods),
        resources.lengths,
        resources.hashes,
        resources.media_types,
        repeat("", len(resources)),
        *more,
        strict=True,
    )


def from_row(row: Row) -> Resource:
    """Return the resource of a row, equal to the one that was stored; more columns may follow."""
    uri, lastmod, length, digests, media_type, more = columns = row[:6]
    if tuple(map(type, columns)) not in _SHAPES:
        raise _wrong_type(columns)
    try:
        return Resource(
            uri=uri,
            lastmod=_from_time(lastmod),
            length=length,
            digests=_from_hash(digests),
            media_type=media_type,
            **(structs.asdict(_read_more(more)) if more else {}),
        )
    except _BAD as error:
        message = f"the catalogue has an invalid row of {uri!s:.300}: {error!s:.300}"
        raise _bad_row(message) from error


def links_of(uri: str, more: object) -> tuple[Link, ...]:
    """Return the links in a row's column ``more``."""
    return from_row((uri, None, None, "", "", more)).links


def from_rows(rows: Sequence[Row]) -> Sequence[Resource]:
    """Return the resources of many rows, as ``from_row`` does; as columns, if ``more`` is empty."""
    columns = list(zip(*rows, strict=True))
    uris, lastmods, lengths, hashes, media_types, more = columns
    is_plain = not any(more) and all(
        types.issuperset(map(type, column)) for types, column in zip(_TYPES, columns, strict=True)
    )
    try:
        moments = [_from_time(lastmod) for lastmod in lastmods] if is_plain else None
    except (ValueError, ArithmeticError):
        moments = None
    if moments is None:
        return [from_row(row) for row in rows]
    return ResourceRun(
        uris=uris, lastmods=moments, lengths=lengths, hashes=hashes, media_types=media_types
    )


def changes_from_rows(
    rows: Iterable[Row], last: object = None
) -> Iterator[tuple[Row, Change | StateError]]:
    """Yield each row of the log with its change, or with the error that it has none."""
    for row in rows:
        try:
            change = _change_from_row(row, last)
        except StateError as error:
            yield row, error
        else:
            yield row, change
            last = row[2]


def _change_from_row(row: Row, last: object) -> Change:
    number, kind, moment = row[:3]
    resource = from_row(row[3:])
    if kind not in _KINDS:
        raise _bad_row(f"change {number}, of {resource.uri:.300}, is called {kind!r:.300}")
    if type(moment) is int and type(last) is int and moment <= last:
        raise _bad_row(f"change {number} is not later than the one before it")
    try:
        if type(moment) is int:
            return Change(kind=_KINDS[kind], time=from_microseconds(moment), resource=resource)
    except _BAD:
        pass
    raise _bad_row(f"change {number}, of {resource.uri:.300}, has an invalid time: {moment!r:.300}")


def _bad_row(message: str) -> StateError:
    return StateError(message, evidence=(("kept", "what was published before"),), code=BAD_ROW)


def _wrong_type(row: Row) -> StateError:
    columns = zip(_NAMES, _TYPES, row, strict=True)
    name, value = next((name, value) for name, types, value in columns if type(value) not in types)
    return _bad_row(
        f"the catalogue has a {name} of {row[0]!r:.300} that cannot be published: {value!r:.300}"
    )


# Many files share the second of their last change.
_to_time: Final = lru_cache(maxsize=1_024)(known_microseconds)


@lru_cache(maxsize=1_024)
def _from_time(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)


def _from_hash(text: str) -> tuple[Digest, ...]:
    if " " in text:
        return tuple(Digest(*token.split(":", 1)) for token in text.split(" "))
    algorithm, _, value = text.partition(":")
    return (Digest(algorithm, value),) if text else ()


class _More(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rare fields of a resource, which are stored as JSON."""

    encoding: str = ""
    changefreq: str = ""
    path: str = ""
    links: tuple[Link, ...] = ()
    extra: Extra = ()
    foreign: Foreign = ()


_read_more: Final = msgspec.json.Decoder(_More).decode


def _to_more(resource: Resource) -> str:
    fields = (
        resource.encoding,
        resource.changefreq,
        resource.path,
        resource.links,
        resource.extra,
        resource.foreign,
    )
    return msgspec.json.encode(_More(*fields)).decode() if any(fields) else ""
