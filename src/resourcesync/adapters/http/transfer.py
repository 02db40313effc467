"""A transfer on one easy handle: receives the head and the body, and enforces the limits."""

from datetime import UTC, datetime
from typing import Any

import pycurl

from resourcesync.adapters import http
from resourcesync.adapters.http import response_head
from resourcesync.adapters.http.origins import RequestState
from resourcesync.adapters.http.settings import FetchSettings
from resourcesync.errors import BadResponseError, SourceError, StorageError
from resourcesync.ports import Clock, PartialBody, Proof, Purpose

MAX_DISCARDED = 64 * 1024
"""The most bytes of an unwanted body that are read to reuse its connection."""

_STOP = 0
_OK = 200
_PARTIAL = 206
_NO_SUCH_RANGE = 416
_NOT_MODIFIED = 304

_CERTIFICATE_MONTHS = (
    *(b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun"),
    *(b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"),
)


def parse_certificate_time(text: bytes) -> datetime | None:
    """Return a time as OpenSSL writes it (``Jan  5 09:34:43 2018 GMT``); ``None`` if it is none."""
    try:
        month, day, clock, year, zone = text.split()
        hour, minute, second = map(int, clock.split(b":"))
        number = _CERTIFICATE_MONTHS.index(month) + 1
        found = datetime(int(year), number, int(day), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return found if zone == b"GMT" else None


class HttpTransfer:
    """The response to one request; made once for each easy handle and reused.

    What an easy handle was last set to, it is not set to again (``headers``, ``is_special``,
    ``is_secure``, ``proxy``). libcurl limits ``lines`` to 300 KiB for a head and 5,000 in all. A
    ``crash`` is not about this transfer: the loop raises it again. One that ``is_late`` had all its
    time: the next run continues it. A ``broken_range`` has bytes that cannot be joined, and
    ``reading`` is the digest of a body of which nothing says that it is whole. If ``disturbed``,
    the loop stood still meanwhile, so times mean nothing.
    """

    def __init__(self, curl: Any, settings: FetchSettings) -> None:  # PycURL has no types
        self.curl = curl
        self.headers: list[str] | None = None
        self.is_special = self.is_secure = False
        self.private = False
        self.proxy = ""
        self.lines = bytearray()
        self._settings = settings

    def begin(self, errand: RequestState, now: float) -> None:
        """Reset, and start with the next request."""
        self.errand = errand
        self.head: response_head.ResponseHead | None = None
        self.error: SourceError | StorageError | None = None
        self.crash: BaseException | None = None
        self.began = self._marked_at = now
        self.wire = self._mark = self.received = 0
        self.disturbed = self.broken_range = self.is_late = self._cut = False
        self.lines.clear()
        self.wait: float | None = None
        self._discard = MAX_DISCARDED
        self._head_size = self._limit = 0
        self._blocked = ""
        self._decoder: http.content_codings.Decoder | None = None
        self._total: int | None = None
        self._unmarked: http.unmarked_ends.UnmarkedBody | None = None
        self.reading = b""
        self._accepts = False

    def _stop(self, code: str, message: str, got: str) -> int:
        self.error = http.transfer_errors.bad_response_error(self.errand.uri, code, message, got)
        return _STOP

    def _read_head(self) -> None:
        text = self.lines.decode("latin-1")
        size = len(text)
        self.wire += size - self._head_size
        self._head_size = size
        try:
            self.head = head = response_head.parse_head(text, self.errand.uri)
            if head is not None:
                self._handle_head(head)
        except (BadResponseError, StorageError) as error:
            self.error = error

    def _handle_head(self, head: response_head.ResponseHead) -> None:
        part, request = self.errand.part, self.errand.request
        if request.purpose is Purpose.MESSAGE or request.is_head:
            if (
                head.status in response_head.SUCCESS
                and not request.is_head
                and request.message is None
            ):
                self._accept_body(head)
        elif head.status == _OK:
            self._handle_whole(head, part)
        elif part is not None and head.status in (_PARTIAL, _NO_SUCH_RANGE):
            self._handle_rest(head, part)

    def _handle_whole(self, head: response_head.ResponseHead, part: PartialBody | None) -> None:
        request = self.errand.request
        if head.get("content-range") and not http.resuming.is_whole(head):
            if part is not None:
                self.broken_range = True
                return
            if request.proof is not Proof.BYTES:
                said = f"Content-Range: {response_head.printable(head['content-range'])}"
                message = "the response is declared to be a part, which was not requested"
                self._stop("range", message, said)
                return
        if part is not None:
            self.errand.part = None
            request.sink.restart()
        if request.on_start is not None:
            request.on_start(http.resuming.validator_of(head))
        if head.length is not None:
            self._total = head.length
        elif not head.has_end and request.purpose is not Purpose.STREAM:
            self._unmarked = http.unmarked_ends.UnmarkedBody()
        self._accept_body(head)

    def _handle_rest(self, head: response_head.ResponseHead, part: PartialBody) -> None:
        uri, proof = self.errand.uri, self.errand.request.proof
        if head.status == _PARTIAL and http.resuming.is_remainder(head, part, uri, proof):
            self.received = part.length
            self._total = int(head["content-range"].rpartition("/")[2])
            self._accept_body(head)
        else:
            self.broken_range = True

    def _accept_body(self, head: response_head.ResponseHead) -> None:
        request, codings = self.errand.request, head.codings
        limit = request.limit
        self._limit = limit = (
            self._settings.body_limits[request.purpose] if limit is None else limit
        )
        if codings and request.as_sent:
            self._limit = limit = http.content_codings.coded_limit(limit)
        elif codings:
            if not http.content_codings.is_decodable(codings):
                named = f"Content-Encoding: {response_head.printable(', '.join(codings))}"
                self._stop("encoding", "the response has an unrequested content coding", named)
                return  # its size is not the resource's
            self._decoder, limit = (
                http.content_codings.new_decoder(codings),
                http.content_codings.coded_limit(limit),
            )
        if head.length is not None and self.received + head.length > limit:
            self._overrun(f"Content-Length: {self.received + head.length}")
        self._accepts = True

    def on_body(self, chunk: bytes) -> int | None:
        """Handle bytes of a body; return 0 to stop the transfer."""
        try:
            size = len(chunk)
            self.wire += size
            if self.head is None:
                self._read_head()
                if self.error is not None:
                    return _STOP
            return self._receive(chunk) if self._accepts else self._discard_body(size)
        except StorageError as error:
            self.error = error
            return _STOP
        except BaseException as crash:  # noqa: BLE001 - libcurl would swallow it
            self.crash = crash
            return _STOP

    def _receive(self, chunk: bytes) -> int | None:
        if self._unmarked is not None:
            self._unmarked.feed(chunk)
        if self._decoder is not None:
            return self._decode(self._decoder, chunk)
        self.received += len(chunk)
        if self.received > self._limit:
            return self._overrun()
        self.errand.request.sink.write(chunk)
        return None

    def _discard_body(self, size: int) -> int | None:
        if self.head is None:
            return self._stop("framing", "the response is invalid", "a body without a final head")
        self._discard -= size
        self._cut = self._discard < 0
        return _STOP if self._cut else None

    def _overrun(self, got: str = "") -> int:
        got = got or f"at least {self._limit + 1} bytes"
        self.error = http.transfer_errors.too_big_error(self.errand.uri, self._limit, got)
        return _STOP

    def _decode(self, decoder: "http.content_codings.Decoder", chunk: bytes) -> int | None:
        coded = self.wire - self._head_size
        limit = min(self._limit, http.content_codings.decoded_limit(coded))
        try:
            for piece in decoder.feed(chunk):
                self.received += len(piece)
                if self.received > limit:
                    return self._overrun()
                self.errand.request.sink.write(piece)
        except http.content_codings.CodingError as error:
            return self._stop("encoding", "the response is not in its content coding", str(error))
        return None if coded <= http.content_codings.coded_limit(self._limit) else self._overrun()

    def record_blocked(self, address: str) -> None:
        """Record that policy forbids an address; another one of the host may be allowed."""
        self._blocked = address

    def finish(self, number: int, text: str, clock: Clock) -> None:
        """Determine the result after libcurl ended with error ``number`` (0: none)."""
        if self.error is None and self.crash is None and self.head is None:
            self._read_head()
        if self.error is not None or self.crash is not None or self.broken_range:
            return
        head = self.head
        if head is None or (number and self._accepts):
            self.error = self._failure(number, text)
            return
        if self._accepts:
            if self._unmarked is not None or self._decoder is not None or head.status == _PARTIAL:
                self._finish_body(head)
            return
        if "retry-after" in head:
            self.wait = response_head.parse_retry_after(head["retry-after"], clock.now())
        if not self._is_expected(head.status):
            self.error = self._status_error(head)

    def _finish_body(self, head: response_head.ResponseHead) -> None:
        uri, decoder, unmarked = self.errand.uri, self._decoder, self._unmarked
        if decoder is not None and not decoder.complete:
            self.error = http.transfer_errors.truncated_error(uri, "a truncated compressed stream")
        elif head.status == _PARTIAL and self.received != self._total:
            got = f"{self.received} of {self._total} bytes"
            self.error = http.transfer_errors.truncated_error(uri, got)
        elif unmarked is not None:
            proof = self.errand.request.proof
            self.reading = unmarked.open_question(head, proof, is_secure=self.is_secure)
            for name in ("etag", "last-modified"):
                head.pop(name, None)

    def _status_error(self, head: response_head.ResponseHead) -> SourceError:
        uri, proxy = self.errand.uri, self.proxy
        if proxy and head.status == http.transfer_errors.NEEDS_SECRET:
            evidence = (("got", head.status_line), ("proxy", proxy))
            return http.transfer_errors.proxy_refusal(head.status, uri, evidence)
        error = response_head.status_error(head, uri, self.wait)
        # Most pulls meet a 404, and then need nothing of the rarer errors.
        return http.transfer_errors.with_proxy_evidence(error, proxy) if proxy else error

    def _is_expected(self, status: int) -> bool:
        request = self.errand.request
        if request.purpose is Purpose.MESSAGE:
            return True
        if status == _OK and request.is_head:
            return True
        return status in response_head.REDIRECTS or (
            status == _NOT_MODIFIED and bool(request.etag or self.errand.condition_date)
        )

    def _failure(self, number: int, text: str) -> SourceError:
        uri, made = self.errand.uri, http.transfer_errors
        if self.head is None and self._blocked:
            return made.blocked_error(uri, self._blocked)
        if not number:  # libcurl is content with a head that stops before its end
            return made.truncated_error(uri, "a head without its end")
        if self.proxy:
            return made.proxy_failure(self.curl, number, text, uri=uri, proxy=self.proxy)
        return made.transport_error(number, text, uri)

    def part(self) -> PartialBody | None:
        """Return the part in the sink, if its rest may be requested."""
        if not self._accepts:
            return self.errand.part  # no bytes were added to it
        assert self.head is not None, "a body follows its head"
        errand = self.errand
        is_resource = errand.request.purpose is Purpose.RESOURCE and self._decoder is None
        if not is_resource or errand.whole:
            return None
        return http.resuming.resumable_part(self.head, errand, self.received, self._total)

    def check_slow(self, now: float, share: float) -> bool:
        """Return true if the transfer is to be aborted, and set its error.

        That is if the server is too slow, or if the head is invalid and no body follows it yet. No
        more is expected of it than ``share`` bytes per second.
        """
        if self.head is None and self.lines.endswith(b"\n\r\n"):
            self._read_head()
        purpose = self.errand.request.purpose
        if self.head is None:
            timeout = self._settings.timeout
            got = f"no complete head after {timeout:g} s" if now - self.began > timeout else ""
        elif purpose is Purpose.STREAM:
            return self.error is not None
        else:
            got = self._slow_body(now, share)
        if not got and now - self.began > self._deadline(share):
            got = f"{self.wire} bytes in {now - self.began:.0f} s"
            self.is_late = purpose is Purpose.RESOURCE
        if got and self.error is None:
            error = http.transfer_errors.too_slow_error(self.errand.uri, got, is_late=self.is_late)
            self.error = http.transfer_errors.with_proxy_evidence(error, self.proxy)
        return self.error is not None

    def _deadline(self, share: float) -> float:
        announced = self.head.length if self.head is not None else 0
        if announced is None:
            announced = self.errand.request.limit or 0
        rate = min(self._settings.deadline_rate, share)
        return self._settings.deadline + max(self.wire, announced) / rate

    def _slow_body(self, now: float, share: float) -> str:
        timeout, minimum = self._settings.timeout, min(self._settings.minimum_rate, share)
        if now - self._marked_at <= timeout:
            return ""
        got = self.wire - self._mark
        self._mark, self._marked_at = self.wire, now
        return f"{got} bytes in {timeout:g} s" if got < minimum * timeout else ""

    def latency(self) -> float | None:
        """Return the seconds from sending to the first byte; ``None`` if that means nothing."""
        if self.disturbed:
            return None
        getinfo = self.curl.getinfo
        seconds: float = getinfo(pycurl.STARTTRANSFER_TIME) - getinfo(pycurl.PRETRANSFER_TIME)
        return seconds if seconds > 0 else 0.0

    def certificate_end(self) -> datetime | None:
        """Return the end of the server's certificate; ``None`` if this opened no TLS connection."""
        if not self.curl.getinfo(pycurl.NUM_CONNECTS):
            return None
        chain = self.curl.getinfo_raw(pycurl.INFO_CERTINFO)
        for name, text in chain[0] if chain else ():
            if name == b"Expire date":
                return parse_certificate_time(text)
        return None

    def exclude_pause(self, seconds: float) -> None:
        """Exclude a time during which the loop did not run."""
        self.began += seconds
        self._marked_at += seconds
        self.disturbed = True
