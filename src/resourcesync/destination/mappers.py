"""Mappers of other distributions: from URI to place and back, believed in nothing that matters.

A mapper is pure: it answers from the URI alone, always the same. Each of its answers is checked:
a place must be safe, and must lead back to its URI. A function that can be undone gives no two URIs
one place, so no list of places is needed to know that no copy takes the place of another.

The mapping of ``--map 'PATTERN => TEMPLATE'``: places by a rule that the operator writes. Pure.

The rule rewrites what stands after the base in a URI; our own mapping gives the result its place,
so it is safe on every file system, and no folder is where a file belongs. What the pattern does not
fit keeps its own place. Two URIs that would get one place are told by the way back: it leads to one
of them only, and the other is refused before anything is fetched.

Whose copy is at a path of a mirror.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from shlex import quote
from typing import Any, Final, Protocol

from resourcesync.destination.mapping import MAX_PATH, FileSystemProfile, TreeMapping
from resourcesync.destination.name_mapping import NameMapping
from resourcesync.destination.uris import MAX_URI, normalise
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.ports.mirror import MirrorStateStore

NAMES: Final = "tree/2"
"""Our own mapper, which every new mirror has unless another is chosen."""
TREE: Final = "tree"
"""Our first mapper, ``tree/1``, as it is recorded: mirrors that have it keep it until asked."""
_OWN_PREFIX: Final = "tree"
_VERSIONS: Final = {"tree/1": TREE, "tree/2": NAMES}

_MAX_SEGMENT: Final = 255
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\\:*?\"<>|]")
_DEVICE: Final = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)(?:\.|\Z)")
_MAX_SHOWN: Final = 100


class Mapper(Protocol):
    """What a plug-in's factory returns."""

    def to_path(self, uri: str) -> str:
        """Return the place of a normalised URI: relative, with ``/``."""
        ...

    def to_uri(self, path: str) -> str | None:
        """Return the URI whose place this is; ``None`` when there is none."""
        ...


MapperFactory = Callable[[str, bool], Mapper]
"""Called with the mirror's base, a URI that ends in ``/``, and whether its file system tells upper
from lower case."""


class PathMapping(Protocol):
    """From URI to place and back."""

    def path(self, uri: str) -> str:
        """Return the place of a URI.

        Raises:
            OutOfScopeError: It gets none.
        """
        ...

    def uri(self, path: str) -> str | None:
        """Return the URI whose place this is; ``None`` when there is none."""
        ...


def uris_at(mapping: PathMapping, path: str) -> list[str]:
    """Return the URIs whose path this may be, the likeliest first."""
    if isinstance(mapping, NameMapping):
        return mapping.uris(path)
    uri = mapping.uri(path)
    return [] if uri is None else [uri]


class _TreePlugin:
    """Our own mapping in the form of a plug-in."""

    def __init__(self, mapping: TreeMapping) -> None:
        self.to_path = mapping.path
        self.to_uri = mapping.uri


def tree(base: str, tells_case: bool) -> Mapper:  # noqa: FBT001 - as every mapper is called
    """Return our own mapper: ``tree/1``."""
    profile = FileSystemProfile.POSIX if tells_case else FileSystemProfile.PORTABLE
    return _TreePlugin(TreeMapping(base=base, profile=profile))


