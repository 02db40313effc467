"""Settings of requests to a Source."""

from typing import Annotated

import msgspec

from resourcesync.errors import ConfigurationError
from resourcesync.model.request_settings import RequestSettings
from resourcesync.model.settings import (
    ALLOW_ORIGIN,
    HEADER,
    PROXY,
    Section,
    Setting,
)

_T, _N = Section.TRANSFER, Section.NETWORK


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Header fields for one origin, never sent to another one.

    Attributes:
        origin: ``scheme://host[:port]``; empty for the Source's own.
        fields: Names and values of header fields.
    """

    origin: str = ""
    fields: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"Credentials(origin={self.origin!r})"


class Network(RequestSettings, frozen=True, kw_only=True):
    """Settings for requests to a Source.

    Attributes:
        credentials: Secrets, each for its own origin.
        proxy_auth: User and password for the proxy; they are sent to nothing else.
    """

    headers: Annotated[
        tuple[tuple[str, str], ...],
        Setting("Send a header, only to the Source's own origin.", _N, HEADER, "'K: V'", "header"),
    ] = ()
    allow_origins: Annotated[
        tuple[str, ...],
        ALLOW_ORIGIN,
    ] = ()
    proxy: Annotated[
        str | None,
        Setting(
            "Use this proxy: http://HOST:PORT, https://… or socks5h://…; direct: no proxy. "
            "Default: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY of the environment.",
            _N,
            PROXY,
            "URL",
        ),
    ] = None
    credentials: tuple[Credentials, ...] = ()
    proxy_auth: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.robots not in {"obey", "ignore"}:
            raise ConfigurationError(f"robots={self.robots!r} must be one of obey, ignore")

    def __repr__(self) -> str:
        """Return a text without secrets."""
        hidden = {"headers", "credentials", "proxy_auth"}
        names = (name for name in self.__struct_fields__ if name not in hidden)
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"Network({values})"


class SecretNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of secrets in the configuration file."""

    auth: Annotated[
        str,
        Setting(
            "Send the secret of [auth.NAME] in the configuration file, to the Source's own origin.",
            _N,
            metavar="NAME",
            is_option=True,
        ),
    ] = ""
    proxy_auth: Annotated[
        str,
        Setting(
            "Send user and password of [auth.NAME] in the configuration file to the proxy only.",
            _N,
            metavar="NAME",
        ),
    ] = ""
