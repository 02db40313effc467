"""The settings in the environment of the process; nothing else reads it."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from resourcesync.errors import ConfigurationError

PREFIX: Final = "RESOURCESYNC"
"""Each option has an environment variable ``RESOURCESYNC_<COMMAND>_<OPTION>``."""

_HEAD, _JSON = f"{PREFIX}_", "_JSON"
_PORT: Final = re.compile(r":[0-9]{1,5}\Z")
_PROXY_PORTS: Final = {"http": 80, "https": 443, "socks5h": 1080}

_FALSE: Final = frozenset({"", "0", "false", "f", "no", "n", "off"})


class Environment(NamedTuple):
    """The settings of the command line in the environment."""

    debug: bool = False
    color: bool | None = None
    """``None`` when the terminal decides."""
    live: bool = True
    """True if a terminal could redraw a line (``TERM`` is not ``dumb``)."""
    json: frozenset[str] = frozenset()
    """Commands for which ``RESOURCESYNC_<COMMAND>_JSON`` is on, in lower case."""


def read_environment() -> Environment:
    """Return the settings in the process's environment."""
    found = os.environ  # noqa: TID251 - this is the reader
    dumb = found.get("TERM", "") == "dumb"
    color: bool | None = None
    if found.get("NO_COLOR") or dumb:
        color = False
    elif _is_on(found.get("FORCE_COLOR", "")):
        color = True
    return Environment(
        debug=_is_on(found.get(f"{PREFIX}_DEBUG", "")),
        color=color,
        live=not dumb,
        json=frozenset(
            name[len(_HEAD) : -len(_JSON)].lower()
            for name, value in found.items()
            if name.startswith(_HEAD) and name.endswith(_JSON) and _is_on(value)
        ),
    )


def read_service() -> tuple[str, float]:
    """Return the address of the service manager that began this (``sd_notify``); else nothing.

    The second value is the seconds within which it expects a message; 0 for none.
    """
    span, process = variable("WATCHDOG_USEC"), variable("WATCHDOG_PID")
    is_ours = process in {"", str(os.getpid())}
    watchdog = int(span) / 1e6 if is_ours and span.isascii() and span.isdigit() else 0.0
    return variable("NOTIFY_SOCKET"), watchdog


def _is_on(value: str) -> bool:
    return value.strip().lower() not in _FALSE


def ca_file() -> str:
    """Return the file of trusted authorities that ``SSL_CERT_FILE`` names; empty for none."""
    return variable("SSL_CERT_FILE")


class ProxyVariable(NamedTuple):
    """A proxy that a variable of the environment names, with its user and password."""

    variable: str
    proxy: str
    secret: tuple[str, str] | None = None

    def __repr__(self) -> str:
        return f"ProxyVariable({self.variable})"


class ProxyEnvironment(NamedTuple):
    """The proxies of the environment, for each scheme, and the entries of ``NO_PROXY``."""

    http: ProxyVariable | None = None
    https: ProxyVariable | None = None
    bypass: tuple[str, ...] = ()


def read_proxies(environ: Mapping[str, str] | None = None) -> ProxyEnvironment:
    """Return the proxies of the environment; a name in lower case comes before its capitals.

    ``HTTP_PROXY`` in capitals does not count in a CGI program, whose clients can set it.
    """
    found = os.environ if environ is None else environ  # noqa: TID251 - this is the reader

    def first(*names: str) -> ProxyVariable | None:
        for name in names:
            if found.get(name) and not (name == "HTTP_PROXY" and "REQUEST_METHOD" in found):
                return _proxy_of_variable(name, found[name])
        return None

    bypass = found.get("no_proxy") or found.get("NO_PROXY") or ""
    return ProxyEnvironment(
        http=first("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"),
        https=first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
        bypass=tuple(bypass.replace(",", " ").split()),
    )


def _proxy_of_variable(name: str, value: str) -> ProxyVariable:
    from resourcesync.settings.schema import parse_proxy  # noqa: PLC0415 - most have no proxy

    scheme, mark, rest = value.strip().rpartition("://")
    scheme = scheme.lower() if mark else "http"
    scheme = {"socks5": "socks5h", "socks": "socks5h"}.get(scheme, scheme)
    user, at, place = rest.rstrip("/").rpartition("@")
    if not _PORT.search(place):
        place = f"{place}:{_PROXY_PORTS.get(scheme, 80)}"
    try:
        proxy = parse_proxy(f"{scheme}://{place}")
    except ConfigurationError as error:
        raise ConfigurationError(
            f"the variable {name} is not the address of a proxy",
            hint=f'correct or unset {name}, or ignore it by `proxy = "direct"`: -o proxy=direct',
        ) from error
    if not at:
        return ProxyVariable(name, proxy)
    login, _, password = user.partition(":")
    return ProxyVariable(name, proxy, (unquote(login), unquote(password)))


def variable(name: str, environ: Mapping[str, str] | None = None) -> str:
    """Return one variable of the environment; empty when it is not set."""
    found = os.environ if environ is None else environ  # noqa: TID251 - this is the reader
    return found.get(name, "")


def user_name() -> str:
    """Return the name of the user who runs this; ``resourcesync`` when that is root or unknown."""
    import getpass  # noqa: PLC0415 - rarely needed

    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        return "resourcesync"
    return "resourcesync" if name == "root" else name


def state_folder() -> Path:
    """Return the folder for files that outlive a run and belong to no mirror: crash reports."""
    return _user_folder("XDG_STATE_HOME", ".local/state")


def configuration_folder() -> Path:
    """Return the folder of this user's configuration file."""
    return _user_folder("XDG_CONFIG_HOME", ".config")


def _user_folder(variable: str, usual: str) -> Path:
    named = os.environ.get(variable, "").strip()  # noqa: TID251 - this is the reader
    folder = "Library/Application Support" if sys.platform == "darwin" else usual
    # A user without a home is no error: there is no such folder.
    return Path(named or os.path.expanduser(f"~/{folder}"), "resourcesync")  # noqa: PTH111
