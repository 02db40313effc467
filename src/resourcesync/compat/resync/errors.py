"""Exceptions under the names of resync, in the tree of our errors.

A caller that catches them by resync's names catches them as before; `ResourceSyncError` catches
all of them.
"""

from typing import ClassVar

from resourcesync.errors import (
    ConfigurationError,
    DocumentError,
    ResourceSyncError,
    SourceError,
    StorageError,
)


class ChangeTypeError(ResourceSyncError, ValueError):
    """The kind of a change is not ``created``, ``updated`` or ``deleted``.

    Args:
        supplied: The value.
    """

    default_code = "change-unknown"

    def __init__(self, supplied: object) -> None:
        super().__init__(f"{supplied!r} is no kind of a change: created, updated or deleted")
        self.supplied = supplied


class ClientError(ResourceSyncError):
    """A step of the client failed; another one may help."""

    default_code = "source"


class ClientFatalError(ResourceSyncError):
    """The client cannot go on; ``__cause__`` is the reason, where there is one."""

    default_code = "source"


class DocumentAccessError(SourceError, OSError):
    """A document cannot be fetched or read; callers of resync catch it as ``OSError``."""

    default_code = "source"


class ListBaseIndexError(DocumentError):
    """A list and its index do not fit the request."""

    default_code = "unexpected-document"


class MapperError(ConfigurationError):
    """A mapping is invalid, or maps a URI or a path to nothing that is safe."""

    default_code = "unsafe-path"


class ResourceSetDupeError(ResourceSyncError, ValueError):
    """A set has a resource with this URI already."""

    default_code = "entry-duplicate"
    phrase: ClassVar[str] = "this set"


class ResourceListDupeError(ResourceSetDupeError):
    """A Resource List has a resource with this URI already."""

    phrase: ClassVar[str] = "this Resource List"


class SitemapIndexError(DocumentError):
    """An index in place of a list, or a list in place of an index."""

    default_code = "unexpected-document"


class SitemapParseError(DocumentError):
    """A document, or one of its entries, cannot be used."""

    default_code = "xml"


def as_client_error(error: Exception, message: str) -> ClientFatalError:
    """Return the fatal error of the client for a failure, with its code, evidence and hint."""
    if isinstance(error, ResourceSyncError):
        return ClientFatalError(
            f"{message}: {error.message}",
            evidence=error.evidence,
            hint=error.hint,
            code=error.code,
            remedy=error.remedy,
        )
    return ClientFatalError(f"{message}: {error}")


def as_access_error(error: Exception, uri: str) -> DocumentAccessError:
    """Return the error of a document that cannot be had, with the code and evidence of its cause.

    Args:
        error: The cause.
        uri: The document's address.
    """
    message = f"Failed to load sitemap/sitemapindex from {uri} ({error})"
    status = error.status if isinstance(error, SourceError) else 0
    if isinstance(error, ResourceSyncError | StorageError):
        return DocumentAccessError(
            message,
            uri=uri,
            status=status,
            evidence=error.evidence,
            hint=error.hint,
            code=error.code,
            remedy=error.remedy,
        )
    return DocumentAccessError(message, uri=uri)
