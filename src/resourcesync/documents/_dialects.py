"""Which version a document is written in, told by the marks that were met while reading it.

No version of the format says which it is. What shows nothing of any kind is read as the newest
version that it could be.
"""

from typing import Final

from resourcesync.model.capabilities import Header
from resourcesync.model.vocabulary import Dialect

P0: Final = "the namespace resourcesync.org/ns"
P1: Final = "elements of the drafts instead of rs:md"
P2: Final = "the namespace openarchives.org/rs"
ETAG: Final = "etag on rs:md"
MODIFIED: Final = "modified on the root's rs:md, and neither at nor from"
BEFORE_0_9_1: Final = "from for a snapshot, or the relation or capability resourcesync"
VIA_CHAIN: Final = "more than one via"
DATETIME: Final = "datetime on a change"
LASTMOD: Final = "lastmod on a change"


_DRAFTS: Final = ((P0, Dialect.P0), (P2, Dialect.P2), (P1, Dialect.P1))
_NEWER: Final = (
    (DATETIME, Dialect.V1_1),
    (BEFORE_0_9_1, Dialect.V0_9),
    (VIA_CHAIN, Dialect.V0_9_1),
    (LASTMOD, Dialect.V1_0),
)


def dialect_of(header: Header, shows: set[str]) -> Dialect:
    """Return the version, as far as these marks tell it."""
    for mark, dialect in _DRAFTS:
        if mark in shows:
            return dialect
    if header.capability is None:
        return Dialect.SITEMAP
    if MODIFIED in shows:
        return Dialect.P2 if ETAG in shows else _dialect_of_modified(header)
    return next((dialect for mark, dialect in _NEWER if mark in shows), Dialect.V1_1)


def _dialect_of_modified(header: Header) -> Dialect:
    # A manifest that is an index is in 0.5 alone; what shows nothing is as good as 0.6.
    is_nested = header.capability is not None and header.capability.is_manifest
    return Dialect.V0_5 if is_nested and header.is_index else Dialect.V0_6
