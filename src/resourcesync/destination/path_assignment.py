"""Path assignment: relocation of copies whose preferred path clashes with another's.

Two things clash: a file where a folder is needed, and two names that the file system does not
distinguish. The folder keeps its name. Of URIs with one name the first in URI order keeps it; one
that ends in a slash, whose name is only an assumed ``index.html``, comes last. The others are
relocated. So the result depends on the set alone, not on the order of arrival.

First the relocations and the pending moves are stored; then files are moved; then the end is
stored. After a kill in between, the next run continues: a copy is at the path in the state, or at
that of the mapping.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from msgspec.structs import replace

from resourcesync.destination.external_sort import PairSorter
from resourcesync.destination.lists.selection import ResourceSelection
from resourcesync.destination.mapping import FileSystemProfile, PathMapping
from resourcesync.destination.mapping.names import NameMapping, uris_at
from resourcesync.destination.options import Dependencies
from resourcesync.destination.planner import NOT_WANTED, ListedEntry
from resourcesync.destination.sync_state import MOVING, SyncState
from resourcesync.discovery.known_addresses import address_fields
from resourcesync.errors import StorageError, SyncError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, PathKey, Pending, PendingTask, StateTransaction
from resourcesync.model.digests import parse_digests
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import CopyMove

PathClaim = tuple[str, str]
"""Claim of a URI to a path: the key of the path on this file system, and the URI, normalised."""


def relocated_uris(named: Iterable[PathClaim]) -> Iterator[str]:
    """Yield the URIs that cannot have their names."""
    above: list[PathClaim] = []  # files whose keys are prefixes, each of the next
    for claim in named:
        key, uri = claim
        while above and not key.startswith(above[-1][0]):
            del above[-1]
        if above:
            last_key, last_uri = above[-1]
            if key == last_key:
                first, other = sorted((uri, last_uri), key=lambda name: (name.endswith("/"), name))
                if first != other:
                    yield other
                above[-1] = key, first
                continue
            if key[len(last_key)] == "/":
                del above[-1]
                yield last_uri
        above.append(claim)


_GROUP: Final = 256
_MAX_NEW: Final = 10_000
"""Limit of new resources whose neighbours are looked up; above it all copies are read."""
_MAX_RELOCATED: Final = 200_000


class PathAssignment:
    """Assignment of unique paths to a mirror's resources; ``renamed`` files are moved."""

    def __init__(
        self, equipment: Dependencies, selection: ResourceSelection, *, dry_run: bool
    ) -> None:
        self._dependencies = equipment
        self._selection = selection
        self._dry_run = dry_run
        self._state = equipment.state
        self._sync_state = SyncState(equipment.state)
        self.renamed = 0

    @property
    def _mapping(self) -> PathMapping:
        return self._selection.mapping

    def assign_all(self, rows: Iterable[ListedEntry]) -> bool:
        """Assign paths among all copies and all listed resources."""
        mapping = self._mapping
        if not isinstance(mapping, NameMapping):
            return False
        preferred, is_free = mapping.preferred_path, not mapping.relocated
        held = ((preferred(copy.uri), copy.uri) for copy in self._state.copies())
        wanted = (
            (row.path if is_free else preferred(row.uri), row.uri)
            for row in rows
            if row.change not in NOT_WANTED
        )
        with PairSorter(self._dependencies.scratch) as spool:
            spool.add_all(_by_key(mapping, chain(held, wanted)))
            found = frozenset(_check_count(relocated_uris(spool)))
        return self._apply_relocations(mapping, found)

    def assign_new(self, rows: Iterable[ListedEntry]) -> bool:
        """Assign paths to new resources; relocated URIs stay relocated."""
        mapping, state = self._mapping, self._state
        if not isinstance(mapping, NameMapping):
            return False
        rows = iter(rows)
        first = next(rows, None)
        if first is None:
            return False
        is_empty = next(self._existing_paths(), None) is None
        with PairSorter(self._dependencies.scratch) as spool:
            wanted = (
                (row.path, row.uri)
                for row in self._selection.with_current_paths(chain([first], rows))
                if row.change not in NOT_WANTED and (is_empty or state.copy(row.uri) is None)
            )
            new = list(islice(wanted, _MAX_NEW))
            if not new:
                return False
            near: Iterable[tuple[str, str]] = ()
            if len(new) == _MAX_NEW:
                near = self._existing_paths()
            elif not is_empty:
                near = state.path_conflicts(
                    mapping.base, [path for path, _ in new], _key_of(mapping)
                )
            spool.add_all(_by_key(mapping, chain(new, wanted, ((path, uri) for uri, path in near))))
            found = (uri for uri in relocated_uris(spool) if uri not in mapping.relocated)
            return self._apply_relocations(
                mapping, frozenset(_check_count(chain(mapping.relocated, found)))
            )

    def _existing_paths(self) -> Iterator[tuple[str, str]]:
        for copy in self._state.copies():
            yield copy.uri, copy.path
        for row in self._state.pending(PendingTask.FETCH):
            yield row.uri, row.path

    def _apply_relocations(self, before: NameMapping, now: frozenset[str]) -> bool:
        changed = before.relocated ^ now
        if not changed:
            return False
        self._selection.change_mapping(replace(before, relocated=now), changed)
        if not self._dry_run:
            self._sync_state.write(yielding=sorted(now), **{MOVING: True})
        self._vacate_paths(changed & now)
        failed = self._move(sorted(changed - now))
        stay = frozenset(failed)
        if stay:  # their preferred path is occupied: the next baseline tries again
            self._warn(failed)
            self._selection.change_mapping(replace(before, relocated=now | stay), stay)
            self._sync_state.write(yielding=sorted(now | stay))
        self._finish_moves()
        return changed > stay

    def resume_moves(self) -> None:
        """Move the copies that a killed run left to be moved; the next run retries failed moves."""
        if self._dry_run or not self._sync_state.is_note_set(MOVING):
            return
        if isinstance(self._mapping, NameMapping):
            self._vacate_paths(self._mapping.relocated)
        self._warn(stay := self._move(copy.uri for copy in self._state.copies()))
        self._move(row.uri for task in PendingTask for row in self._state.pending(task))
        if not stay:
            self._finish_moves()

    def _vacate_paths(self, uris: frozenset[str]) -> None:
        for error in self._move(sorted(uris)).values():
            raise error

    def _warn(self, failed: dict[str, StorageError]) -> None:
        for error in islice(failed.values(), 1):
            others = f" ({len(failed):,} such copies)" if len(failed) > 1 else ""
            message = f"{error.message}: the copy keeps another name{others}"
            about: dict[str, object] = {"code": error.code, "message": message, "hint": error.hint}
            self._dependencies.report("warning", about | {"evidence": error.evidence})

    def _finish_moves(self) -> None:
        if not self._dry_run:
            self._sync_state.write(**{MOVING: False})

    def _move(self, uris: Iterable[str]) -> dict[str, StorageError]:
        failed: dict[str, StorageError] = {}
        rest = iter(uris)
        while group := list(islice(rest, _GROUP)):
            done = self._move_group(list(self._planned_moves(group)), failed)
            if self._dry_run:
                continue
            self._state.commit(
                StateTransaction(
                    suspect=[copy for copy in done if copy.is_unknown],
                    installed=[copy for copy in done if not copy.is_unknown],
                    pending=list(
                        self._tasks_with_new_paths(group, {copy.uri: copy.path for copy in done})
                    ),
                    now=to_microseconds(self._dependencies.clock.now()),
                )
            )
        return failed

    def _planned_moves(self, uris: Iterable[str]) -> Iterator[tuple[Copy, str]]:
        for uri in uris:
            copy = self._state.copy(uri)
            if copy is not None and copy.path != (to := self._mapping.path(uri)):
                yield copy, to

    def _move_group(
        self, moves: list[tuple[Copy, str]], failed: dict[str, StorageError]
    ) -> list[Copy]:
        done: list[Copy] = []
        batch = [
            CopyMove(
                path=copy.path, to=to, signature=copy.signature, digests=parse_digests(copy.digests)
            )
            for copy, to in moves
        ]
        results = [""] * len(batch) if self._dry_run else self._dependencies.copies.move(batch)
        moved = self._sync_state.moved
        for (copy, to), result in zip(moves, results, strict=True):
            address = address_fields(copy.uri, moved)
            fields = {"action": "move", **address, "path": to, "was": copy.path}
            if isinstance(result, StorageError):
                failed[copy.uri] = result
            else:
                done.append(copy._replace(path=to, signature=result))
                self.renamed += 1
                dry = {"dry_run": True} if self._dry_run else {}
                self._dependencies.report("item", {"status": "ok", **fields, **dry})
        return done

    def _tasks_with_new_paths(
        self, uris: Iterable[str], moved: dict[str, str]
    ) -> Iterator[Pending]:
        for uri in uris:
            row = self._state.pending_of(uri)
            if row is not None:
                copy = self._state.copy(uri)
                path = self._mapping.path(uri) if copy is None else copy.path
                yield row._replace(path=moved.get(uri, path))


