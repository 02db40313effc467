"""Terms of the specification: capabilities, changes, relations, namespaces, limits."""

from enum import StrEnum
from typing import Final

SITEMAP_NS: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
RS_NS: Final = "http://www.openarchives.org/rs/terms/"
WELL_KNOWN_PATH: Final = "/.well-known/resourcesync"
"""Well-known place of a Source Description (§6.3.2)."""

MAX_ENTRIES: Final = 50_000
"""Entries in one document (§7, after the Sitemap protocol)."""
MAX_BYTES: Final = 52_428_800
"""Bytes in one document, uncompressed (§7, after the Sitemap protocol)."""


class Capability(StrEnum):
    """The value of ``rs:md/@capability`` under the root (§7). A list and its index share it."""

    DESCRIPTION = "description"
    CAPABILITY_LIST = "capabilitylist"
    RESOURCE_LIST = "resourcelist"
    RESOURCE_DUMP = "resourcedump"
    RESOURCE_DUMP_MANIFEST = "resourcedump-manifest"
    CHANGE_LIST = "changelist"
    CHANGE_DUMP = "changedump"
    CHANGE_DUMP_MANIFEST = "changedump-manifest"
    RESOURCE_LIST_ARCHIVE = "resourcelist-archive"
    RESOURCE_DUMP_ARCHIVE = "resourcedump-archive"
    CHANGE_LIST_ARCHIVE = "changelist-archive"
    CHANGE_DUMP_ARCHIVE = "changedump-archive"
    CHANGE_NOTIFICATION = "change-notification"
    FRAMEWORK_NOTIFICATION = "framework-notification"

    @property
    def phrase(self) -> str:
        """The name that people use, such as ``Resource List``."""
        words = self.name.replace("_", " ").title()
        return f"Source {words}" if self is Capability.DESCRIPTION else words

    @property
    def is_snapshot(self) -> bool:
        """True if its documents carry ``at`` and ``completed`` (Appendix A)."""
        return self in _SNAPSHOTS

    @property
    def is_log(self) -> bool:
        """True if its documents carry ``from`` and ``until`` (Appendix A)."""
        return self in _LOGS

    @property
    def is_dump(self) -> bool:
        """True if its entries are packages (§11.1, §13.1)."""
        return self in (Capability.RESOURCE_DUMP, Capability.CHANGE_DUMP)

    @property
    def is_manifest(self) -> bool:
        """True if it lists the content of a package (§11.2, §13.2)."""
        return self in (Capability.RESOURCE_DUMP_MANIFEST, Capability.CHANGE_DUMP_MANIFEST)

    @property
    def is_archive(self) -> bool:
        """True if it lists documents of the past (Archives)."""
        return self.value.endswith("-archive")

    @property
    def archived(self) -> "Capability | None":
        """Capability of the documents in an archive; ``None`` if it is no archive."""
        return Capability(self.value.removesuffix("-archive")) if self.is_archive else None

    @property
    def archive(self) -> "Capability | None":
        """The archive of its documents; ``None`` when there is no such archive."""
        return next((other for other in Capability if other == f"{self}-archive"), None)


_SNAPSHOTS: Final = frozenset(
    {Capability.RESOURCE_LIST, Capability.RESOURCE_DUMP, Capability.RESOURCE_DUMP_MANIFEST}
)
_LOGS: Final = frozenset(
    {
        Capability.CHANGE_LIST,
        Capability.CHANGE_DUMP,
        Capability.CHANGE_DUMP_MANIFEST,
        Capability.CHANGE_NOTIFICATION,
    }
)


NOTIFICATIONS: Final = frozenset(
    {Capability.CHANGE_NOTIFICATION, Capability.FRAMEWORK_NOTIFICATION}
)
"""What channels carry: such a document is sent, and has no index."""

CAPABILITIES: Final = {
    **{member.value: member for member in Capability},
    "changenotification": Capability.CHANGE_NOTIFICATION,
    "frameworknotification": Capability.FRAMEWORK_NOTIFICATION,
    "resourcesync": Capability.DESCRIPTION,  # 0.9
    "capability": Capability.CAPABILITY_LIST,  # WEKO3, in its Source Description
    "changeset": Capability.CHANGE_LIST,  # drafts
    "inventory": Capability.RESOURCE_LIST,
}
"""The capability that each label in small letters means, old spellings included."""


class ChangeKind(StrEnum):
    """The value of ``rs:md/@change`` (§12.1)."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"


LISTED_CAPABILITIES: Final = (
    Capability.RESOURCE_LIST,
    Capability.RESOURCE_DUMP,
    Capability.CHANGE_LIST,
    Capability.CHANGE_DUMP,
    Capability.RESOURCE_LIST_ARCHIVE,
    Capability.RESOURCE_DUMP_ARCHIVE,
    Capability.CHANGE_LIST_ARCHIVE,
    Capability.CHANGE_DUMP_ARCHIVE,
)
"""What a Capability List leads to, in the order of the examples of the specification."""

VALID_FROM: Final = "{http://purl.org/dc/terms/}valid"
"""The attribute of a link ``monitor`` with the moment from which it holds."""


class Relation(StrEnum):
    """The link relations that the specification gives a meaning (§6.2, §14), and ``monitor``.

    ``MONITOR`` (RFC 5989) leads from a Resource List in a Capability List to its Change List; from
    the moment in `VALID_FROM` on, the one has nothing that the other does not lead to.
    """

    UP = "up"
    INDEX = "index"
    DESCRIBED_BY = "describedby"
    DESCRIBES = "describes"
    ARCHIVES = "archives"
    CONTENTS = "contents"
    DUPLICATE = "duplicate"
    ALTERNATE = "alternate"
    CANONICAL = "canonical"
    PATCH = "http://www.openarchives.org/rs/terms/patch"
    PROFILE = "profile"
    MEMENTO = "memento"
    TIMEGATE = "timegate"
    TIMEMAP = "timemap"
    COLLECTION = "collection"
    VIA = "via"
    HUB = "hub"
    MONITOR = "monitor"
    SELF = "self"
    RESOURCESYNC = "resourcesync"


class Dialect(StrEnum):
    """The version of the format of a document.

    1.0 and 1.1 are told apart only by ``datetime`` on changes (spec 1.1 §12.1), so a document
    that shows nothing of either kind is read as 1.1. What shows nothing of 0.9.1 against 1.0 is
    read as 1.0 or 1.1. 0.5 and 0.6 write the same but for archives, links to a collection and
    manifests that are indexes, so what shows none of these is read as 0.6; `phrase_for` says what
    is known. ``P0``, ``P1`` and ``P2`` are the drafts of 2012.
    """

    SITEMAP = "sitemap"
    P0 = "p0"
    P1 = "p1"
    P2 = "p2"
    V0_5 = "0.5"
    V0_6 = "0.6"
    V0_9 = "0.9"
    V0_9_1 = "0.9.1"
    V1_0 = "1.0"
    V1_1 = "1.1"

    def phrase_for(self, capability: Capability | None) -> str:
        """Return the possible versions of a document that was read so; archives are not of 0.5."""
        is_archive = capability is not None and capability.is_archive
        return "0.5 or 0.6" if self is Dialect.V0_6 and not is_archive else self.value
