"""Ports: small protocols for what the package needs from outside, each with adapters behind it.

``Originals`` and ``Copies`` are the two terms that the specification lacks: the resources as a
Source has them, and the resources as a Destination stores them.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from enum import IntEnum, StrEnum
from itertools import chain, islice
from typing import BinaryIO, Final, NamedTuple, Protocol, TypeVar

import msgspec

from resourcesync.errors import BudgetError, SourceError, StoppedError, StorageError, is_propagating
from resourcesync.model.digests import Digest, agree, parse_digests
from resourcesync.model.own_names import has_own_name


class Clock(Protocol):
    """The clock: the only source of time."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for durations."""

    def sleep(self, seconds: float) -> None:
        """Wait ``seconds``."""


Reporter = Callable[[str, Mapping[str, object]], None]
"""Receives ``(event, fields)`` during a run; an embedder or the command line shows them."""


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


_LONGEST_VALIDATOR: Final = 1024


def is_sendable(validator: str) -> bool:
    """True if a validator, perhaps from a file, can be sent without ending its header field."""
    is_plain = validator.isascii() and validator.isprintable()
    return is_plain and 0 < len(validator) <= _LONGEST_VALIDATOR


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


_NO_NAMES: Final = frozenset({"", ".", ".."})


def is_copy_path(path: str) -> bool:
    """True if a path leads to a place for a copy: below the root, by names, none like our own.

    Paths from lists are checked long before, by `destination.scope_and_filters`; code that puts,
    moves or reads copies checks again, so that a mistake there never causes a write outside.
    """
    return "\0" not in path and _NO_NAMES.isdisjoint(path.split("/")) and not has_own_name(path)


ONE_COPY: Final = frozenset({"local-change", "path-in-the-way"})
"""Codes of errors about one copy: the others of its batch are put in place."""


def copy_path_error(path: str) -> StorageError:
    """Return the error for a path that leads to no place for a copy."""
    message, kept = f"{path!r} is not a valid path of a copy", "nothing was changed there"
    return StorageError(message, evidence=(("kept", kept),), code="path-in-the-way")


class StagedCopy(Protocol):
    """A staged copy: bytes beside the mirror, hashed as they arrive. It is also a ``Sink``."""

    @property
    def part(self) -> PartialBody | None:
        """The part that an earlier run left, from the first byte on; ``None`` once restarted."""

    def record_validator(self, validator: str) -> None:
        """Record the validator that later proves that the rest belongs to these bytes."""

    def write(self, chunk: bytes) -> None:
        """Write the next bytes."""

    def restart(self) -> None:
        """Forget all bytes so far."""

    def seal(self) -> tuple[int, tuple[Digest, ...]]:
        """End the writing; return the length in bytes and the requested digests."""

    def open_sealed(self) -> BinaryIO:
        """Open the sealed bytes to read and seek; the caller closes the stream."""

    def suspend(self) -> None:
        """Discard the copy; a usable part stays for a later run."""

    def discard(self) -> None:
        """Throw the bytes away; it is no error to do so twice."""


class CopyContent(NamedTuple):
    """The content of a copy.

    Attributes:
        length: Bytes.
        digests: Digests of them, as in a ``hash`` attribute.
        signature: Stat signature of the file that was read; ``None`` if it is not known.
    """

    length: int
    digests: str
    signature: str | None = None


class CopyInstallation(msgspec.Struct):
    """One staged copy and its path.

    Attributes:
        staged: The sealed bytes.
        path: The copy's path in the mirror, relative, with ``/``.
        lastmod: Modification time to give the copy, microseconds; ``None`` leaves it.
        replaces: Stat signature of the present file in the mirror's state, or ``None`` for no file.
        content: Its content there; ``None``: not known. A file that differs in both is moved to
            quarantine, not lost.
        since: When it was put in place, microseconds: if its status changed later, it is read.
    """

    staged: StagedCopy
    path: str
    lastmod: int | None = None
    replaces: str | None = None
    content: CopyContent | None = None
    since: int = 0


class CopyRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """One copy to remove.

    Attributes:
        path: The copy's path in the mirror.
        signature: Stat signature of the file in the mirror's state.
        content: Its content in the mirror's state; ``None`` if it is not known.
        is_altered: True if the file was found altered: if it is, it goes to the quarantine.
    """

    path: str
    signature: str
    content: CopyContent | None = None
    is_altered: bool = False


