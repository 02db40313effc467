"""Pages that are no documents, and their links to a Source: HTML (§6.3.3), robots.txt.

The reader of HTML is written by hand: the parser of the standard library takes nearly two minutes
for 64 KiB of hostile input. This one reads each character a bounded number of times.
"""

import html
import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from resourcesync.discovery.addresses import is_at_home, join
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
_TAG: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*)")
_SPACE: Final = re.compile(r"[\s/]*+")
_ATTRIBUTE: Final = re.compile(
    r"""([^\s/>=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"'][^\s>]*+)))?"""
)
_IN_HEAD: Final = frozenset(
    {"html", "head", "base", "link", "meta", "noscript", "title", "script", "style", "template"}
)
_RAW: Final = frozenset({"title", "script", "style", "template"})
"""Elements whose content is text, or is not part of the page."""
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


def linked_sets(head: str, base: str) -> tuple[str, ...]:
    """Return where the links ``resourcesync`` in the head of a page lead, in its order.

    The body, comments, scripts and titles do not count: others may write there.
    A ``base`` of another origin is passed over.

    Args:
        head: The beginning of the page.
        base: The page's address.
    """
    found: list[str] = []
    seen_base = False
    for name, attributes in _tags(head):
        if name == "base" and not seen_base and "href" in attributes:
            seen_base = True
            moved = join(base, attributes["href"])
            base = moved if moved is not None and is_at_home(moved, [base]) else base
        relations = attributes.get("rel", "").lower().split()
        if name == "link" and Relation.RESOURCESYNC in relations:
            target = join(base, attributes.get("href", ""))
            if target is not None and target not in found:
                found.append(target)
        if len(found) >= _MAX_LINKS:
            break
    return tuple(found)


def _tags(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the start tags of the head, with their attributes, until the head ends."""
    is_xml = text.lstrip().startswith("<?xml")
    position = 0
    while (start := text.find("<", position)) >= 0 and not text[position:start].strip():
        tag = _TAG.match(text, start)
        if tag is None:
            position = _after_declaration(text, start)
        elif tag[1]:
            if tag[2].lower() in ("head", "body", "html"):
                return
            position = _after(text, ">", tag.end())
        else:
            name = tag[2].lower()
            attributes, position = _attributes(text, tag.end())
            if name not in _IN_HEAD or position < 0:
                return
            yield name, attributes
            if name in _RAW and not (is_xml and text[position - 2] == "/"):
                end = re.compile(rf"</{name}\b", re.IGNORECASE).search(text, position)
                position = -1 if end is None else _after(text, ">", end.end())
        if position < 0:
            return


def _after(text: str, mark: str, position: int) -> int:
    found = text.find(mark, position)
    return -1 if found < 0 else found + len(mark)


def _after_declaration(text: str, start: int) -> int:
    """Return where a comment, doctype or instruction ends; -1 when it does not, or is none."""
    if text.startswith("<!--", start):
        return _after(text, "-->", start + 2)
    return _after(text, ">", start) if text[start + 1 : start + 2] in ("!", "?") else -1


def _attributes(text: str, position: int) -> tuple[dict[str, str], int]:
    """Return the attributes of a tag, and where it ends; -1 when it is cut short or broken."""
    attributes: dict[str, str] = {}
    while True:
        space = _SPACE.match(text, position)
        position = position if space is None else space.end()
        if text.startswith(">", position):
            return attributes, position + 1
        found = _ATTRIBUTE.match(text, position)
        if found is None:
            return attributes, -1
        value = next((name for name in found.group(2, 3, 4) if name is not None), "")
        attributes.setdefault(found[1].lower(), html.unescape(value))
        position = found.end()


def named_sitemaps(stream: BinaryIO, base: str) -> tuple[str, ...]:
    """Return the targets of the ``Sitemap`` lines of a ``robots.txt``, in its order (§6.3.4).

    Args:
        stream: The file.
        base: Its address.
    """
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
