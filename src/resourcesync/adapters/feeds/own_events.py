"""Events of the stream that ``resourcesync serve --events`` offers. Pure."""

from datetime import datetime
from typing import Final

from resourcesync.adapters.feeds.event_stream import Event
from resourcesync.adapters.feeds.telling import Heard, entry_of, lost
from resourcesync.model.resources import Change

_KINDS: Final = frozenset({"created", "updated", "deleted"})
_NAME: Final = "the stream"


def hear(event: Event, _after: datetime | None, *, accept_gaps: bool = False) -> Heard:
    """Return what an event of the stream says.

    Raises:
        DiscontinuityError: The server says that changes are missing.
    """
    if event.kind == "reset":
        if not accept_gaps:
            raise lost("the stream was begun anew, or has forgotten what was read last")
        return Heard((), None)
    if event.kind not in _KINDS:
        return Heard((), None)
    entry = entry_of(event.data, _NAME)
    return Heard((entry,), entry.time if isinstance(entry, Change) else None)
