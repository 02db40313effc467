"""The network as a Destination needs it: requests, and how each ends."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from enum import IntEnum, StrEnum
from functools import lru_cache, partial
from typing import Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from resourcesync.errors import SourceError, StorageError

_STABLE_AFTER: Final = 1.0
"""Seconds from a change until its ``Last-Modified`` can belong to no later change."""
_MARKS: Final = ",  : GMT"  # of Sun, 06 Nov 1994 08:49:37 GMT (RFC 9110 §5.6.7)
_MONTHS: Final = {
    f" {name} ": f"{number:02}"
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}


class Purpose(StrEnum):
    """The purpose of a fetch: it decides limits and secrets."""

    DISCOVERY = "discovery"
    DOCUMENT = "document"
    RESOURCE = "resource"
    MESSAGE = "message"
    """WebSub: any answer ends it; no redirect is followed and no robots.txt is checked."""
    STREAM = "stream"
    """An endless body: any rate and any size is fine, and the caller retries."""


class Proof(IntEnum):
    """The means by which a caller checks a body once it is whole; each includes those before."""

    NONE = 0
    """Nothing: the bytes that come are the resource."""
    END = 1
    """A length, a weak digest or an end of the format's own: a body that was cut is noticed."""
    BYTES = 2
    """A strong digest of the whole: other bytes are noticed, however they came."""


class Sink(Protocol):
    """A sink of the bytes of one response as they arrive."""

    def write(self, chunk: bytes) -> None:
        """Feed the next bytes.

        Raises:
            StorageError: They cannot be stored; this fetch ends, all others continue.
        """

    def restart(self) -> None:
        """Forget all bytes so far: the transfer starts again from the first byte."""


