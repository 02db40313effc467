"""Relative addresses in documents, made absolute; and those that only lack the scheme."""

from urllib.parse import urljoin, urlsplit

from resourcesync.model.leniencies import Leniency


def resolve(uri: str, document: str, *, is_plain: bool) -> tuple[str, Leniency]:
    """Return the absolute address, by that of the document, and the departure from the rules.

    In a plain sitemap, one that begins with the host of the document, with ``www.`` or without, is
    absolute but for the scheme. What is no address at all is a ``ValueError``.
    """
    parts = urlsplit(document)
    host = (parts.hostname or "").removeprefix("www.")
    first = uri.partition("/")[0].lower().removeprefix("www.")
    if is_plain and "." in host and first == host:
        return f"{parts.scheme}://{uri}", Leniency.SCHEME_MISSING
    return urljoin(document, uri), Leniency.URI_RELATIVE
