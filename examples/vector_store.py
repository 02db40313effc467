"""Keep a vector store equal to a mirror, by chunks of text: only new chunks are embedded."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from resourcesync import Mirror, MirrorChange
from resourcesync.errors import DiscontinuityError

CHUNK = 1_000  # characters


class VectorStore(Protocol):
    """What your store needs to do; each method does nothing if it was done before."""

    def uris(self) -> Iterable[str]:
        """Return the resources that have chunks."""
        ...

    def ids(self, uri: str) -> set[str]:
        """Return the ids of a resource's chunks."""
        ...

    def upsert(self, uri: str, chunks: Mapping[str, str]) -> None:
        """Embed and store chunks of a resource, by their ids."""

    def delete(self, ids: set[str]) -> None:
        """Delete chunks."""


def update(mirror: Mirror, store: VectorStore, progress: Path) -> None:
    """Apply what changed in a mirror since the position in a file."""
    position = progress.read_text("utf-8") if progress.exists() else ""
    try:
        if position:
            for change in mirror.changes(since=position, touched=True):
                apply(store, change)
                save(progress, change.position)
            return
    except DiscontinuityError:  # the mirror was restored, or we come too late
        progress.unlink()
    seen, position = set(), ""
    for change in mirror.changes(since="start"):
        apply(store, change)
        seen.add(change.known_as)
        position = change.position
    for uri in set(store.uris()) - seen:  # deleted while we did not listen
        store.delete(store.ids(uri))
    save(progress, position)


def apply(store: VectorStore, change: MirrorChange) -> None:
    """Apply one change; applying it again changes nothing."""
    content = change.read()
    if content is None and change.kind != "deleted":
        return  # it changed again: a later change has it
    text = (content or b"").decode("utf-8", "replace")  # put your parser of HTML or PDF here
    parts = [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]
    chunks = {
        hashlib.sha256(f"{change.known_as} {part}".encode()).hexdigest(): part for part in parts
    }
    known = store.ids(change.known_as)
    store.upsert(change.known_as, {key: part for key, part in chunks.items() if key not in known})
    store.delete(known - chunks.keys())


def save(progress: Path, position: str) -> None:
    """Replace the stored position, after the changes before it were applied."""
    beside = progress.with_name(f"{progress.name}.new")
    beside.write_text(position, "utf-8")
    beside.replace(progress)
