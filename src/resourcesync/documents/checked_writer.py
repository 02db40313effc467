"""The public writer: entries of other programs in, a valid document out (§7, §10.1, §12.1).

A column is tested at once, in loops that are C; its values one by one only where that fails.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain, islice
from typing import Final

from resourcesync.documents import writer
from resourcesync.documents._entry_output import ColumnTexts
from resourcesync.documents._xml_output import escape
from resourcesync.model.digests import ALGORITHMS, Digest, are_sha256, format_digests
from resourcesync.model.entries import DocumentPointer, Entry, Header, Package, Part
from resourcesync.model.vocabulary import MAX_ENTRIES, Dialect

_MAX_URI: Final = 2_047
_URI_OCTETS: Final = (
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&'()*+,;=%"
)
_URI: Final = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*:[{re.escape(_URI_OCTETS.decode())}]+")
_NO_HOST: Final = re.compile(r"https?:(?!//[^/?#])", re.IGNORECASE)
_HOME: Final = re.compile("https?://[^/?#\x80-\U0010ffff]+/")
_LONE_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_MEDIA_TYPE: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+ *(;.*)?")
_DIGEST: Final = re.compile(r"([^\s:]+):(\S+)")
_BARE: Final = frozenset(name.replace("-", "") for name in ALGORITHMS)
_FREQUENCIES: Final = frozenset(
    {"", "always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}
)


def write(
    header: Header, entries: Iterable[Entry], dialect: Dialect = Dialect.V1_1
) -> Iterator[bytes]:
    """Yield a whole document in chunks of about 64 KiB, in memory that does not grow with it.

    Args:
        header: The header.
        entries: The entries, all of the kind of the header, at most 50,000; changes in the order of
            their times.
        dialect: The version to write. What it lacks is left out.

    Raises:
        ValueError: The document would not be valid: the header lacks a time that its capability
            must have, or has another; an entry is of another kind, its URI is not absolute and
            percent-encoded, or another value is none of its form; a change is earlier than the one
            before it, or outside of the header's times; there are too many entries; a text cannot
            be written in XML; or the dialect is not written, or has no such document.

    Example:
        >>> from datetime import UTC, datetime
        >>> header = Header(capability=Capability.RESOURCE_LIST, at=datetime.now(UTC))
        >>> text = b"".join(write(header, [Resource("https://museum.example/jug", length=5)]))
        >>> [entry.uri for entry in read(text).entries()]
        ['https://museum.example/jug']
    """
    remaining = iter(entries)
    limited = chain(islice(remaining, MAX_ENTRIES), _refused(remaining))
    return writer.write(header, limited, dialect, texts=CheckedColumns(header))


def _refused(entries: Iterable[Entry]) -> Iterator[Entry]:
    for _ in entries:
        raise ValueError(f"a document has at most {MAX_ENTRIES:,} entries (§7)")
    yield from ()


class CheckedColumns(ColumnTexts):
    """The texts of columns of values, each of which is checked."""

    def __init__(self, header: Header) -> None:
        self._last = header.from_
        self._until = header.until

    def uris(self, column: Sequence[str]) -> Sequence[str]:
        """Return URIs, each of which is absolute and percent-encoded."""
        joined = "\n" + "\n".join(column)
        octets = joined.encode("utf-8", "surrogatepass")
        home = _HOME.match(column[0])
        is_plain = (
            home is not None
            and joined.count(f"\n{home[0]}") == len(column)  # as most: of one site
            and len(octets.translate(None, _URI_OCTETS)) == len(column)
            and not ("%" in joined and _LONE_PERCENT.search(joined))
            and max(map(len, column)) <= _MAX_URI
        )
        if not is_plain:
            for uri in column:
                _check_uri(uri)
        return [escape(uri) for uri in column] if "&" in joined else column

    def times(self, column: Sequence[datetime | None]) -> Sequence[str]:
        """Return times that rise, from the one of the list and until that of its end."""
        texts = super().times(column)
        times = [time for time in (self._last, *column) if time is not None]
        if times != sorted(times):
            raise ValueError("a change is earlier than the one before it, or than from (§12.1)")
        if times and self._until is not None and times[-1] > self._until:
            raise ValueError("a change is later than until (§7)")
        self._last = times[-1] if times else None
        return texts

    def frequencies(self, column: Sequence[str]) -> Sequence[str]:
        """Return words of the Sitemap protocol."""
        for word in set(column) - _FREQUENCIES:
            raise ValueError(f"{word[:200]!r} is no changefreq (§7)")
        return column

    def hashes(self, column: Sequence[str]) -> Sequence[str]:
        """Return digests; those of a known algorithm have its number of hexadecimal digits."""
        if are_sha256(column):
            return column
        for text in column:
            _check_hash(text)
        return super().hashes(column)

    def lengths(self, column: Sequence[int | None]) -> Sequence[str]:
        """Return whole numbers."""
        texts = super().lengths(column)
        if texts and not "".join(texts).isdecimal() and any(texts):
            raise ValueError("a length is no whole number of bytes (§7)")
        return texts

    def media_types(self, column: Sequence[str]) -> Sequence[str]:
        """Return media types."""
        for text in set(column):
            _check_media_type(text)
        return super().media_types(column)

    def check_pointer(self, entry: DocumentPointer) -> None:
        """Check the address of a document or a package, and what is said of its bytes."""
        _check_uri(entry.uri)
        if isinstance(entry, Part | Package):
            self.lengths([entry.length])
            _check_media_type(entry.media_type)
            _check_hash(format_digests(entry.digests))


def _check_uri(uri: str) -> None:
    if not (
        _URI.fullmatch(uri)
        and not _NO_HOST.match(uri)
        and not _LONE_PERCENT.search(uri)
        and len(uri) <= _MAX_URI
    ):
        raise ValueError(f"{uri[:200]!r} is no absolute URI, percent-encoded (§7)")


@lru_cache(maxsize=256)
def _check_media_type(text: str) -> None:
    if text and not (_MEDIA_TYPE.fullmatch(text) and text.isprintable()):
        raise ValueError(f"{text[:200]!r} is no media type (§7)")


def _check_hash(text: str) -> None:
    for token in text.split(" ") if text else ():
        found = _DIGEST.fullmatch(token)
        if found and found[1].lower().replace("-", "") not in _BARE:
            continue  # of an algorithm whose form we do not know
        if not (found and Digest(found[1], found[2].lower()).is_usable):
            raise ValueError(f"{token[:200]!r} is no digest (§7)")
