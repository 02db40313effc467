"""Records and other parts of OAI-PMH answers, as values."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from resourcesync.model.timestamps import parse_w3c

DAY: Final = "YYYY-MM-DD"
"""The granularity of providers that know no time of day; the other one has seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHeader:
    """What identifies a record (OAI-PMH §2.5).

    Attributes:
        identifier: The item's identifier.
        datestamp: When the record was last made, changed or deleted, as written.
        sets: ``setSpec`` of the sets it is a member of.
        is_deleted: Whether the record is withdrawn.
    """

    identifier: str
    datestamp: str = ""
    sets: tuple[str, ...] = ()
    is_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OaiRecord:
    """One item in one format.

    Attributes:
        header: What identifies it; ``None`` when even that cannot be read.
        metadata: A whole XML document; empty for what is deleted, or cannot be used.
        problem: Why it cannot be used; empty when it can.
    """

    header: RecordHeader | None
    metadata: bytes = b""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListToken:
    """Where an incomplete list goes on (OAI-PMH §3.5).

    Attributes:
        value: What to send; never empty.
        size: ``completeListSize``, which is often wrong; ``None`` when it is not told.
    """

    value: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OaiFault:
    """An ``error`` of the provider (OAI-PMH §3.6).

    Attributes:
        code: Such as ``noRecordsMatch``.
        text: What it says for people.
    """

    code: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFormat:
    """A form of metadata that a provider gives (OAI-PMH §4.4).

    Attributes:
        prefix: What it is asked for by.
        namespace: Its XML namespace.
        schema: The address of its schema.
    """

    prefix: str
    namespace: str = ""
    schema: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderIdentity:
    """What a provider says of itself (OAI-PMH §4.2).

    Attributes:
        name: Of the repository, for people.
        earliest: ``earliestDatestamp``, as written.
        granularity: ``granularity``, as written.
        deletions: ``deletedRecord``: ``no``, ``transient`` or ``persistent``, as written.
        namespace: ``repositoryIdentifier``: what identifiers have between ``oai:`` and ``:``.
        moment: The provider's time when it said so (``responseDate``), as written.
    """

    name: str = ""
    earliest: str = ""
    granularity: str = ""
    deletions: str = ""
    namespace: str = ""
    moment: str = ""


def parse_datestamp(text: str) -> datetime | None:
    """Return the moment of a datestamp, which for a day is its beginning; ``None``: it is none."""
    try:
        return parse_w3c(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
