"""XML output: escaping, excluded characters, and links, times and digests as attributes."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from resourcesync.documents._values import LINK_KNOWN, MAX_PRIORITY, MOST_BYTES
from resourcesync.documents.dialects import DialectForm
from resourcesync.documents.expat import RS_NAMESPACES, XML_NS, XmlDriver
from resourcesync.model.digests import format_digests
from resourcesync.model.entries import Extra, Header, Link, TimedPointer
from resourcesync.model.timestamps import format_w3c

SPECIAL: Final = re.compile('[&<>"\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]')
"""Characters that are escaped in XML text or attributes."""

_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    # A reader turns these into blanks or line feeds unless they are written as references; the
    # controls from 7F on are legal, but confusing if written raw.
    | {chr(code): f"&#{code};" for code in (9, 10, 13, *range(0x7F, 0xA0))}
)
_REFERENCE: Final = re.compile(rb"&(?:#([0-9]+)|(amp|lt|gt|quot));")
_NAMED: Final = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"'}
_ASCII_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9._\-]*")
_NO_NAME: Final = re.compile(r"[\s<>&'\"/=:?!{}\x00-\x1f]")


def escape(text: str) -> str:
    """Return ``text`` for an element or for an attribute in double quotes."""
    if not SPECIAL.search(text):
        return text
    found = _FORBIDDEN.search(text)
    if found:
        raise ValueError(f"XML cannot carry the character {found[0]!r} in {text[:64]!r}")
    return text.translate(_ESCAPES)


def unescaped(octets: bytes) -> bytes:
    """Return the UTF-8 of the text that `escape` made these octets of."""
    return _REFERENCE.sub(_character, octets) if b"&" in octets else octets


def _character(found: re.Match[bytes]) -> bytes:
    return _NAMED[found[2]] if found[1] is None else chr(int(found[1])).encode()


@lru_cache(maxsize=256)
def is_name(text: str) -> bool:
    """True if ``text`` can be the local name of an attribute."""
    if _ASCII_NAME.fullmatch(text):
        return True
    if not text or _NO_NAME.search(text):
        return False
    try:  # XML's letters beyond ASCII are a long list, and expat is what knows it
        XmlDriver(lambda fault: ValueError(fault.detail)).read(f"<{text}/>".encode())
    except ValueError:
        return False
    return True


_RESERVED: Final = frozenset({*RS_NAMESPACES, "http://www.w3.org/2000/xmlns/"})

Timed = Header | TimedPointer
"""Attributes of a snapshot or of an interval."""


def attribute(name: str, text: str) -> str:
    """Return one attribute, or nothing when it would be empty."""
    return f' {name}="{escape(text)}"' if text else ""


def moment_text(when: datetime | None) -> str:
    """Return a time in UTC, or nothing for ``None``."""
    if when is None:
        return ""
    if when.tzinfo is UTC:  # the usual case, without a copy; isoformat ends in +00:00
        return f"{when.isoformat()[:-6]}Z"
    return format_w3c(when)


def length_text(length: int | None) -> str:
    """Return a number of bytes, or nothing for ``None``."""
    if length is None:
        return ""
    if not 0 <= length <= MOST_BYTES:
        raise ValueError(f"{length} is not a number of bytes")
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
    """Return foreign attributes; each namespace gets a prefix by the order of appearance."""
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
        elif namespace == XML_NS:
            prefix = "xml:"
        else:
            if namespace not in prefixes:
                prefixes[namespace] = f"x{len(prefixes) + 1}"
                parts.append(f' xmlns:{prefixes[namespace]}="{escape(namespace)}"')
            prefix = f"{prefixes[namespace]}:"
        parts.append(f' {prefix}{local}="{escape(value)}"')
    return "".join(parts)


def _split_name(name: str) -> tuple[str, str]:
    namespace, _, local = name.removeprefix("{").rpartition("}")
    if name.startswith("{") is not bool(namespace) or namespace in _RESERVED or not is_name(local):
        raise ValueError(f"{name!r} cannot be the name of an extra attribute")
    return namespace, local
