"""Resources and changes as lines of JSON, for programs that maintain a catalogue.

One object a line, in UTF-8. Its names are those of the specification: ``uri``, ``lastmod``,
``length``, ``hash``, ``type``, ``encoding``, ``changefreq``, ``links``. A change has ``change``
too, and ``datetime`` and ``number``, which are written and ignored when read: a catalogue assigns
its own.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, Final, Literal

import msgspec

from resourcesync.errors import DocumentLimitError, MalformedDocumentError
from resourcesync.model.digests import format_digests, parse_digests
from resourcesync.model.entries import Change, Link, Resource
from resourcesync.model.timestamps import format_w3c, parse_w3c
from resourcesync.model.vocabulary import ChangeKind

MAX_LINE: Final = 1 << 20
BAD_LINE: Final = "ndjson"
"""The code of an unusable line: it is the operator's, not a Source's."""
"""The most bytes of one line."""
_HASHES: Final = re.compile(r"(?:[!-9;-~]+:[!-~]+(?: [!-9;-~]+:[!-~]+)*)?")
_MAX_LENGTH: Final = (1 << 63) - 1


class _JsonLink(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    rel: str
    href: str
    type: str = ""
    length: int | None = None
    hash: str = ""
    encoding: str = ""
    modified: str = ""
    path: str = ""
    pri: int | None = None
    extra: dict[str, str] = {}


class _JsonLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    uri: str
    change: Literal["created", "updated", "deleted"] | None = None
    datetime: str = ""
    number: int | None = None
    lastmod: str = ""
    length: int | None = None
    hash: str = ""
    type: str = ""
    encoding: str = ""
    changefreq: str = ""
    links: list[_JsonLink] = []
    extra: dict[str, str] = {}
    foreign: list[str] = []


_decode: Final = msgspec.json.Decoder(_JsonLine).decode
_encode: Final = msgspec.json.Encoder().encode


def read(stream: BinaryIO, *, name: str) -> Iterator[Resource | Change]:
    """Yield the values of the lines, one after the other; empty lines are skipped."""
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE or not line.isspace():
            yield read_line(line, name=name, number=number)


def read_line(line: bytes, *, name: str, number: int = 0) -> Resource | Change:
    """Return the value of one line, which is not empty."""
    place = f"{name}, line {number}" if number else name
    if len(line) > MAX_LINE:
        raise DocumentLimitError(
            f"{place}: longer than {MAX_LINE:,} bytes", uri=name, line=number, code=BAD_LINE
        )
    try:
        return _value(_decode(line))
    except (msgspec.MsgspecError, ValueError) as error:
        raise MalformedDocumentError(
            f"{place}: {error}",
            uri=name,
            line=number,
            evidence=(("line", line[:200].decode("utf-8", "replace").strip()),),
            hint='a line is such as {"uri": "https://example.org/a", "length": 12}',
            code=BAD_LINE,
        ) from error


def write(resource: Resource) -> bytes:
    """Return a resource as one line, with its line end."""
    return _encode(_line(resource)) + b"\n"


def write_change(number: int, entry: Change) -> bytes:
    """Return a change as one line, with its line end and its number in the catalogue."""
    line = _line(entry.resource)
    line.number = number
    line.change = entry.kind.value
    line.datetime = _format_time(entry.time)
    return _encode(line) + b"\n"


def _value(line: _JsonLine) -> Resource | Change:
    if not line.uri:
        raise ValueError("uri is empty")
    resource = Resource(
        uri=line.uri,
        lastmod=_moment(line.lastmod),
        length=_length(line.length),
        digests=parse_digests(_hash(line.hash)),
        media_type=line.type,
        encoding=line.encoding,
        changefreq=line.changefreq,
        links=tuple(map(_link, line.links)),
        extra=tuple(line.extra.items()),
        foreign=tuple(line.foreign),
    )
    if line.change is None:
        return resource
    return Change(kind=ChangeKind(line.change), time=_moment(line.datetime), resource=resource)


def _link(link: _JsonLink) -> Link:
    return Link(
        rel=link.rel,
        href=link.href,
        media_type=link.type,
        length=_length(link.length),
        digests=parse_digests(_hash(link.hash)),
        encoding=link.encoding,
        modified=_moment(link.modified),
        path=link.path,
        priority=link.pri,
        extra=tuple(link.extra.items()),
    )


def _line(resource: Resource) -> _JsonLine:
    return _JsonLine(
        uri=resource.uri,
        lastmod=_format_time(resource.lastmod),
        length=resource.length,
        hash=format_digests(resource.digests),
        type=resource.media_type,
        encoding=resource.encoding,
        changefreq=resource.changefreq,
        links=[
            _JsonLink(
                rel=link.rel,
                href=link.href,
                type=link.media_type,
                length=link.length,
                hash=format_digests(link.digests),
                encoding=link.encoding,
                modified=_format_time(link.modified),
                path=link.path,
                pri=link.priority,
                extra=dict(link.extra),
            )
            for link in resource.links
        ],
        extra=dict(resource.extra),
        foreign=list(resource.foreign),
    )


def _moment(text: str) -> datetime | None:
    return parse_w3c(text) if text else None


def _format_time(moment: datetime | None) -> str:
    return "" if moment is None else format_w3c(moment)


def _length(value: int | None) -> int | None:
    if value is not None and not 0 <= value <= _MAX_LENGTH:
        raise ValueError(f"length is out of range: {value}")
    return value


def _hash(text: str) -> str:
    if not _HASHES.fullmatch(text):
        raise ValueError(f"hash is not such as sha-256:…: {text[:80]!r}")
    return text