class CopyMove(msgspec.Struct, frozen=True, kw_only=True):
    """One copy that gets another path.

    Attributes:
        path: Its present path.
        to: Its new path.
        signature: Stat signature of the file in the mirror's state.
        digests: Digests of its bytes in the state: they identify a copy that was moved before.
    """

    path: str
    to: str
    signature: str
    digests: tuple[Digest, ...] = ()


class CopyInspector(Protocol):
    """A read-only view of the copies."""

    def signature(self, path: str) -> str | None:
        """Return the stat signature of the copy at ``path``, or ``None`` when there is none."""

    def digest(self, path: str, algorithms: Sequence[str]) -> tuple[int, tuple[Digest, ...]] | None:
        """Read a copy; return its length and digests, or ``None`` when there is none."""

    def digest_all(
        self, wanted: Sequence[tuple[str, Sequence[str]]]
    ) -> Iterator[CopyContent | StorageError | None]:
        """Read a few dozen copies, the next ones ahead; yield the content of each in order.

        Args:
            wanted: Path and algorithms of each.

        Yields:
            Its content; ``None`` when there is none; or the error when it cannot be read.

        Raises:
            StorageError: No copy can be read.
        """


def has_content(look: CopyInspector, path: str, content: CopyContent | None) -> bool:
    """Read a file; return whether it has the content that the mirror's state has of it.

    This alone decides whether a file is as installed. A stat signature only saves the reading: one
    that differs shows nothing, since a copied or restored file has another inode or time.

    Args:
        look: The copies.
        path: Path of the file.
        content: Length and digests in the state; ``None`` if they are not known.

    Raises:
        StorageError: The file cannot be read.
    """
    if content is None:
        return False
    known = parse_digests(content.digests)
    found = look.digest(path, [digest.algorithm for digest in known])
    return found is not None and found[0] == content.length and agree(found[1], known)


class Copies(CopyInspector, Protocol):
    """The resources as the Destination stores them: bytes at paths, nothing outside one root."""

    def stage(self, algorithms: Sequence[str], of: str = "") -> StagedCopy:
        """Start a copy beside the mirror; digests are computed while the bytes pass.

        Args:
            algorithms: Digests to compute.
            of: Identity of the bytes. With it, the part that an earlier run left is continued, and
                an unfinished part is stored for a later run.
        """

    def stage_copy(self, path: str, algorithms: Sequence[str]) -> StagedCopy | None:
        """Start a copy with the bytes of another one; ``None`` when they cannot be read.

        The digests show whether the bytes are unchanged.
        """

    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        """Put a batch in place durably; return for each its stat signature or its error.

        When it returns, the new bytes and their names survive a power cut.
        """

    def newly_quarantined(self) -> list[tuple[str, str]]:
        """Return the files moved to the quarantine since the last call: paths and names."""

    def remove(self, batch: Sequence[CopyRemoval], reason: str) -> list[str | StorageError]:
        """Move a batch to the trash durably; return the place of each (empty: no file).

        A file with another signature and another content is left alone and reported as an error.
        """

    def move(self, batch: Sequence[CopyMove]) -> list[str | StorageError]:
        """Move copies to other paths durably, one after the other; nothing is overwritten.

        A file moves whatever it is, so an edited one is not lost. What is not ours at the new path
        goes to the quarantine. Where no file is to be moved any more, nothing is done.

        Returns:
            For each the signature to remember, or its error; then it is where it was. It is the
            one that was known where what is there is edited, gone, or not surely ours.
        """

    def inspect(self) -> AbstractContextManager[CopyInspector]:
        """Inspect many copies at once, which is quicker; results may be buffered."""

    def stage_trashed(self, place: str, algorithms: Sequence[str]) -> StagedCopy | None:
        """Start a copy with the bytes of one in the trash; ``None`` when they cannot be read.

        They stay in the trash.

        Raises:
            StateError: ``place`` is no name in the trash: it leads out of it.
        """

    def trashed(self) -> Iterator[str]:
        """Yield the names in the trash."""

    def quarantined(self, path: str) -> Sequence[str]:
        """Return the names in the quarantine of files from ``path``, newest last."""

    def paths(self) -> Iterator[str]:
        """Yield the path of every file in the mirror, in no order, its own folder left out."""


POLL_SECONDS: Final = 0.05
"""Seconds between two calls of a token's ``is_requested``."""

_CHECK_INTERVAL: Final = 256
_WAIT_SECONDS: Final = 0.2
_KEPT: Final = (("kept", "what was complete"),)

T = TypeVar("T")


