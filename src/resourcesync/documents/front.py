"""Reading for whoever holds a document's bytes, or an open file of them."""

import io
from collections.abc import Callable
from typing import BinaryIO

from resourcesync.documents.reading import Document, Limits, Tolerated
from resourcesync.documents.reading import read_stream as read_stream
from resourcesync.model.capabilities import RefusedEntry


def read(
    source: BinaryIO | bytes,
    *,
    uri: str = "",
    limits: Limits | None = None,
    on_refused: Callable[[RefusedEntry], None] | None = None,
    on_tolerated: Callable[[Tolerated], None] | None = None,
    strict: bool = False,
) -> Document:
    """Open a ResourceSync document or a sitemap: its header at once, its entries as you ask.

    All versions are read, from the drafts of 2012 to 1.1, gzip or not, and given in the words of
    1.1. Memory does not grow with the document.

    Args:
        source: The document's bytes, or an open binary file, which stays open.
        uri: The document's address, for messages and for what is relative in it.
        limits: What it may cost at most.
        on_refused: Told of each entry that cannot be used, in order; the others are given.
        on_tolerated: Told of each kind of fault that is forgiven, once.
        strict: Whether to raise for what would be forgiven or refused.

    Raises:
        NotAListError: Neither a ResourceSync document nor a sitemap, such as an HTML error page.
        UnexpectedDocumentError: A document of a capability that this version does not know.
        TruncatedDocumentError: It stops before its end.
        MalformedDocumentError: No well-formed XML, a DOCTYPE, or a broken header.
        DocumentLimitError: Over one of the limits.
    """
    return read_stream(
        io.BytesIO(source) if isinstance(source, bytes) else source,
        uri=uri,
        limits=limits or Limits(),
        on_refused=on_refused,
        on_tolerated=on_tolerated,
        strict=strict,
    )
