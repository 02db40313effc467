"""What a document says, in plain tuples: the ground on which two readers can be compared."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from resourcesync.documents.reader import read
from resourcesync.errors import DocumentError
from resourcesync.model.entries import Link, RefusedEntry, Resource
from resourcesync.model.timestamps import to_microseconds

URI = "https://source.example/list.xml"

OVER_STRICT = "over-strict"
"""The failure of a document that the second reader's parser refuses and XML does not."""

Fields = dict[str, Any]
"""What an entry, a link or a header says: names to plain values; what is not said is left out."""


@dataclass(slots=True, eq=False)
class Account:
    """What one reader says of one document.

    ``failure`` is the code of the error that ended it, ``refusals`` are the codes that each other
    entry may be refused with, ``odd_names``: editions of XML 1.0 differ about its names.
    """

    failure: str = ""
    header: Fields = field(default_factory=dict)
    entries: list[Fields] = field(default_factory=list)
    refusals: list[frozenset[str]] = field(default_factory=list)
    odd_names: bool = False


def ours(data: bytes) -> Account:
    """Return what our reader says."""
    account = Account()
    refused: Callable[[RefusedEntry], None] = lambda entry: account.refusals.append(  # noqa: E731
        frozenset({entry.code})
    )
    try:
        document = read(io.BytesIO(data), uri=URI, on_refused=refused)
        header = said(document.header)
        header["is_index"] = document.header.is_index
        account.header = header
        for entry in document.entries():
            account.entries.append(said(entry))
    except DocumentError as error:
        account.failure = error.code
    return account


_SKIPPED = frozenset({"foreign", "is_index", "resource", "label"})


def said(value: Any) -> Fields:
    """Return all that one of our values says."""
    fields: Fields = {}
    for name in value.__struct_fields__:
        plain = None if name in _SKIPPED else _plain(getattr(value, name))
        if plain not in (None, "", ()):
            fields[name.strip("_")] = plain
    resource = getattr(value, "resource", None)
    if isinstance(resource, Resource):
        fields.update(said(resource))
    label = getattr(value, "label", "")
    if label:
        fields["label"] = label
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_microseconds(value)
    if isinstance(value, Link):
        return tuple(sorted(said(value).items()))
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_plain(part) for part in value)
    return str(value) if isinstance(value, str) else value
