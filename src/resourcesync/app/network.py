"""The settings for requests to a Source, and the fetcher's settings that follow from them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from resourcesync import config
from resourcesync.adapters.http import FetchSettings
from resourcesync.adapters.http.certificate_authorities import check_authorities
from resourcesync.adapters.http.proxies import ProxyRules, one_proxy
from resourcesync.destination.mapping.tree import origin
from resourcesync.errors import ConfigurationError, OutOfScopeError

if TYPE_CHECKING:
    from resourcesync.config.credentials import Credentials

_HTTP: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Settings for requests to a Source; ``None`` is the fetcher's own default.

    Attributes:
        jobs: Requests at a time, all hosts together.
        per_host: Most requests at a time to one host.
        rate: Requests per second to one host.
        bandwidth: Bytes per second, all together.
        timeout: Seconds without an answer, or of a body that hardly moves.
        retries: Further tries after a temporary failure.
        robots: True if ``robots.txt`` is obeyed.
        headers: Fields that are sent to the Source's own origin only.
        credentials: Secrets, each for its own origin.
        allow_origins: Origins that the Source may list resources of, besides its own.
        proxy: ``http://HOST:PORT``, ``https://HOST:PORT`` or ``socks5h://HOST:PORT`` for all
            servers; empty, or ``direct``, for none. ``None`` is what ``HTTP_PROXY``,
            ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` of the environment say.
        proxy_auth: User and password for the proxy; they are sent to nothing else.
        ca_file: PEM file of the trusted authorities, in place of the system's; empty for those.
        contact: A mail address or page of the operator, sent to every server.
    """

    jobs: int | None = None
    per_host: int | None = None
    rate: float | None = None
    bandwidth: int | None = None
    timeout: float | None = None
    retries: int | None = None
    robots: Literal["obey", "ignore"] = "obey"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    credentials: "tuple[Credentials, ...]" = ()
    allow_origins: tuple[str, ...] = ()
    proxy: str | None = None
    proxy_auth: tuple[str, str] | None = field(default=None, repr=False)
    ca_file: str = ""
    contact: str = ""

    def settings(self, source: str) -> FetchSettings:
        """Return the fetcher's settings for a Source.

        Raises:
            ConfigurationError: A value cannot work.
        """
        names = ("jobs", "per_host", "rate", "bandwidth", "timeout", "retries")
        chosen = {name: value for name in names if (value := getattr(self, name)) is not None}
        home = origin_of(source) if source else ""
        origins = (home, *map(origin_of, self.allow_origins))
        trusted = frozenset(origin for origin in origins if origin.startswith(_HTTP))
        has_secret = any(fields.fields for fields in self.credentials if not fields.origin)
        if home and home not in trusted and (self.headers or has_secret):
            raise ConfigurationError(
                f"header fields are for http and https; the Source is {home}",
                hint="see the documentation of its transport for its secrets",
            )
        if self.ca_file != config.ca_file():  # the environment's is checked when it is used
            check_authorities(self.ca_file)
        return FetchSettings(
            **chosen,
            robots=self.robots,
            headers=self._fields(home),
            trusted_origins=trusted,
            proxies=self.proxies(),
            ca_file=self.ca_file,
            contact=self.contact,
        )

    def proxies(self) -> ProxyRules:
        """Return which requests take which proxy.

        Raises:
            ConfigurationError: A value, or a variable of the environment, is no proxy.
        """
        if self.proxy is None and self.proxy_auth is None:
            return _proxies_of(config.read_proxies())
        proxy = config.parse_proxy(self.proxy) if self.proxy else ""
        if self.proxy_auth is None:
            return one_proxy(proxy)
        if not proxy:
            raise ConfigurationError(
                "there is a secret for a proxy, but no proxy", hint="name the proxy too"
            )
        user, password = self.proxy_auth
        if not user or ":" in user or not user.isprintable():
            raise ConfigurationError(
                "the user of the proxy is empty, or has a colon or a control character",
                hint="write the user alone (RFC 7617 §2)",
            )
        if not password.isprintable():
            raise ConfigurationError("the password of the proxy has a control character")
        return one_proxy(proxy, self.proxy_auth)

    def _fields(self, home: str) -> dict[str, tuple[tuple[str, str], ...]]:
        """Return the header fields for each origin; two secrets for one field are a mistake."""
        fields: dict[str, tuple[tuple[str, str], ...]] = {}
        if home and self.headers:
            fields[home] = self.headers
        for credentials in self.credentials:
            to = origin_of(credentials.origin) if credentials.origin else home
            if to and credentials.fields:
                fields[to] = (*fields.get(to, ()), *credentials.fields)
        for to, pairs in fields.items():
            names = [name.lower() for name, _ in pairs]
            if names.count("authorization") > 1:
                raise ConfigurationError(
                    f"two secrets in the field Authorization for {to}",
                    hint="leave one of them out: --auth, --header or [auth.NAME]",
                )
        return fields


def _proxies_of(environment: config.ProxyEnvironment) -> ProxyRules:
    named = [proxy for proxy in (environment.http, environment.https) if proxy is not None]
    users = {(proxy.proxy, proxy.secret) for proxy in named if proxy.secret is not None}
    if len(users) > len({proxy for proxy, _ in users}):
        raise ConfigurationError(
            "the environment names one proxy with two users",
            hint="give HTTP_PROXY and HTTPS_PROXY the same user, or name a proxy: --proxy URL",
        )
    return ProxyRules(
        http=environment.http.proxy if environment.http else "",
        https=environment.https.proxy if environment.https else "",
        bypass=environment.bypass,
        secrets={proxy.proxy: proxy.secret for proxy in named if proxy.secret is not None},
    )


def origin_of(address: str) -> str:
    """Return the origin of an address that the operator wrote.

    Raises:
        ConfigurationError: It cannot be the address of a Source.
    """
    try:
        return origin(address)
    except OutOfScopeError as error:
        raise ConfigurationError(
            f"{address[:200]!r} cannot be a Source: {error.message}",
            hint="write it as https://HOST/ or http://HOST:PORT/path",
        ) from error
