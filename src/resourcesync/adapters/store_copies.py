"""The ``Copies`` port on a store other than a folder, by the few operations of the ``Store`` port.

Staged bytes wait in a local folder: they are hashed there, and only verified copies are put. Trash,
quarantine and the store's marker are beside the copies, below ``.resourcesync``.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from typing import BinaryIO, Final, TypeVar, cast

from resourcesync import ports
from resourcesync.errors import MirrorChangedError, StorageError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync.model.digests import Digest, agree, digest_chunks, format_digests
from resourcesync.model.timestamps import from_microseconds
from resourcesync.own_files import IN_TRASH, one_name
from resourcesync.ports import CopyContent, has_content, is_copy_path, stores

_OWN: Final = ".resourcesync/"
_TRASH: Final = f"{_OWN}trash/"
_QUARANTINE: Final = f"{_OWN}quarantine/"
_MARKER: Final = f"{_OWN}marker"
_NOTE: Final = "store-marker"
_MARKER_BYTES: Final = 64
_LONGEST_VERSION: Final = 1_000
_LEAF: Final = 100
_COMPARED: Final = "sha-256"
_MAX_QUARANTINED: Final = 100_000

_MAX_FAILURES: Final = 3

Stage = Callable[[Sequence[str], str], ports.StagedCopy]
_One = TypeVar("_One", ports.CopyInstallation, ports.CopyMove, ports.CopyRemoval)


class StoreCopyInspector:
    """An inspector of copies in a store."""

    def __init__(self, store: stores.Store) -> None:
        self._store = store

    def _stat(self, path: str) -> stores.StoredObject | None:
        with stores.guard_store(f"looking at {path}"):
            there = self._store.stat(path) if is_copy_path(path) else None
            if there is None:
                return None
            version, length = there
            return stores.StoredObject(_checked(version), int(length))

    def signature(self, path: str) -> str | None:
        """Return the version of the copy at ``path``, or ``None`` when there is none."""
        there = self._stat(path)
        return None if there is None else there.version

    def digest(self, path: str, algorithms: Sequence[str]) -> tuple[int, tuple[Digest, ...]] | None:
        """Read a copy; return its length and digests, or ``None`` when there is none."""
        with stores.guard_store(f"reading {path}"):
            blocks = self._blocks(path) if is_copy_path(path) else None
            return None if blocks is None else digest_chunks(blocks, algorithms)

    def digest_all(
        self, wanted: Sequence[tuple[str, Sequence[str]]]
    ) -> Iterator[CopyContent | StorageError | None]:
        """Read copies; yield the content of each, or its error."""
        failures = 0
        for path, algorithms in wanted:
            try:
                found = self.digest(path, algorithms)
            except StorageError as error:
                failures += 1
                if failures >= _MAX_FAILURES:
                    raise
                yield error
            else:
                length, digests = found or (-1, ())
                yield CopyContent(length, format_digests(digests), None) if found else None

    def _blocks(self, key: str) -> Iterator[bytes] | None:
        stream = self._store.open(key)
        return None if stream is None else stores.read_blocks(stream)


class StoredCopies(StoreCopyInspector):
    """The ``Copies`` of a mirror in a store."""

    def __init__(self, store: stores.Store, stage: Stage, clock: ports.Clock) -> None:
        super().__init__(store)
        self._stage = stage
        self._clock = clock
        self._made_way: list[tuple[str, str]] = []
        self._in_flight = stores.in_flight(store)

    def check(self, state: SqliteMirrorState) -> None:
        """Check that the store is still the one of the mirror's state."""
        expected, found = state.note(_NOTE), self._read_marker()
        if expected is None:
            state.commit(StateTransaction(notes={_NOTE: found or self._write_marker()}))
        elif found != expected:
            raise MirrorChangedError(
                "the store is not the one of this mirror's state",
                evidence=(
                    ("here", found or f"no {_MARKER}"),
                    ("known", expected),
                    ("kept", "nothing was changed"),
                ),
                hint="name the former store of this mirror, or use another folder of state: "
                "-o state=DIR",
            )

    def _read_marker(self) -> str:
        with stores.guard_store("reading its marker"):
            stream = self._store.open(_MARKER)
            if stream is None:
                return ""
            with stream:
                return stream.read(_MARKER_BYTES).decode("ascii", "replace").strip()

    def _write_marker(self) -> str:
        marker = secrets.token_hex(16).encode()
        digest = Digest("sha-256", hashlib.sha256(marker).hexdigest())
        content = stores.ObjectContent(BytesIO(marker), len(marker), (digest,))
        with stores.guard_store("writing its marker"):
            if self._store.put(_MARKER, content, None) is None:
                raise StorageError("the store has a marker now", hint="try again")
        return marker.decode()

    def stage(self, algorithms: Sequence[str], of: str = "") -> ports.StagedCopy:
        """Start a staged copy; digests are computed while the bytes are written."""
        return StagedObject(self._store, self._stage(algorithms, of), algorithms)

    def stage_copy(self, path: str, algorithms: Sequence[str]) -> ports.StagedCopy | None:
        """Start a staged copy with the bytes of another copy; ``None`` if they cannot be read."""
        return self._filled(path, algorithms) if is_copy_path(path) else None

    def stage_trashed(self, place: str, algorithms: Sequence[str]) -> ports.StagedCopy | None:
        """Start a staged copy with bytes of the trash; ``None`` if they cannot be read."""
        return self._filled(f"{_TRASH}{one_name(place, IN_TRASH)}", algorithms)

    def _filled(self, key: str, algorithms: Sequence[str]) -> ports.StagedCopy | None:
        staged = self._stage(algorithms, "")
        try:
            with stores.guard_store(f"reading {key}"):
                blocks = self._blocks(key)
                for block in blocks or ():
                    staged.write(block)
        except StorageError as error:
            staged.discard()
            if error.code != stores.STORE_FAILED:
                raise
            return None
        if blocks is None:
            staged.discard()
            return None
        return staged

    def install(self, batch: Sequence[ports.CopyInstallation]) -> list[str | StorageError]:
        """Put a batch in place; return for each its version, or its error."""
        try:
            return self._run_batch(self._place, batch)
        finally:
            for installation in batch:
                installation.staged.discard()

    def _run_batch(
        self, do: Callable[[_One], str], batch: Sequence[_One]
    ) -> list[str | StorageError]:
        failures: list[StorageError] = []

        def tried(item: _One) -> str | StorageError:
            if len(failures) >= _MAX_FAILURES:  # the store is down: the rest waits for the next run
                return failures[-1]
            try:
                return do(item)
            except StorageError as error:
                failures.extend([] if error.code in ports.ONE_COPY else [error])
                return error

        workers = min(self._in_flight, len(batch))
        if workers <= 1:
            return [tried(item) for item in batch]
        with ThreadPoolExecutor(workers, "store") as pool:
            try:
                return list(pool.map(tried, batch))
            except BaseException:  # such as Ctrl-C: start no more calls
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _place(self, installation: ports.CopyInstallation) -> str:
        if not is_copy_path(installation.path):
            raise ports.copy_path_error(installation.path)
        length, digests = installation.staged.seal()
        version = self._put(installation, length, digests, installation.replaces)
        if version is not None:
            return version
        there = self._stat(installation.path)
        is_foreign = there is not None and not (
            self._is_equal(installation.path, there, length, digests)
            or has_content(self, installation.path, installation.content)
        )
        if there is not None and is_foreign:
            self._move_to_quarantine(installation.path, there)
            there = None
        version = self._put(installation, length, digests, None if there is None else there.version)
        if version is None:
            raise _changed(installation.path)
        return version

    def _put(
        self,
        installation: ports.CopyInstallation,
        length: int,
        digests: Sequence[Digest],
        replaces: str | None,
    ) -> str | None:
        path, staged = installation.path, installation.staged
        if isinstance(staged, StagedObject) and staged.place:
            with stores.guard_store(f"putting {path} in place"):
                version = staged.put(path, replaces)
            return None if version is None else _checked(version)
        with staged.open_sealed() as stream, stores.guard_store(f"putting {path} in place"):
            stream.seek(0)
            moment = installation.lastmod
            lastmod = None if moment is None else from_microseconds(moment)
            content = stores.ObjectContent(stream, length, digests, lastmod)
            version = self._store.put(path, content, replaces)
            return None if version is None else _checked(version)

    def _is_equal(
        self, path: str, there: stores.StoredObject, length: int, digests: Sequence[Digest]
    ) -> bool:
        if there.length != length or not digests:
            return False
        found = self.digest(path, [digest.algorithm for digest in digests])
        return found is not None and agree(found[1], digests)

    def _move_to_quarantine(self, path: str, there: stores.StoredObject) -> None:
        place = f"{self._moment()}/{path}"
        with stores.guard_store(f"moving {path} to the quarantine"):
            if not self._store.move(path, f"{_QUARANTINE}{place}", there.version):
                raise _changed(path)
        self._made_way.append((path, place))

    def _moment(self) -> str:
        return f"{self._clock.now():%Y%m%dT%H%M%S.%f}-{secrets.token_hex(8)}"

    def newly_quarantined(self) -> list[tuple[str, str]]:
        """Return the files moved to the quarantine since the last call: paths and names."""
        found, self._made_way = self._made_way, []
        return found

    def remove(self, batch: Sequence[ports.CopyRemoval], reason: str) -> list[str | StorageError]:
        """Move a batch to the trash; return the new place of each (empty: no object)."""
        del reason  # the state stores it
        return self._run_batch(self._move_to_trash, batch)

    def _move_to_trash(self, removal: ports.CopyRemoval) -> str:
        there = self._stat(removal.path)
        if there is None:
            return ""
        is_known = there.version == removal.signature or has_content(
            self, removal.path, removal.content
        )
        if removal.is_altered and not is_known:
            self._move_to_quarantine(removal.path, there)
            return ""
        place = f"{self._moment()}-{removal.path.rpartition('/')[2][:_LEAF]}"
        with stores.guard_store(f"moving {removal.path} to the trash"):
            if is_known and self._store.move(removal.path, f"{_TRASH}{place}", there.version):
                return place
        raise _changed(removal.path)

    def move(self, batch: Sequence[ports.CopyMove]) -> list[str | StorageError]:
        """Move copies to other paths; return for each its version, or its error."""
        return [self._run_batch(self._move, [copy_move])[0] for copy_move in batch]

    def _move(self, copy_move: ports.CopyMove) -> str:
        if not is_copy_path(copy_move.to):
            raise ports.copy_path_error(copy_move.to)
        there = self._stat(copy_move.path)
        if there is None:  # it was moved before, or does not exist
            return self._version_of(copy_move)
        self._clear_target(copy_move, there)
        with stores.guard_store(f"moving {copy_move.path} to {copy_move.to}"):
            if not self._store.move(copy_move.path, copy_move.to, there.version):
                raise _changed(copy_move.path)
        moved = self._stat(copy_move.to) if there.version == copy_move.signature else None
        return copy_move.signature if moved is None else moved.version

    def _version_of(self, copy_move: ports.CopyMove) -> str:
        moved = self._stat(copy_move.to)
        is_ours = (
            moved is not None
            and moved.version != copy_move.signature
            and self._is_equal(copy_move.to, moved, moved.length, copy_move.digests)
        )
        return moved.version if moved is not None and is_ours else copy_move.signature

    def _clear_target(self, copy_move: ports.CopyMove, there: stores.StoredObject) -> None:
        other = self._stat(copy_move.to)
        if other is None:
            return
        if other.length == there.length:
            found = self.digest(copy_move.path, [_COMPARED])
            if found is not None and self._is_equal(copy_move.to, other, *found):
                with stores.guard_store(f"moving {copy_move.path} to {copy_move.to}"):
                    self._store.remove(copy_move.to)  # the same bytes are at the old path
                return
        self._move_to_quarantine(copy_move.to, other)

    def purge(self, place: str) -> None:
        """Delete one object of the trash; it is no error if it is gone."""
        with stores.guard_store("emptying the trash"):
            self._store.remove(f"{_TRASH}{one_name(place, IN_TRASH)}")

    def trashed(self) -> Iterator[str]:
        """Yield the names in the trash."""
        return (key.removeprefix(_TRASH) for key in self._keys(_TRASH))

    @contextmanager
    def inspect(self) -> Iterator["StoredCopies"]:
        """Inspect many copies; a store needs no open handles for that."""
        yield self

    def quarantined(self, path: str) -> list[str]:
        """Return the names in the quarantine of files moved from ``path``, newest last."""
        found = []
        for number, key in enumerate(self._keys(_QUARANTINE)):
            if number >= _MAX_QUARANTINED:
                break
            place = key.removeprefix(_QUARANTINE)
            if place.partition("/")[2] == path:
                found.append(place)
        return sorted(found)

    def paths(self) -> Iterator[str]:
        """Yield the path of every object in the store, except its own."""
        return (key for key in self._keys("") if not key.startswith(_OWN))

    def _keys(self, prefix: str) -> Iterator[str]:
        with stores.guard_store("listing the objects"):
            found: Iterator[object] = self._store.keys(prefix)
            for key in found:
                if not isinstance(key, str) or not key.startswith(prefix):
                    raise StorageError(f"the store listed {key!r:.100}, which was not requested")
                yield key


