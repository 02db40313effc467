"""The links of a page to a Source, anywhere in the page (§6.3.3).

Discovery follows those in the head alone; the validator reports the others, too.
"""

import re
from html import unescape
from typing import Final, NamedTuple
from urllib.parse import urljoin

MOST_READ: Final = 65_536
"""Bytes of a page that are read: a head is shorter."""
_MOST_TAG: Final = 2_048
_MOST_LINKS: Final = 10
_RELATION: Final = "resourcesync"
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})

_TAG: Final = re.compile(rb"""</?([a-zA-Z][^\s/<>]*+)((?:[^<>"']++|"[^"]*"|'[^']*')*+)>""")
_ATTRIBUTE: Final = re.compile(
    rb"""([^\s"'<>/=]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'=<>`]++))"""
)
_RAW: Final = frozenset({b"script", b"style", b"title", b"template", b"textarea"})
"""Elements whose content is ignored."""
_ENDING: Final = frozenset({b"head", b"body", b"html"})
"""Elements whose end tag ends the head; a stray one of another is ignored."""
_OF_HEAD: Final = frozenset({b"html", b"head", b"base", b"link", b"meta", b"noscript"}) | _RAW


class PageLink(NamedTuple):
    """A ``resourcesync`` link of a page: its target and its place."""

    href: str
    in_head: bool


def is_page(media_type: str) -> bool:
    """True if a media type, parameters or not, is that of HTML."""
    return media_type.partition(";")[0].strip().lower() in _HTML


def page_links(page: bytes) -> list[PageLink]:
    """Return the ``resourcesync`` links of an HTML page, the first ten.

    The head ends where its end tag is, or before the first element or text that cannot be in it,
    as browsers have it. Time grows with the page and no faster.

    Args:
        page: Its bytes from the first on; those after 64 KiB are ignored.
    """
    page = page[:MOST_READ].removeprefix(b"\xef\xbb\xbf")
    small = page.lower()
    links: list[PageLink] = []
    in_head = True
    base = ""
    at = 0
    while len(links) < _MOST_LINKS:
        start = page.find(b"<", at)
        if start < 0:
            break
        in_head = in_head and not page[at:start].strip()
        if page.startswith(b"<!--", start):
            at = _after(page, b"-->", start)
            continue
        tag = _TAG.match(page, start, start + _MOST_TAG)
        if tag is None:  # a doctype, or no tag at all
            at = (
                start + 1 if page[start + 1 : start + 2] not in b"!?" else _after(page, b">", start)
            )
            continue
        name, is_end, at = tag[1].lower(), page[start + 1] == ord("/"), tag.end()
        in_head = in_head and (name not in _ENDING if is_end else name in _OF_HEAD)
        told = _attributes(tag[2])
        if name == b"base":
            base = base or told.get(b"href", "").strip()
        elif name == b"link" and (href := _source_href(told)):
            links.append(PageLink(resolve_reference(base, href), in_head))
        elif name in _RAW and not is_end:
            at = _after(page, b">", _after(small, b"</" + name, at))
    return links


def resolve_reference(base: str, reference: str) -> str:
    """Return the address of a reference; the reference itself if it is invalid."""
    try:
        return urljoin(base, reference)
    except ValueError:  # such as http://[
        return reference


def _after(page: bytes, mark: bytes, at: int) -> int:
    """Return the place behind the next mark; the end of the page when there is none."""
    found = page.find(mark, at)
    return len(page) if found < 0 else found + len(mark)


def _attributes(text: bytes) -> dict[bytes, str]:
    told: dict[bytes, str] = {}
    for name, *values in _ATTRIBUTE.findall(text):
        told.setdefault(name.lower(), unescape(b"".join(values).decode("utf-8", "replace")))
    return told


def _source_href(told: dict[bytes, str]) -> str:
    is_ours = _RELATION in told.get(b"rel", "").lower().split()
    return told.get(b"href", "").strip() if is_ours else ""
