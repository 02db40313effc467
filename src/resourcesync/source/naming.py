"""Names of a Source's documents, and their public addresses.

Names are those of the ``DocumentStore``. Heads keep their names for ever and are replaced.
"""

import re
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import force_setattr

from resourcesync.discovery.uris import with_likely_scheme
from resourcesync.errors import ConfigurationError
from resourcesync.model.vocabulary import Capability

FOLDER: Final = "resourcesync/"
RESOURCE_LIST: Final = "resourcesync/resourcelist.xml"
CHANGE_LIST: Final = "resourcesync/changelist.xml"
CAPABILITY_LIST: Final = "resourcesync/capabilitylist.xml"
RESOURCE_DUMP: Final = "resourcesync/resourcedump.xml"
CHANGE_DUMP: Final = "resourcesync/changedump.xml"
ABOUT: Final = "resourcesync/about.xml"
SITE_ABOUT: Final = "resourcesync/site.xml"
"""What describes all sets of a site that share a Source Description."""
DESCRIPTION: Final = ".well-known/resourcesync"
CHANGE_NOTIFICATION: Final = "resourcesync/changenotification.xml"
FRAMEWORK_NOTIFICATION: Final = "resourcesync/frameworknotification.xml"
SITEMAP: Final = "resourcesync-sitemap.xml"
"""Top-level name, since a sitemap lists its own folder and below; no site uses it for its own."""
ARCHIVES: Final = {
    capability: f"resourcesync/{capability.archived}archive.xml"
    for capability in Capability
    if capability.is_archive
}
"""The name of each archive, such as ``resourcesync/changelistarchive.xml``."""

CHANNELS: Final = {
    Capability.CHANGE_NOTIFICATION: CHANGE_NOTIFICATION,
    Capability.FRAMEWORK_NOTIFICATION: FRAMEWORK_NOTIFICATION,
}
"""The topic of each channel: the last notification can be read at it."""

_HEADS: Final = frozenset(
    {
        *(RESOURCE_LIST, CHANGE_LIST, CAPABILITY_LIST, RESOURCE_DUMP, CHANGE_DUMP),
        *(ABOUT, SITE_ABOUT, DESCRIPTION, *ARCHIVES.values(), *CHANNELS.values()),
    }
)

REMOVABLE_HEADS: Final = frozenset(
    {RESOURCE_LIST, CHANGE_LIST, RESOURCE_DUMP, CHANGE_DUMP, SITEMAP, *ARCHIVES.values()}
)
"""Documents that lead to others, and that a Source may cease to offer."""

_PART: Final = re.compile(r"resourcesync/resourcelist-\d{8}T\d{12}Z-\d{4,}\.xml")
_NUMBERED: Final = re.compile(r"resourcesync/changelist-(\d{6,})\.xml")
_DATED: Final = re.compile(
    r"resourcesync/(?:changelist|resourcelist)_\d{4}-\d\d-\d\dT\d{6}(?:\.\d{6})?Z(?:-\d+)?\.xml"
)
_PACKAGE: Final = re.compile(
    r"resourcesync/(?:resourcedump-\d{8}T\d{12}Z-\d{4,}|changedump-(\d{6,}))(?:\.zip|-manifest\.xml)"
)
_DUMP_PART: Final = re.compile(r"resourcesync/(?:resource|change)dump-[0-9a-f]{16}-\d{4,}\.xml")
_ARCHIVED_DUMP: Final = re.compile(
    r"resourcesync/(?:resource|change)dump_\d{4}-\d\d-\d\dT\d{6}(?:\.\d{6})?Z\.xml"
)
_SITEMAPS: Final = re.compile(r"resourcesync-sitemap(?:-\d{4,})?\.xml")


