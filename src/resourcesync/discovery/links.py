"""Links to a Source that are in no document: the HTTP ``Link`` field, HTML, robots.txt (§6.3).

The field (RFC 8288) is read in linear time, as far as discovery needs it. HTML is
read by justhtml, as browsers read it, and at most 64 KiB of it: hostile ones take a second.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from resourcesync.discovery.document_fetcher import FetchedDocument
from resourcesync.discovery.uris import is_at_home, join
from resourcesync.errors import DocumentError, DocumentLimitError
from resourcesync.model.entries import Part
from resourcesync.model.vocabulary import Relation

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document

_MAX_LENGTH: Final = 64 * 1024
_MAX_LINKS: Final = 64


def find_target(field: str, relation: str, base: str) -> str | None:
    """Return the target of the first link of this relation, as an absolute URI, or ``None``."""
    return next(iter(find_targets(field, relation, base)), None)


def find_targets(field: str, relation: str, base: str) -> tuple[str, ...]:
    """Return the targets of the links of this relation, as absolute URIs, each once.

    Links with an ``anchor`` speak of another resource and are passed over, as is what no program
    can take for an address.
    """
    found: dict[str, None] = {}
    for target, parameters in parse_field(field):
        relations = parameters.get("rel", "").lower().split()
        if relation in relations and "anchor" not in parameters:
            absolute = join(base, target) if target else base
            if absolute:
                found.setdefault(absolute)
    return tuple(found)


def parse_field(field: str) -> list[tuple[str, dict[str, str]]]:
    """Return the targets of a ``Link`` field as written, with their parameters."""
    field = field[:_MAX_LENGTH]
    found: list[tuple[str, dict[str, str]]] = []
    position = 0
    while len(found) < _MAX_LINKS:
        start = field.find("<", position)
        end = field.find(">", start + 1)
        if start < 0 or end < 0:
            break
        parameters, position = _parameters(field, end + 1)
        found.append((field[start + 1 : end].strip(), parameters))
    return found


def _parameters(field: str, position: int) -> tuple[dict[str, str], int]:
    parameters: dict[str, str] = {}
    while position < len(field):
        piece, position, separator = _piece(field, position)
        name, equals, value = piece.partition("=")
        if equals:
            parameters.setdefault(name.strip().lower(), value.strip())
        elif name.strip():
            parameters.setdefault(name.strip().lower(), "")
        if separator == ",":
            break
    return parameters, position


def _piece(field: str, position: int) -> tuple[str, int, str]:
    text: list[str] = []
    quoted = False
    while position < len(field):
        letter = field[position]
        position += 1
        if letter == '"':
            quoted = not quoted
        elif quoted and letter == "\\" and position < len(field):
            text.append(field[position])
            position += 1
        elif not quoted and letter in ";,":
            return "".join(text), position, letter
        else:
            text.append(letter)
    return "".join(text), position, ""


MAX_PAGE: Final = 64 * 1024
"""Bytes of a page that are read: the head of an honest one is shorter."""
_MAX_FOLLOWED: Final = 16

_BEFORE_ROOT: Final = re.compile(r"\s+|<!--.*?-->|<\?.*?>", re.DOTALL)
_ROOT: Final = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


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


class PageLink(NamedTuple):
    """A link of a page: its address as written, and its place."""

    href: str
    in_head: bool


def page_links(page: str, relation: str = Relation.RESOURCESYNC) -> tuple[str, list[PageLink]]:
    """Return the ``base`` of a page, if it has one, and its links of a relation in their order.

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
        if node.name == "link" and relation in relations and href:
            links.append(PageLink(href, in_head))
        in_head = in_head or node.name == "head"
        waiting += [
            (child, in_head) for child in reversed(node.children) if isinstance(child, Element)
        ]
    return bases[0] if bases else "", links


def head_links(head: str, base: str, relation: str = Relation.RESOURCESYNC) -> tuple[str, ...]:
    """Return where the links of a relation in the head of a page lead, in its order.

    The body does not count: others may write there. A ``base`` of another origin is passed over.
    """
    own, links = page_links(head, relation)
    moved = join(base, own) if own else None
    if moved is not None and is_at_home(moved, [base]):
        base = moved
    targets = (join(base, link.href) for link in links if link.in_head)
    return tuple(dict.fromkeys(target for target in targets if target is not None))[:_MAX_FOLLOWED]


def named_sitemaps(robots: FetchedDocument) -> tuple[str, ...]:
    """Return the sitemaps that a ``robots.txt`` names, in its order (§6.3.4)."""
    try:
        return tuple(entry.uri for entry in robots.open().entries() if isinstance(entry, Part))
    except DocumentLimitError:
        raise
    except DocumentError:  # it names none, or is a page
        return ()


def own_sitemaps(robots: "Document", homes: Iterable[str]) -> dict[str, Part]:
    """Return the sitemaps of a ``robots.txt`` that are on its origin or on one of the others.

    Somebody else may write it on the same host, so it leads nowhere else.
    """
    homes = (robots.uri, *homes)
    parts = (entry for entry in robots.entries() if isinstance(entry, Part))
    return {part.uri: part for part in parts if is_at_home(part.uri, homes)}
