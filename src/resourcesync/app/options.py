"""Settings of requests become the settings of the fetcher."""

from typing import Final

from resourcesync.adapters.http import FetchSettings
from resourcesync.adapters.http.addresses import host_of
from resourcesync.adapters.http.certificate_authorities import check_authorities
from resourcesync.adapters.http.egress import is_address
from resourcesync.adapters.http.proxies import ProxyRules, one_proxy
from resourcesync.discovery.uris import origin
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.settings import environment
from resourcesync.settings.network import Network
from resourcesync.settings.values import parse_proxy

_DEADLINE: Final = FetchSettings().deadline


def fetch_settings(network: Network, source: str) -> FetchSettings:
    """Return the fetcher's settings for a Source."""
    names = ("jobs", "per_host", "rate", "bandwidth", "timeout", "retries")
    chosen = {name: value for name in names if (value := getattr(network, name)) is not None}
    if network.timeout is not None:
        chosen["deadline"] = max(_DEADLINE, 2 * network.timeout)
    home = origin_of(source) if source else ""
    allowed = tuple(map(origin_of, network.allow_origins))
    trusted = frozenset(origin for origin in (home, *allowed) if origin)
    if network.ca_file != environment.ca_file():  # the environment's is checked when it is used
        check_authorities(network.ca_file)
    return FetchSettings(
        **chosen,
        robots=network.robots,
        headers=_header_fields(network, home),
        trusted_origins=trusted,
        source_host="" if home in allowed else _name_of(home),
        proxies=proxy_rules(network),
        ca_file=network.ca_file,
        contact=network.contact,
    )


def _name_of(home: str) -> str:
    """Return the host of an origin, if it is a name, which may lead elsewhere later."""
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
    """Return the header fields for each origin; two secrets for one field are a mistake."""
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
            f"{address[:200]!r} cannot be a Source: {error.message}",
            hint="write it as https://HOST/ or http://HOST:PORT/path",
        ) from error
