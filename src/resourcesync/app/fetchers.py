"""Requests to a Source: their settings become a fetcher; and what a mirror stores of origins."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from math import floor
from random import Random
from typing import Final, TypeVar

import msgspec

from resourcesync.adapters.http import CurlFetcher, FetchSettings, politeness
from resourcesync.adapters.http.addresses import host_of, is_address
from resourcesync.adapters.http.settings import ProxyRules, check_authorities, one_proxy
from resourcesync.discovery.uris import origin
from resourcesync.errors import ConfigurationError, OutOfScopeError, ResourceSyncError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync.model.settings import RequestSettings
from resourcesync.model.timestamps import SECOND, to_microseconds
from resourcesync.ports import CancelToken, Clock, Reporter
from resourcesync.settings import environment
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import parse_proxy

_T = TypeVar("_T")

_DEADLINE: Final = FetchSettings().deadline
_LONGEST_NAMED: Final = 2_592_000.0
_NO_ORIGINS: Final = politeness.KnownOrigins()


@contextmanager
def open_fetcher(
    address: str,
    network: Network,
    cancel: CancelToken,
    known_origins: politeness.KnownOrigins = _NO_ORIGINS,
    report: Reporter = lambda _event, _fields: None,
) -> Iterator[CurlFetcher]:
    """Open the fetcher for a Source."""

    def shortened(origin: str, delay: float) -> None:
        report("warning", _crawl_delay_warning(origin, delay))

    settings = fetch_settings(network, address)
    dice = Random()  # noqa: S311 - jitter
    with closing(
        CurlFetcher(settings, cancel.clock, dice, known_origins, shortened, cancel)
    ) as fetcher:
        yield fetcher


def checked_network(given: object) -> Network:
    """Return the settings of requests that a caller gave."""
    if not isinstance(given, Network | None):
        raise ConfigurationError("network must be a Network", hint="network=Network(jobs=4)")
    return given or Network()


def fetch_settings(network: Network, source: str) -> FetchSettings:
    """Return the fetcher's settings for a Source."""
    home = origin_of(source) if source else ""
    allowed = tuple(map(origin_of, network.allow_origins))
    if network.ca_file != environment.ca_file():  # the environment's is checked when it is used
        check_authorities(network.ca_file)
    return FetchSettings(
        **{name: getattr(network, name) for name in RequestSettings.__struct_fields__},
        deadline=max(_DEADLINE, 2 * network.timeout),
        headers=_header_fields(network, home),
        trusted_origins=frozenset(filter(None, (home, *allowed))),
        source_host="" if home in allowed else _name_of(home),
        proxies=proxy_rules(network),
    )


def _name_of(home: str) -> str:
    host = host_of(home)
    return "" if is_address(host) else host


def proxy_rules(network: Network) -> ProxyRules:
    """Return which requests take which proxy."""
    if network.proxy is None and network.proxy_auth is None:
        return _proxies_of(environment.read_proxies())
    proxy = parse_proxy(network.proxy) if network.proxy else ""
    if network.proxy_auth is None:
        return one_proxy(proxy)
    if not proxy:
        raise ConfigurationError(
            "there is a secret for a proxy, but no proxy", hint="name the proxy too"
        )
    user, password = network.proxy_auth
    if not user or ":" in user or not user.isprintable():
        raise ConfigurationError(
            "the user of the proxy is empty, or has a colon or a control character",
            hint="write the user alone (RFC 7617 §2)",
        )
    if not password.isprintable():
        raise ConfigurationError("the password of the proxy has a control character")
    return one_proxy(proxy, network.proxy_auth)


def _header_fields(network: Network, home: str) -> dict[str, tuple[tuple[str, str], ...]]:
    fields: dict[str, tuple[tuple[str, str], ...]] = {}
    if home and network.headers:
        fields[home] = network.headers
    for credentials in network.credentials:
        to = origin_of(credentials.origin) if credentials.origin else home
        if to and credentials.fields:
            fields[to] = (*fields.get(to, ()), *credentials.fields)
    for to, pairs in fields.items():
        names = [name.lower() for name, _ in pairs]
        if names.count("authorization") > 1:
            raise ConfigurationError(
                f"two secrets in the field Authorization for {to}",
                hint="leave one of them out, or the table [auth.NAME]: "
                "--auth NAME, or -o header='NAME: VALUE'",
            )
    return fields


def _proxies_of(environment: environment.ProxyEnvironment) -> ProxyRules:
    named = [proxy for proxy in (environment.http, environment.https) if proxy is not None]
    users = {(proxy.proxy, proxy.secret) for proxy in named if proxy.secret is not None}
    if len(users) > len({proxy for proxy, _ in users}):
        raise ConfigurationError(
            "the environment names one proxy with two users",
            hint="give HTTP_PROXY and HTTPS_PROXY the same user, or name a proxy: -o proxy=URL",
        )
    return ProxyRules(
        http=environment.http.proxy if environment.http else "",
        https=environment.https.proxy if environment.https else "",
        bypass=environment.bypass,
        secrets={proxy.proxy: proxy.secret for proxy in named if proxy.secret is not None},
    )


def origin_of(address: str) -> str:
    """Return the origin of an address that the operator wrote."""
    try:
        return origin(address)
    except OutOfScopeError as error:
        raise ConfigurationError(
            f"{address[:200]!r} cannot be used: {error.message}",
            hint="write it as https://HOST/ or http://HOST:PORT/path",
        ) from error


def _crawl_delay_warning(origin: str, delay: float) -> dict[str, object]:
    fields: dict[str, object] = {
        "code": "crawl-delay",
        "message": f"robots.txt of {origin} asks for {delay:g} s between two requests;"
        f" the delay is limited to {politeness.LONGEST_DELAY:g} s",
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


class StoredOrigins(politeness.KnownOrigins):
    """What a mirror stores of the origins that it requests."""

    def __init__(self, state: SqliteMirrorState, clock: Clock) -> None:
        self._state = state
        self._clock = clock

    def recall(self, origin: str) -> tuple[bytes, float] | None:
        """Return the stored content, and the seconds for which it is still valid."""
        known = self._read(_ROBOTS_NOTE, dict[str, tuple[int, str]]).get(origin)
        if known is None:
            return None
        read_at, text = known
        age = (to_microseconds(self._clock.now()) - read_at) / SECOND
        left = politeness.RULES_LIFETIME - age
        return (text.encode(), left) if 0 < left <= politeness.RULES_LIFETIME else None

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
