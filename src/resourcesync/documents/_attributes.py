"""Links, times, digests and foreign attributes as the text of XML attributes."""

from datetime import UTC, datetime
from typing import Final

from resourcesync.documents._escaping import escape, is_name
from resourcesync.documents._forms import DialectForm
from resourcesync.documents._tokens import RS_NAMESPACES
from resourcesync.documents._values import LINK_KNOWN, MAX_PRIORITY, MOST_BYTES
from resourcesync.model.capabilities import DocumentChange, Header, Package, Part
from resourcesync.model.digests import format_digests
from resourcesync.model.links import Extra, Link
from resourcesync.model.timestamps import format_w3c

_XML_NS: Final = "http://www.w3.org/XML/1998/namespace"
_RESERVED: Final = frozenset({*RS_NAMESPACES, "http://www.w3.org/2000/xmlns/"})

Timed = Header | Part | Package | DocumentChange
"""What tells of a snapshot or of an interval."""


def attribute(name: str, text: str) -> str:
    """Return one attribute, or nothing when it would be empty.

    Raises:
        ValueError: The text holds a character that XML cannot carry.
    """
    return f' {name}="{escape(text)}"' if text else ""


def moment_text(when: datetime | None) -> str:
    """Return a time in UTC, or nothing for ``None``.

    Raises:
        ValueError: It has no zone.
    """
    if when is None:
        return ""
    if when.tzinfo is UTC:  # the usual case, without a copy; isoformat ends in +00:00
        return f"{when.isoformat()[:-6]}Z"
    if when.tzinfo is None:
        raise ValueError(f"the time {when} has no zone")
    return format_w3c(when)


def length_text(length: int | None) -> str:
    """Return a number of bytes, or nothing for ``None``.

    Raises:
        ValueError: It is below zero, or more than `MOST_BYTES`.
    """
    if length is None:
        return ""
    if not 0 <= length <= MOST_BYTES:
        raise ValueError(f"{length} is no number of bytes")
    return str(length)


def interval(told: Timed) -> str:
    """Return the times of a root or of an entry that points to a document."""
    return (
        attribute("at", moment_text(told.at))
        + attribute("completed", moment_text(told.completed))
        + attribute("from", moment_text(told.from_))
        + attribute("until", moment_text(told.until))
    )


def root_times(header: Header, form: DialectForm) -> str:
    """Return the times of a root in the dialect's own words; see `dialects.narrow_header`."""
    if form.times == "at":
        return interval(header)
    if form.times == "modified":
        return attribute("modified", moment_text(header.at or header.modified))
    return attribute("from", moment_text(header.at or header.from_)) + attribute(
        "until", moment_text(header.until)
    )


def link_element(link: Link) -> str:
    """Return a link.

    Raises:
        ValueError: It has no ``rel`` or ``href``, or something in it cannot be written.
    """
    if not link.rel or not link.href:
        raise ValueError("a link needs rel and href (§7)")
    if link.priority is not None and not 1 <= link.priority <= MAX_PRIORITY:
        raise ValueError(f"{link.priority} is no priority")
    return (
        "<rs:ln"
        + attribute("rel", link.rel)
        + attribute("href", link.href)
        + attribute("hash", format_digests(link.digests))
        + attribute("length", length_text(link.length))
        + attribute("modified", moment_text(link.modified))
        + attribute("path", link.path)
        + attribute("pri", "" if link.priority is None else str(link.priority))
        + attribute("type", link.media_type)
        + attribute("encoding", link.encoding)
        + extra_attributes(link.extra, LINK_KNOWN)
        + "/>"
    )


def extra_attributes(extra: Extra, known: frozenset[str]) -> str:
    """Return foreign attributes; each namespace gets a prefix by the order of appearance.

    Args:
        extra: The attributes.
        known: Names that mean something of their own here, and so cannot be extra.

    Raises:
        ValueError: A name cannot be written, or is there twice.
    """
    prefixes: dict[str, str] = {}
    parts: list[str] = []
    if len({name for name, _ in extra}) != len(extra):
        raise ValueError("an extra attribute is there twice")
    for name, value in extra:
        namespace, local = _split_name(name)
        if not namespace:
            if local in known or local == "xmlns":
                raise ValueError(f"{local!r} is no extra attribute here")
            prefix = ""
        elif namespace == _XML_NS:
            prefix = "xml:"
        else:
            if namespace not in prefixes:
                prefixes[namespace] = f"x{len(prefixes) + 1}"
                parts.append(f' xmlns:{prefixes[namespace]}="{escape(namespace)}"')
            prefix = f"{prefixes[namespace]}:"
        parts.append(f' {prefix}{local}="{escape(value)}"')
    return "".join(parts)


def _split_name(name: str) -> tuple[str, str]:
    """Part ``{namespace}local``."""
    namespace, _, local = name.removeprefix("{").rpartition("}")
    if name.startswith("{") is not bool(namespace) or namespace in _RESERVED or not is_name(local):
        raise ValueError(f"{name!r} cannot be the name of an extra attribute")
    return namespace, local
