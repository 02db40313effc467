"""Events of the stream that ``resourcesync serve --events`` offers. Pure."""

from datetime import datetime
from typing import Final

from resourcesync.adapters.feeds.event_stream import ServerSentEvent
from resourcesync.adapters.feeds.telling import DecodedEvent, decode_entry, gap_error
from resourcesync.model.resources import Change

_KINDS: Final = frozenset({"created", "updated", "deleted"})
_STREAM_NAME: Final = "the stream"


def decode_own_event(
    event: ServerSentEvent, _after: datetime | None, *, accept_gaps: bool = False
) -> DecodedEvent:
    """Return what an event of the stream says.

    Raises:
        DiscontinuityError: The server says that changes are missing.
    """
    if event.kind == "reset":
        if not accept_gaps:
            raise gap_error("the stream was begun anew, or has forgotten what was read last")
        return DecodedEvent((), None)
    if event.kind not in _KINDS:
        return DecodedEvent((), None)
    entry = decode_entry(event.data, _STREAM_NAME)
    return DecodedEvent((entry,), entry.time if isinstance(entry, Change) else None)
