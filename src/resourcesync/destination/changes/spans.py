"""Intervals of Change Lists, their order, and digests of their beginnings (§12.2)."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final

import msgspec

from resourcesync.errors import Remedy, SourceUnavailableError
from resourcesync.model.capabilities import Header
from resourcesync.model.digests import format_digests
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import from_microseconds, known_microseconds, to_microseconds

OVERLAP: Final = 1_000_000
"""Interval before T that is read again in an unknown list: one second, in microseconds."""
OLD_COPY: Final = "run again; if it repeats, check the Source's lists"
"""Hint for copies of lists that are inconsistent."""


class ChangeListSpan(msgspec.Struct, frozen=True, kw_only=True):
    """URI of a Change List and the interval that it covers, in microseconds.

    Attributes:
        uri: The list's URI.
        from_: Start of the interval; ``None`` if unknown.
        until: End of the interval; ``None`` if the list is open, or the end is unknown.
        announced: An index gave the interval, so the list itself must agree.
        version: Version of a package among those of its name.
    """

    uri: str
    from_: int | None = None
    until: int | None = None
    announced: bool = False
    version: str = ""


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """Change Lists to read, oldest first, and whether they reach back to T without a gap.

    Attributes:
        lists: The lists.
        starts_in_time: The first list begins at T or before.
        is_contiguous: There is no gap between the lists.
    """

    lists: tuple[ChangeListSpan, ...]
    starts_in_time: bool = True
    is_contiguous: bool = True

    @property
    def reaches_back(self) -> bool:
        """True if the lists reach back to T without a gap."""
        return self.starts_in_time and self.is_contiguous


def chain(spans: Sequence[ChangeListSpan], through: int) -> Chain:
    """Choose the lists that may have changes after ``through`` (§12.2).

    Both ends of an interval belong to it, so a list that ends at ``through``, or within the second
    before, is read: changes of that second are checked again (`is_since`), and a Source that was
    restored from an older state may have ended its list there. A list without a known start keeps
    its position: after the one before it.

    Args:
        spans: The present lists.
        through: T by the clock of the lists.
    """
    ordered, since = _in_order(spans), through - OVERLAP
    useful = [span for span in ordered if span.until is None or span.until >= since]
    if not useful:
        return Chain(lists=())
    first = useful[0]
    begins, is_whole = first.from_ is None or first.from_ <= through, True
    kept = [first]
    for span in useful[1:]:
        end = kept[-1].until
        if end is not None and span.from_ is not None and span.from_ > max(end, through):
            is_whole = False  # changes behind the gap must not be applied
            break
        kept.append(span)
    return Chain(lists=tuple(kept), starts_in_time=begins, is_contiguous=is_whole)


def _in_order(spans: Sequence[ChangeListSpan]) -> list[ChangeListSpan]:
    begun, keyed = -1, list[tuple[int, ChangeListSpan]]()
    for span in spans:
        start = begun if span.from_ is None else span.from_
        keyed.append((start, span))
        begun = start if span.until is None else max(start, span.until)
    return [span for _, span in sorted(keyed, key=itemgetter(0))]


def span_of(uri: str, header: Header) -> ChangeListSpan:
    """Return the interval in a Change List's own header."""
    return ChangeListSpan(
        uri=uri, from_=known_microseconds(header.from_), until=known_microseconds(header.until)
    )


def check_announced(announced: ChangeListSpan, header: Header) -> None:
    """Check that a list is the one that its index announces, not a stale or mixed copy.

    A list that was closed after the index was read is no older than the index, so that is fine.

    Raises:
        SourceUnavailableError: It is not; a later attempt may find them consistent.
    """
    own = span_of(announced.uri, header)
    from_agrees = announced.from_ is None or own.from_ == announced.from_
    until_agrees = announced.until is None or own.until == announced.until
    if announced.announced and not (from_agrees and until_agrees):
        raise SourceUnavailableError(
            "a Change List does not match its index (a stale or mixed copy)",
            uri=announced.uri,
            evidence=(
                ("index", f"from {_iso(announced.from_)} until {_iso(announced.until)}"),
                ("list", f"from {_iso(own.from_)} until {_iso(own.until)}"),
                ("kept", "nothing was changed"),
            ),
            code="mixed-copies",
            hint=OLD_COPY,
            remedy=Remedy("validate"),
        )


def _iso(moment: int | None) -> str:
    return "-" if moment is None else from_microseconds(moment).isoformat()


class ListPrefix:
    """Number and digest of the first changes of a list, in order.

    Args:
        address: Returns the address of a URI before its Source moved.
    """

    def __init__(self, address: Callable[[str], str] = str) -> None:
        from hashlib import sha256  # noqa: PLC0415 - the status of a mirror needs no digest

        self._address = address
        self._hash = sha256()
        self.entries = 0

    def add(self, change: Change) -> None:
        """Add the next change."""
        resource = change.resource
        time = "" if change.time is None else to_microseconds(change.time)
        self._hash.update(
            f"{self._address(resource.uri)}\0{change.kind}\0{time}"
            f"\0{format_digests(resource.digests)}\0{resource.length}\n".encode(
                "utf-8", "surrogatepass"
            )
        )
        self.entries += 1

    def hexdigest(self) -> str:
        """Return the digest over all changes so far."""
        return self._hash.hexdigest()
