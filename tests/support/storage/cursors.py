"""A mirror's cursor, set by a test."""

from typing import Any

from msgspec.structs import replace

from resourcesync.destination.sync_state import SyncState
from resourcesync.mirror_state.database import SqliteMirrorState


def set_cursor(state: SqliteMirrorState, **changes: Any) -> None:
    stored = SyncState(state)
    stored.save(replace(stored.cursor, **changes))
