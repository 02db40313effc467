"""Mappers of other distributions: from URI to place and back, believed in nothing that matters.

A mapper is pure: it answers from the URI alone, always the same. Each of its answers is checked:
a place must be safe, and must lead back to its URI. A function that can be undone gives no two URIs
one place, so no list of places is needed to know that no copy takes the place of another.
"""

import re
import unicodedata
from collections.abc import Callable
from shlex import quote
from typing import Any, Final, Protocol

from resourcesync.destination.mapping import MAX_PATH, FileSystemProfile, TreeMapping, normalise
from resourcesync.destination.names import NameMapping
from resourcesync.errors import ConfigurationError, OutOfScopeError

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
