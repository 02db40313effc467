"""Values of the configuration file, turned into what the options of commands take."""

from typing import Any, Final

import click

from resourcesync.cli import options
from resourcesync.errors import ConfigurationError

_SECRET_FIELDS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


def convert_setting(option: click.Option, written: object) -> Any:
    """Return a value as an option takes it; the message of an error goes on after the key.

    Raises:
        ConfigurationError: It is of another kind, or has not the option's form.
    """
    if option.is_flag:
        return _check_type(written, bool, "must be true or false")
    if option.multiple:
        texts = _check_type(written, list, "must be a list of texts")
        written = [_check_type(text, str, "must be a list of texts") for text in texts]
    elif isinstance(option.type, options.Parsed) and type(written) in {int, float}:
        written = str(written)
    elif isinstance(option.type, click.IntRange):
        _check_type(written, int, "must be a whole number")
    else:
        _check_type(written, str, "must be a text")
    try:
        value = option.type_cast_value(click.Context(click.Command("config")), written)
    except click.BadParameter as error:
        raise ConfigurationError(f"is wrong: {error.message.rstrip('.')}") from None
    if option.name == "header":
        _check_no_secret_header(value)
    return value


def _check_type(value: object, kind: type, reason: str) -> Any:
    if type(value) is not kind:
        raise ConfigurationError(reason)
    return value


def _check_no_secret_header(headers: tuple[tuple[str, str], ...]) -> None:
    for name, _ in headers:
        if name.lower() in _SECRET_FIELDS:
            raise ConfigurationError(
                f"must not hold {name}", hint="write a table [auth.NAME] that says where it is"
            )
