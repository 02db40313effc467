"""The HTTP ``Link`` field (RFC 8288): what discovery and publishers need, in linear time."""

import re
from typing import Final

import msgspec

from resourcesync.discovery.uris import join, origin_if_any
from resourcesync.model.links import Link
from resourcesync.model.vocabulary import Relation

_MAX_LENGTH: Final = 64 * 1024
_MAX_LINKS: Final = 64

SIGNPOSTS: Final = (str(Relation.DESCRIBED_BY), "item", "cite-as", "license")
"""Relations that say of a resource what its list should say, too (https://signposting.org/)."""
MAX_SIGNPOSTS: Final = 32
"""Most links of one answer that are stored; with `MAX_SIGNPOST_LENGTH` each."""
MAX_SIGNPOST_LENGTH: Final = 2_048

_WRITABLE: Final = re.compile(r"[!#-;=?-Z_a-z~%\[\]@]+")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}")
_DECODER: Final = msgspec.json.Decoder(list[tuple[str, str, str]])


def find_target(field: str, relation: str, base: str) -> str | None:
    """Return the target of the first link of this relation, as an absolute URI, or ``None``."""
    return next(iter(find_targets(field, relation, base)), None)


def find_targets(field: str, relation: str, base: str) -> tuple[str, ...]:
    """Return the targets of the links of this relation, as absolute URIs, each once.

    Links with an ``anchor`` speak of another resource and are passed over, as is what no program
    can take for an address.
    """
    found: dict[str, None] = {}
    for target, parameters in _links(field[:_MAX_LENGTH]):
        relations = parameters.get("rel", "").lower().split()
        if relation in relations and "anchor" not in parameters:
            absolute = join(base, target) if target else base
            if absolute:
                found.setdefault(absolute)
    return tuple(found)


def find_signposts(field: str, base: str) -> tuple[Link, ...]:
    """Return the links of a resource's ``Link`` field that belong into its entry, sorted.

    Only addresses of http and https that can stand in a document as they are, of limited length;
    the first `MAX_SIGNPOSTS`. The order of a field means nothing, and may differ each time.
    """
    found: dict[tuple[str, str], Link] = {}
    for target, parameters in _links(field[:_MAX_LENGTH]):
        href = _address(target, base)
        if not href or "anchor" in parameters:
            continue
        kind = parameters.get("type", "")
        media_type = kind.lower() if _MEDIA_TYPE.fullmatch(kind) else ""
        for relation in parameters.get("rel", "").lower().split():
            if relation in SIGNPOSTS and len(found) < MAX_SIGNPOSTS:
                link = Link(rel=relation, href=href, media_type=media_type)
                found.setdefault((relation, href), link)
    return tuple(link for _, link in sorted(found.items(), key=lambda item: item[0]))


def _address(target: str, base: str) -> str:
    """Return a target as an absolute address other than the base; empty if it is none."""
    href = target if _SCHEME.match(target) else join(base, target) or ""
    is_usable = (
        len(href) <= MAX_SIGNPOST_LENGTH
        and _WRITABLE.fullmatch(href) is not None
        and href.partition(":")[0].lower() in {"http", "https"}
        and origin_if_any(href) != ""
    )
    return href if is_usable and href != base else ""


def encode_links(links: tuple[Link, ...]) -> str:
    """Return found links as a text to store; empty for none."""
    rows = [(link.rel, link.href, link.media_type) for link in links]
    return msgspec.json.encode(rows).decode() if rows else ""


def decode_links(text: str) -> tuple[Link, ...]:
    """Return the links of a text that ``encode_links`` made."""
    rows = _DECODER.decode(text) if text else []
    return tuple(Link(rel=rel, href=href, media_type=kind) for rel, href, kind in rows)


def _links(field: str) -> list[tuple[str, dict[str, str]]]:
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
    """Read up to the next ``;`` or ``,`` outside quotes; quotes and backslashes are removed."""
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
