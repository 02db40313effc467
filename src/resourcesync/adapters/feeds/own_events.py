"""Events of the stream that ``resourcesync serve --events`` offers. Pure."""

from datetime import datetime
from typing import Final

from resourcesync.adapters.feeds.event_stream import ServerSentEvent
from resourcesync.adapters.feeds.telling import DecodedEvent, entry_of, lost
from resourcesync.model.resources import Change

_KINDS: Final = frozenset({"created", "updated", "deleted"})
_NAME: Final = "the stream"


def hear(
    event: ServerSentEvent, _after: datetime | None, *, accept_gaps: bool = False
) -> DecodedEvent:
    """Return what an event of the stream says.

    Raises:
        DiscontinuityError: The server says that changes are missing.
    """
    if event.kind == "reset":
        if not accept_gaps:
            raise lost("the stream was begun anew, or has forgotten what was read last")
        return DecodedEvent((), None)
    if event.kind not in _KINDS:
        return DecodedEvent((), None)
    entry = entry_of(event.data, _NAME)
    return DecodedEvent((entry,), entry.time if isinstance(entry, Change) else None)
