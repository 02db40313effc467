"""The selectors of an XML Patch that we follow: one node, by names, attributes and positions.

It is a part of what RFC 5261 §4.1 takes from XPath: a path from the root of element names or
``*``, each with ``[n]`` and ``[@name='value']``. At its end may stand ``@name``,
``namespace::prefix``, ``text()``, ``comment()`` or ``processing-instruction('target')``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from resourcesync.errors import PatchError

XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"
_NCNAME: Final = r"[^\W\d][\w.\-·]*"
_NAME: Final = rf"(?:{_NCNAME}:)?{_NCNAME}"
_STEP: Final = re.compile(
    rf"/?(?:@(?P<attribute>{_NAME})|namespace::(?P<prefix>{_NCNAME})"
    r"|(?P<text>text\(\s*\))|(?P<comment>comment\(\s*\))"
    rf"|(?P<instruction>processing-instruction\(\s*(?:'(?P<one>{_NCNAME})'|\"(?P<two>{_NCNAME})\")?"
    rf"\s*\))|(?P<name>{_NAME}|\*))"
)
_PREDICATE: Final = re.compile(
    rf"\[\s*(?:(?P<position>[1-9][0-9]{{0,8}})"
    rf"|@(?P<name>{_NAME})\s*=\s*(?:'(?P<one>[^']*)'|\"(?P<two>[^\"]*)\"))\s*\]"
)
_MAX_STEPS: Final = 100

Name = tuple[str, str]
"""Namespace and local name."""


class SelectorKind(Enum):
    """What a selector leads to."""

    ELEMENT = auto()
    ATTRIBUTE = auto()
    NAMESPACE = auto()
    TEXT = auto()
    COMMENT = auto()
    INSTRUCTION = auto()


VALUES: Final = frozenset({SelectorKind.ATTRIBUTE, SelectorKind.NAMESPACE})
"""What stands in a start tag."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """What a node must be besides: the n-th one, or one with an attribute of a value."""

    position: int = 0
    attribute: Name = ("", "")
    value: str = ""


@dataclass(frozen=True, slots=True)
class SelectorStep:
    """One element on the way; ``name`` is ``None`` for any."""

    name: Name | None
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """The way to one node.

    Attributes:
        steps: The elements on the way, the root first.
        kind: What it leads to.
        name: Of an attribute; for a namespace its prefix, for an instruction its target, as the
            local name. An instruction without one may have any target.
        position: Which of the texts, comments or instructions, from 1; 0 for the only one.
    """

    steps: tuple[SelectorStep, ...]
    kind: SelectorKind = SelectorKind.ELEMENT
    name: Name = ("", "")
    position: int = 0


def parse_selector(text: str, scope: Mapping[str, str]) -> Selector:
    """Understand a selector.

    Args:
        text: As it is written.
        scope: Namespaces by prefix where it is written; the empty prefix is the default one.

    Raises:
        PatchError: It is none, or one that we do not follow.
    """
    steps: list[SelectorStep] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        slash = text.startswith("/", at)
        if found is None or (at > 0 and not slash) or len(steps) >= _MAX_STEPS:
            break
        predicates, at = _predicates(text, found.end(), scope)
        if not found["name"]:
            return _ending(text[at:], tuple(steps), found, predicates, scope)
        name = None if found["name"] == "*" else _expanded(found["name"], scope, is_element=True)
        steps.append(SelectorStep(name, predicates))
    if at < len(text) or not steps:
        raise _unknown(text)
    return Selector(steps=tuple(steps))


def _ending(
    rest: str,
    steps: tuple[SelectorStep, ...],
    found: re.Match[str],
    predicates: tuple[Predicate, ...],
    scope: Mapping[str, str],
) -> Selector:
    """Return a selector that ends with what is no element."""
    kind, name = _kind(found, scope)
    is_outside = not steps and kind not in (SelectorKind.COMMENT, SelectorKind.INSTRUCTION)
    if rest or is_outside or len(predicates) > (kind not in VALUES):
        raise _unknown(found.string)
    if predicates and not predicates[0].position:
        raise _unknown(found.string)
    position = predicates[0].position if predicates else 0
    return Selector(steps=steps, kind=kind, name=name, position=position)


def _kind(found: re.Match[str], scope: Mapping[str, str]) -> tuple[SelectorKind, Name]:
    if found["attribute"]:
        return SelectorKind.ATTRIBUTE, expanded_attribute(found["attribute"], scope)
    if found["prefix"]:
        return SelectorKind.NAMESPACE, ("", found["prefix"])
    if found["instruction"]:
        return SelectorKind.INSTRUCTION, ("", found["one"] or found["two"] or "")
    return (SelectorKind.TEXT if found["text"] else SelectorKind.COMMENT), ("", "")


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
            attribute = expanded_attribute(found["name"], scope)
            predicates.append(Predicate(attribute=attribute, value=value))
    return tuple(predicates), at


def _expanded(name: str, scope: Mapping[str, str], *, is_element: bool) -> Name:
    prefix, _, local = name.rpartition(":")
    if not prefix:
        return (scope.get("", "") if is_element else ""), local
    if prefix == "xml":
        return XML_NAMESPACE, local
    if prefix not in scope:
        raise PatchError(f"the prefix {prefix!r} is bound to no namespace in the patch")
    return scope[prefix], local


def _unknown(text: str) -> PatchError:
    return PatchError(f"the selector {text[:200]!r} is none that we follow")
