"""Records and other parts of OAI-PMH answers, as values."""

from datetime import UTC, datetime
from typing import Final

import msgspec

from resourcesync.model.timestamps import parse_w3c

DAY: Final = "YYYY-MM-DD"
"""The granularity of providers that know no time of day; the other one has seconds."""


class RecordHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header that identifies a record (OAI-PMH §2.5).

    Attributes:
        identifier: The item's identifier.
        datestamp: Time when the record was last made, changed or deleted, as written.
        sets: ``setSpec`` of the sets it is a member of.
        is_deleted: True if the record is withdrawn.
    """

    identifier: str
    datestamp: str = ""
    sets: tuple[str, ...] = ()
    is_deleted: bool = False


class OaiRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One item in one format.

    Attributes:
        header: Its header; ``None`` when it cannot be read.
        metadata: A whole XML document; empty if deleted or unusable.
        problem: Reason why it cannot be used; empty when it can.
    """

    header: RecordHeader | None
    metadata: bytes = b""
    problem: str = ""


class ListToken(msgspec.Struct, frozen=True, kw_only=True):
    """The resumption token of an incomplete list (OAI-PMH §3.5).

    Attributes:
        value: The token to send; never empty.
        size: ``completeListSize``, which is often wrong; ``None`` when absent.
    """

    value: str
    size: int | None = None


class OaiFault(msgspec.Struct, frozen=True, kw_only=True):
    """An ``error`` of the provider (OAI-PMH §3.6).

    Attributes:
        code: Such as ``noRecordsMatch``.
        text: The text for people.
    """

    code: str
    text: str = ""


class MetadataFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A form of metadata that a provider gives (OAI-PMH §4.4).

    Attributes:
        prefix: Its ``metadataPrefix`` in requests.
        namespace: Its XML namespace.
        schema: The address of its schema.
    """

    prefix: str
    namespace: str = ""
    schema: str = ""


class ProviderIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a provider (OAI-PMH §4.2).

    Attributes:
        name: Of the repository, for people.
        earliest: ``earliestDatestamp``, as written.
        granularity: ``granularity``, as written.
        deletions: ``deletedRecord``: ``no``, ``transient`` or ``persistent``, as written.
        namespace: ``repositoryIdentifier``: the part of identifiers between ``oai:`` and ``:``.
        moment: The provider's time of the answer (``responseDate``), as written.
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
