"""Export of a mirror's copies: read once, checked against its state, published as a whole."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import BinaryIO, Final, Protocol

import msgspec

from resourcesync.destination.audits.reports import AuditFinding, FindingKind
from resourcesync.documents.packages.manifest_agreement import running_digest
from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest, parse_digests
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Reporter
from resourcesync.ports.exporters import Exporter, ExportOptions
from resourcesync.ports.mirror import Copy

_MAX_FINDINGS: Final = 1_000
_REPORT_EVERY: Final = 256


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an export.

    Attributes:
        copies: Number of its copies; 0 when it failed.
        size: Bytes that were written.
        source: The Source's address.
        as_of: The Source's time up to which the mirror is complete, UTC.
        missing: Number of listed resources that are not in it, since the mirror lacks them as
            listed.
        is_begun: True if the mirror's first pull was never completed: it is a part of what the
            Source lists, of unknown size.
        excluded: Number of versions that are not in it, because their files are excluded.
        damaged: Number of copies that differ from the mirror's state; then nothing was written.
        findings: The first of these.
    """

    copies: int
    size: int
    source: str
    as_of: datetime | None
    missing: int
    is_begun: bool = False
    excluded: int = 0
    damaged: int = 0
    findings: tuple[AuditFinding, ...] = ()


class ExportTarget(Protocol):
    """The place of an export, where nothing is seen before it is finished."""

    @property
    def size(self) -> int:
        """Bytes that were written."""

    def write(self, path: str, content: Iterable[bytes]) -> None:
        """Write one file.

        Raises:
            StorageError: It cannot be written.
        """

    def finish(self) -> None:
        """Make the export durable and visible."""

    def discard(self) -> None:
        """Remove an export that is not finished."""


class OpenCopies(msgspec.Struct, frozen=True, kw_only=True):
    """The copies of one moment, open for reading: of a mirror, or the versions in a folder.

    Attributes:
        source: The Source's address.
        capability_list: The Capability List of the set; the Source's address if there is none.
        as_of: The Source's time up to which the copies are complete, UTC; ``None`` if unknown.
        count: Number of the copies.
        missing: Number of listed resources that are missing.
        is_begun: True if the mirror's first pull was never completed.
        excluded: Number of versions that are left out, because their files are excluded.
        changed: The reason for a copy that is no longer recorded as it was.
        copies: Yields the copies by URI and time.
        media_type: Returns the media type of a copy by its address.
        reading: Yields the bytes of a copy; ``None`` if there are none.
        recorded: Returns a copy as it is recorded now; ``None`` if it no longer is.
        scratch: Opens a nameless temporary file.
    """

    source: str
    capability_list: str
    as_of: datetime | None
    count: int
    missing: int = 0
    is_begun: bool = False
    excluded: int = 0
    changed: str
    copies: Callable[[], Iterator[Copy]]
    media_type: Callable[[Copy], str]
    reading: Callable[[Copy], Iterator[bytes] | None]
    recorded: Callable[[Copy], Copy | None]
    scratch: Callable[[], BinaryIO]


def export_copies(
    copies: "ExportedCopies", target: ExportTarget, exporter: Exporter, options: ExportOptions
) -> Exported:
    """Write an export, or find all copies that differ from the mirror's state.

    Raises:
        ConfigurationError: The options cannot work.
        StorageError: A copy cannot be read, or the export cannot be written.
    """
    if options.since is not None and not copies.limit_to(to_microseconds(options.since)):
        return copies.exported(0)
    try:
        for path, content in exporter(copies, options):
            target.write(path, content)
        copies.check_complete()
        target.finish()
    except _DamagedError:
        target.discard()
        copies.check_remaining()
    finally:
        target.discard()
    return copies.exported(target.size)


class _DamagedError(Exception):
    """A copy differs from the mirror's state: the export is cancelled."""


