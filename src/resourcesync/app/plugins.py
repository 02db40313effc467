"""Plug-ins that installed distributions add by entry points, found on demand.

A plug-in has a group and a name. It is imported when it is first used. Only groups that this
package really uses are listed here. Other systems, engines and the simulator are annexes:
distributions of this project that nothing in the package names.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from resourcesync import __version__
from resourcesync.errors import ConfigurationError, ResourceSyncError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from resourcesync.ports.patches import PatchFormat, PatchMaker

PATCHES: Final = "resourcesync.patches"
PATCH_MAKERS: Final = "resourcesync.patch_makers"
ACCOUNTS: Final = "resourcesync.accounts"
ORIGINALS: Final = "resourcesync.originals"
STORES: Final = "resourcesync.stores"
ENGINES: Final = "resourcesync.engines"
COMMANDS: Final = "resourcesync.commands"
SETUPS: Final = "resourcesync.setups"

_OURS: Final = "resourcesync"
_ADDRESS: Final = re.compile(r"([a-z][a-z0-9+.-]+):[^\x00-\x1f\x7f]+")
_CORE: Final[Mapping[str, Mapping[str, str]]] = {
    PATCHES: {
        "application/json-patch+json": "resourcesync.documents.patches.json_patch:apply",
        "application/json-patch": "resourcesync.documents.patches.json_patch:apply",
        "application/xml-patch+xml": "resourcesync.documents.patches.xml_patch:apply",
        "application/patch-ops-error+xml": "resourcesync.documents.patches.xml_patch:apply",
    },
    PATCH_MAKERS: {
        "application/json-patch+json": "resourcesync.documents.patches.json_diff:compute"
    },
}
"""What the package itself brings, by group and name, with its place; no search is needed for it.

The specification's media types of patches (§14.4) are not registered; they mean these.
"""

_BY_LXML: Final = ("application/xml-patch+xml", "application/patch-ops-error+xml")
"""The formats that need the extra ``xml``: without it, whole resources are fetched."""

ANNEX_HINT: Final = "an annex may have it (docs/how-to/install.md)"
"""The advice where something is not installed."""

GROUPS: Final = (PATCHES, PATCH_MAKERS, ACCOUNTS, ORIGINALS, STORES, ENGINES, COMMANDS, SETUPS)


class Plugin(NamedTuple):
    """One plug-in that is installed."""

    group: str
    name: str
    value: str
    distribution: str
    version: str


def installed() -> tuple[Plugin, ...]:
    """Return all plug-ins, ours and others', by group and name. None of them is imported."""
    found = [plugin for group in GROUPS for plugin in plugins_in(group)]
    return tuple(
        sorted(
            found, key=lambda plugin: (plugin.group, plugin.name, plugin.distribution, plugin.value)
        )
    )


def names(group: str) -> tuple[str, ...]:
    """Return the names that a group has, ours and others', in order."""
    return tuple(sorted({plugin.name for plugin in plugins_in(group)}))


def has(group: str, name: str) -> bool:
    """True if a group has a plug-in of that name, ours or others'."""
    return name in _CORE.get(group, {}) or name in names(group)