class StagedObject:
    """A staged copy for a store: bytes on a local disk, or an object that a worker staged.

    ``place`` is the key of that object; empty for bytes on the local disk.
    """

    def __init__(
        self, store: stores.Store, local: ports.StagedCopy, algorithms: Sequence[str]
    ) -> None:
        self._store = store
        self._local = local
        self._length = 0
        self._digests: tuple[Digest, ...] = ()
        self.algorithms = algorithms
        self.place = ""
        self.write, self.restart, self.suspend = local.write, local.restart, local.suspend
        self.record_validator = local.record_validator

    @property
    def part(self) -> ports.PartialBody | None:
        """The part that an earlier run left."""
        return self._local.part

    def take(self, place: str, length: int, digests: tuple[Digest, ...]) -> None:
        """Take over an object that a worker staged."""
        self._local.discard()
        self.place, self._length, self._digests = place, length, digests

    def put(self, path: str, replaces: str | None) -> str | None:
        """Put the object that a worker staged in place; see ``Store.put``."""
        store = cast("stores.StagingStore", self._store)  # only such stores take over
        return store.put_staged(path, self.place, self._length, replaces)

    def seal(self) -> tuple[int, tuple[Digest, ...]]:
        """Finish writing; return the length in bytes and the requested digests."""
        return (self._length, self._digests) if self.place else self._local.seal()

    def open_sealed(self) -> BinaryIO:
        """Open the sealed bytes to read and seek; an object is fetched to the local disk first."""
        if self.place:
            self._local.restart()
            with stores.guard_store(f"reading {self.place}"):
                for block in stores.read_blocks(self._store.open(self.place)):
                    self._local.write(block)
        return self._local.open_sealed()

    def discard(self) -> None:
        """Discard the bytes; may be called twice."""
        self._local.discard()
        if self.place:
            with stores.guard_store(f"removing {self.place}"):
                self._store.remove(self.place)


@contextmanager
def lock_store(store: stores.Store, who: str, holder: str = "") -> Iterator[None]:
    """Lock a store while the block runs."""
    with stores.guard_store("locking it"):
        guard = store.lock(who, holder)
        guard.__enter__()
    try:
        yield
    finally:
        with stores.guard_store("unlocking it"):
            guard.__exit__(None, None, None)


def _checked(version: object) -> str:
    if not isinstance(version, str) or not 0 < len(version) <= _LONGEST_VERSION:
        raise StorageError(
            f"the store gave {version!r:.100} for a version", code=stores.STORE_FAILED
        )
    return version


def _changed(path: str) -> StorageError:
    return StorageError(
        f"{path} was changed locally since it was fetched",
        evidence=(("kept", "the changed bytes are untouched"),),
        hint="move it away if you want to keep it, then try again",
        code="local-change",
    )
