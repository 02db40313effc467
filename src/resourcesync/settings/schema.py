"""A schema of settings: a frozen struct whose fields say what they mean, and how they are written.

``Annotated[TYPE, Setting(…)]`` describes a field. A field without a ``Setting`` is a value that
only the program sets.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UnsetType

from resourcesync.errors import ConfigurationError
from resourcesync.settings.values import (
    FORMS,
    parse_binding,
    parse_duration,
    parse_header,
    parse_limit,
    parse_moment,
    parse_pair,
    parse_proxy,
    parse_rate,
    parse_size,
)

S = TypeVar("S", bound=msgspec.Struct)


class Section(Enum):
    """A section of a command's help and of the reference; they are shown in this order."""

    MAIN = "Options"
    SELECTION = "Selection"
    DELETION = "Deletion"
    VERIFICATION = "Verification"
    DOCUMENTS = "Documents"
    VERSIONS = "Versions"
    TRANSFER = "Transfer"
    STORAGE = "Storage"
    NETWORK = "Network"
    OUTPUT = "Output"


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """How a value is written.

    Attributes:
        name: Name of the form, such as ``duration``.
        parse: Turns text into the value; raises ``ConfigurationError``.
        pattern: Regular expression of the text, for other programs; empty for any text.
        numbers: The types of numbers that are such a value, too.
        lowest, highest: The limits of a whole number.
    """

    name: str
    parse: Callable[[str], Any] = str
    pattern: str = ""
    numbers: tuple[type, ...] = (int,)
    lowest: int | None = None
    highest: int | None = None

    @property
    def is_whole(self) -> bool:
        """True for a whole number."""
        return self.lowest is not None


def _parse_whole(text: str) -> int:
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise ValueError(text)
    return int(text)


def _form(name: str, parse: Callable[[str], Any], numbers: tuple[type, ...] = (int,)) -> Form:
    return Form(name=name, parse=parse, pattern=FORMS[name], numbers=numbers)


def size_from(lowest: int, highest: int) -> Form:
    """Return the form of a size in bytes within limits."""

    def parse(text: str) -> int:
        size = parse_size(text)
        if not lowest <= size <= highest:
            raise ConfigurationError(f"it must be from {lowest:,} to {highest:,} bytes")
        return size

    return _form("size", parse)


def whole(lowest: int, highest: int) -> Form:
    """Return the form of a whole number within limits."""
    return Form(name="whole number", parse=_parse_whole, lowest=lowest, highest=highest)


TEXT: Final = Form(name="text")
FILE: Final = Form(name="file")
FOLDER: Final = Form(name="folder", parse=Path)
PLACE: Final = Form(name="folder or store")
DURATION: Final = _form("duration", parse_duration, (int, float))
SIZE: Final = _form("size", parse_size)
RATE: Final = _form("rate", parse_rate, (int, float))
MOMENT: Final = _form("time", parse_moment)
LIMIT: Final = _form("limit", parse_limit)
HEADER: Final = _form("header", parse_header)
PAIR: Final = _form("pair", parse_pair)
PROXY: Final = _form("proxy", parse_proxy)
BINDING: Final = _form("address", parse_binding)


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


