"""Mapping by a rule, from URI to path and back.

A rule, ``PATTERN => TEMPLATE``, rewrites what follows the base in a URI; the result is escaped to a
path, so it is safe on every file system, and no folder is where a file belongs. URIs that do not
fit the pattern keep their own path. A rule can be inverted, so no list of paths is needed to know
that no copy takes the path of another: of two URIs with one path the inverse leads to one only; the
other is refused before anything is fetched.
"""

import re
from collections.abc import Mapping
from typing import Final

from resourcesync.destination.mapping import FileSystemProfile
from resourcesync.destination.mapping.escapes import EscapedMapping
from resourcesync.destination.mapping.names import ARROW, normalise_rule
from resourcesync.discovery.uris import normalise
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.model.own_names import MAX_URI

_FIELD: Final = re.compile(r"\{([a-z][a-z0-9_]*)(\*?)\}")
_LITERAL: Final = re.compile(r"[^{}\s?#]*")
_SEPARATOR: Final = re.compile(r"[/?]")
_MAX_FIELDS: Final = 20


def _fields(part: str, text: str) -> list[str]:
    names = [match[1] for match in _FIELD.finditer(part)]
    if not part or len(text) > MAX_URI or len(names) > _MAX_FIELDS:
        raise _invalid_rule(
            text, f"a pattern and a template are needed, with at most {_MAX_FIELDS} names"
        )
    if len(set(names)) != len(names):
        raise _invalid_rule(text, "a name may occur only once on each side")
    if not all(_LITERAL.fullmatch(literal) for literal in _FIELD.split(part)[::3]):
        raise _invalid_rule(
            text, "it has a blank, ? or #, or braces without a lower-case name in them"
        )
    if "}{" in part:
        raise _invalid_rule(text, "two names need text between them")
    return names


def _invalid_rule(text: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{text[:200]!r} is not a valid rule: {why}",
        hint="write it as 'bitstream/{item}/{name} => {item}/{name}'",
        code="map",
    )


class TemplateMapping:
    """Mapping by a rule, from URI to path and back."""

    def __init__(self, rule: str, base: str, profile: FileSystemProfile) -> None:
        self._rule = normalise_rule(rule)
        pattern, _, template = self._rule.partition(f" {ARROW} ")
        if sorted(_fields(pattern, rule)) != sorted(_fields(template, rule)):
            raise _invalid_rule(rule, "both sides must have the same names, each of them once")
        self._base = base
        self._escaped = EscapedMapping(base=base, profile=profile)
        wide = {match[1] for match in _FIELD.finditer(pattern) if match[2]}
        self._pattern = _RuleSide(pattern, wide)
        self._template = _RuleSide(template, wide)

    def path(self, uri: str) -> str:
        """Return the path of a URI."""
        normal = normalise(uri)
        to = self._rewritten(normal)
        first = self._original_of(to)
        if first != normal:
            why = f"belongs to {first}" if first else "cannot be inverted"
            raise OutOfScopeError(
                f"the path that the rule {self._rule!r} gives it {why}",
                uri=uri,
                evidence=(("uri", uri),),
                code="mapper",
            )
        return self._escaped.path(to)

    def uri(self, path: str) -> str | None:
        """Return the normalised URI of a path; ``None`` if there is none."""
        found = self._escaped.uri(path)
        return None if found is None else self._original_of(found)

    def _original_of(self, to: str) -> str | None:
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
                f"the rule {self._rule!r} gives it an invalid URI",
                uri=uri,
                evidence=(("uri", uri),),
                code="mapper",
            )
        return uri if found is None else found


class _RuleSide:
    """Side of a rule. A name ends where the text after it first occurs."""

    def __init__(self, text: str, wide: set[str]) -> None:
        pieces = _FIELD.split(text)  # literal, name, star, literal, …
        self._begin, self._names = pieces[0], pieces[1::3]
        self._after = pieces[3::3]
        self._wide = wide

    def rewrite(self, other: "_RuleSide", uri: str, base: str) -> str | None:
        """Return a URI that matches this side in the form of the other; ``None`` if it does not."""
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
        pairs = zip(self._names, self._after, strict=True)
        return self._begin + "".join(found[name] + after for name, after in pairs)
