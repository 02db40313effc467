"""The words of the specification: capabilities, changes, relations, namespaces, limits."""

from enum import StrEnum
from typing import Final

SITEMAP_NS: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
RS_NS: Final = "http://www.openarchives.org/rs/terms/"
WELL_KNOWN_PATH: Final = "/.well-known/resourcesync"
"""Where a Source Description should be found (§6.3.2)."""

MAX_ENTRIES: Final = 50_000
"""Entries in one document (§7, after the Sitemap protocol)."""
MAX_BYTES: Final = 52_428_800
"""Bytes in one document, uncompressed (§7, after the Sitemap protocol)."""


class Capability(StrEnum):
    """The value of ``rs:md/@capability`` under the root (§7). A list and its index share it."""

    DESCRIPTION = "description"
    CAPABILITY_LIST = "capabilitylist"
    RESOURCE_LIST = "resourcelist"
    CHANGE_LIST = "changelist"

    @property
    def phrase(self) -> str:
        """The name that people use, such as ``Resource List``."""
        return _PHRASES[self]

    @property
    def is_snapshot(self) -> bool:
        """Whether its documents carry ``at`` and ``completed`` (Appendix A)."""
        return self is Capability.RESOURCE_LIST

    @property
    def is_log(self) -> bool:
        """Whether its documents carry ``from`` and ``until`` (Appendix A)."""
        return self is Capability.CHANGE_LIST


_PHRASES: Final = {
    Capability.DESCRIPTION: "Source Description",
    Capability.CAPABILITY_LIST: "Capability List",
    Capability.RESOURCE_LIST: "Resource List",
    Capability.CHANGE_LIST: "Change List",
}


class ChangeKind(StrEnum):
    """The value of ``rs:md/@change`` (§12.1)."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"


class Relation(StrEnum):
    """The link relations that synchronization itself follows (§6.2, §14)."""

    UP = "up"
    INDEX = "index"
    DESCRIBED_BY = "describedby"
    RESOURCESYNC = "resourcesync"


class Dialect(StrEnum):
    """Which version of the format a document is written in.

    1.0 and 1.1 are told apart only by ``datetime`` on changes (spec 1.1 §12.1), so a document
    that shows nothing of either kind is read as 1.1.
    """

    SITEMAP = "sitemap"
    V1_0 = "1.0"
    V1_1 = "1.1"
