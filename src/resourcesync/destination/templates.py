"""The mapping of ``--map 'PATTERN => TEMPLATE'``: places by a rule that the operator writes. Pure.

The rule rewrites what stands after the base in a URI; our own mapping gives the result its place,
so it is safe on every file system, and no folder is where a file belongs. What the pattern does not
fit keeps its own place. Two URIs that would get one place are told by the way back: it leads to one
of them only, and the other is refused before anything is fetched.
"""

import re
from collections.abc import Mapping
from typing import Final

from resourcesync.destination.mapping import FileSystemProfile, TreeMapping
from resourcesync.destination.uris import MAX_URI, normalise
from resourcesync.errors import ConfigurationError, OutOfScopeError

ARROW: Final = "=>"
_FIELD: Final = re.compile(r"\{([a-z][a-z0-9_]*)(\*?)\}")
_LITERAL: Final = re.compile(r"[^{}\s?#]*")
_SEPARATOR: Final = re.compile(r"[/?]")
_MAX_FIELDS: Final = 20


def is_rule(mapper: str) -> bool:
    """Whether a mapper is a rule, and not the name of one."""
    return ARROW in mapper


def normalise_rule(text: str) -> str:
    """Return a rule as it is remembered, however its blanks are written."""
    pattern, _, template = text.partition(ARROW)
    return f"{pattern.strip().removeprefix('/')} {ARROW} {template.strip().removeprefix('/')}"


def _fields(part: str, text: str) -> list[str]:
    names = [match[1] for match in _FIELD.finditer(part)]
    if not part or len(text) > MAX_URI or len(names) > _MAX_FIELDS:
        raise _invalid_rule(
            text, f"a pattern and a template are needed, with at most {_MAX_FIELDS} names"
        )
    if len(set(names)) != len(names):
        raise _invalid_rule(text, "a name may stand only once on each side")
    if not all(_LITERAL.fullmatch(literal) for literal in _FIELD.split(part)[::3]):
        raise _invalid_rule(
            text, "it has a blank, ? or #, or braces with no name of small letters in them"
        )
    if "}{" in part:
        raise _invalid_rule(text, "something must stand between two names")
    return names


def _invalid_rule(text: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{text[:200]!r} is no rule for places: {why}",
        hint="write it as --map 'bitstream/{item}/{name} => {item}/{name}'",
        code="map",
    )


class TemplateMapping:
    """Gives every URI its place by a rule, and every place its URI.

    Args:
        rule: ``PATTERN => TEMPLATE``. In the pattern ``{name}`` stands for one or more characters
            but ``/`` and ``?``, ``{name*}`` for any, up to what follows it; the template has the
            same names, each once.
        base: The URI that the mirror's root stands for.
        profile: What the mirror's file system tells apart.

    Raises:
        ConfigurationError: It is no rule that can be undone, or no base.
    """

    def __init__(self, rule: str, base: str, profile: FileSystemProfile) -> None:
        self._rule = normalise_rule(rule)
        pattern, _, template = self._rule.partition(f" {ARROW} ")
        if sorted(_fields(pattern, rule)) != sorted(_fields(template, rule)):
            raise _invalid_rule(rule, "both sides must have the same names, each of them once")
        self._base = base
        self._tree = TreeMapping(base=base, profile=profile)
        wide = {match[1] for match in _FIELD.finditer(pattern) if match[2]}
        self._pattern = _RuleSide(pattern, wide)
        self._template = _RuleSide(template, wide)

    def path(self, uri: str) -> str:
        """Return the place of a URI.

        Raises:
            OutOfScopeError: It gets none, or another URI has it.
        """
        normal = normalise(uri)
        to = self._rewritten(normal)
        first = self._original_of(to)
        if first != normal:
            why = f"belongs to {first}" if first else "cannot be undone"
            raise OutOfScopeError(
                f"the place that the rule {self._rule!r} gives it {why}", uri=uri, code="mapper"
            )
        return self._tree.path(to)

    def uri(self, path: str) -> str | None:
        """Return the normalised URI whose place this is; ``None`` when there is none."""
        found = self._tree.uri(path)
        return None if found is None else self._original_of(found)

    def _original_of(self, to: str) -> str | None:
        """Return the one URI that becomes this one; what the pattern fits comes first."""
        before = self._template.rewrite(self._pattern, to, self._base)
        if before is not None and self._leads_to(before, to):
            return before
        return to if self._leads_to(to, to) else None

    def _leads_to(self, uri: str, to: str) -> bool:
        try:
            return normalise(uri) == uri and self._rewritten(uri) == to
        except OutOfScopeError:
            return False

    def _rewritten(self, uri: str) -> str:
        found = self._pattern.rewrite(self._template, uri, self._base)
        if found is not None and normalise(found) != found:
            raise OutOfScopeError(
                f"what the rule {self._rule!r} makes of it is no address", uri=uri, code="mapper"
            )
        return uri if found is None else found


class _RuleSide:
    """One side of a rule. A name ends where what follows it begins for the first time.

    So an address is looked at once, whatever the rule and whoever wrote the address.

    Args:
        text: It.
        wide: The names that stand for any characters.
    """

    def __init__(self, text: str, wide: set[str]) -> None:
        pieces = _FIELD.split(text)  # literal, name, star, literal, …
        self._begin, self._names = pieces[0], pieces[1::3]
        self._after = pieces[3::3]
        self._wide = wide

    def rewrite(self, other: "_RuleSide", uri: str, base: str) -> str | None:
        """Return a URI that fits this side as the other has it; ``None`` if it does not fit."""
        if not uri.startswith(base + self._begin):
            return None
        found = self._read(uri, len(base) + len(self._begin))
        return None if found is None else base + other.fill(found)

    def _read(self, text: str, at: int) -> dict[str, str] | None:
        if not self._names:
            return {} if at == len(text) else None
        found: dict[str, str] = {}
        last = len(self._names) - 1
        for number, (name, after) in enumerate(zip(self._names, self._after, strict=True)):
            is_last = number == last
            end = len(text) - len(after) if is_last else text.find(after, at + 1)
            value = text[at:end] if end > at and text.startswith(after, end) else ""
            if not value or (name not in self._wide and _SEPARATOR.search(value)):
                return None
            found[name] = value
            at = end + len(after)
        return found

    def fill(self, found: Mapping[str, str]) -> str:
        """Return this side with what the names stand for."""
        pairs = zip(self._names, self._after, strict=True)
        return self._begin + "".join(found[name] + after for name, after in pairs)
