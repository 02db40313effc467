"""Settings as they are written: by options, in the file, in variables, and as keyword arguments.

The forms of values are the same in all of them: durations, sizes, rates, times, limits, addresses
(``90s``, ``10k``, ``5/s``, ``-7d``, ``10%``).
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import EnumType
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UnsetType, structs

from resourcesync.errors import ConfigurationError
from resourcesync.model import settings

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


def convert_argument(name: str, value: object, kind: Any) -> Any:
    """Return an argument of a public call as what it must be: a word or a number."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        words, given = ", ".join(_choices(kind)), f"{name}={value!r:.200}"
        raise ConfigurationError(
            f"{given} must be one of {words}" if words else f"{given}: {error}",
            hint=f"use one of {words}" if words else "",
        ) from error


def check_values(values: msgspec.Struct) -> None:
    """Refuse a value that is not of its field's type, or beyond its limits; none is shown."""
    fields = {field.name: field for field in fields_of(type(values)).values()}
    for name, _, kind, *_ in map(structs.astuple, structs.fields(values)):
        value = getattr(values, name)
        try:
            if name in fields and (fields[name].choices or isinstance(value, int | float)):
                _one_from_keyword(fields[name], value)
            msgspec.convert(os.fspath(value) if isinstance(value, os.PathLike) else value, kind)
        except (msgspec.ValidationError, ConfigurationError) as error:
            raise ConfigurationError(f"{name}: {error}") from None


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


def parse_limit(text: str) -> settings.Limit:
    """Return the limit that ``250`` or ``10%`` means."""
    match = _LIMIT.fullmatch(text.strip())
    if match is not None and match[1] is not None:
        return settings.Limit(number=int(match[1]))
    if match is None:
        raise _value_error("limit", text, "write a number or a share: 250, 10%")
    if float(match[2]) > _MAX_PERCENT:
        raise _value_error("share", text, "use at most 100%")
    return settings.Limit(percent=float(match[2]))


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
    if scheme or not colon or not is_port or int(port) > _HIGHEST_PORT:
        hint = "write HOST:PORT, or HOST:0"
        if scheme and is_port:
            hint = f"write {host}:{port}"
        elif is_port and int(port) > _HIGHEST_PORT:
            hint = f"a port is a number from 0 to {_HIGHEST_PORT}"
        raise ConfigurationError(f"{text[:64]!r} is not an address to listen on", hint=hint)
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


S = TypeVar("S", bound=msgspec.Struct)

_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "folder": Path,
    "duration": parse_duration,
    "size": parse_size,
    "rate": parse_rate,
    "time": parse_moment,
    "limit": parse_limit,
    "header": parse_header,
    "pair": parse_pair,
    "proxy": parse_proxy,
    "address": parse_binding,
    "whole number": parse_whole,
}
_SAMPLES: Final = {
    "duration": "90s",
    "size": "5M",
    "rate": "5/s",
    "limit": "10%",
    "time": "-7d",
    "proxy": "http://proxy.example:3128",
    "header": "Name: value",
    "pair": "KEY=VALUE",
    "address": "127.0.0.1:8080",
}
"""An example of each form with a syntax of its own."""
_FRACTIONS: Final = frozenset({"duration", "rate"})
_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


class Field(NamedTuple):
    """One setting of a schema."""

    name: str
    key: str
    setting: settings.Setting
    choices: tuple[str, ...]
    kind: Callable[[str], Any]
    """Makes a value of the text of a choice."""
    is_flag: bool
    is_many: bool
    may_be_none: bool

    @property
    def form(self) -> settings.Form:
        """How one value is written."""
        return self.setting.form

    @property
    def has_syntax(self) -> bool:
        """True if a value has a syntax of its own, such as a duration."""
        return self.form.name in _SAMPLES

    @property
    def is_whole(self) -> bool:
        """True if a value is a whole number."""
        return self.form.name == "whole number"

    @property
    def nothing(self) -> Any:
        """The value that removes a stored one."""
        return () if self.is_many else None if self.may_be_none else ""

    def read(self, text: str) -> Any:
        """Return one value from its text; an empty text stays if it removes a stored value."""
        if self.setting.is_clearable and not text:
            return text
        return _PARSERS.get(self.form.name, self.kind)(text)

    def parse(self, text: str) -> Any:
        """Return one value from its text, within its limits and choices."""
        if self.choices and text and text not in self.choices:
            raise ConfigurationError(f"must be one of {', '.join(self.choices)}")
        try:
            value = self.read(text)
        except ConfigurationError as error:
            hint = f": {error.hint}" if error.hint else ""
            raise ConfigurationError(f"is wrong: {error.message}{hint}") from None
        except ValueError:
            raise ConfigurationError("must be a whole number") from None
        _, lowest, highest = self.form
        if lowest is not None and value != "" and not lowest <= value <= (highest or value):
            raise ConfigurationError(f"must be from {lowest} to {highest}")
        return value


@cache
def fields_of(*schemas: type[msgspec.Struct]) -> Mapping[str, Field]:
    """Return the settings of some schemas by their keys, in the order of declaration."""
    return {field.key: field for schema in schemas for field in _fields(schema)}


def _fields(schema: type[msgspec.Struct]) -> Iterable[Field]:
    hints: dict[str, Any] = {}
    for base in reversed(schema.__mro__):  # a text is a type without a description
        hints |= getattr(base, "__annotations__", {})
    for name in schema.__struct_fields__:
        for setting in getattr(hints[name], "__metadata__", ()):
            if isinstance(setting, settings.Setting):
                yield _field(name, get_args(hints[name])[0], setting)


