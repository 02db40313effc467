"""The links of a file's answer that belong into its entry (https://signposting.org/)."""

import re
from typing import Final

import msgspec

from resourcesync.discovery.links import parse_field
from resourcesync.discovery.uris import join, origin_if_any
from resourcesync.model.entries import Link
from resourcesync.model.vocabulary import Relation

SIGNPOSTS: Final = (str(Relation.DESCRIBED_BY), "item", "cite-as", "license")
"""Relations that say of a resource what its list should say, too (https://signposting.org/)."""
MAX_SIGNPOSTS: Final = 32
"""Most links of one answer that are stored; with `MAX_SIGNPOST_LENGTH` each."""
MAX_SIGNPOST_LENGTH: Final = 2_048

_WRITABLE: Final = re.compile(r"[!#-;=?-Z_a-z~%\[\]@]+")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}")
_DECODER: Final = msgspec.json.Decoder(list[tuple[str, str, str]])


def find_signposts(field: str, base: str) -> tuple[Link, ...]:
    """Return the links of a resource's ``Link`` field that belong into its entry, sorted.

    Only addresses of http and https that can stand in a document as they are, of limited length;
    the first `MAX_SIGNPOSTS`. The order of a field means nothing, and may differ each time.
    """
    found: dict[tuple[str, str], Link] = {}
    for target, parameters in parse_field(field):
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
