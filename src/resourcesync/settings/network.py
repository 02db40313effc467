"""Settings of requests to a Source."""

from typing import Annotated, Literal

import msgspec

from resourcesync.model.settings import (
    ALLOW_ORIGIN,
    DURATION,
    FILE,
    HEADER,
    PROXY,
    RATE,
    SIZE,
    Section,
    Setting,
    whole,
)
from resourcesync.settings.values import convert_argument

_T, _N = Section.TRANSFER, Section.NETWORK
Robots = Literal["obey", "ignore"]


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


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for requests to a Source; ``None`` is the fetcher's own default.

    Attributes:
        jobs: Requests at a time, all hosts together.
        per_host: Most requests at a time to one host.
        rate: Requests per second to one host.
        bandwidth: Bytes per second, all together.
        timeout: Seconds without an answer, or of a body that hardly moves. A whole body may take
            twice that, at least a minute, and a second more for every 16 KiB.
        retries: Further tries after a temporary failure.
        robots: ``obey`` or ``ignore`` ``robots.txt``.
        headers: Fields that are sent to the Source's own origin only.
        allow_origins: Origins that the Source may list resources of, besides its own.
        contact: A mail address or page of the operator, sent to every server.
        proxy: ``http://HOST:PORT``, ``https://HOST:PORT`` or ``socks5h://HOST:PORT`` for all
            servers; empty, or ``direct``, for none. ``None`` is what ``HTTP_PROXY``,
            ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` of the environment say.
        ca_file: PEM file of the trusted authorities, in place of the system's; empty for those.
        credentials: Secrets, each for its own origin.
        proxy_auth: User and password for the proxy; they are sent to nothing else.
    """

    jobs: Annotated[
        int | None, Setting("Requests at a time.", _T, whole(1, 1000), short="-j", is_option=True)
    ] = None
    per_host: Annotated[
        int | None, Setting("Requests at a time to one host.", _T, whole(1, 1000))
    ] = None
    rate: Annotated[
        float | None,
        Setting("Requests per second to one host, such as 5/s.", _T, RATE, is_option=True),
    ] = None
    bandwidth: Annotated[
        int | None, Setting("Bytes per second in total, such as 2M.", _T, SIZE, key="bwlimit")
    ] = None
    timeout: Annotated[
        float | None, Setting("Longest wait for a response, such as 30s.", _N, DURATION)
    ] = None
    retries: Annotated[
        int | None, Setting("Retries of a request; none after 404.", _N, whole(0, 100))
    ] = None
    robots: Annotated[Robots, Setting("Obey or ignore robots.txt.", _N, shown="obey")] = "obey"
    headers: Annotated[
        tuple[tuple[str, str], ...],
        Setting("Send a header, only to the Source's own origin.", _N, HEADER, "'K: V'", "header"),
    ] = ()
    allow_origins: Annotated[
        tuple[str, ...],
        ALLOW_ORIGIN,
    ] = ()
    contact: Annotated[
        str,
        Setting(
            "Contact address for the Source's operator; sent in From and User-Agent.",
            _N,
            metavar="MAIL|URL",
        ),
    ] = ""
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
    ca_file: Annotated[
        str,
        Setting(
            "Trust the authorities in this file (PEM), instead of the system's.", _N, FILE, "FILE"
        ),
    ] = ""
    credentials: tuple[Credentials, ...] = ()
    proxy_auth: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        convert_argument("robots", self.robots, Robots)

    def __repr__(self) -> str:
        """Return a text without secrets."""
        hidden = {"headers", "credentials", "proxy_auth"}
        names = (name for name in self.__struct_fields__ if name not in hidden)
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"Network({values})"


class SecretNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of secrets in the configuration file.

    Attributes:
        auth: The table ``[auth.NAME]`` of the Source's secret; empty for none.
        proxy_auth: The table of the proxy's user and password; empty for none.
    """

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