class PartialBody(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a body in a sink, which a later request may continue.

    Attributes:
        length: Bytes of the part.
        validator: Proof that the rest is of the same body: a strong ``ETag``, or a
            ``Last-Modified`` that was old when it was served (RFC 9110 §13.1.5).
        uri: Address that served it, after redirects; empty if unknown.
        total: Bytes of the whole body; ``None`` if unknown.
    """

    length: int
    validator: str
    uri: str = ""
    total: int | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The message of a POST.

    Attributes:
        body: The bytes.
        fields: Header fields that belong to them, ``Content-Type`` among them.
    """

    body: bytes
    fields: tuple[tuple[str, str], ...]


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One thing to fetch with GET, or a message to send with POST.

    Attributes:
        uri: Absolute http or https URI, sent as written.
        sink: Receives the body of a 200 answer (of any 2xx for ``Purpose.MESSAGE``), never that of
            another status, nor of the answer to a POST.
        purpose: Its purpose; decides limits, compression (documents only) and secrets.
        etag: Send ``If-None-Match`` with this value when not empty.
        last_modified: Send ``If-Modified-Since`` with this value when not empty.
        limit: Most bytes of the body to accept (decoded); ``None`` takes the purpose's default.
        uncached: True to request a fresh copy from caches.
        part: The part in the sink; the rest is requested, and the sink is restarted when the server
            sends something else. Unless ``proof`` is ``BYTES``, the rest must be of the part's
            address and total.
        proof: The means by which the caller checks the whole body. Without any, a body whose end
            is not marked is read until two readings are equal.
        as_sent: True to leave a content coding in place: the caller removes it. Else gzip and
            deflate are removed, and others are an error.
        on_start: Called with the validator of a body that begins at its first byte, before that
            byte; empty when the body could not be recognized later.
        message: Message to send with POST; only for ``Purpose.MESSAGE``.
        fields: Further header fields of a GET.
        is_explicit: True if the operator named this very address: ``robots.txt``, which is for
            crawlers, is not checked.
        is_head: True to use HEAD: the sink stays empty, and the answer has the fields.
    """

    uri: str
    sink: Sink
    purpose: Purpose = Purpose.RESOURCE
    etag: str = ""
    last_modified: str = ""
    limit: int | None = None
    uncached: bool = False
    part: PartialBody | None = None
    proof: Proof = Proof.NONE
    as_sent: bool = False
    on_start: Callable[[str], None] | None = None
    message: Message | None = None
    fields: tuple[tuple[str, str], ...] = ()
    is_explicit: bool = False
    is_head: bool = False


class FetchResponse(msgspec.Struct, frozen=True, eq=False):
    """The end of a fetch: 200 with the whole body in the sink (in one or more parts), or 304.

    Attributes:
        request: The request.
        status: 200 or 304; any status for ``Purpose.MESSAGE``.
        uri: Address of the answer, after redirects.
        headers: The final answer's fields, names in lower case; the first value counts, but
            ``link`` joins all of them with commas. Those of a body whose end was not marked have
            no validators: it may have been cut for all later requests.
        received: Bytes of the body in the sink, those of ``Request.part`` included.
        tries: Requests it took, redirects not counted.
    """

    request: FetchRequest
    status: int
    uri: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    received: int = 0
    tries: int = 1


class CacheValidators(NamedTuple):
    """Validators for a later conditional request; empty for none.

    Attributes:
        etag: For ``Request.etag``.
        last_modified: For ``Request.last_modified``.
    """

    etag: str
    last_modified: str


_new_validators: Final[Callable[[tuple[str, str]], CacheValidators]] = partial(
    tuple.__new__, CacheValidators
)


def validators_of(headers: Mapping[str, str]) -> CacheValidators:
    """Return the validators of an answer that will not stay the same when the thing changes.

    A ``Last-Modified`` counts when it is a second older than the answer's ``Date``: until then
    there may be another change in its second (RFC 9110 §8.8.2.2). A tag that a server makes of
    such a time is no better, so while it is not old enough a weak ``ETag`` does not count, and
    in the second of the change itself none does.

    Args:
        headers: The answer's fields, names in lower case.
    """
    tag, modified = headers.get("etag", ""), headers.get("last-modified", "")
    age = _seconds_between(modified, headers.get("date", ""))
    if modified and (age is None or age < _STABLE_AFTER):
        tag = "" if age == 0 or tag.startswith("W/") else tag
        modified = ""
    return _new_validators((tag, modified))


def age_when_served(headers: Mapping[str, str]) -> float | None:
    """Return the seconds from ``Last-Modified`` to ``Date``; ``None`` if one is absent."""
    return _seconds_between(headers.get("last-modified", ""), headers.get("date", ""))


@lru_cache(maxsize=64)
def _seconds_between(modified: str, date: str) -> float | None:
    earlier, later = _parse_http_date(modified), _parse_http_date(date)
    return None if earlier is None or later is None else (later - earlier).total_seconds()


def served_at(headers: Mapping[str, str]) -> datetime | None:
    """Return the server's time of an answer (``Date``); ``None`` if absent."""
    return _parse_http_date(headers.get("date", ""))


def modified_at(headers: Mapping[str, str]) -> datetime | None:
    """Return the time of the last change that an answer has; ``None`` if absent."""
    return _parse_http_date(headers.get("last-modified", ""))


@lru_cache(maxsize=64)  # most answers of a second have the same Date
def _parse_http_date(text: str) -> datetime | None:
    if not text:
        return None
    month = _MONTHS.get(text[7:12])
    if month is not None and text[3:5] + text[16:17] + text[22:23] + text[25:] == _MARKS:
        with suppress(ValueError):
            return datetime.fromisoformat(f"{text[12:16]}-{month}-{text[5:7]}T{text[17:25]}Z")
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - for some servers only

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else None


class FetchFailure(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The end of a fetch that failed, after all retries."""

    request: FetchRequest
    error: SourceError | StorageError
    tries: int = 1


Outcomes = Generator[FetchResponse | FetchFailure, None, None]
"""The outcomes of requests; closing it cancels the requests in flight."""


class Fetcher(Protocol):
    """A fetcher of many resources at a time, within limits of load."""

    def fetch(self, requests: Iterable[FetchRequest]) -> Outcomes:
        """Carry out the requests; yield each outcome as it comes, in no order.

        ``requests`` is read lazily, a few ahead of what is in flight, so it may be endless or
        depend on earlier outcomes.
        Never raises for a single request.
        """


class Messenger(Protocol):
    """A sender of many messages at a time; a slow one delays no other."""

    def fetch(self, requests: Iterable[FetchRequest | None]) -> Outcomes:
        """Send the requests; yield each outcome as it arrives, in no order.

        ``None`` says that there is nothing for the moment; it asks again soon while others are in
        flight. What ``requests`` raises passes, and gives up what is in flight.
        """


@runtime_checkable
class Streamer(Protocol):
    """A reader of endless bodies, such as streams of events."""

    def stream(
        self, uri: str, fields: tuple[tuple[str, str], ...]
    ) -> Generator[bytes, None, FetchResponse]:
        """Yield the bytes of a 200 answer as they come; return the answer when it ends.

        Nothing is yielded before the answer begins. Then nothing may be yielded (no bytes) at any
        time, and is at least every second, so that the caller can look at the clock; silence is
        for him to judge. While he does not ask for more, nothing more is read. It is tried once:
        no ``robots.txt`` is checked, for the address was named and is not crawled.

        Args:
            uri: Absolute http or https URI.
            fields: Header fields to send.

        Raises:
            SourceError: There is no such answer, or it broke off.
        """
