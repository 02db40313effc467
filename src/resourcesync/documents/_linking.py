"""``rs:ln`` becomes links: what a link says wrongly spoils nothing else (§7, §14)."""

from collections.abc import Callable
from typing import TypeVar

from resourcesync.documents._context import ReadingContext, RefusalError
from resourcesync.documents._dialects import VIA_CHAIN
from resourcesync.documents._values import (
    ILLEGAL,
    LINK_KNOWN,
    MAX_PRIORITY,
    digests,
    length_of,
    split_attributes,
)
from resourcesync.model.links import Link
from resourcesync.model.timestamps import parse_w3c

T = TypeVar("T")


def read_links(found: list[list[str]], context: ReadingContext) -> tuple[Link, ...]:
    """Return the links that lead somewhere; a link without ``rel`` or ``href`` does not."""
    made = tuple(link for flat in found if (link := _read_link(flat, context)) is not None)
    if len(made) > 1 and sum(link.has_relation("via") for link in made) > 1:
        context.version_marks.add(VIA_CHAIN)
    return made


def _read_link(flat: list[str], context: ReadingContext) -> Link | None:
    values, extra = split_attributes(flat, LINK_KNOWN, context)
    href, rel = values.get("href", ""), values.get("rel", "")
    target = _target(href, context) if rel else None
    if target is None:
        context.tolerate("link-incomplete")
        return None
    return Link(
        rel=rel,
        href=target,
        media_type=values.get("type", ""),
        length=_read_hint(length_of, values.get("length"), "G26", context),
        digests=_read_hint(digests, values.get("hash"), "G29", context) or (),
        encoding=values.get("encoding", ""),
        modified=_read_hint(parse_w3c, values.get("modified"), "G17", context),
        path=values.get("path", ""),
        priority=_read_hint(_priority, values.get("pri"), "G25", context),
        extra=extra,
    )


def _target(href: str, context: ReadingContext) -> str | None:
    """Return where a link leads; ``None`` when that is nowhere."""
    if len(href) > context.longest:
        context.drop_value("value-long", about=href)
        return None
    if not href or ILLEGAL.search(href):
        return None
    try:
        return context.absolute(href)
    except RefusalError:
        return None


def _read_hint(
    read: Callable[[str], T | None], text: str | None, rule: str, context: ReadingContext
) -> T | None:
    """Return what an attribute of a link says; one that says nothing sound spoils nothing."""
    if text is None:
        return None
    try:
        found = read(text)
    except (ValueError, RefusalError):
        found = None
    if found is None:
        context.tolerate("link-attribute", rule=rule, about=text)
    return found


def _priority(text: str) -> int | None:
    value = length_of(text)
    return value if 1 <= value <= MAX_PRIORITY else None