class ExportedCopies:
    """The copies of one moment, each compared with the state of the mirror (``MirrorSnapshot``).

    Args:
        report: Receives ``progress`` and ``finding`` events.
        now: The start of the export, UTC.
    """

    def __init__(self, opened: OpenCopies, report: Reporter, now: datetime) -> None:
        self._opened = opened
        self._report = report
        self._findings: list[AuditFinding] = []
        self._damaged = self._taken = self._bytes = 0
        self._last = ("", 0)
        self._total = opened.count
        self._since = 0
        self.source = opened.source
        self.capability_list = opened.capability_list
        self.as_of = opened.as_of
        self.now = now

    def limit_to(self, since: int) -> int:
        """Leave out copies from before a moment, microseconds; return the number of the others."""
        self._since = since
        self._total = sum(1 for _ in self._selected_copies())
        return self._total

    def _selected_copies(self) -> Iterator[Copy]:
        """Yield the selected copies, also one whose pull was killed."""
        for copy in self._opened.copies():
            if copy.installed >= self._since or copy.length < 0:
                yield copy

    def copies(self) -> Iterator[Copy]:
        """Yield the copies; one whose file was being changed cannot be exported."""
        for copy in self._selected_copies():
            if copy.length < 0:
                self._verify(copy)
                raise _DamagedError
            yield copy

    def content(self, copy: Copy) -> Iterator[bytes]:
        """Yield the bytes of a copy; when they differ from the recorded ones, the export ends."""
        self._last = max(self._last, (copy.uri, copy.installed))
        proof = running_digest(parse_digests(copy.digests))
        length = 0
        pieces = self._opened.reading(copy)
        for piece in pieces or ():
            length += len(piece)
            if proof is not None:
                proof[1].update(piece)
            yield piece
        if pieces is None or proof is None or length != copy.length or _differs(proof):
            self._add_finding(copy, is_there=pieces is not None)
            raise _DamagedError
        self._taken += 1
        self._bytes += length
        if not self._taken % _REPORT_EVERY or self._taken == self._total:
            fields = {"done": self._taken, "total": self._total, "bytes_done": self._bytes}
            self._report("progress", fields)

    def media_type(self, copy: Copy) -> str:
        """Return the media type of a copy by its address."""
        return self._opened.media_type(copy)

    def scratch(self) -> BinaryIO:
        """Open a nameless temporary file."""
        return self._opened.scratch()

    def check_complete(self) -> None:
        """Refuse an export that left copies out.

        Raises:
            StorageError: It did; none of our exporters does.
        """
        if self._taken < self._total:
            raise StorageError(
                f"the exporter wrote {self._taken:,} of {self._total:,} copies",
                evidence=(("kept", "nothing was written"),),
            )

    def check_remaining(self) -> None:
        """Find all other damaged copies; nothing is exported any more."""
        for copy in self._selected_copies():
            if (copy.uri, copy.installed) > self._last:
                self._verify(copy)

    def exported(self, size: int) -> Exported:
        """Return the result."""
        failed = bool(self._damaged)
        return Exported(
            copies=0 if failed else self._taken,
            size=0 if failed else size,
            source=self.source,
            as_of=self.as_of,
            missing=self._opened.missing,
            is_begun=self._opened.is_begun,
            excluded=self._opened.excluded,
            damaged=self._damaged,
            findings=tuple(self._findings),
        )

    def _verify(self, copy: Copy) -> bool:
        """Read a copy without exporting it; return True if it is good."""
        try:
            for _ in self.content(copy):
                pass
        except _DamagedError:
            return False
        return True

    def _add_finding(self, copy: Copy, *, is_there: bool) -> None:
        kind, reason = FindingKind.MISSING, "missing"
        if is_there:
            kind, reason = FindingKind.DIFFERENT, "not what was fetched: damaged or edited locally"
        if copy.length < 0:
            kind, reason = FindingKind.FAILED, "a pull is changing it, or was killed while it did"
        elif self._has_changed(copy):
            kind, reason = FindingKind.FAILED, self._opened.changed
        self._damaged += 1
        found = AuditFinding(kind=kind, uri=copy.uri, path=copy.path, reason=reason)
        if len(self._findings) < _MAX_FINDINGS:
            self._findings.append(found)
        fields = {"kind": kind.value, "uri": copy.uri, "path": copy.path, "reason": reason}
        self._report("finding", fields)

    def _has_changed(self, copy: Copy) -> bool:
        """True if the mirror recorded another copy since the moment of this export."""
        return self._opened.recorded(copy) != copy


def _differs(proof: "tuple[Digest, hashlib._Hash]") -> bool:
    return proof[0].value != proof[1].hexdigest()
