"""Simulated Destination: it pulls with the real code, and crashes and restarts.

Of each copy it stores the length and the digests, not the bytes.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Final, Self, cast
from weakref import WeakSet

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.mirror.stored_parts import PartFiles
from resourcesync.destination.destination import Destination
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.reports import RunReport
from resourcesync.errors import ResourceSyncError, StorageError
from resourcesync.model.digests import Digest, format_digests
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.ports import (
    CancelToken,
    CopyContent,
    CopyInstallation,
    CopyMove,
    CopyRemoval,
    PartialBody,
    StagedCopy,
)
from resourcesync_simulator.clock import SimulatedClock
from resourcesync_simulator.faults import Crash, FaultInjector, with_crashes
from resourcesync_simulator.network import SimulatedNetwork
from resourcesync_simulator.origin import BASE

_STAGED_IN_MEMORY: Final = 1 << 22
"""Bytes of a staged copy in memory; a larger one, such as a package, is in a file."""
_PIECE: Final = 1 << 20

OnChange = Callable[[str, str], None]
"""Called with the path of a changed copy and its SHA-256; empty when it was removed."""


class SimulatedCopies:
    """``Copies`` without bytes.

    A process that crashes loses no installed copy, and all staged ones.
    """

    def __init__(self, on_change: OnChange, injector: FaultInjector) -> None:
        self._on_change = on_change
        self._injector = injector
        self._copies: dict[str, tuple[str, int, tuple[Digest, ...]]] = {}
        self._number = 0
        self._staged = WeakSet["SimulatedStaged"]()
        self._trash = 0
        self.installed = 0
        """Bytes of all installed copies, also by a run that crashed afterwards."""

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each copy, by path."""
        return {path: _sha256(digests) for path, (_, _, digests) in self._copies.items()}

    def stage(self, algorithms: Sequence[str], of: str = "") -> "SimulatedStaged":
        """Stage a copy; nothing of an earlier run is left of it."""
        self._injector.check_alive()
        staged = SimulatedStaged(algorithms, lambda: self._injector.check_room(of))
        self._staged.add(staged)
        return staged

    def forget_staged(self) -> None:
        """Lose the staged copies, as a process does that crashes."""
        for staged in list(self._staged):
            staged.discard()
        self._staged.clear()

    def stage_copy(self, path: str, algorithms: Sequence[str]) -> "SimulatedStaged | None":
        """Return ``None``: the bytes of a copy are not stored."""
        del path, algorithms
        return None

    def stage_trashed(self, place: str, algorithms: Sequence[str]) -> "SimulatedStaged | None":
        """Return ``None``: removed copies are not stored."""
        del place, algorithms
        return None

    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        """Install a batch; return the signature of each."""
        self._injector.check_alive()
        if not batch:
            return []
        survivors = self._injector.survivors(len(batch))
        if survivors is not None:
            for number in sorted(survivors):
                self._install(batch[number].path, batch[number].staged)
            self._injector.die("power_cut", f"{len(batch)} copies")
        done = list[str | StorageError]()
        for installation in batch:
            self._injector.step(installation.path)
            done.append(self._install(installation.path, installation.staged))
        self._injector.step(batch[-1].path)
        return done

    def newly_quarantined(self) -> list[tuple[str, str]]:
        """Return nothing: nobody else writes to these copies."""
        return []

    def remove(self, batch: Sequence[CopyRemoval], reason: str) -> list[str | StorageError]:
        """Remove a batch; return the new place of each, empty when there was no copy."""
        del reason
        self._injector.check_alive()
        if not batch:
            return []
        done = list[str | StorageError]()
        for removal in batch:
            self._injector.step(removal.path)
            done.append(self._remove(removal))
        self._injector.step(batch[-1].path)
        return done

    def move(self, batch: Sequence[CopyMove]) -> list[str | StorageError]:
        """Move copies to other paths; return the signature of each."""
        self._injector.check_alive()
        done = list[str | StorageError]()
        for copy_move in batch:
            self._injector.step(copy_move.to)
            copy = self._copies.pop(copy_move.path, None)
            if copy is not None:
                self._on_change(copy_move.path, "")
                self._copies[copy_move.to] = copy
                self._on_change(copy_move.to, _sha256(copy[2]))
            done.append(copy_move.signature)
        return done

    @contextmanager
    def inspect(self) -> Iterator[Self]:
        """Inspect many copies at once."""
        yield self

    def signature(self, path: str) -> str | None:
        """Return the signature of the copy at ``path``, or ``None`` when there is none."""
        copy = self._copies.get(path)
        return None if copy is None else copy[0]

    def digest(self, path: str, algorithms: Sequence[str]) -> tuple[int, tuple[Digest, ...]] | None:
        """Return the length and digests of a copy, or ``None`` when there is none."""
        copy = self._copies.get(path)
        if copy is None:
            return None
        known = {digest.algorithm: digest for digest in copy[2]}
        if not known.keys() >= set(algorithms):
            raise StorageError(f"{path}: only {', '.join(known)} is known of it")
        return copy[1], tuple(known[algorithm] for algorithm in algorithms)

    def digest_all(
        self, wanted: Sequence[tuple[str, Sequence[str]]]
    ) -> Iterator[CopyContent | StorageError | None]:
        """Yield the length and digests of copies, ``None`` for each that does not exist."""
        for path, algorithms in wanted:
            found = self.digest(path, algorithms)
            length, digests = found or (-1, ())
            signature = self.signature(path)
            yield CopyContent(length, format_digests(digests), signature) if found else None

    def trashed(self) -> Iterator[str]:
        """Yield nothing: removed copies are not stored."""
        return iter(())

    def quarantined(self, path: str) -> Sequence[str]:
        """Return nothing: nobody else writes to these copies."""
        del path
        return ()

    def paths(self) -> Iterator[str]:
        """Yield the path of every copy."""
        return iter(list(self._copies))

    def _install(self, path: str, staged: StagedCopy) -> str:
        length, digests = staged.seal()
        staged.discard()
        self._number += 1
        self.installed += length
        self._copies[path] = (str(self._number), length, digests)
        self._on_change(path, _sha256(digests))
        return str(self._number)

    def _remove(self, removal: CopyRemoval) -> str | StorageError:
        copy = self._copies.get(removal.path)
        if copy is None:
            return ""
        if copy[0] != removal.signature:
            return StorageError(f"{removal.path} is another one by now")
        del self._copies[removal.path]
        self._trash += 1
        self._on_change(removal.path, "")
        return f"trash/{self._trash}"


