"""The one check of the arguments of public calls, by their annotations.

A word that is none of a ``Literal``, a number outside of its limits and a value of another type are
refused at the call, before anything is read or written.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache, wraps
from types import FunctionType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec

from resourcesync.errors import ConfigurationError

_LIMITS: Final = (
    ("ge", "at least", operator.ge),
    ("gt", "above", operator.gt),
    ("le", "at most", operator.le),
)
P = ParamSpec("P")
R = TypeVar("R")
_Form = tuple[tuple[Any, ...], str]
"""What an argument may be: types, words and limits, and all of them as a phrase."""

_PHRASES: Final = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a string",
    datetime: "a datetime",
    NoneType: "None",
}
"""The types that are checked; an argument that may be of another one is left to the call."""


def check_arguments(call: Callable[P, R]) -> Callable[P, R]:
    """Let a public call refuse an argument that is not what its annotation says.

    It raises `ConfigurationError` at the call, also where that returns an iterator.
    """
    forms = _forms(call.__annotations__)
    names = cast("FunctionType", call).__code__.co_varnames

    @wraps(call)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        _check(forms, {**dict(zip(names, args, strict=False)), **kwargs})
        return call(*args, **kwargs)

    return checked


def check_fields(value: msgspec.Struct) -> None:
    """Refuse a value with a field that is not what its annotation says.

    Raises:
        ConfigurationError: It has one.
    """
    given = {name: getattr(value, name) for name in value.__struct_fields__}
    _check(_forms_of(type(value)), given)


@cache
def _forms_of(kind: type) -> dict[str, _Form]:
    return _forms(kind.__annotations__)


def _check(forms: Mapping[str, _Form], given: Mapping[str, object]) -> None:
    for name in forms.keys() & given.keys():
        members, phrase = forms[name]
        if not any(_is_one(given[name], member) for member in members):
            raise ConfigurationError(
                f"{name}={given[name]!r:.200} must be {phrase}", hint=f"use {phrase}"
            )


def _forms(annotations: Mapping[str, Any]) -> dict[str, _Form]:
    """Return what each argument may be, without those that may be of a type not checked here."""
    forms = {}
    for name, hint in annotations.items():
        members = tuple(_members(hint))
        if name != "return" and all(map(_phrase, members)):
            *most, last = map(_phrase, members)
            forms[name] = members, f"{', '.join(most)} or {last}" if most else last
    return forms


def _members(hint: Any) -> Iterator[Any]:
    """Yield what a value may be, each alone: the members of a union."""
    if get_origin(hint) in {Union, UnionType}:
        for member in get_args(hint):
            yield from _members(member)
    elif get_origin(hint) is Annotated and not isinstance(hint.__metadata__[0], msgspec.Meta):
        yield from _members(hint.__origin__)
    else:
        yield hint


def _is_one(value: object, member: Any) -> bool:
    if get_origin(member) is Literal:
        return value in get_args(member)
    kind, limits = _type_of(member)
    if kind not in {int, float}:
        return isinstance(value, kind)
    if isinstance(value, bool) or not isinstance(value, int | kind):
        return False
    return all(is_within(value, limit) for _, is_within, limit in limits)


def _phrase(member: Any) -> str:
    """Return what a value may be in words; empty if it is not checked."""
    if get_origin(member) is Literal:
        return f"one of {', '.join(get_args(member))}"
    kind, limits = _type_of(member)
    return _PHRASES.get(kind, "") + " and".join(f" {word} {limit}" for word, _, limit in limits)


def _type_of(member: Any) -> tuple[Any, list[tuple[str, Callable[[Any, Any], bool], Any]]]:
    """Return the type of a value, and the limits that ``msgspec.Meta`` gives a number."""
    if get_origin(member) is not Annotated:
        return member, []
    (meta,) = member.__metadata__
    limits = [(word, is_within, getattr(meta, name)) for name, word, is_within in _LIMITS]
    return member.__origin__, [limit for limit in limits if limit[2] is not None]
