"""Round trip of entries: those that a document can express and a reader reads back the same."""

import re
from collections.abc import Sequence
from datetime import UTC
from io import BytesIO
from typing import Final

from resourcesync.discovery.uris import normalise
from resourcesync.documents import reader, writer
from resourcesync.errors import ConfigurationError, DocumentError, OutOfScopeError
from resourcesync.model.digests import ALGORITHMS, format_digests
from resourcesync.model.entries import Change, Header, Resource
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Capability

_NAME: Final = "resourcesync/list.xml"
"""The name of a list, to which a relative URI would be relative."""
_EPOCH: Final = from_microseconds(0)
_PLAIN_URI: Final = re.compile(r"https?://[!-~]{1,2000}").fullmatch
_MAX_LENGTH: Final = (1 << 63) - 1
_ANY_SIZE: Final = 1 << 62
_PLAIN_TYPE: Final = re.compile(r"(?:[!-~]{1,200})?").fullmatch
_BAD: Final = (ValueError, TypeError, AttributeError, ArithmeticError)
_HEADERS: Final = {
    Resource: Header(capability=Capability.RESOURCE_LIST, at=_EPOCH),
    Change: Header(capability=Capability.CHANGE_LIST, from_=_EPOCH),
}


def check_resource(resource: Resource) -> Resource:
    """Return a resource if it can be published."""
    try:
        normalise(resource.uri)
    except OutOfScopeError as error:
        raise ConfigurationError(
            f"{resource.uri!r} cannot be published: {error.message}",
            evidence=(("kept", "what was recorded before"),),
            hint="give absolute http or https URIs, percent-encoded",
        ) from error
    if resource.length is not None and not 0 <= resource.length <= _MAX_LENGTH:
        raise ConfigurationError(f"the length of {resource.uri} is out of range")
    return resource


def check_own_resource(resource: Resource) -> Resource:
    """Return a resource of somebody who makes its values, and not only passes them on."""
    if type(resource) is not Resource:
        raise ConfigurationError(
            f"{resource!r:.300} is no resource", hint="fill with resources; post changes"
        )
    if type(resource.length) not in _LENGTHS:
        raise ConfigurationError(
            f"the length of {resource.uri} is {resource.length!r:.100}",
            hint="give a whole number of bytes, or None",
        )
    if resource.lastmod is not None and resource.lastmod.tzinfo is None:
        raise ConfigurationError(f"lastmod of {resource.uri} has no time zone")
    for digest in resource.digests:
        if not digest.is_usable and (not digest.value or _bare(digest.algorithm) in _BARE):
            known = ", ".join(ALGORITHMS)
            raise ConfigurationError(
                f"{digest.algorithm}:{digest.value} is no digest of {resource.uri}",
                hint=f"give one of {known}, in hexadecimal digits",
            )
    return check_resource(resource)


def _bare(algorithm: str) -> str:
    return algorithm.lower().replace("-", "")


_LENGTHS: Final = (int, type(None))
_BARE: Final = frozenset(map(_bare, ALGORITHMS))


def find_fault(entries: Sequence[Resource] | Sequence[Change]) -> str:
    """Return why some entries of one kind cannot be expressed; empty when they can."""
    return "" if all(map(_is_plain, entries)) else find_round_trip_fault(entries)


def find_round_trip_fault(entries: Sequence[Resource] | Sequence[Change]) -> str:
    """Return the same for at least one entry, by writing them and reading them back."""
    header = _HEADERS[type(entries[0])]
    try:
        document = reader.read(BytesIO(b"".join(writer.write(header, entries))), uri=_NAME)
        read = [_mark(entry) for entry in document.entries()]
    except _BAD as error:
        return f"{error!s:.300}"
    except DocumentError as error:
        return f"{error.message:.300}"
    if document.refused or read != [_mark(entry) for entry in entries]:
        return "it does not survive a round trip"
    return ""


def _is_plain(entry: object) -> bool:
    return (
        type(entry) is Resource
        and _PLAIN_URI(entry.uri) is not None
        and (entry.lastmod is None or entry.lastmod.tzinfo is UTC)
        and (entry.length is None or (type(entry.length) is int and 0 <= entry.length < _ANY_SIZE))
        and _PLAIN_TYPE(entry.media_type) is not None
        and len(entry.digests) <= len(ALGORITHMS)
        and all(digest.is_usable for digest in entry.digests)
        and not (entry.links or entry.encoding or entry.changefreq or entry.path)
        and not (entry.extra or entry.foreign)
    )


def _mark(entry: object) -> object:
    if isinstance(entry, Change):
        return entry.kind, _mark(entry.resource)
    if isinstance(entry, Resource):
        return entry.uri, entry.length, format_digests(entry.digests), entry.lastmod
    return entry
