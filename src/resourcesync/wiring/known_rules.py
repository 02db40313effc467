"""What ``robots.txt`` said, remembered with a mirror for a day: a pull need not ask each time."""

import logging
from typing import Final

import msgspec

from resourcesync.adapters.http.robots import RULES_LIFETIME
from resourcesync.errors import ResourceSyncError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.mirror import MirrorStateStore, StateTransaction

_logger: Final = logging.getLogger(__name__)
_ROBOTS_NOTE: Final = "robots"
_MAX_RULES_LENGTH: Final = 16 * 1024
_MAX_ORIGINS: Final = 8
_SECOND: Final = 1_000_000


class StoredRobotsRules:
    """The rules of the origins that a mirror asks (``KnownRules``).

    Args:
        state: The mirror's memory.
        clock: Time.
    """

    def __init__(self, state: MirrorStateStore, clock: Clock) -> None:
        self._state = state
        self._clock = clock

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        """Return what was read, and for how many seconds more it is good."""
        known = self._read_rules().get(origin)
        if known is None:
            return None
        read_at, text = known
        age = (to_microseconds(self._clock.now()) - read_at) / _SECOND
        return (text.encode(), RULES_LIFETIME - age) if 0 <= age < RULES_LIFETIME else None

    def remember(self, origin: str, read: bytes) -> None:
        """Take what was read; a file that is very long, or no text, is asked for each time."""
        known = self._read_rules()
        known.pop(origin, None)
        try:
            text = read.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0" * (_MAX_RULES_LENGTH + 1)
        if len(text) <= _MAX_RULES_LENGTH:
            known[origin] = to_microseconds(self._clock.now()), text
        kept = dict(list(known.items())[-_MAX_ORIGINS:])
        try:
            self._state.commit(
                StateTransaction(notes={_ROBOTS_NOTE: msgspec.json.encode(kept).decode()})
            )
        except ResourceSyncError as error:  # whoever fetches meets the disk soon enough
            _logger.warning("what robots.txt said is not remembered: %s", error)

    def _read_rules(self) -> dict[str, tuple[int, str]]:
        try:
            note = self._state.note(_ROBOTS_NOTE)
            return msgspec.json.decode(note or "{}", type=dict[str, tuple[int, str]])
        except (ResourceSyncError, msgspec.MsgspecError):
            return {}
