"""The names of resync 2.0.1 that programs import, on our reader, writer and fetcher.

``from resync.client import Client`` becomes ``from resourcesync.compat.resync.client import
Client``, or, for type checkers, ``from resourcesync.compat.resync import Client``. After `install`
a program is left as it is. ``url_or_file_open`` is a module here, as in resync; for type checkers
the function is in ``access``. What differs from resync is on the page "Move from resync".
"""

import logging
import sys
from types import ModuleType

from resourcesync.compat.resync import access
from resourcesync.compat.resync.builder import ResourceListBuilder
from resourcesync.compat.resync.client import Client
from resourcesync.compat.resync.client_state import ClientState
from resourcesync.compat.resync.containers import (
    CapabilitySet,
    ResourceContainer,
    ResourceListDict,
    ResourceListOrdered,
    ResourceSet,
)
from resourcesync.compat.resync.errors import (
    ChangeTypeError,
    ClientError,
    ClientFatalError,
    ListBaseIndexError,
    MapperError,
    ResourceListDupeError,
    ResourceSetDupeError,
    SitemapIndexError,
    SitemapParseError,
)
from resourcesync.compat.resync.lists import (
    CapabilityList,
    ChangeDump,
    ChangeDumpArchive,
    ChangeDumpManifest,
    ChangeList,
    ChangeListArchive,
    ListBase,
    ListBaseWithIndex,
    ResourceDump,
    ResourceDumpArchive,
    ResourceDumpManifest,
    ResourceList,
    ResourceListArchive,
    SourceDescription,
)
from resourcesync.compat.resync.mapping import CompatMapper, Map
from resourcesync.compat.resync.resources import CompatResource, datetime_to_str, str_to_datetime
from resourcesync.compat.resync.sitemaps import Sitemap
from resourcesync.errors import ConfigurationError

Mapper = CompatMapper
Resource = CompatResource

__version__ = "2.0.1"
"""The version of resync whose names these are."""


def init_logging(verbose: bool = False, **_ignored: object) -> None:
    """Show the messages of the loggers of resync on stderr.

    Args:
        verbose: True to show what is done with each resource, too.
    """
    handler = logging.StreamHandler()
    handler.setLevel(logging.INFO if verbose else logging.WARNING)
    logger = logging.getLogger("resync")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)


_MODULES = {
    "archives": "ResourceListArchive ResourceDumpArchive ChangeListArchive ChangeDumpArchive",
    "capability_list": "CapabilityList CapabilitySet",
    "change_dump": "ChangeDump",
    "change_dump_manifest": "ChangeDumpManifest",
    "change_list": "ChangeList ChangeTypeError",
    "client_utils": "ClientError ClientFatalError init_logging",
    "list_base": "ListBase",
    "list_base_with_index": "ListBaseIndexError ListBaseWithIndex",
    "mapper": "Map Mapper MapperError",
    "resource": "ChangeTypeError Resource",
    "resource_container": "ResourceContainer",
    "resource_dump": "ResourceDump",
    "resource_dump_manifest": "ResourceDumpManifest",
    "resource_list": "ResourceList ResourceListDict ResourceListDupeError ResourceListOrdered",
    "resource_list_builder": "ResourceListBuilder",
    "resource_set": "ResourceSet ResourceSetDupeError",
    "sitemap": "Sitemap SitemapIndexError SitemapParseError",
    "source_description": "SourceDescription",
    "url_or_file_open": "set_url_or_file_open_config url_or_file_open",
    "w3c_datetime": "datetime_to_str str_to_datetime",
}
"""The modules of resync that are no modules here, with the names that are imported from them."""

__all__ = [
    "CapabilityList",
    "CapabilitySet",
    "ChangeDump",
    "ChangeDumpArchive",
    "ChangeDumpManifest",
    "ChangeList",
    "ChangeListArchive",
    "ChangeTypeError",
    "Client",
    "ClientError",
    "ClientFatalError",
    "ClientState",
    "ListBase",
    "ListBaseIndexError",
    "ListBaseWithIndex",
    "Map",
    "Mapper",
    "MapperError",
    "Resource",
    "ResourceContainer",
    "ResourceDump",
    "ResourceDumpArchive",
    "ResourceDumpManifest",
    "ResourceList",
    "ResourceListArchive",
    "ResourceListBuilder",
    "ResourceListDict",
    "ResourceListDupeError",
    "ResourceListOrdered",
    "ResourceSet",
    "ResourceSetDupeError",
    "Sitemap",
    "SitemapIndexError",
    "SitemapParseError",
    "SourceDescription",
    "datetime_to_str",
    "init_logging",
    "install",
    "str_to_datetime",
]


def _module(name: str, names: str) -> ModuleType:
    made = ModuleType(f"{__name__}.{name}", f"``resync.{name}``, see `{__name__}`.")
    here = {**vars(access), **globals()}
    vars(made).update({found: here[found] for found in names.split()})
    return made


for _name, _names in _MODULES.items():
    sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module(_name, _names)


def install() -> None:
    """Let ``import resync`` mean this package from now on, in this process.

    Raises:
        ConfigurationError: The real resync is imported already.
    """
    ours = sys.modules[__name__]
    if sys.modules.get("resync", ours) is not ours:
        raise ConfigurationError(
            "resync is imported already", hint="call install() before anything imports resync"
        )
    sys.modules["resync"] = ours
    for name in ("client", "client_state", *_MODULES):
        sys.modules[f"resync.{name}"] = sys.modules[f"{__name__}.{name}"]
