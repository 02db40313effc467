"""Settings as they are written: by options, in the file, in variables, and as keyword arguments."""

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import EnumType
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UnsetType

from resourcesync.errors import ConfigurationError
from resourcesync.model.settings import FILE, FOLDER, HEADER, MOMENT, PLACE, TEXT, Form, Setting
from resourcesync.settings import values

S = TypeVar("S", bound=msgspec.Struct)

_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "folder": Path,
    "duration": values.parse_duration,
    "size": values.parse_size,
    "rate": values.parse_rate,
    "time": values.parse_moment,
    "limit": values.parse_limit,
    "header": values.parse_header,
    "pair": values.parse_pair,
    "proxy": values.parse_proxy,
    "address": values.parse_binding,
    "whole number": values.parse_whole,
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
_WHOLE: Final = "whole number"
_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


class Field(NamedTuple):
    """One setting of a schema."""

    name: str
    key: str
    setting: Setting
    choices: tuple[str, ...]
    kind: Callable[[str], Any]
    """Makes a value of the text of a choice."""
    is_flag: bool
    is_many: bool
    may_be_none: bool

    @property
    def form(self) -> Form:
        """How one value is written."""
        return self.setting.form

    @property
    def has_syntax(self) -> bool:
        """True if a value has a syntax of its own, such as a duration."""
        return self.form.name in _SAMPLES

    @property
    def is_whole(self) -> bool:
        """True if a value is a whole number."""
        return self.form.name == _WHOLE

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
        hints |= vars(base).get("__annotations__", {})
    for name in schema.__struct_fields__:
        for setting in getattr(hints[name], "__metadata__", ()):
            if isinstance(setting, Setting):
                yield _field(name, get_args(hints[name])[0], setting)


def _field(name: str, hint: Any, setting: Setting) -> Field:
    is_union = get_origin(hint) in {Union, UnionType}
    members = get_args(hint) if is_union else (hint,)
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
        if field.form is HEADER:
            _refuse_secrets(found)
        return found
    if field.is_whole:
        return field.parse(str(_typed(written, int, "must be a whole number")))
    if field.has_syntax and type(written) in {int, float}:
        return field.parse(str(written))
    return field.parse(_typed(written, str, "must be a string"))


def _refuse_secrets(headers: Iterable[tuple[str, str]]) -> None:
    for name, _ in headers:
        if name.lower() in _SECRET_HEADERS:
            raise ConfigurationError(
                f"must not contain {name}", hint="write a table [auth.NAME] with its place"
            )


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
    """Return keyword arguments as values of the fields of a schema, by the fields' names.

    A value may also be written as on the command line: ``max_size="5M"``.
    """
    fields = {field.name: field for field in fields_of(schema).values()}
    found = {}
    for name, value in given.items():
        try:
            found[name] = _from_keyword(fields[name], value) if name in fields else value
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{name}={value!r} {error.message}",
                hint=error.hint or f"use {_form_phrase(fields[name])}",
            ) from None
    return found


def _form_phrase(field: Field) -> str:
    """Return the forms of the value of a keyword argument in words."""
    if field.is_flag:
        return "True or False"
    if field.choices:
        return f"one of {', '.join(field.choices)}"
    if field.has_syntax:
        return f"a number, or text such as {_SAMPLES[field.form.name]!r}"
    return "a whole number" if field.is_whole else "a string"


def _from_keyword(field: Field, value: object) -> Any:
    if value is None:
        if not field.may_be_none and not field.setting.is_clearable:
            raise ConfigurationError("must not be None")
        return field.nothing if field.setting.is_clearable else None
    if field.is_flag:
        return _typed(value, bool, "must be true or false")
    if field.is_many:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ConfigurationError("must be a list of strings", hint=f'{field.name}=["…"]')
        return without_empty(field, tuple(field.parse(str(each)) for each in value))
    return without_empty(field, _one_from_keyword(field, value))


def _one_from_keyword(field: Field, value: object) -> Any:
    if field.choices or field.form in {TEXT, FILE, FOLDER, PLACE}:
        text = os.fspath(value) if isinstance(value, os.PathLike) else value
        if not isinstance(text, str):
            known = f"one of {', '.join(field.choices)}" if field.choices else "a string"
            raise ConfigurationError(f"must be {known}")
        return field.parse(text) if field.choices else os.fspath(field.parse(text))
    if isinstance(value, str):
        return field.parse(value)
    if field.form is MOMENT:
        if not isinstance(value, datetime | timedelta):
            raise ConfigurationError("must be a datetime or a timedelta")
        return value
    is_fraction = field.form.name in _FRACTIONS and isinstance(value, float)
    if type(value) is not int and not is_fraction:
        raise ConfigurationError(f"must be {_form_phrase(field)}")
    assert isinstance(value, int | float)
    if not value >= 0:
        raise ConfigurationError("is negative")
    return float(value) if field.form.name in _FRACTIONS else field.parse(str(value))
