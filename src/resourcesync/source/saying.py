"""Whether entries can be said by a document, and are understood again: what is asked of rows."""

from collections.abc import Sequence
from io import BytesIO
from typing import Final

from resourcesync.documents import reading, writing
from resourcesync.errors import DocumentError
from resourcesync.model.capabilities import Header
from resourcesync.model.digests import format_digests
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Capability

_EPOCH: Final = from_microseconds(0)
_BAD: Final = (ValueError, TypeError, AttributeError, ArithmeticError)
_HEADERS: Final = {
    Resource: Header(capability=Capability.RESOURCE_LIST, at=_EPOCH),
    Change: Header(capability=Capability.CHANGE_LIST, from_=_EPOCH),
}


def fault_of(entries: Sequence[Resource] | Sequence[Change]) -> str:
    """Return why some entries of one kind cannot be said as they are; empty when they can."""
    if not entries:
        return ""
    header = _HEADERS[type(entries[0])]
    try:
        content = b"".join(writing.write(header, entries))
        document = reading.read(BytesIO(content), uri="")
        read = [_mark(entry) for entry in document.entries()]
    except _BAD as error:
        return f"{error!s:.300}"
    except DocumentError as error:
        return f"{error.message:.300}"
    if document.refused or read != [_mark(entry) for entry in entries]:
        return "what is read of it is not what was to be said"
    return ""


def _mark(entry: object) -> object:
    """Return what of an entry must be the same."""
    if isinstance(entry, Change):
        return entry.kind, _mark(entry.resource)
    if isinstance(entry, Resource):
        return entry.uri, entry.length, format_digests(entry.digests), entry.lastmod
    return entry
