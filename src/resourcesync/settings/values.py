"""The forms of values: durations, sizes, rates, times, limits, addresses.

They are the same on every command line, in the configuration file and in the library
(``90s``, ``10k``, ``5/s``, ``-7d``, ``10%``).
"""

import re
from datetime import datetime, timedelta
from enum import EnumType
from ipaddress import ip_network
from typing import Any, Final, get_args

from resourcesync.errors import ConfigurationError
from resourcesync.model.settings import Limit

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhdw])")
_BYTES: Final = {
    letter + suffix: base**power
    for power, letter in enumerate(("", "k", "m", "g", "t"))
    for suffix, base in (("", 1000), ("b", 1000), ("ib", 1024))
    if letter or suffix != "ib"
}
_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([kmgt]?(?:i?b)?)", re.IGNORECASE)
_RATE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(?:/([smh]))?")
_LIMIT: Final = re.compile(r"([0-9]{1,12})|([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")
_PROXY: Final = re.compile(
    r"direct|(?:https?|socks5h)://(?:[0-9A-Za-z][0-9A-Za-z._-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])"
    r":[0-9]{1,5}/?"
)
_HIGHEST_PORT: Final = 65_535
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MAX_PERCENT: Final = 100
_PORTS: Final = 65_536


def convert_argument(name: str, value: object, kind: Any) -> Any:
    """Return an argument of a public call as what it must be: a word or a number."""
    import msgspec  # noqa: PLC0415 - help stays quick

    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        words = [*kind] if isinstance(kind, EnumType) else get_args(kind)
        form = (
            f"one of {', '.join(words)}"
            if words and all(isinstance(word, str) for word in words)
            else ""
        )
        raise ConfigurationError(
            f"{name}={value!r:.200} must be {form}" if form else f"{name}={value!r:.200}: {error}",
            hint=f"use {form}" if form else "",
        ) from error


def parse_duration(text: str) -> float:
    """Return the seconds that ``90s``, ``15m``, ``2h``, ``7d`` or ``1w`` means; ``0`` is none."""
    if text.strip() == "0":
        return 0.0
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise _value_error("duration", text, "write a number and a unit: 90s, 15m, 2h, 7d")
    return float(match[1]) * _SECONDS[match[2]]


def parse_whole(text: str) -> int:
    """Return a whole number."""
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise ValueError(text)
    return int(text)


def parse_size(text: str) -> int:
    """Return the bytes that ``10k``, ``5M``, ``2G`` (times 1000) or ``512KiB`` means."""
    match = _SIZE.fullmatch(text.strip())
    unit = "" if match is None else match[2].lower()
    if match is None or unit not in _BYTES:
        raise _value_error("size", text, "write a number and a unit: 500, 10k, 5M, 2G, 64KiB")
    return int(float(match[1]) * _BYTES[unit])


def parse_rate(text: str) -> float:
    """Return the requests per second that ``5``, ``5/s`` or ``30/m`` means."""
    match = _RATE.fullmatch(text.strip())
    rate = 0.0 if match is None else float(match[1]) / _SECONDS[match[2] or "s"]
    if rate <= 0:
        raise _value_error("rate", text, "write requests per second or minute: 5, 5/s, 30/m")
    return rate


def parse_moment(text: str) -> datetime | timedelta:
    """Return the moment of a W3C Datetime, or the time before now of ``-7d`` or ``yesterday``."""
    from resourcesync.model.timestamps import parse_w3c  # noqa: PLC0415 - help stays quick

    text = text.strip()
    if text == "yesterday":
        return timedelta(days=-1)
    try:
        if text.startswith("-"):
            return timedelta(seconds=-parse_duration(text[1:]))
        return parse_w3c(text)
    except (ConfigurationError, ValueError, OverflowError) as error:
        hint = "write 2026-11-20, 2026-11-20T11:04:09Z, yesterday or -7d"
        raise _value_error("time", text, hint) from error


def parse_limit(text: str) -> Limit:
    """Return the limit that ``250`` or ``10%`` means."""
    match = _LIMIT.fullmatch(text.strip())
    if match is not None and match[1] is not None:
        return Limit(number=int(match[1]))
    if match is None:
        raise _value_error("limit", text, "write a number or a share: 250, 10%")
    if float(match[2]) > _MAX_PERCENT:
        raise _value_error("share", text, "use at most 100%")
    return Limit(percent=float(match[2]))


def parse_header(text: str) -> tuple[str, str]:
    """Return the name and the value of a header field written as ``Name: value``."""
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    if not colon or _TOKEN.fullmatch(name) is None:
        raise ConfigurationError(
            "a header is written as 'Name: value'", hint="for example 'Accept-Language: cs'"
        )
    if not all(character.isprintable() or character == "\t" for character in value):
        raise ConfigurationError(f"the value of header {name} has control characters")
    return name, value


def parse_pair(text: str) -> tuple[str, str]:
    """Return the key and the value of what is written as ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError("it is written as KEY=VALUE")
    return key.strip(), value


def parse_proxy(text: str) -> str:
    """Return the address of a proxy; empty for ``direct``, which is none.

    No message has the text: there may be a password in it.
    """
    text = text.strip()
    if "@" in text:
        raise ConfigurationError(
            "the address of a proxy must not contain a user or a password",
            hint="name its user and password apart, as a secret of the type basic: "
            "-o proxy_auth=NAME (with a table [auth.NAME])",
        )
    port = text.rstrip("/").rpartition(":")[2]
    if _PROXY.fullmatch(text) is None or (text != "direct" and int(port) > _HIGHEST_PORT):
        raise ConfigurationError(
            "that is not the address of a proxy",
            hint="write http://HOST:PORT, https://HOST:PORT, socks5h://HOST:PORT or direct",
        )
    return "" if text == "direct" else text.rstrip("/")


def _value_error(what: str, text: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"{text[:64]!r} is not a {what}", hint=hint)


def parse_network(text: str) -> str:
    """Return an IP address, or a network such as ``10.0.0.0/8``, as it is written."""
    try:
        return str(ip_network(text))
    except ValueError:
        raise ConfigurationError(
            f"{text[:64]!r} is no address", hint="write an IP address, or a network: 10.0.0.0/8"
        ) from None


def parse_binding(text: str) -> tuple[str, int]:
    """Return host and port of ``127.0.0.1:8080``, ``[::1]:8080`` or ``:8080`` (this machine)."""
    scheme, _, rest = text.rpartition("://")
    host, colon, port = rest.rstrip("/" if scheme else "").rpartition(":")
    is_port = port.isascii() and port.isdigit()
    if scheme or not colon or not is_port or int(port) >= _PORTS:
        hint = "write HOST:PORT, or HOST:0"
        if scheme and is_port:
            hint = f"write {host}:{port}"
        elif is_port and int(port) >= _PORTS:
            hint = f"a port is a number from 0 to {_PORTS - 1}"
        raise ConfigurationError(f"{text[:64]!r} is not an address to listen on", hint=hint)
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)
