"""The changes that were read last: what a list that was written anew must still account for.

A list that does not begin any more with what was processed may have been sorted, merged or cut at
its old end by its Source; then nothing is lost. Or the Source was set back, and changes that were
processed are listed nowhere any more; or the list is an old copy. The last changes tell which.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

import msgspec

from resourcesync.model.resources import Change
from resourcesync.model.timestamps import to_microseconds

MAX_RECENT: Final = 16
"""How many resources are remembered whose changes were read last."""
_MAX_BUFFERED: Final = 16 * MAX_RECENT
_LAST_CHANGES_DECODER: Final = msgspec.json.Decoder(tuple[int | None, list[tuple[str, int | None]]])


class LastChanges:
    """The resources that changed last, each with the time of its change, the newest at the end.

    Args:
        known: Those of the reading before, by URI.
        newest: The latest time that a change had of its own; one that may be that of a resource
            says nothing of when it was listed.
    """

    def __init__(self, known: Mapping[str, int | None], newest: int | None = None) -> None:
        self.newest = newest
        self._known = dict(known)
        self._recent = dict(known)
        self._listed_times: dict[str, int | None] = {}
        self._found_times: dict[str, int] = {}

    @classmethod
    def from_note(cls, note: str | None) -> "LastChanges":
        """Return what a note tells; nothing for one that cannot be read."""
        try:
            newest, known = _LAST_CHANGES_DECODER.decode(note or "[null,[]]")
            return cls(dict(known), newest)
        except msgspec.MsgspecError:
            return cls({})

    def encode(self) -> str:
        """Return the last ones as a note."""
        skipped = max(0, len(self._recent) - MAX_RECENT)
        kept = list(islice(self._recent.items(), skipped, None))
        return msgspec.json.encode((self.newest, kept)).decode()

    def add(self, change: Change) -> None:
        """Take the next change of the lists, new or not."""
        uri = change.resource.uri
        time = None if change.time is None else to_microseconds(change.time)
        if uri in self._known:
            self._compare(uri, time)
        if time is not None and change.time != change.resource.lastmod:
            self.newest = max(time, self.newest or time)
        recent = self._recent
        recent.pop(uri, None)
        recent[uri] = time
        if len(recent) > _MAX_BUFFERED:
            self._recent = dict(islice(recent.items(), len(recent) - MAX_RECENT, None))

    def _compare(self, uri: str, time: int | None) -> None:
        known, met = self._known[uri], self._listed_times.get(uri)
        if time is not None and time == known:
            self._found_times[uri] = time
        self._listed_times[uri] = met if time is None else max(time, met or 0)

    def are_found(self, begin: int | None) -> bool:
        """Return whether one of the known changes is listed: then all that came later is, too.

        It must be the very change. Another change of the same resource proves nothing, however
        near its time is.

        Args:
            begin: When the first of the lists begins, as it says; what is older proves nothing.
        """
        return any(begin is None or it >= begin for it in self._found_times.values())

    @property
    def are_withdrawn(self) -> bool:
        """Whether the newest of the known changes is in none of the lists, nor a later one for it.

        The newest is the one that was listed last, and so is the one with the latest time: some
        Sources list late what happened before. Where the resource changed again since, and only
        that is listed, the one before it tells, and so on. What has no time proves nothing; but
        its resource must be listed.
        """
        listed = list(reversed(self._known.items()))
        timed = sorted(listed, key=lambda it: it[1] or 0, reverse=True)
        return self._is_first_lost(listed) or self._is_first_lost(timed)

    def _is_first_lost(self, known_changes: Iterable[tuple[str, int | None]]) -> bool:
        for uri, known in known_changes:
            if uri in self._found_times:
                return False
            if uri not in self._listed_times:
                return True
            met = self._listed_times[uri]
            if known is not None and met is not None and met < known:
                return True
        return False
