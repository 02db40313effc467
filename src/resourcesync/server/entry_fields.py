"""Fields of an answer that come from the entry of the resource: digests and links.

``Repr-Digest`` is of the whole representation, also in an answer with a part of it, and in one to
HEAD (RFC 9530 §3). Resources are served without a content coding, so it is the digest of the file.
It is sent only if the file is still the one that the digest was computed of. The links of the entry
are sent as ``Link``, as far as they fit.
"""

import re
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, final

import msgspec

from resourcesync.model import digests
from resourcesync.model.entries import Link
from resourcesync.model.vocabulary import Relation
from resourcesync.ports import Clock
from resourcesync.server.asgi import ChunkedResponse, Headers, HttpRequest
from resourcesync.server.conditions_and_ranges import format_http_date
from resourcesync.server.files import FileState

MAX_LINKS_BYTES: Final = 4_096
"""Size of the links of an entry in one answer; many clients accept 8 KiB of fields in all."""

_CACHE_SECONDS: Final = 1.0
_MAX_CACHED: Final = 4_096
_REPR_DIGEST: Final = digests.REPRESENTATION.encode("ascii")
_WITH_ENTRY: Final = frozenset({200, 206})
_SHA256: Final = "sha-256:"
_SHA256_BYTES: Final = 32
_SHA256_LENGTH: Final = len(_SHA256) + 2 * _SHA256_BYTES
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-Z_a-z~%\[\]@]+")
_QUOTABLE: Final = re.compile(r"[ !#-\[\]-~]+")


class ServedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of a served resource.

    ``signature`` is that of the file which the digests are of, as in a catalogue or in the state of
    a mirror: size, modification time and inode, or these and the change time, with colons between.
    Empty if it is not known. ``hash`` is as in the attribute.
    """

    signature: str = ""
    hash: str = ""
    links: tuple[Link, ...] = ()


FindEntry = Callable[[str, str], ServedEntry | None]
"""Function that returns the entry of a resource; ``None`` if it is not listed, or not known now.

Its arguments are the path in the tree, and what follows the base in the address of the resource,
which is empty where the path gives it.
"""


_NO_ENTRY: Final = ServedEntry()
_CachedEntry = tuple[float, ServedEntry, bytes]
"""The time at which it expires, the entry, and its links as the value of ``Link``."""


@final
class EntryFields:
    """The fields of entries, which are cached for a second."""

    def __init__(self, find: FindEntry, clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._cached: dict[tuple[str, str], _CachedEntry] = {}

    def add(
        self,
        response: ChunkedResponse,
        request: HttpRequest,
        place: tuple[str, str],
        condition: FileState,
    ) -> None:
        """Add the fields of the entry to an answer that has the file, or a part of it."""
        if response.status_code not in _WITH_ENTRY:
            return
        entry, link = self._find_cached(place)
        if link:
            _add_link(response, link)
        known = f"{condition.size}:{condition.modified_ns}:{condition.inode}"
        if entry.hash and entry.signature in (known, f"{known}:{condition.changed_ns}"):
            wanted = request.fields.get(digests.WANTED, "")
            response.raw_headers.extend(digest_headers(entry.hash, wanted))

    def _find_cached(self, place: tuple[str, str]) -> tuple[ServedEntry, bytes]:
        now = self._clock.monotonic()
        known = self._cached.get(place)
        if known is None or now >= known[0]:
            found = self._find(*place) or _NO_ENTRY
            link = format_links(found.links) if found.links else b""
            if len(self._cached) >= _MAX_CACHED:
                self._cached.clear()
            self._cached[place] = known = (now + _CACHE_SECONDS, found, link)
        return known[1:]


def digest_headers(hash_: str, wanted: str) -> Headers:
    """Return the ``Repr-Digest`` of an answer, if there is one to send."""
    value = _all_digests(hash_)
    if wanted:
        value = digests.format_digest_field(
            digests.choose_digests(wanted, digests.parse_digests(hash_))
        )
    return ((_REPR_DIGEST, value.encode("ascii")),) if value else ()


def _all_digests(hash_: str) -> str:
    if len(hash_) == _SHA256_LENGTH and hash_.startswith(_SHA256):  # as most: in a tenth of time
        with suppress(ValueError):
            digest = bytes.fromhex(hash_[len(_SHA256) :])
            if len(digest) == _SHA256_BYTES:
                return f"sha-256=:{b2a_base64(digest, newline=False).decode('ascii')}:"
    return digests.format_digest_field(digests.parse_digests(hash_))


def format_links(links: Sequence[Link]) -> bytes:
    """Return links as the value of ``Link`` (RFC 8288), as many of the first ones as fit."""
    parts: list[str] = []
    size = 0
    for link in links:
        if _URI.fullmatch(link.href) is None or _QUOTABLE.fullmatch(link.rel) is None:
            continue
        kind = f'; type="{link.media_type}"' if _QUOTABLE.fullmatch(link.media_type) else ""
        part = f'<{link.href}>; rel="{link.rel}"{kind}{_memento_datetime(link)}'
        size += len(part) + 2
        if size > MAX_LINKS_BYTES:
            break
        parts.append(part)
    return ", ".join(parts).encode("ascii")


def _memento_datetime(link: Link) -> str:
    if link.rel != Relation.MEMENTO or link.modified is None:
        return ""
    return f'; datetime="{format_http_date(int(link.modified.timestamp()))}"'


def _add_link(response: ChunkedResponse, value: bytes) -> None:
    headers = response.raw_headers
    for at, (name, known) in enumerate(headers):
        if name == b"link":
            headers[at] = (name, b"%s, %s" % (known, value))
            return
    headers.append((b"link", value))
