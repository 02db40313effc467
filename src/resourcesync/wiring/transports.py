"""Which transport fetches what: http and https are ours, other schemes are plug-ins'.

What ``robots.txt`` said, remembered with a mirror for a day: a pull need not ask each time.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from math import floor
from random import Random
from typing import TYPE_CHECKING, Final, cast

import msgspec

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.adapters.http.robots import LONGEST_DELAY, RULES_LIFETIME, KnownRules
from resourcesync.discovery.addresses import accept_scheme
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock, Fetcher, Reporter
from resourcesync.ports.mirror import MirrorStateStore, StateTransaction
from resourcesync.wiring import plugins

if TYPE_CHECKING:
    from resourcesync.ports.transports import TransportFactory


_LONGEST_NAMED: Final = 2_592_000.0
_OURS: Final = ("http", "https", "")


@contextmanager
def open_fetcher(
    address: str,
    settings_of: Callable[[str], FetchSettings],
    clock: Clock,
    known_rules: KnownRules,
    report: Reporter = lambda _event, _fields: None,
) -> Iterator[tuple[Fetcher, Callable[[], tuple[int, int]]]]:
    """Open what fetches from a Source.

    A scheme of a plug-in's is one that URIs may have from then on, in this process. It is only ever
    accepted because the operator named it, never because a document did.

    Args:
        address: The Source's.
        settings_of: Returns how things are fetched from a Source.
        clock: Time.
        known_rules: Remembers what ``robots.txt`` said.
        report: Receives a warning when a host asks for a longer delay than is kept.

    Yields:
        It, and what returns how many requests it sent and how many bytes it received.

    Raises:
        ConfigurationError: Nothing is for such addresses, or a setting cannot work.
    """
    scheme = address.partition("://")[0].lower() if "://" in address else ""
    is_of_others = scheme not in _OURS and scheme in plugins.names(plugins.TRANSPORTS)
    if is_of_others:
        plugins.find(plugins.TRANSPORTS, scheme)
        accept_scheme(scheme)
    settings = settings_of(address)
    dice = Random()  # noqa: S311 - jitter

    def shortened(origin: str, asked: float) -> None:
        report("warning", _crawl_delay_warning(origin, asked))

    with closing(CurlFetcher(settings, clock, dice, known_rules, shortened)) as http:

        def by_http() -> tuple[int, int]:
            return http.stats.requests, http.stats.received

        if not is_of_others:
            yield http, by_http
            return
        from resourcesync.adapters.transport_router import Transports  # noqa: PLC0415 - seldom

        def open_other(other: str) -> Fetcher:
            return _open_plugin(other, settings, clock)

        with closing(Transports(http, open_other, settings.body_limits)) as fetcher:
            open_other(scheme)  # what is wrong with it is told before anything is done
            yield fetcher, lambda: _add_traffic(by_http(), fetcher.traffic)


def _crawl_delay_warning(origin: str, asked: float) -> dict[str, object]:
    fields: dict[str, object] = {
        "code": "crawl-delay",
        "message": f"robots.txt of {origin} asks for {asked:g} s between two requests;"
        f" {LONGEST_DELAY:g} s are kept",
    }
    if asked <= _LONGEST_NAMED:
        per_hour = floor(3_600_000_000 / asked) / 1_000_000
        fields["hint"] = f"to wait as long as it asks: --rate {per_hour:.6g}/h"
    return fields


def _add_traffic(item: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return item[0] + other[0], item[1] + other[1]


def _open_plugin(scheme: str, settings: FetchSettings, clock: Clock) -> Fetcher:
    from resourcesync.ports.transports import TransportOptions  # noqa: PLC0415 - seldom

    factory: TransportFactory = plugins.load(plugins.TRANSPORTS, scheme)
    options = TransportOptions(
        scheme=scheme,
        jobs=settings.jobs,
        timeout=settings.timeout,
        retries=settings.retries,
        clock=clock,
    )
    try:
        made: object = factory(options)
    except ResourceSyncError:
        raise
    except Exception as error:
        raise _unusable(scheme, f"{type(error).__name__}: {error}"[:500]) from error
    if not callable(getattr(made, "fetch", None)):
        raise _unusable(scheme, f"it gives a {type(made).__name__} that cannot fetch")
    return cast("Fetcher", made)


def _unusable(scheme: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the transport for {scheme} cannot be used",
        evidence=(("got", why),),
        hint="resourcesync plugins says which package brings it",
        code="bad-plugin",
    )


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
