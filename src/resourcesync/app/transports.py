"""Transports by scheme, ours and those of plug-ins; and what a mirror stores of origins."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from math import floor
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast

import msgspec

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.adapters.http.robots import LONGEST_DELAY, RULES_LIFETIME, KnownOrigins
from resourcesync.app import plugins
from resourcesync.discovery.addresses import accept_scheme
from resourcesync.errors import ConfigurationError, Remedy, ResourceSyncError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock, Fetcher, Reporter
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.mirror import MirrorStateStore, StateTransaction

if TYPE_CHECKING:
    from resourcesync.ports.transports import TransportFactory


_T = TypeVar("_T")

_LONGEST_NAMED: Final = 2_592_000.0
_OURS: Final = ("http", "https", "")


class OpenFetcher(NamedTuple):
    """An open fetcher.

    Attributes:
        traffic: Returns requests sent and bytes received so far.
        certificate_until: Returns the end of the first certificate of the servers of the lists, by
            the connections so far; ``None`` without TLS.
    """

    fetcher: Fetcher
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
    """Open the fetcher for a Source.

    URIs may have the scheme of a plug-in from then on, in this process. A scheme is only accepted
    because the operator named it, never because a document did.

    Args:
        address: The Source's address.
        settings_of: Returns the fetch settings for a Source.
        cancel: The request to stop, and the clock.
        known_origins: Stores what is known of origins, such as ``robots.txt``.
        report: Receives a warning when a host asks for a longer delay than the limit.

    Yields:
        The fetcher, and what it has counted.

    Raises:
        ConfigurationError: No transport handles such addresses, or a setting cannot work.
    """
    scheme = address.partition("://")[0].lower() if "://" in address else ""
    is_of_others = scheme not in _OURS and scheme in plugins.names(plugins.TRANSPORTS)
    if is_of_others:
        plugins.find(plugins.TRANSPORTS, scheme)
        accept_scheme(scheme)
    settings = settings_of(address)
    dice = Random()  # noqa: S311 - jitter

    def shortened(origin: str, delay: float) -> None:
        report("warning", _crawl_delay_warning(origin, delay))

    with closing(
        CurlFetcher(settings, cancel.clock, dice, known_origins, shortened, cancel)
    ) as http:

        def by_http() -> tuple[int, int]:
            return http.stats.requests, http.stats.received

        def certificate_until() -> datetime | None:
            return http.stats.certificate_until

        if not is_of_others:
            yield OpenFetcher(http, by_http, certificate_until)
            return
        from resourcesync.adapters.transport_router import Transports  # noqa: PLC0415 - rarely

        def open_plugin_fetcher(other: str) -> Fetcher:
            return _open_plugin(other, settings, cancel)

        with closing(Transports(http, open_plugin_fetcher, settings.body_limits)) as fetcher:
            open_plugin_fetcher(scheme)  # so that its errors are raised first
            traffic = partial(_sum_traffic, by_http, lambda: fetcher.traffic)
            yield OpenFetcher(fetcher, traffic, certificate_until)


def _crawl_delay_warning(origin: str, delay: float) -> dict[str, object]:
    fields: dict[str, object] = {
        "code": "crawl-delay",
        "message": f"robots.txt of {origin} asks for {delay:g} s between two requests;"
        f" the delay is limited to {LONGEST_DELAY:g} s",
    }
    if delay <= _LONGEST_NAMED:
        per_hour = floor(3_600_000_000 / delay) / 1_000_000
        fields["hint"] = "to wait as long as it asks, limit the rate"
        fields["remedy"] = Remedy("limit-rate", value=f"{per_hour:.6g}/h")
    return fields


def _sum_traffic(*counters: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    counts = [counter() for counter in counters]
    return sum(requests for requests, _ in counts), sum(received for _, received in counts)


def _open_plugin(scheme: str, settings: FetchSettings, cancel: CancelToken) -> Fetcher:
    from resourcesync.ports.transports import TransportOptions  # noqa: PLC0415 - rarely

    factory: TransportFactory = plugins.load(plugins.TRANSPORTS, scheme)
    options = TransportOptions(
        scheme=scheme,
        jobs=settings.jobs,
        timeout=settings.timeout,
        retries=settings.retries,
        clock=cancel.clock,
        cancel=cancel,
    )
    try:
        made: object = factory(options)
    except ResourceSyncError:
        raise
    except Exception as error:
        raise _unusable(scheme, f"{type(error).__name__}: {error}"[:500]) from error
    if not callable(getattr(made, "fetch", None)):
        raise _unusable(scheme, f"it returned a {type(made).__name__}, not a fetcher")
    return cast("Fetcher", made)


def _unusable(scheme: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the transport for {scheme} cannot be used",
        evidence=(("got", why),),
        hint="the list of plug-ins names the package of each",
        remedy=Remedy("list-plugins"),
        code="bad-plugin",
    )


_logger: Final = logging.getLogger(__name__)
_ROBOTS_NOTE: Final = "robots"
_REACH_NOTE: Final = "reach"
_MAX_RULES_LENGTH: Final = 16 * 1024
_MAX_ORIGINS: Final = 8
_SECOND: Final = 1_000_000


class StoredOrigins:
    """What a mirror stores of the origins that it requests (``KnownOrigins``).

    Args:
        state: The mirror's state.
        clock: Time.
    """

    def __init__(self, state: MirrorStateStore, clock: Clock) -> None:
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
