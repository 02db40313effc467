"""What adapters are told by ``--with KEY=VALUE``: values, and where to find them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from resourcesync import config
from resourcesync.errors import ConfigurationError

_MOST: Final = 64 * 1024
# What stands behind a user's colon is no port; a password may have a slash that is not escaped.
_USER: Final = re.compile(r"[^/?#]*//[^/?#@\[]*:(?![0-9]*(?:[/?#,]|$)).*@", re.DOTALL)
_PARAMETER: Final = re.compile(r"(?:^|[?&\s:])(?:ssl)?password\s*=", re.IGNORECASE)


def check_address(address: str) -> None:
    """Refuse an address with a secret in it, before anything is told or noted of it.

    Raises:
        ConfigurationError: It has one. The message has neither.
    """
    if _USER.match(address) or _PARAMETER.search(address):
        scheme = address.partition(":")[0]
        raise ConfigurationError(
            f"{scheme}: a secret is never in an address: it would be seen by all",
            hint="--with user=NAME --with password=env:NAME; over http: --auth NAME",
        )


def revealed(given: Mapping[str, str]) -> dict[str, str]:
    """Return values with what ``env:NAME`` and ``file:PATH`` point to.

    Raises:
        ConfigurationError: There is nothing. The message never has the secret.
    """
    return {key: _revealed(key, value) for key, value in given.items()}


def _revealed(key: str, value: str) -> str:
    kind, colon, place = value.partition(":")
    if not colon or kind not in {"env", "file"}:
        return value
    found = config.variable(place) if kind == "env" else _content(key, place)
    if not found:
        raise ConfigurationError(f"--with {key}={value}: there is nothing")
    return found


def _content(key: str, place: str) -> str:
    try:
        with Path(place).expanduser().open("rb") as stream:
            return stream.read(_MOST).decode().strip()
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise ConfigurationError(f"--with {key}=file:{place} cannot be read: {reason}") from None