class PluggedMapping:
    """A mapping whose mapper is a plug-in's.

    Args:
        name: The plug-in.
        factory: What it is.
        base: The URI that the mirror's root stands for.
        profile: What the mirror's file system tells apart.

    Raises:
        ConfigurationError: It makes no mapper.
    """

    def __init__(
        self, name: str, factory: MapperFactory, base: str, profile: FileSystemProfile
    ) -> None:
        self._name = name
        self._folds = profile is FileSystemProfile.PORTABLE
        try:
            self._mapper = factory(base, not self._folds)
        except Exception as error:  # a plug-in is foreign code, which may raise anything
            raise ConfigurationError(
                f"the mapper {name!r} cannot be made: {type(error).__name__}: {error}",
                code="bad-plugin",
            ) from error

    def path(self, uri: str) -> str:
        """Return the place of a URI.

        Raises:
            OutOfScopeError: The URI is none, or its place is not safe or does not lead back to it.
        """
        normal = normalise(uri)
        path: Any  # a plug-in's answer may be anything
        try:
            path = self._mapper.to_path(normal)
            problem = self._problem(path)
            back = None if problem else self._mapper.to_uri(path)
            problem = problem or (
                "" if _is_same_uri(back, normal) else "does not lead back to its URI"
            )
        except Exception as error:  # noqa: BLE001 - as above
            problem = f"cannot be had: {type(error).__name__}: {error}"
            path = ""
        if problem:
            shown = f" {path[:_MAX_SHOWN]!r}" if isinstance(path, str) and path else ""
            raise OutOfScopeError(
                f"the place{shown} that the mapper {self._name!r} gives it {problem}",
                uri=uri,
                code="mapper",
            )
        assert isinstance(path, str), "whatever else was a problem"
        return path

    def uri(self, path: str) -> str | None:
        """Return the normalised URI whose place this is; ``None`` when there is none."""
        try:
            uri = self._mapper.to_uri(path)
            return normalise(uri) if uri is not None and self.path(uri) == path else None
        except Exception:  # noqa: BLE001 - as above: then nobody knows its URI
            return None

    def _problem(self, path: object) -> str:
        """Return what is wrong with a place; empty when nothing is."""
        if not isinstance(path, str) or not path:
            return "is no text"
        if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH:
            return f"has more than {MAX_PATH} bytes"
        if _UNSAFE.search(path) or not unicodedata.is_normalized("NFC", path):
            return "has characters that are not safe in the name of a file"
        if self._folds and path != path.lower():
            return "has upper case, which this file system does not tell from lower case"
        if not all(map(_is_safe, path.split("/"))):
            return "has a name that no file should have"
        return ""


def _is_safe(name: str) -> bool:
    length = len(name.encode("utf-8"))  # lone surrogates raise, and are refused so
    if not 0 < length <= _MAX_SEGMENT or name.startswith(".") or name.endswith((".", " ")):
        return False
    return not name.startswith(" ") and _DEVICE.match(name) is None


def _is_same_uri(uri: str | None, normal: str) -> bool:
    return uri is not None and normalise(uri) == normal


def load_no_mapper(name: str) -> MapperFactory:
    """Say that there is no such mapper.

    Raises:
        ConfigurationError: Always.
    """
    raise ConfigurationError(f"there is no mapper {name!r}", code="no-plugin")


def mapper_of(asked: str, known: str = "") -> str:
    """Return the mapper that an operator means by a name, as it is recorded.

    Args:
        asked: The name; ``tree`` is our own one, in whichever version the mirror has it. Empty
            takes the mirror's.
        known: The mirror's; empty for a new mirror.
    """
    if asked in ("", _OWN_PREFIX):
        return known if known in _VERSIONS.values() or (known and not asked) else NAMES
    return _VERSIONS.get(asked, asked)


def check_mapper(asked: str, known: str) -> None:
    """Refuse another mapper than the mirror's: its copies would lose their places.

    Only from our first mapper to the one after it there is a way.

    Args:
        asked: The one that the operator names; empty for none.
        known: The mirror's.

    Raises:
        ConfigurationError: It is another one.
    """
    if asked not in ("", known) and (known, asked) != (TREE, NAMES):
        names = {recorded: name for name, recorded in _VERSIONS.items()}
        here, there = names.get(known, known), names.get(asked, asked)
        raise ConfigurationError(
            f"the mirror's places come from the mapper {here!r}, not from {there!r}",
            evidence=(("kept", "nothing was changed"),),
            hint=f"pull into another folder, or with --map {quote(here)}",
            code="other-mapper",
        )


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


def owner_of(state: MirrorStateStore, mapping: PathMapping, path: str) -> str | None:
    """Return the URI whose copy has this path; ``None`` when no copy has it.

    Args:
        state: The mirror's.
        mapping: The mirror's; it tells whose path it may be.
        path: In the mirror.
    """
    for uri in uris_at(mapping, path):
        copy = state.copy(uri)
        if copy is not None and copy.path == path:
            return uri
    if not isinstance(mapping, NameMapping):
        return None
    # Another spelling may say the same name, or it moved, or it is a digest.
    for uri, there in state.path_conflicts(mapping.base, [path], None):
        if there == path and state.copy(uri) is not None:
            return uri
    return None
