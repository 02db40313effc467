"""Whose copy is at a path of a mirror."""

from resourcesync.destination.mappers import PathMapping, uris_at
from resourcesync.destination.names import NameMapping
from resourcesync.ports.mirror import MirrorStateStore


def owner_of(state: MirrorStateStore, mapping: PathMapping, path: str) -> str | None:
    """Return the URI whose copy has this path; ``None`` when no copy has it.

    Args:
        state: The mirror's.
        mapping: The mirror's; it tells whose path it may be.
        path: In the mirror.
    """
    for uri in uris_at(mapping, path):
        copy = state.copy(uri)
        if copy is not None and copy.path == path:
            return uri
    if not isinstance(mapping, NameMapping):
        return None
    # Another spelling may say the same name, or it moved, or it is a digest.
    for uri, there in state.path_conflicts(mapping.base, [path], None):
        if there == path and state.copy(uri) is not None:
            return uri
    return None
