"""The table of rules, read from ``rules.toml`` beside this module."""

import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, Final

from resourcesync.validator.rule import (
    EVERY_PROFILE,
    RESOURCESYNC,
    CheckScope,
    Level,
    Rule,
    RuleProfile,
)

_PROFILES: Final = {
    "all": EVERY_PROFILE,
    "1.0": frozenset({RuleProfile.RS_1_0}),
    "sitemap": frozenset({RuleProfile.SITEMAP}),
    "1.1": frozenset({RuleProfile.RS_1_1}),
}


def _rule(row: dict[str, Any]) -> Rule:
    known: dict[str, Any] = {
        "level": Level(row.pop("level")),
        "checked": CheckScope(row.pop("checked", CheckScope.DOCUMENT)),
        "profiles": _PROFILES[row.pop("profiles")] if "profiles" in row else RESOURCESYNC,
    }
    return Rule(**row, **known)


def _load() -> dict[str, Rule]:
    text = resources.files(__package__).joinpath("rules.toml").read_text("utf-8")
    rules = [_rule(row) for row in tomllib.loads(text)["rule"]]
    return {rule.id: rule for rule in rules}


RULES: Final[Mapping[str, Rule]] = _load()
"""Every rule by its id, in the order of the table."""

BY_CODE: Final[Mapping[str, Rule]] = {rule.code: rule for rule in RULES.values()}
"""Every rule by its code."""

FAMILIES: Final[Mapping[str, str]] = {
    "RS1": "XML and sitemap",
    "RS2": "Metadata",
    "RS3": "Links and structure",
    "RS4": "Times",
    "RS5": "HTTP delivery",
    "RS6": "Fixity",
    "RS7": "Dumps and manifests",
    "RS8": "Notification",
    "RS9": "Advice",
}
"""Families of rules by the first digit of their codes."""

_FOLDED: Final = {
    **{rule.id.lower(): rule for rule in RULES.values()},
    **{rule.code.lower(): rule for rule in RULES.values()},
}


def find_rule(name: str) -> Rule | None:
    """Return the rule of this id or code, in any case, or ``None``."""
    return _FOLDED.get(name.strip().lower())


def selected(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> frozenset[str]:
    """Return the ids of the rules that are wanted.

    Args:
        select: Beginnings of codes or ids, such as ``RS4`` or ``CH05``; none means every rule.
        ignore: Beginnings of those to leave out.
    """
    wanted, unwanted = _beginnings(select) or ("",), _beginnings(ignore)
    return frozenset(
        rule.id
        for rule in RULES.values()
        if _begins(rule, wanted) and not (unwanted and _begins(rule, unwanted))
    )


def _beginnings(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in names if name.strip())


def _begins(rule: Rule, beginnings: tuple[str, ...]) -> bool:
    return rule.code.lower().startswith(beginnings) or rule.id.lower().startswith(beginnings)