class Setting(msgspec.Struct, frozen=True):
    """The description of one setting.

    Attributes:
        help: What it does, for a reader of the help or of the reference.
        section: Its section.
        form: How it is written; of choices and flags, and of each value of a list, the type tells.
        metavar: The name of its value in the help; by default the form's.
        key: Its name in the configuration file and as an option; by default the field's name.
        short: A short option, such as ``-j``.
        shown: The default as it is written; empty if there is nothing to show.
        is_clearable: True if an empty text removes a value that is stored.
        is_stored: True if a flag that is not given is as it was stored.
        in_file: True if it is a key of the configuration file.
        in_library: True if it is a keyword argument of the library.
        is_option: True if it is an option of its own on the command line; any other key is given
            as ``-o KEY=VALUE``.
    """

    help: str
    section: Section = Section.MAIN
    form: Form = TEXT
    metavar: str = ""
    key: str = ""
    short: str = ""
    shown: str = ""
    is_clearable: bool = False
    is_stored: bool = False
    in_file: bool = True
    in_library: bool = True
    is_option: bool = False


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a schema.

    Attributes:
        name: The field's name; the name of the keyword argument.
        key: Its name in the configuration file and as an option.
        setting: Its description.
        type: The type of its values, without the description.
        choices: All values, if it is a choice.
        is_flag: True if it is true or false.
        is_many: True if it has several values.
    """

    name: str
    key: str
    setting: Setting
    type: Any
    choices: tuple[str, ...] = ()
    is_flag: bool = False
    is_many: bool = False

    @property
    def form(self) -> Form:
        """How one value is written."""
        return self.setting.form

    @property
    def may_be_none(self) -> bool:
        """True if ``None`` is one of its values."""
        return NoneType in get_args(self.type)

    @property
    def nothing(self) -> Any:
        """The value that removes a stored one."""
        if self.is_many:
            return ()
        return None if self.may_be_none else ""

    def parse(self, text: str) -> Any:
        """Return one value from its text; an empty text stays if it removes a stored value.

        Raises:
            ConfigurationError: It is no such value. The message continues the setting's name.
        """
        if self.setting.is_clearable and not text:
            return text
        if self.choices and text not in self.choices:
            raise ConfigurationError(f"must be one of {', '.join(self.choices)}")
        form = self.form
        try:
            value = form.parse(text)
        except ConfigurationError as error:
            hint = f": {error.hint}" if error.hint else ""
            message = f"is wrong: {error.message}{hint}"
            raise ConfigurationError(message) from None
        except ValueError:
            raise ConfigurationError("must be a whole number") from None
        if form.lowest is not None and not form.lowest <= value <= (form.highest or value):
            raise ConfigurationError(f"must be from {form.lowest} to {form.highest}")
        return value


@cache
def fields_of(*schemas: type[msgspec.Struct]) -> Mapping[str, Field]:
    """Return the settings of some schemas by their keys, in the order of declaration."""
    return {field.key: field for schema in schemas for field in _fields(schema)}


def _fields(schema: type[msgspec.Struct]) -> Iterable[Field]:
    hints = get_type_hints(schema, include_extras=True)
    for name in schema.__struct_fields__:
        hint = hints[name]
        for setting in getattr(hint, "__metadata__", ()):
            if isinstance(setting, Setting):
                yield _field(name, get_args(hint)[0], setting)


def _field(name: str, hint: Any, setting: Setting) -> Field:
    is_union = get_origin(hint) in {Union, UnionType}
    members = get_args(hint) if is_union else (hint,)
    kinds = [member for member in members if member not in {NoneType, UnsetType}]
    is_many = get_args(kinds[0])[1:] == (...,)
    one = get_args(kinds[0])[0] if is_many else kinds[0]
    return Field(
        name=name,
        key=setting.key or name,
        setting=setting,
        type=hint,
        choices=get_args(one) if get_origin(one) is Literal else (),
        is_flag=kinds[0] is bool,
        is_many=is_many,
    )


def in_file(*schemas: type[msgspec.Struct]) -> dict[str, Field]:
    """Return those settings of some schemas that are keys of the configuration file."""
    return {key: field for key, field in fields_of(*schemas).items() if field.setting.in_file}


def make(schema: type[S], values: Mapping[str, Any]) -> S:
    """Return the settings with some values, by their keys; the others have their defaults.

    Args:
        schema: The schema.
        values: Values of the right types; ``None`` and ``()`` are none. Other keys are left out.
    """
    found = {}
    for key, field in fields_of(schema).items():
        value = values.get(key)
        if value not in (None, ()):
            found[field.name] = without_empty(field, value)
    return schema(**found)


def without_empty(field: Field, value: Any) -> Any:
    """Return a value without empty texts, which remove what is stored: no value, or no values."""
    if not field.setting.is_clearable:
        return value
    if field.is_many:
        return tuple(each for each in value if each != "")
    return field.nothing if value == "" else value


_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


def from_file(field: Field, written: object) -> Any:
    """Return a value that is written in the configuration file.

    Raises:
        ConfigurationError: It has the wrong type or form. The message continues the key's name.
    """
    if field.is_flag:
        return _typed(written, bool, "must be true or false")
    if not field.is_many:
        return _one_from_file(field, written)
    texts = _typed(written, list, "must be a list of strings")
    values = tuple(field.parse(_typed(text, str, "must be a list of strings")) for text in texts)
    if field.form is HEADER:
        for name, _ in values:
            if name.lower() in _SECRET_HEADERS:
                raise ConfigurationError(
                    f"must not contain {name}", hint="write a table [auth.NAME] with its place"
                )
    return values


def _one_from_file(field: Field, written: object) -> Any:
    if field.form.is_whole:
        return field.parse(str(_typed(written, int, "must be a whole number")))
    if field.form.pattern and type(written) in {int, float}:
        return field.parse(str(written))
    return field.parse(_typed(written, str, "must be a string"))


def _typed(value: object, kind: type, reason: str) -> Any:
    if type(value) is not kind:
        raise ConfigurationError(reason)
    return value


def from_variable(field: Field, text: str) -> Any:
    """Return a value from the text of a variable of the environment; a list has spaces in between.

    Raises:
        ConfigurationError: It has the wrong form. The message continues the variable's name.
    """
    if field.is_flag:
        return text.strip().lower() in {"1", "true", "yes", "on"}
    if field.is_many:
        return from_file(field, text.split())
    return field.parse(text)


def from_keywords(schema: type[msgspec.Struct], given: Mapping[str, object]) -> dict[str, Any]:
    """Return keyword arguments as values of the fields of a schema, by the fields' names.

    A value may also be written as on the command line: ``max_size="5M"``.

    Raises:
        ConfigurationError: A value has the wrong type or form.
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
    if field.form.is_whole or not field.form.pattern:
        return "a whole number" if field.form.is_whole else "a string"
    return f"a number, or text such as {_SAMPLES[field.form.name]!r}"


def _from_keyword(field: Field, value: object) -> Any:
    if value is None:
        if field.setting.is_clearable:
            return field.nothing
        if not field.may_be_none:
            raise ConfigurationError("must not be None")
        return None
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
        found = field.parse(text) if isinstance(text, str) else None
        if found is None:
            known = f"one of {', '.join(field.choices)}" if field.choices else "a string"
            raise ConfigurationError(f"must be {known}")
        return text
    if isinstance(value, str):
        return field.parse(value)
    if field.form is MOMENT:
        if not isinstance(value, datetime | timedelta):
            raise ConfigurationError("must be a datetime or a timedelta")
        return value
    if type(value) not in field.form.numbers or not isinstance(value, int | float):
        raise ConfigurationError(f"must be {_form_phrase(field)}")
    if not value >= 0:
        raise ConfigurationError("is negative")
    return float(value) if float in field.form.numbers else field.parse(str(value))
