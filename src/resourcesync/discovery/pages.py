"""Pages that are no documents, and their links to a Source: HTML (§6.3.3), robots.txt.

HTML is read by justhtml, as browsers read it, and at most 64 KiB of it: hostile ones take a second.
"""

import re
from typing import BinaryIO, Final, NamedTuple

from resourcesync.discovery.uris import is_at_home, join
from resourcesync.model.vocabulary import Relation

MAX_PAGE: Final = 64 * 1024
"""Bytes of a page that are read: the head of an honest one is shorter."""
MAX_ROBOTS: Final = 500 * 1024
"""Bytes of a ``robots.txt`` that are read (RFC 9309 §2.5)."""
MAX_SITEMAPS: Final = 100
"""``Sitemap`` lines that are followed."""
_MAX_LINKS: Final = 16

_BEFORE_ROOT: Final = re.compile(r"\s+|<!--.*?-->|<\?.*?>", re.DOTALL)
_ROOT: Final = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_OLD_FEED: Final = re.compile(r"<(?:\w+:)?RDF\b")
_SITEMAP: Final = re.compile(r"[ \t]*sitemap[ \t]*:[ \t]*([^\s#]+)", re.IGNORECASE)
_LINES: Final = re.compile(r"\r\n|\r|\n")


def head_of(stream: BinaryIO) -> str:
    """Return the beginning of a page as text; its address is all that must survive."""
    stream.seek(0)
    data = stream.read(MAX_PAGE)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace").replace("\0", "")


def is_html(head: str) -> bool:
    """True if a text begins as pages of HTML do."""
    position = 0
    while (found := _BEFORE_ROOT.match(head, position)) is not None:
        position = found.end()
    return _ROOT.match(head, position) is not None


def is_markup(head: str) -> bool:
    """True if a text could be a document of XML at all."""
    return head.lstrip(" \t\r\n")[:1] in ("<", "\x1f", "")


def unsupported_format(head: str) -> str:
    """Return the name of another form of sitemap that a text has; empty if none."""
    position = 0
    while (found := _BEFORE_ROOT.match(head, position)) is not None:
        position = found.end()
    return "an RSS 1.0 feed" if _OLD_FEED.match(head, position) else ""


class PageLink(NamedTuple):
    """A ``resourcesync`` link of a page: its address as written, and its place."""

    href: str
    in_head: bool


def page_links(page: str) -> tuple[str, list[PageLink]]:
    """Return the ``base`` of a page, if it has one, and its ``resourcesync`` links in their order.

    Those in comments, scripts, titles and templates do not count.
    """
    from justhtml import Element, JustHTML  # noqa: PLC0415 - rarely needed

    bases: list[str] = []
    links: list[PageLink] = []
    tree = JustHTML(page[:MAX_PAGE], sanitize=False, scripting_enabled=False)
    waiting = [
        (node, False) for node in reversed(tree.root.children or ()) if isinstance(node, Element)
    ]
    while waiting:
        node, in_head = waiting.pop()
        told = {name: value or "" for name, value in node.attrs.items()}
        href = told.get("href", "").strip()
        if node.name == "base" and in_head and "href" in told:
            bases.append(href)
        relations = told.get("rel", "").lower().split()
        if node.name == "link" and Relation.RESOURCESYNC in relations and href:
            links.append(PageLink(href, in_head))
        in_head = in_head or node.name == "head"
        waiting += [
            (child, in_head) for child in reversed(node.children) if isinstance(child, Element)
        ]
    return bases[0] if bases else "", links


def linked_sets(head: str, base: str) -> tuple[str, ...]:
    """Return where the links ``resourcesync`` in the head of a page lead, in its order.

    The body does not count: others may write there. A ``base`` of another origin is passed over.
    """
    own, links = page_links(head)
    moved = join(base, own) if own else None
    if moved is not None and is_at_home(moved, [base]):
        base = moved
    targets = (join(base, link.href) for link in links if link.in_head)
    return tuple(dict.fromkeys(target for target in targets if target is not None))[:_MAX_LINKS]


def named_sitemaps(stream: BinaryIO, base: str) -> tuple[str, ...]:
    """Return the targets of the ``Sitemap`` lines of a ``robots.txt``, in its order (§6.3.4)."""
    stream.seek(0)
    text = stream.read(MAX_ROBOTS).decode("utf-8-sig", "replace").replace("\0", "")
    targets: dict[str, None] = {}
    for line in _LINES.split(text):
        found = _SITEMAP.match(line)
        target = None if found is None else join(base, found[1])
        if target is not None:
            targets.setdefault(target)
        if len(targets) >= MAX_SITEMAPS:
            break
    return tuple(targets)
