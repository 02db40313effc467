"""Export of a mirror's copies: read once, checked against its state, published by a rename."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, cast

from resourcesync.adapters.export_files import NewExport
from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.adapters.mirror.mirror_folder import STATE_FILE
from resourcesync.adapters.mirror.open_folders import FolderCopyInspector
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.adapters.stored_copies import StoreCopyInspector
from resourcesync.app import plugins
from resourcesync.app.mirrors import mirror_state, stores
from resourcesync.app.mirrors.opening import is_mirror, not_a_mirror_error
from resourcesync.destination.audits.reports import AuditFinding, FindingKind
from resourcesync.destination.sync_state import SyncState
from resourcesync.documents.packages.manifest_agreement import running_digest
from resourcesync.errors import ConfigurationError, Remedy, StorageError
from resourcesync.model.digests import Digest, parse_digests
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock, Reporter
from resourcesync.ports.exporters import Exporter, ExportOptions
from resourcesync.ports.mirror import Copy, PendingTask

_ALL: Final = (1 << 63) - 1
_MAX_FINDINGS: Final = 1_000
_REPORT_EVERY: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
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
        damaged: Number of copies that differ from the mirror's state; then nothing was written.
        findings: The first of these.
    """

    copies: int
    size: int
    source: str
    as_of: datetime | None
    missing: int
    is_begun: bool = False
    damaged: int = 0
    findings: tuple[AuditFinding, ...] = ()


def export_mirror(
    folder: Path, form: str, out: Path, options: ExportOptions, *, report: Reporter, clock: Clock
) -> Exported:
    """Export the copies of a mirror; a pull may go on meanwhile.

    Every byte is hashed while it is copied. Should one copy differ from the mirror's state,
    nothing is left at ``out``, and all such copies are found.

    Args:
        folder: The mirror.
        form: The format: a name that the list of plug-ins has as an exporter.
        out: The file or folder to make; it must not exist.
        options: The operator's options.
        report: Receives ``progress`` and ``finding`` events.
        clock: Time.

    Raises:
        ConfigurationError: The folder is not a mirror or is empty, ``out`` exists, or the options
            cannot work.
        StateError: The mirror's state is damaged or from a newer version.
        StorageError: A copy cannot be read, or the export cannot be written.
    """
    if not is_mirror(folder):
        raise not_a_mirror_error(folder)
    exporter = cast("Exporter", plugins.load(plugins.EXPORTERS, form))
    if out.resolve().is_relative_to(folder.resolve()):
        raise ConfigurationError(
            f"{out} is inside the mirror",
            hint="name a place outside: a mirror only has the content of its Source",
        )
    if not out.parent.is_dir():
        raise ConfigurationError(f"there is no folder {out.parent}", hint="create it first")
    target = NewExport(out)
    with _open_copies(folder, report, clock) as holdings:
        if options.since is not None and not holdings.limit_to(to_microseconds(options.since)):
            return holdings.exported(0)
        try:
            for path, content in exporter(holdings, options):
                target.write(path, content)
            holdings.check_complete()
            target.finish()
        except _DamagedError:
            target.discard()
            holdings.check_remaining()
        finally:
            target.discard()
        return holdings.exported(target.size)


@contextmanager
def _open_copies(folder: Path, report: Reporter, clock: Clock) -> Iterator["_ExportedCopies"]:
    state_file = folder / OWN_FOLDER / STATE_FILE
    with (
        mirror_state.open_snapshot(state_file) as state,
        stores.open_copy_reader(folder) as inspector,
    ):
        yield _ExportedCopies(folder, state, inspector, report, clock)


class _DamagedError(Exception):
    """A copy differs from the mirror's state: the export is cancelled."""


class _ExportedCopies:
    """The copies of one moment, each compared with the state of the mirror."""

    def __init__(
        self,
        folder: Path,
        state: SqliteMirrorState,
        inspector: FolderCopyInspector | StoreCopyInspector,
        report: Reporter,
        clock: Clock,
    ) -> None:
        memory = SyncState(state)
        identity, found = memory.identity, memory.discovered
        self._folder = folder
        self._state = state
        self._look = inspector
        self._report = report
        self._findings: list[AuditFinding] = []
        self._damaged = self._taken = self._bytes = 0
        self._last = ""
        self._total = state.count()
        self._since = 0
        self.source = "" if identity is None else identity.source
        listed = None if found is None else found.capability_list
        self.capability_list = listed or self.source
        self.as_of = memory.as_of
        self._is_begun = memory.cursor.checkpoint is None
        self.now = clock.now()
        if not self._total:
            raise ConfigurationError(
                f"{folder} has no copy yet",
                hint="pull it first",
                remedy=Remedy("pull", target=str(folder)),
            )

    def limit_to(self, since: int) -> int:
        """Leave out copies from before a moment, microseconds; return the number of the others."""
        self._since = since
        self._total = sum(1 for _ in self._selected_copies())
        return self._total

    def _selected_copies(self) -> Iterator[Copy]:
        """Yield the selected copies, also one whose pull was killed."""
        for copy in self._state.copies():
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
        self._last = max(self._last, copy.uri)
        proof = running_digest(parse_digests(copy.digests))
        length = 0
        pieces = self._look.reading(copy.path)
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

    def scratch(self) -> BinaryIO:
        """Open a nameless temporary file."""
        try:
            return cast("BinaryIO", tempfile.TemporaryFile())
        except OSError as error:
            raise StorageError(f"cannot make a temporary file: {error.strerror}") from error

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
            if copy.uri > self._last:
                self._verify(copy)

    def exported(self, size: int) -> Exported:
        """Return the result."""
        failed = bool(self._damaged)
        return Exported(
            copies=0 if failed else self._taken,
            size=0 if failed else size,
            source=self.source,
            as_of=self.as_of,
            missing=self._state.pending_count(
                PendingTask.FETCH, met_before=_ALL, listed_before=_ALL
            ),
            is_begun=self._is_begun,
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
            kind, reason = FindingKind.FAILED, "a pull changed it during the export"
        self._damaged += 1
        found = AuditFinding(kind=kind, uri=copy.uri, path=copy.path, reason=reason)
        if len(self._findings) < _MAX_FINDINGS:
            self._findings.append(found)
        fields = {"kind": kind.value, "uri": copy.uri, "path": copy.path, "reason": reason}
        self._report("finding", fields)

    def _has_changed(self, copy: Copy) -> bool:
        """True if the mirror recorded another copy since the moment of this export."""
        with mirror_state.open_state(
            self._folder / OWN_FOLDER / STATE_FILE, read_only=True
        ) as state:
            return state.copy(copy.uri) != copy


def _differs(proof: "tuple[Digest, hashlib._Hash]") -> bool:
    return proof[0].value != proof[1].hexdigest()