def _field(name: str, hint: Any, setting: settings.Setting) -> Field:
    members = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    kind = next(member for member in members if member not in {NoneType, UnsetType})
    is_many = get_args(kind)[1:] == (...,)
    one = get_args(kind)[0] if is_many else kind
    return Field(
        name=name,
        key=setting.key or name,
        setting=setting,
        choices=tuple(map(str, setting.choices)) or _choices(one),
        kind=one if isinstance(one, EnumType) else str,
        is_flag=kind is bool,
        is_many=is_many,
        may_be_none=NoneType in members,
    )


def _choices(kind: Any) -> tuple[str, ...]:
    if isinstance(kind, EnumType):
        return tuple(map(str, kind))
    return get_args(kind) if get_origin(kind) is Literal else ()


def in_file(*schemas: type[msgspec.Struct]) -> dict[str, Field]:
    """Return those settings of some schemas that are keys of the configuration file."""
    return {key: field for key, field in fields_of(*schemas).items() if field.setting.in_file}


def make(schema: type[S], given: Mapping[str, Any]) -> S:
    """Return the settings with some values, by their keys; the others have their defaults."""
    found = {
        field.name: without_empty(field, given[key])
        for key, field in fields_of(schema).items()
        if given.get(key) not in (None, ())
    }
    return schema(**found)


def without_empty(field: Field, value: Any) -> Any:
    """Return a value without empty texts, which remove what is stored: no value, or no values."""
    if not field.setting.is_clearable:
        return value
    if field.is_many:
        return tuple(each for each in value if each != "")
    return field.nothing if value == "" else value


def from_file(field: Field, written: object) -> Any:
    """Return a value that is written in the configuration file."""
    if field.is_flag:
        return _typed(written, bool, "must be true or false")
    if field.is_many:
        texts = _typed(written, list, "must be a list of strings")
        found = tuple(field.parse(_typed(one, str, "must be a list of strings")) for one in texts)
        if field.form is settings.HEADER:
            for name, _ in found:
                if name.lower() in _SECRET_HEADERS:
                    raise ConfigurationError(
                        f"must not contain {name}", hint="write a table [auth.NAME] with its place"
                    )
        return found
    if field.is_whole:
        return field.parse(str(_typed(written, int, "must be a whole number")))
    if field.has_syntax and type(written) in {int, float}:
        return field.parse(str(written))
    return field.parse(_typed(written, str, "must be a string"))


def _typed(value: object, kind: type, reason: str) -> Any:
    if type(value) is not kind:
        raise ConfigurationError(reason)
    return value


def from_variable(field: Field, text: str) -> Any:
    """Return a value from the text of a variable of the environment; spaces separate several."""
    if field.is_flag:
        return text.strip().lower() in {"1", "true", "yes", "on"}
    if field.is_many:
        return from_file(field, text.split())
    return field.parse(text)


def from_keywords(schema: type[msgspec.Struct], given: Mapping[str, object]) -> dict[str, Any]:
    """Return keyword arguments as values of the fields of a schema, by the fields' names."""
    fields = {field.name: field for field in fields_of(schema).values()}
    found = {}
    for name, value in given.items():
        try:
            found[name] = _from_keyword(fields[name], value)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{name}={value!r} {error.message}",
                hint=error.hint or f"use {_form_phrase(fields[name])}",
            ) from None
    return found


def _form_phrase(field: Field) -> str:
    if field.is_flag:
        return "True or False"
    if field.choices:
        return f"one of {', '.join(field.choices)}"
    if field.has_syntax:
        return f"a number, or text such as {_SAMPLES[field.form.name]!r}"
    return "a whole number" if field.is_whole else "a string"


def _from_keyword(field: Field, value: Any) -> Any:
    if value == "" and field.setting.is_clearable:
        return field.nothing
    if field.is_flag:
        return _typed(value, bool, "must be true or false")
    if field.is_many:
        value = [None] if isinstance(value, str) or not isinstance(value, Iterable) else [*value]
        if not all(isinstance(text, str) for text in value):
            raise ConfigurationError("must be a list of strings", hint=f'{field.name}=["…"]')
        return without_empty(field, tuple(map(field.parse, value)))
    return _one_from_keyword(field, value)


def _one_from_keyword(field: Field, value: Any) -> Any:
    if field.choices or not (field.has_syntax or field.is_whole):
        text = os.fspath(value) if isinstance(value, os.PathLike) else value
        if not isinstance(text, str):
            raise ConfigurationError(f"must be {_form_phrase(field)}")
        return field.parse(text) if field.choices else os.fspath(field.parse(text))
    if isinstance(value, str):
        return field.parse(value)
    if field.form is settings.MOMENT:
        is_aware = isinstance(value, datetime) and value.tzinfo is not None
        if not is_aware and not isinstance(value, timedelta):
            wanted = "must be a timedelta, or a datetime with a time zone"
            raise ConfigurationError(wanted, hint=f"{field.name}=datetime(…, tzinfo=UTC)")
        return value
    is_fraction = field.form.name in _FRACTIONS
    if type(value) is not int and not (is_fraction and isinstance(value, float)):
        raise ConfigurationError(f"must be {_form_phrase(field)}")
    if not value >= 0:
        raise ConfigurationError("is negative")
    return float(value) if is_fraction else field.parse(str(value))
