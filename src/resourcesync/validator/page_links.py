"""The links of a page to a Source, anywhere in the page (§6.3.3).

Discovery follows those in the head alone; the validator reports the others, too.
"""

from io import BytesIO
from typing import Final
from urllib.parse import urljoin

from resourcesync.discovery import links as discovered
from resourcesync.discovery.links import MAX_PAGE, PageLink

MOST_READ: Final = MAX_PAGE
"""Bytes of a page that are read: a head is shorter."""
_MOST_LINKS: Final = 10
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})


def is_page(media_type: str) -> bool:
    """True if a media type, parameters or not, is that of HTML."""
    return media_type.partition(";")[0].strip().lower() in _HTML


def page_links(page: bytes) -> list[PageLink]:
    """Return the first ten ``resourcesync`` links of an HTML page, resolved with its ``base``."""
    base, links = discovered.page_links(discovered.head_of(BytesIO(page)))
    return [link._replace(href=resolve_reference(base, link.href)) for link in links[:_MOST_LINKS]]


def resolve_reference(base: str, reference: str) -> str:
    """Return the address of a reference; the reference itself if it is invalid."""
    try:
        return urljoin(base, reference)
    except ValueError:  # such as http://[
        return reference
