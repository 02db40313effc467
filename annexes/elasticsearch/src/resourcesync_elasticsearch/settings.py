"""Options of an index: its address, and the seed's parameters by their names."""

import hashlib
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.errors import ConfigurationError
from resourcesync.ports.accounts import AccountOptions
from resourcesync_elasticsearch.client import ServerSettings

DEFAULT_PORT: Final = 9200
WINDOW: Final = 30.0
"""Seconds in which a change may become visible after a later one."""
_LONGEST_WINDOW: Final = 86_400.0
_INDEX: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")
_PLAIN: Final = re.compile(r"[!-~]*")
_SECRET: Final = re.compile(r"[!-~]+")
_KNOWN: Final = frozenset(
    {"resource_set", "resource_root_dir", "url_prefix", "window", "user", "password", "api_key",
     "ca_file"}
)  # fmt: skip


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The index to read, and the mapping of its locations to URIs.

    Attributes:
        index: The prefix of the names of the two indices.
        resource_set: The one set to read; empty for all.
        resource_root_dir: The folder that ``abs_path`` is relative to; no slash at its end.
        url_prefix: The base of relative locations, with a slash at its end.
        window: Seconds in which a change may become visible after a later one.
    """

    server: ServerSettings
    index: str
    resource_set: str = ""
    resource_root_dir: str = ""
    url_prefix: str = ""
    window: float = WINDOW

    @property
    def fingerprint(self) -> str:
        """A text that differs if the same documents would mean other resources."""
        item = (self.resource_set, self.resource_root_dir, self.url_prefix)
        return hashlib.sha256("\n".join(item).encode()).hexdigest()[:16]


def parse_settings(options: AccountOptions) -> IndexSettings:
    """Return the settings of an address and its values."""
    values = options.values
    for name in values:
        if name not in _KNOWN:
            raise ConfigurationError(
                f"{name}=…: unknown parameter", hint=f"known: {', '.join(sorted(_KNOWN))}"
            )
    server, index = _parse_address(options.address, values)
    prefix = values.get("url_prefix", options.base_uri)
    return IndexSettings(
        server=server,
        index=index,
        resource_set=values.get("resource_set", ""),
        resource_root_dir=_root(values.get("resource_root_dir", "")),
        url_prefix=prefix if not prefix or prefix.endswith("/") else f"{prefix}/",
        window=_window(values.get("window")),
    )


def _parse_address(address: str, values: Mapping[str, str]) -> tuple[ServerSettings, str]:
    scheme, _, url = address.partition(":")
    example = f"write it as {scheme}:https://HOST:{DEFAULT_PORT}/INDEX"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigurationError(f"{scheme}: no address of a server", hint=example) from None
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(
            f"{scheme}: a secret in the address would be visible to all",
            hint="give the user and the password as options: "
            "--with user=NAME --with password=env:NAME",
        )
    if not _PLAIN.fullmatch(url):
        raise ConfigurationError(f"{address!r} has characters that no address has", hint=example)
    path, _, index = parts.path.rpartition("/")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ConfigurationError(f"{address} is no address of an index", hint=example)
    if not _INDEX.fullmatch(index):
        raise ConfigurationError(f"{index!r} is no name of one index", hint=example)
    _check_secrets(values)
    return (
        ServerSettings(
            scheme=parts.scheme,
            host=parts.hostname,
            port=DEFAULT_PORT if port is None else port,
            path=path,
            user=values.get("user", ""),
            password=values.get("password", ""),
            api_key=values.get("api_key", ""),
            ca_file=values.get("ca_file", ""),
        ),
        index,
    )


def _check_secrets(values: Mapping[str, str]) -> None:
    if bool(values.get("user")) != bool(values.get("password")):
        raise ConfigurationError("user and password are given together, or neither")
    if values.get("user") and values.get("api_key"):
        raise ConfigurationError("user and api_key exclude each other")
    if ":" in values.get("user", ""):
        raise ConfigurationError("the user has a colon (RFC 7617 §2)")
    if values.get("api_key") and not _SECRET.fullmatch(values["api_key"]):
        raise ConfigurationError("the api_key has a character that no key has")


def _root(text: str) -> str:
    root = text.replace("\\", "/").rstrip("/")
    if text and not (root.startswith("/") or root[1:2] == ":" or not root):
        raise ConfigurationError(f"resource_root_dir={text}: give it from the root")
    return root or ("/" if text else "")


def _window(text: str | None) -> float:
    try:
        seconds = WINDOW if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_WINDOW:
        raise ConfigurationError(f"window={text}: give seconds, 0 to {_LONGEST_WINDOW:g}")
    return seconds
