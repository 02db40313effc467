"""The open fetcher of a Source, and what a mirror stores of origins."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from math import floor
from random import Random
from typing import Final, NamedTuple, TypeVar

import msgspec

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.adapters.http.robots import LONGEST_DELAY, RULES_LIFETIME, KnownOrigins
from resourcesync.errors import ResourceSyncError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock, Reporter
from resourcesync.ports.cancellation import CancelToken

_T = TypeVar("_T")

_LONGEST_NAMED: Final = 2_592_000.0


class OpenFetcher(NamedTuple):
    """An open fetcher.

    Attributes:
        traffic: Returns requests sent and bytes received so far.
        certificate_until: Returns the end of the first certificate of the servers of the lists, by
            the connections so far; ``None`` without TLS.
    """

    fetcher: CurlFetcher
    traffic: Callable[[], tuple[int, int]]
    certificate_until: Callable[[], datetime | None]


@contextmanager
def open_fetcher(
    address: str,
    settings_of: Callable[[str], FetchSettings],
    cancel: CancelToken,
    known_origins: KnownOrigins,
    report: Reporter = lambda _event, _fields: None,
) -> Iterator[OpenFetcher]:
    """Open the fetcher for a Source."""
    settings = settings_of(address)
    dice = Random()  # noqa: S311 - jitter

    def shortened(origin: str, delay: float) -> None:
        report("warning", _crawl_delay_warning(origin, delay))

    with closing(
        CurlFetcher(settings, cancel.clock, dice, known_origins, shortened, cancel)
    ) as http:

        def traffic() -> tuple[int, int]:
            return http.stats.requests, http.stats.received

        def certificate_until() -> datetime | None:
            return http.stats.certificate_until

        yield OpenFetcher(http, traffic, certificate_until)


def _crawl_delay_warning(origin: str, delay: float) -> dict[str, object]:
    fields: dict[str, object] = {
        "code": "crawl-delay",
        "message": f"robots.txt of {origin} asks for {delay:g} s between two requests;"
        f" the delay is limited to {LONGEST_DELAY:g} s",
    }
    if delay <= _LONGEST_NAMED:
        per_hour = floor(3_600_000_000 / delay) / 1_000_000
        fields["hint"] = f"to wait as long as it asks, limit the rate: --rate {per_hour:.6g}/h"
    return fields


_logger: Final = logging.getLogger(__name__)
_ROBOTS_NOTE: Final = "robots"
_REACH_NOTE: Final = "reach"
_MAX_RULES_LENGTH: Final = 16 * 1024
_MAX_ORIGINS: Final = 8
_SECOND: Final = 1_000_000


class StoredOrigins:
    """What a mirror stores of the origins that it requests (``KnownOrigins``)."""

    def __init__(self, state: SqliteMirrorState, clock: Clock) -> None:
        self._state = state
        self._clock = clock

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        """Return the stored content, and the seconds for which it is still valid."""
        known = self._read(_ROBOTS_NOTE, dict[str, tuple[int, str]]).get(origin)
        if known is None:
            return None
        read_at, text = known
        age = (to_microseconds(self._clock.now()) - read_at) / _SECOND
        return (text.encode(), RULES_LIFETIME - age) if 0 <= age < RULES_LIFETIME else None

    def remember(self, origin: str, read: bytes) -> None:
        """Store the content; a file that is very long, or not text, is requested each time."""
        known = self._read(_ROBOTS_NOTE, dict[str, tuple[int, str]])
        known.pop(origin, None)
        try:
            text = read.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0" * (_MAX_RULES_LENGTH + 1)
        if len(text) <= _MAX_RULES_LENGTH:
            known[origin] = to_microseconds(self._clock.now()), text
        self._write(_ROBOTS_NOTE, known)

    def recall_reach(self, host: str) -> bool | None:
        """Return whether the name first led to a public address, in any earlier run."""
        return self._read(_REACH_NOTE, dict[str, bool]).get(host)

    def remember_reach(self, host: str, *, is_public: bool) -> None:
        """Store where the name led first."""
        known = self._read(_REACH_NOTE, dict[str, bool])
        known.setdefault(host, is_public)
        self._write(_REACH_NOTE, known)

    def _write(self, name: str, known: Mapping[str, object]) -> None:
        kept = dict(list(known.items())[-_MAX_ORIGINS:])
        try:
            self._state.commit(StateTransaction(notes={name: msgspec.json.encode(kept).decode()}))
        except ResourceSyncError as error:  # a full disk also stops the downloads
            _logger.warning("cannot store what is known of the origins: %s", error)

    def _read(self, name: str, kind: type[_T]) -> _T:
        try:
            return msgspec.json.decode(self._state.note(name) or "{}", type=kind)
        except (ResourceSyncError, msgspec.MsgspecError):
            return kind()
