"""Links of listed entries, stored with the mirror for a later publication of it.

Most lists have no such links; then nothing is read or written.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from resourcesync.destination.mapping.uris import normalise_if_possible
from resourcesync.destination.planner import FILTERED, ListedEntry
from resourcesync.model.digests import format_digests
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import ChangeKind, Relation
from resourcesync.ports.mirror import EntryLink, EntryRow, MirrorStateStore, StateTransaction

ENTRY_LINKS_COMPLETE: Final = "entries-known"
"""Name of the note that a whole list was read since links of entries are stored."""

STORED_RELATIONS: Final = frozenset(
    {
        Relation.VIA, Relation.DESCRIBED_BY, Relation.DESCRIBES, Relation.PROFILE,
        Relation.COLLECTION, Relation.ALTERNATE, "license",
    }
)  # fmt: skip
"""Relations that are stored."""

_MAX_ENTRY_LINKS: Final = 64
_MAX_ENTRY_SIZE: Final = 16_384
_CHUNK: Final = 1_000
_WITHOUT_LINKS: Final = frozenset({FILTERED, ChangeKind.DELETED})
_encode: Final = msgspec.json.Encoder().encode


def encode_entry_links(resource: Resource) -> str:
    """Return the links of an entry as stored; empty if there are none."""
    found = [
        EntryLink(
            rel=rel,
            href=normalise_if_possible(link.href),
            media_type=link.media_type,
            hash=format_digests(link.digests),
            length=link.length,
            modified=known_microseconds(link.modified),
        )
        for link in resource.links
        for rel in sorted(STORED_RELATIONS.intersection(link.rel.lower().split()))
    ]
    text = _encode(found[:_MAX_ENTRY_LINKS]).decode() if found else ""
    return text if len(text) <= _MAX_ENTRY_SIZE else ""


def store_entry_links(
    state: MirrorStateStore, rows: Iterable[ListedEntry], *, generation: int, now: int, anew: bool
) -> None:
    """Store the links of entries.

    Args:
        state: The mirror's state.
        rows: The last row of each URI.
        generation: Reading that the rows are of.
        now: The present moment, microseconds.
        anew: The rows are complete: then entries without links need no row.
    """
    found = _entry_rows(state, rows, generation, anew=anew)
    while chunk := list(islice(found, _CHUNK)):
        state.commit(StateTransaction(entries=chunk, now=now))


def _entry_rows(
    state: MirrorStateStore, rows: Iterable[ListedEntry], generation: int, *, anew: bool
) -> Iterator[EntryRow]:
    for row in rows:
        if row.change in _WITHOUT_LINKS:
            continue
        if row.entry or (not anew and state.entry_links(row.uri)):
            yield EntryRow(row.uri, row.entry, generation)
