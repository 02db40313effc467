"""Access to other systems (accounts): their plug-ins, their options, and their setup."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.app import plugins
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import ConfigurationError, damaged_note_error
from resourcesync.ports.accounts import AccountOptions, ResourceAccount
from resourcesync.settings import environment
from resourcesync.settings.publication import INPUT_NOTE, decode_settings
from resourcesync.source.account_follower import VALUES_NOTE

_URL_NOTE: Final = "account.url"
_INITIAL_VALUES_NOTE: Final = "account.first-values"
_MAX_BYTES: Final = 64 * 1024
# Text after a user's colon is not a port; a password may contain an unescaped slash.
_DATABASES: Final = frozenset({"postgresql", "postgres"})
_SECRET: Final = re.compile(r"pass|secret|token|api_?key|credential", re.IGNORECASE)
_USER: Final = re.compile(r"[^/?#]*//[^/?#@\[]*:(?![0-9]*(?:[/?#,]|$)).*@", re.DOTALL)
_PARAMETER: Final = re.compile(r"(?:^|[?&\s:])(?:ssl)?password\s*=", re.IGNORECASE)


def check_account_address(address: str) -> None:
    """Refuse an address with a secret in it, before anything is reported or stored of it."""
    if _USER.match(address) or _PARAMETER.search(address):
        scheme = address.partition(":")[0]
        hint = (
            "give the user and the password as options: --with user=NAME --with password=env:NAME,"
            " or --auth NAME (over http)"
        )
        if scheme in _DATABASES:  # libpq has the user in its address
            hint = (
                f"write {scheme}://HOST/DATABASE?user=NAME, and the password as an option:"
                " --with password=env:NAME"
            )
        raise ConfigurationError(
            f"{scheme}: an address must not contain a secret: it is shown and stored",
            hint=hint,
        )


def resolve_values(given: Mapping[str, str]) -> dict[str, str]:
    """Return values with the content that ``env:NAME`` and ``file:PATH`` refer to."""
    return {key: _resolve_value(key, value) for key, value in given.items()}


def _resolve_value(key: str, value: str) -> str:
    kind, colon, place = value.partition(":")
    if not colon or kind not in {"env", "file"}:
        return value
    found = environment.variable(place) if kind == "env" else _read_value_file(key, place)
    if not found:
        raise ConfigurationError(f"{key}={value}: it is not set or empty")
    return found


def _read_value_file(key: str, place: str) -> str:
    try:
        with Path(place).expanduser().open("rb") as stream:
            return stream.read(_MAX_BYTES).decode().strip()
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"{key}=file:{place} cannot be read: {reason}") from None


def encode_values(values: Mapping[str, str]) -> str:
    """Return values as text to store: a secret only by its place."""
    stored = {
        key: value
        for key, value in values.items()
        if not _SECRET.search(key) or value.startswith(("env:", "file:"))
    }
    return msgspec.json.encode(stored, order="sorted").decode()


def initial_notes(url: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the notes of the first values, before anything is published."""
    return {_URL_NOTE: url, _INITIAL_VALUES_NOTE: encode_values(values)}


def read_values(catalogue: SourceCatalogue) -> tuple[str, dict[str, str]]:
    """Return a catalogue's stored values: the Source's address, empty for none, and its options."""
    text = catalogue.note(VALUES_NOTE) or catalogue.note(_INITIAL_VALUES_NOTE) or "{}"
    try:
        values = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise damaged_note_error("options", error) from error
    url = decode_settings(catalogue.note(INPUT_NOTE)).url
    return url or catalogue.note(_URL_NOTE) or "", values


@contextmanager
def open_account(options: AccountOptions) -> Iterator[ResourceAccount]:
    """Open an account."""
    scheme = options.address.partition(":")[0]
    with plugins.open_plugin(plugins.ACCOUNTS, scheme, options) as account:
        yield account


def setup_systems() -> tuple[str, ...]:
    """Return the systems that have to be set up, and can say how."""
    return plugins.names(plugins.SETUPS)


def setup_text(system: str, values: Mapping[str, str]) -> str:
    """Return what an operator runs once in a system, for the options of an account there."""
    text: str = plugins.load(plugins.SETUPS, system)(values)
    return text
