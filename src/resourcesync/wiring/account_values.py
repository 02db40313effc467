"""What adapters are told by ``--with KEY=VALUE``: values, and where to find them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from resourcesync import config
from resourcesync.adapters.catalogue import PostedCatalogue
from resourcesync.errors import ConfigurationError, StateError
from resourcesync.wiring import catalogues, publishing

VALUES_NOTE: Final = "account.values"
"""The note of the values that were given the last time."""
_URL_NOTE: Final = "account.url"
_INITIAL_VALUES_NOTE: Final = "account.first-values"
_MAX_BYTES: Final = 64 * 1024
# What stands behind a user's colon is no port; a password may have a slash that is not escaped.
_DATABASES: Final = frozenset({"postgresql", "postgres"})
_SECRET: Final = re.compile(r"pass|secret|token|api_?key|credential", re.IGNORECASE)
_USER: Final = re.compile(r"[^/?#]*//[^/?#@\[]*:(?![0-9]*(?:[/?#,]|$)).*@", re.DOTALL)
_PARAMETER: Final = re.compile(r"(?:^|[?&\s:])(?:ssl)?password\s*=", re.IGNORECASE)


def check_account_address(address: str) -> None:
    """Refuse an address with a secret in it, before anything is told or noted of it.

    Raises:
        ConfigurationError: It has one. The message has neither.
    """
    if _USER.match(address) or _PARAMETER.search(address):
        scheme = address.partition(":")[0]
        user = "--with user=NAME"
        if scheme in _DATABASES:  # libpq has the user in its address
            user = f"{scheme}://HOST/DATABASE?user=NAME"
        raise ConfigurationError(
            f"{scheme}: a secret is never in an address: it would be seen by all",
            hint=f"{user} --with password=env:NAME; over http: --auth NAME",
        )


def resolve_values(given: Mapping[str, str]) -> dict[str, str]:
    """Return values with what ``env:NAME`` and ``file:PATH`` point to.

    Raises:
        ConfigurationError: There is nothing. The message never has the secret.
    """
    return {key: _resolve_value(key, value) for key, value in given.items()}


def _resolve_value(key: str, value: str) -> str:
    kind, colon, place = value.partition(":")
    if not colon or kind not in {"env", "file"}:
        return value
    found = config.variable(place) if kind == "env" else _read_value_file(key, place)
    if not found:
        raise ConfigurationError(f"--with {key}={value}: there is nothing")
    return found


def _read_value_file(key: str, place: str) -> str:
    try:
        with Path(place).expanduser().open("rb") as stream:
            return stream.read(_MAX_BYTES).decode().strip()
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise ConfigurationError(f"--with {key}=file:{place} cannot be read: {reason}") from None


def encode_values(values: Mapping[str, str]) -> str:
    """Return what may be remembered of values, as text: a secret only by where it is."""
    kept = {
        key: value
        for key, value in values.items()
        if not _SECRET.search(key) or value.startswith(("env:", "file:"))
    }
    return msgspec.json.encode(kept, order="sorted").decode()


def initial_notes(url: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the notes of what was given the first time, before anything is published."""
    return {_URL_NOTE: url, _INITIAL_VALUES_NOTE: encode_values(values)}


def read_values(catalogue: PostedCatalogue) -> tuple[str, dict[str, str]]:
    """Return what a catalogue remembers: the Source's address, empty for none, and the values.

    Raises:
        StateError: The catalogue is damaged.
    """
    text = catalogue.note(VALUES_NOTE) or catalogue.note(_INITIAL_VALUES_NOTE) or "{}"
    try:
        values = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise StateError("the values of --with in the catalogue are damaged") from error
    url = publishing.decode_settings(catalogue.note(catalogues.SETTINGS_NOTE)).url
    return url or catalogue.note(_URL_NOTE) or "", values