def owner_of(state: SqliteMirrorState, path: str) -> str | None:
    """Return the URI in the mirror whose copy has this path; ``None`` if no copy has it."""
    mapping = SyncState(state).mapping()
    for uri in () if mapping is None else uris_at(mapping, path):
        copy = state.copy(uri)
        if copy is not None and copy.path == path:
            return uri
    if not isinstance(mapping, NameMapping):
        return None
    # The URI may have another spelling, the path may be relocated, or be a digest.
    for uri, there in state.path_conflicts(mapping.base, [path], None):
        if there == path and state.copy(uri) is not None:
            return uri
    return None


def _key_of(mapping: NameMapping) -> PathKey | None:
    return None if mapping.profile is FileSystemProfile.POSIX else mapping.key


def _by_key(mapping: NameMapping, claims: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    key = _key_of(mapping)
    return claims if key is None else ((key(path), uri) for path, uri in claims)


def _check_count(uris: Iterable[str]) -> Iterator[str]:
    for number, uri in enumerate(uris):
        if number >= _MAX_RELOCATED:
            raise SyncError(
                f"more than {_MAX_RELOCATED:,} listed resources have names that clash with others",
                evidence=(("for instance", uri), ("kept", "nothing was changed")),
                hint="start a new mirror with a rule for its paths: then no two clash: "
                "-o map='{path*} => {path*}'",
                code="names",
            )
        yield uri