class CancelToken:
    """A request to stop, and a time limit; long work checks both wherever it may safely end.

    An error that was swallowed on its way is raised again by the next check. While a ``finally``,
    an ``except`` or a ``with`` passes it on, checks raise nothing: clean-up runs to its end.

    Args:
        clock: Time of the limit and of waits.
        is_requested: Called many times a second; true cancels. ``None``: only ``cancel`` does.
    """

    def __init__(self, clock: Clock, is_requested: Callable[[], bool] | None = None) -> None:
        self.clock = clock
        self._is_requested = is_requested
        self._poll_at = 0.0
        self._ends_at: float | None = None
        self._stopped: StoppedError | None = None
        self._expired: BudgetError | None = None
        self.is_heard = False
        """True once the work found out that its end was requested."""

    def cancel(self) -> None:
        """Request the end of the work; from any thread, or from a signal handler."""
        self._stopped = self._stopped or StoppedError(
            "the program asked to stop",
            evidence=_KEPT,
            hint="call it again: it continues from here",
        )

    def reset(self) -> None:
        """Withdraw the request: other work begins."""
        self._stopped, self._poll_at, self.is_heard = None, 0.0, False

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Limit the block to so many seconds; ``None``: no limit. Such blocks do not nest.

        Raises:
            BudgetError: The time is over.
        """
        self.lift_limit()
        if seconds is not None:
            self._ends_at = self.clock.monotonic() + seconds
        try:
            yield
        finally:
            self.lift_limit()

    def lift_limit(self) -> None:
        """Remove the time limit: the work ends cleanly."""
        self._ends_at = self._expired = None

    @property
    def is_cancelled(self) -> bool:
        """True if the work is to end: by request, or since its time is over."""
        return self._find_error() is not None

    def raise_if_cancelled(self) -> None:
        """Raise if the work is to end.

        Raises:
            StoppedError: The end was requested.
            BudgetError: The time is over.
        """
        error = self._find_error()
        if error is not None and not is_propagating(error):
            raise error

    def checked(self, items: Iterable[T], *, every: int = _CHECK_INTERVAL) -> Iterator[T]:
        """Return the items, and raise between groups of so many if the work is to end."""
        return chain.from_iterable(self._checked_groups(iter(items), every))

    def _checked_groups(self, rest: Iterator[T], size: int) -> Iterator[list[T]]:
        while group := list(islice(rest, size)):
            self.raise_if_cancelled()
            yield group

    def wait(self, seconds: float) -> None:
        """Wait; end the wait at most 0.2 seconds after the work is cancelled.

        Raises:
            StoppedError: The end was requested.
            BudgetError: The time is over.
        """
        left = seconds
        while left > 0 and not self.is_cancelled:
            self.clock.sleep(min(left, _WAIT_SECONDS))
            left -= _WAIT_SECONDS
        self.raise_if_cancelled()

    def _find_error(self) -> StoppedError | None:
        if self._is_requested is not None and self._stopped is None:
            self._poll(self._is_requested)
        if self._stopped is not None:
            self.is_heard = True
            return self._stopped
        is_late = self._ends_at is not None and self.clock.monotonic() >= self._ends_at
        if is_late and self._expired is None:
            self._expired = BudgetError(
                "the time limit of this run is reached",
                evidence=_KEPT,
                hint="run again to continue",
            )
        return self._expired

    def _poll(self, is_requested: Callable[[], bool]) -> None:
        now = self.clock.monotonic()
        if now >= self._poll_at:
            self._poll_at = now + POLL_SECONDS
            if is_requested():
                self.cancel()


class StoredVersion(msgspec.Struct, frozen=True):
    """A stored document: the SHA-256 of its bytes in hex, and what the server said of them.

    ``read_at`` is the time when the server sent the bytes, microseconds since 1970 UTC.
    """

    digest: str
    etag: str
    last_modified: str
    read_at: int


class StoredParts(Protocol):
    """Parts of the index that was read last, as they were sent, by their SHA-256 in hex.

    They only save requests: what is lost, damaged or cannot be stored is requested again.
    """

    def open(self, digest: str, at: str = "") -> BinaryIO | None:
        """Return the bytes with this SHA-256, to be closed after use.

        They may be those of a stored part with the moment ``at`` in the place of its own.
        """

    def add(self, digest: str, stream: BinaryIO) -> None:
        """Store the bytes of a stream, which have this SHA-256."""

    def versions(self) -> Mapping[str, StoredVersion]:
        """Return those that were stored with their validators, by URI."""

    def retain(self, digests: Collection[str], versions: Mapping[str, StoredVersion]) -> None:
        """Remove all others; store these validators."""
