"""The selectors of an XML Patch that we follow: one node, by names, attributes and positions.

It is a part of what RFC 5261 §4.1 takes from XPath: a path from the root of element names or
``*``, each with ``[n]`` and ``[@name='value']``, at its end ``@name`` or ``text()[n]``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from resourcesync.errors import PatchError

_NCNAME: Final = r"[^\W\d][\w.\-·]*"
_NAME: Final = rf"(?:{_NCNAME}:)?{_NCNAME}"
_STEP: Final = re.compile(rf"/?(?:(?P<attribute>@{_NAME})|(?P<text>text\(\))|(?P<name>{_NAME}|\*))")
_PREDICATE: Final = re.compile(
    rf"\[\s*(?:(?P<position>[1-9][0-9]{{0,8}})"
    rf"|@(?P<name>{_NAME})\s*=\s*(?:'(?P<one>[^']*)'|\"(?P<two>[^\"]*)\"))\s*\]"
)
_MAX_STEPS: Final = 100

Name = tuple[str, str]
"""Namespace and local name."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """What a node must be besides: the n-th one, or one with an attribute of a value."""

    position: int = 0
    attribute: Name = ("", "")
    value: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One element on the way; ``name`` is ``None`` for any."""

    name: Name | None
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """The way to one node.

    Attributes:
        steps: The elements on the way, the root first.
        attribute: The name of the attribute as it is written; empty when it is none.
        text: Which of the element's texts, from 1; 0 when it is none.
    """

    steps: tuple[Step, ...]
    attribute: str = ""
    text: int = 0


def parse_selector(text: str, scope: Mapping[str, str]) -> Selector:
    """Understand a selector.

    Args:
        text: As it is written.
        scope: Namespaces by prefix where it is written; the empty prefix is the default one.

    Raises:
        PatchError: It is none, or one that we do not follow.
    """
    steps: list[Step] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        slash = text.startswith("/", at)
        if found is None or (at > 0 and not slash) or len(steps) >= _MAX_STEPS:
            break
        at = found.end()
        if found["attribute"] and at == len(text) and steps:
            return Selector(steps=tuple(steps), attribute=found["attribute"][1:])
        predicates, at = _predicates(text, at, scope)
        if found["text"] and at == len(text) and steps:
            return Selector(steps=tuple(steps), text=_position(text, predicates))
        if not found["name"]:
            break
        name = None if found["name"] == "*" else _expanded(found["name"], scope, is_element=True)
        steps.append(Step(name, predicates))
    if at < len(text) or not steps:
        raise _unknown(text)
    return Selector(steps=tuple(steps))


def expanded_attribute(name: str, scope: Mapping[str, str]) -> Name:
    """Return an attribute's name with its namespace.

    Raises:
        PatchError: Its prefix is bound to none.
    """
    return _expanded(name, scope, is_element=False)


def _predicates(text: str, at: int, scope: Mapping[str, str]) -> tuple[tuple[Predicate, ...], int]:
    predicates = []
    while found := _PREDICATE.match(text, at):
        at = found.end()
        if found["position"]:
            predicates.append(Predicate(position=int(found["position"])))
        else:
            value = found["two"] if found["one"] is None else found["one"]
            attribute = _expanded(found["name"], scope, is_element=False)
            predicates.append(Predicate(attribute=attribute, value=value))
    return tuple(predicates), at


def _position(text: str, predicates: tuple[Predicate, ...]) -> int:
    if not predicates:
        return 1
    if len(predicates) > 1 or not predicates[0].position:
        raise _unknown(text)
    return predicates[0].position


def _expanded(name: str, scope: Mapping[str, str], *, is_element: bool) -> Name:
    prefix, _, local = name.rpartition(":")
    if not prefix:
        return (scope.get("", "") if is_element else ""), local
    if prefix not in scope:
        raise PatchError(f"the prefix {prefix!r} of a selector is bound to no namespace")
    return scope[prefix], local


def _unknown(text: str) -> PatchError:
    return PatchError(f"the selector {text[:200]!r} is none that we follow")