class SourceNaming(msgspec.Struct, frozen=True, kw_only=True):
    """Public addresses of what is published.

    Below ``base_uri`` are the resources and the Source Description (§6.3.2); with a ``site_uri`` it
    is below that, and other sets share it. Below ``documents_uri`` are all other documents, by
    default in ``resourcesync/``; the plain sitemap is beside that folder.
    """

    base_uri: str
    documents_uri: str = ""
    site_uri: str = ""

    def __post_init__(self) -> None:
        """Complete the URIs; refuse those that cannot be a base."""
        for uri in (self.base_uri, self.documents_uri or self.base_uri):
            if not uri.startswith(("http://", "https://")) or re.search(r"[\s?#]", uri):
                likely = with_likely_scheme(uri)
                raise ConfigurationError(
                    f"{uri!r} is not the http or https URI of a folder",
                    hint=f"did you mean {likely}?"
                    if likely
                    else "give an http or https URI without query, such as https://example.org/",
                )
        base = _folder(self.base_uri)
        force_setattr(self, "base_uri", base)
        force_setattr(self, "documents_uri", _folder(self.documents_uri or base + FOLDER))

    @property
    def capability_list(self) -> str:
        """The URI of the Capability List: it distinguishes a set from those beside it."""
        return self.uri(CAPABILITY_LIST)

    @property
    def folder_uri(self) -> str:
        """The URI of the folder that the documents' folder is in."""
        return self.documents_uri.removesuffix(FOLDER)

    def uri(self, name: str) -> str:
        """Return the URI of a document."""
        if name == DESCRIPTION:
            return (self.site_uri or self.base_uri) + name
        if is_sitemap(name):
            return self.folder_uri + name
        return self.documents_uri + name.removeprefix(FOLDER)


def resource_list_part(at: datetime, number: int) -> str:
    """Return the name of a part of the Resource List of the moment ``at``; parts count from 1."""
    return f"resourcesync/resourcelist-{at:%Y%m%dT%H%M%S%f}Z-{number:04}.xml"


def change_list(number: int) -> str:
    """Return the name of one of several Change Lists."""
    return f"resourcesync/changelist-{number:06}.xml"


def dated(head: str, moment: datetime) -> str:
    """Return the name of a document that was closed, or superseded, at a moment or of a moment."""
    fraction = f".{moment:%f}" if moment.microsecond else ""
    return f"{head.removesuffix('.xml')}_{moment:%Y-%m-%dT%H%M%S}{fraction}Z.xml"


def sitemap_part(number: int) -> str:
    """Return the name of a part of the plain sitemap; parts count from 1."""
    return f"resourcesync-sitemap-{number:04}.xml"


def is_sitemap(name: str) -> bool:
    """True if it names the plain sitemap or a part of it; such a file is no resource."""
    return _SITEMAPS.fullmatch(name) is not None


def change_list_number(name: str) -> int:
    """Return the number of one of several Change Lists; 0 for any other name."""
    found = _NUMBERED.fullmatch(name)
    return 0 if found is None else int(found[1])


class PackageNames(NamedTuple):
    """The names of a package and of the copy of its manifest."""

    package: str
    manifest: str


def resource_package(at: datetime, number: int) -> PackageNames:
    """Return the names for a package of the moment ``at``."""
    stem = f"resourcesync/resourcedump-{at:%Y%m%dT%H%M%S%f}Z-{number:04}"
    return PackageNames(f"{stem}.zip", f"{stem}-manifest.xml")


def change_package(number: int) -> PackageNames:
    """Return the names for a package of changes."""
    stem = f"resourcesync/changedump-{number:06}"
    return PackageNames(f"{stem}.zip", f"{stem}-manifest.xml")


def change_package_number(name: str) -> int:
    """Return the number of a package of changes; 0 for any other name."""
    found = _PACKAGE.fullmatch(name)
    return int(found[1]) if found is not None and found[1] else 0


def dump_part(head: str, key: str, number: int) -> str:
    """Return the name of a part of a dump that lists very many packages; parts count from 1."""
    return f"{head.removesuffix('.xml')}-{key[:16]}-{number:04}.xml"


def is_dump_name(name: str) -> bool:
    """True if only dumps have such a name, and it is not that of a head."""
    return any(pattern.fullmatch(name) for pattern in (_PACKAGE, _DUMP_PART, _ARCHIVED_DUMP))


def is_document(name: str) -> bool:
    """True if a document of ours may have such a name."""
    return name in _HEADS or is_sitemap(name) or is_dump_name(name) or is_replaceable(name)


def is_replaceable(name: str) -> bool:
    """True if only this package makes such a name, and it is not that of a head."""
    return any(pattern.fullmatch(name) for pattern in (_PART, _NUMBERED, _DATED))


def is_immutable(name: str) -> bool:
    """True if what has such a name is never written again; an open Change List grows."""
    return any(pattern.fullmatch(name) for pattern in (_PART, _DATED, _PACKAGE))


def _folder(uri: str) -> str:
    return uri if uri.endswith("/") else uri + "/"