def is_account_address(text: str) -> bool:
    """True if an address names another system, not a folder."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and match[1] in names(ACCOUNTS)


def load(group: str, name: str) -> Callable[..., Any]:
    """Import a plug-in and return it: a callable."""
    return _import(find(group, name))


def find(group: str, name: str) -> Plugin:
    """Return the one plug-in of a name; it is not imported."""
    if name in _CORE.get(group, {}):
        return _core_plugin(group, name)
    found = [plugin for plugin in plugins_in(group) if plugin.name == name]
    if not found:
        raise ConfigurationError(
            f"there is no plug-in {name!r} in the group {group}",
            evidence=tuple(("installed", known) for known in names(group)),
            hint=f"{ANNEX_HINT}; what is installed: resourcesync doctor --plugins",
            code="no-plugin",
        )
    if len(found) > 1:
        raise ConfigurationError(
            f"several plug-ins are called {name!r} in the group {group}",
            evidence=tuple(("found", _described(plugin)) for plugin in found),
            hint="uninstall all but one of them",
            code="ambiguous-plugin",
        )
    return found[0]


@contextmanager
def open_plugin(group: str, name: str, *arguments: object) -> Iterator[Any]:
    """Import a plug-in and call it; yield what the context manager that it returns gives."""
    factory = load(group, name)
    try:
        manager = factory(*arguments)
        opened = manager.__enter__()
    except ResourceSyncError:
        raise
    except Exception as error:
        raise _unusable(find(group, name), f"{type(error).__name__}: {error}") from error
    try:
        yield opened
    finally:
        manager.__exit__(None, None, None)


def patch_formats() -> "dict[str, PatchFormat]":
    """Return the patch formats that can be applied, by media type; none is imported yet."""
    from resourcesync.documents.patches.limits import MAX_BYTES  # noqa: PLC0415 - rarely
    from resourcesync.ports.patches import PatchFormat  # noqa: PLC0415 - rarely

    ours = _CORE[PATCHES]
    absent = () if find_spec("lxml") else _BY_LXML
    return {
        name.lower(): PatchFormat(
            load=partial(load, PATCHES, name), largest=MAX_BYTES if name in ours else None
        )
        for name in names(PATCHES)
        if name not in absent
    }


def patch_makers() -> "tuple[PatchMaker, ...]":
    """Return the makers of patches, ours first; none is imported yet."""
    from resourcesync.documents.patches.limits import MAX_BYTES  # noqa: PLC0415 - rarely
    from resourcesync.ports.patches import PatchMaker  # noqa: PLC0415 - rarely

    ours = _CORE[PATCH_MAKERS]
    return tuple(
        PatchMaker(
            media_type=name,
            load=partial(load, PATCH_MAKERS, name),
            supports=_is_json if name in ours else lambda kind: not _is_json(kind),
            largest=MAX_BYTES if name in ours else None,
        )
        for name in sorted(names(PATCH_MAKERS), key=lambda name: (name not in ours, name))
    )


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def plugins_in(group: str) -> list[Plugin]:
    """Return the plug-ins of a group, ours first; none is imported."""
    if group not in GROUPS:
        raise ConfigurationError(
            f"there is no group of plug-ins {group!r}", hint=f"known: {', '.join(GROUPS)}"
        )
    found = _found_in(group)
    core = [_core_plugin(group, name) for name in _CORE.get(group, {})]
    ours = [*core, *(plugin for plugin in found if plugin.distribution == _OURS)]
    taken = {plugin.name for plugin in ours}  # others cannot replace them
    return [*ours, *(plugin for plugin in found if plugin.name not in taken)]


def _found_in(group: str) -> list[Plugin]:
    """Mostly none: a few files show it in a tenth of the time of ``importlib.metadata``."""
    if not any(map(partial(_may_name, group), map(Path, sys.path))):
        return []
    from importlib.metadata import entry_points  # noqa: PLC0415 - see above

    return [_plugin(point) for point in entry_points(group=group)]


def _may_name(group: str, folder: Path) -> bool:
    if folder.is_file():
        return True  # an archive, which only the machinery of imports can read
    for points in folder.glob("*-info/entry_points.txt"):
        with suppress(OSError):  # as that machinery does
            if f"[{group}]" in points.read_text("utf-8", "replace"):
                return True
    return False


def _core_plugin(group: str, name: str) -> Plugin:
    value = _CORE[group][name]
    return Plugin(group=group, name=name, value=value, distribution=_OURS, version=__version__)


def _plugin(point: "EntryPoint") -> Plugin:
    dist = point.dist
    return Plugin(
        group=point.group,
        name=point.name,
        value=point.value,
        distribution="" if dist is None else dist.name,
        version="" if dist is None else dist.version,
    )


def _described(plugin: Plugin) -> str:
    return f"{plugin.value} of {plugin.distribution} {plugin.version}"


def _import(plugin: Plugin) -> Callable[..., Any]:
    from importlib.metadata import EntryPoint  # noqa: PLC0415 - rarely needed

    point = EntryPoint(name=plugin.name, value=plugin.value, group=plugin.group)
    try:
        loaded = point.load()
    except ConfigurationError:
        raise  # one of ours lacks its extra
    except Exception as error:  # importing runs foreign code, which may raise anything
        raise _unusable(plugin, f"{type(error).__name__}: {error}") from error
    if not callable(loaded):
        raise _unusable(plugin, f"it is a {type(loaded).__name__}, not a callable")
    result: Callable[..., Any] = loaded
    return result


def _unusable(plugin: Plugin, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the plug-in {plugin.name!r} of the group {plugin.group} cannot be used",
        evidence=(("plug-in", _described(plugin)), ("got", why[:500])),
        hint=f"fix or uninstall {plugin.distribution or 'it'}",
        code="bad-plugin",
    )