class SimulatedStaged:
    """A staged copy (``StagedCopy``)."""

    def __init__(self, algorithms: Sequence[str], check_room: Callable[[], None]) -> None:
        self._check_room = check_room
        self._algorithms = tuple(algorithms)
        self._file = SpooledTemporaryFile(max_size=_STAGED_IN_MEMORY)  # noqa: SIM115 - as long as this
        self._sealed: tuple[int, tuple[Digest, ...]] | None = None

    @property
    def part(self) -> PartialBody | None:
        """Return ``None``: nothing is left of an earlier run."""
        return None

    def record_validator(self, validator: str) -> None:
        """Ignore the validator: a partial copy is never resumed."""

    def write(self, chunk: bytes) -> None:
        """Write the next bytes."""
        self._check_room()
        self._file.write(chunk)

    def restart(self) -> None:
        """Discard all bytes so far."""
        self._file.seek(0)
        self._file.truncate()

    def seal(self) -> tuple[int, tuple[Digest, ...]]:
        """End the writing; return the length in bytes and the requested digests."""
        if self._sealed is None:
            running = [hashlib.new(algorithm.replace("-", "")) for algorithm in self._algorithms]
            length = 0
            self._file.seek(0)
            while piece := self._file.read(_PIECE):
                length += len(piece)
                for item in running:
                    item.update(piece)
            found = zip(self._algorithms, running, strict=True)
            self._sealed = length, tuple(Digest(name, item.hexdigest()) for name, item in found)
        return self._sealed

    def open_sealed(self) -> BinaryIO:
        """Open the sealed bytes."""
        self._file.rollover()
        self._file.flush()
        stream = os.fdopen(os.dup(self._file.fileno()), "rb")
        stream.seek(0)
        return stream

    def suspend(self) -> None:
        """End without a complete copy."""
        self.discard()

    def discard(self) -> None:
        """Discard the bytes."""
        self._file.close()


def _sha256(digests: Sequence[Digest]) -> str:
    return next(digest.value for digest in digests if digest.algorithm == "sha-256")


_SCRATCH_IN_MEMORY: Final = 1 << 24


class SimulatedDestination:
    """A Destination whose state is in a folder, and whose copies have no bytes."""

    def __init__(
        self,
        folder: Path,
        network: SimulatedNetwork,
        options: PullOptions,
        clock: SimulatedClock,
        on_change: OnChange,
        *,
        injector: FaultInjector,
    ) -> None:
        self.source = BASE
        """The address that it follows."""
        self.pulls = 0
        """Number of pulls that ended."""
        self.failed = 0
        """Number of pulls that ended with an error."""
        self.crashes = 0
        """Number of pulls in which the Destination crashed."""
        self._folder = folder
        self._network = network
        self._clock = clock
        self._options = options
        self._injector = injector
        self.copies = SimulatedCopies(on_change, injector)
        self._mirror = MirrorFolder(folder, clock)

    def pull(self) -> RunReport | ResourceSyncError | None:
        """Pull once; return the result, ``None`` when the Destination crashed meanwhile."""
        try:
            report = self._destination().pull(self._options)
        except Crash:
            self.crashes += 1
            self._restart()
            return None
        except ResourceSyncError as error:
            self.failed += 1
            return error
        finally:
            self.pulls += 1
        return report

    def close(self) -> None:
        """Close the state."""
        self._mirror.close()

    def _restart(self) -> None:
        self._injector.revive()
        self.copies.forget_staged()
        self._mirror.close()
        self._mirror = MirrorFolder(self._folder, self._clock)

    def _destination(self) -> Destination:
        state = self._mirror.state
        assert state is not None
        return Destination(
            Dependencies(
                folder=str(self._folder),
                source=self.source,
                fetcher=self._network,
                copies=self.copies,
                state=with_crashes(state, self._injector),
                clock=self._clock,
                cancel=CancelToken(self._clock),
                report=lambda _event, _fields: None,
                scratch=_scratch,
                check_folder=self._mirror.check_marker,
                purge=lambda _place: None,
                traffic=lambda: (self._network.requests, self._network.received),
                stored_parts=lambda: PartFiles(self._folder / OWN_FOLDER, _scratch),
            )
        )


def _scratch() -> BinaryIO:
    return cast(BinaryIO, SpooledTemporaryFile(max_size=_SCRATCH_IN_MEMORY))
