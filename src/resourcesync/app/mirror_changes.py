"""A mirror's content for other programs: its resources, and its changes from a position on."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import msgspec

from resourcesync.adapters.files.names_and_uris import UNKNOWN_TYPE, media_type
from resourcesync.adapters.mirror.own_folder import STATE_FILE
from resourcesync.adapters.system import SystemClock
from resourcesync.app import mirror_home
from resourcesync.destination.path_assignment import owner_of
from resourcesync.destination.sync_state import SyncState
from resourcesync.discovery.known_addresses import MovedBases, known_uri, present_uri
from resourcesync.discovery.uris import normalise_if_possible
from resourcesync.errors import ConfigurationError, StoppedError, StorageError
from resourcesync.mirror_state import rows
from resourcesync.mirror_state.database import StateSnapshot
from resourcesync.model.digests import Digest, agree, format_digests, parse_digests, usable
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports import CancelToken

if TYPE_CHECKING:
    from resourcesync.destination.change_log_reader import ChangeLogReader
    from resourcesync.mirror_state.rows import Copy

START: Final = "start"
"""Position before everything in a mirror: each copy is a change, as ``created``."""

Since = str | datetime
"""A change's ``position``, ``start``, or an aware moment."""

_PAUSE_SECONDS: Final = 1.0
_TRIES: Final = 50
_TRY_SECONDS: Final = 0.1


def _media_type(uri: str, path: str) -> str:
    found = media_type(uri.partition("?")[0])
    return media_type(path) if found == UNKNOWN_TYPE else found


class MirroredResource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource that a mirror has a copy of.

    Attributes:
        uri: Its present URI, normalised (RFC 3986 §6.2.2).
        known_as: Its URI in the mirror: of the Source's first address, if it moved.
        path: Its file; for a mirror in a store, the key of the copy, below the folder of the state.
        length: Bytes; ``None`` while a run replaces the file, or after such a run was killed.
        digests: Digests of the bytes, computed when they were fetched; none if ``length`` is.
        lastmod: ``lastmod`` of the Source's entry, UTC, if it is known to be that of these bytes.
        media_type: Media type by the ending of the address, else of the file's name;
            ``application/octet-stream`` if unknown.
        fixity: How well its bytes are proven to be those that the Source lists: ``verified``,
            ``server-verified``, ``weak``, ``unverified``, ``restored`` or ``stale``; ``altered`` or
            ``missing`` if an audit found its file so, ``edited`` if a deletion did, ``suspect`` if
            a run was killed while it replaced it.
        fetched: Time when the copy was put in place, UTC.
        confirmed: Last moment at which the Source is known to have had the resource, by its own
            clocks, UTC; ``None`` if unknown.
    """

    uri: str
    known_as: str
    path: Path
    length: int | None
    digests: tuple[Digest, ...]
    lastmod: datetime | None
    media_type: str
    fixity: str
    fetched: datetime
    confirmed: datetime | None


def read_resources(folder: Path) -> Iterator[MirroredResource]:
    """Yield the resources of a mirror; see ``Mirror.resources``."""
    with mirror_home.open_state(folder) as state:
        moved = SyncState(state).moved
        for copy in state.copies():
            if not copy.is_incoming:
                yield _resource(folder, copy, present_uri(copy.uri, moved))


def _resource(folder: Path, copy: "Copy", uri: str) -> MirroredResource:
    is_known = copy.length >= 0
    return MirroredResource(
        uri=uri,
        known_as=copy.uri,
        path=folder / copy.path,
        length=copy.length if is_known else None,
        digests=parse_digests(copy.digests) if is_known else (),
        lastmod=from_microseconds(copy.lastmod) if copy.lastmod is not None else None,
        media_type=_media_type(copy.uri, copy.path),
        fixity=copy.signature if copy.is_suspect else copy.fixity if is_known else "suspect",
        fetched=from_microseconds(copy.installed),
        confirmed=from_microseconds(copy.evidence) if copy.evidence else None,
    )


def find_path(folder: Path, uri: str) -> Path | None:
    """Return the file of a resource; see ``Mirror.path``."""
    with mirror_home.open_state(folder) as state:
        known = known_uri(normalise_if_possible(uri), SyncState(state).moved)
        copy = state.copy(known) or state.copy(uri)
    return None if copy is None or copy.is_incoming else folder / copy.path


def find_uri(folder: Path, path: Path) -> str | None:
    """Return the resource of a file; see ``Mirror.uri``."""
    inside = path.absolute()
    with mirror_home.open_state(folder) as state:
        if not inside.is_relative_to(folder.absolute()):
            return None
        owner = owner_of(state, inside.relative_to(folder.absolute()).as_posix())
        return owner and present_uri(owner, SyncState(state).moved)


class MirrorChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a mirror's content.

    Attributes:
        number: Its number; a later change has a greater one. The changes of a first reading, one
            for each copy, have the number of the newest change.
        position: The position after this change: store it with what you did with the change, and
            continue with ``since=``.
        time: Time of the change in the mirror, UTC.
        kind: ``created``, ``updated``, ``deleted``, or ``touched``: fetched or confirmed again, or
            its entry has other links, and the bytes are the same.
        uri: The present address of the resource.
        known_as: Its URI in the mirror: of the Source's first address, if it moved.
        path: Its file; gone when it was deleted, in the mirror or since.
        was: Its former file, if it is another now: of an update, also of one of the same bytes.
        length: Bytes; of the deleted copy, if it was deleted.
        digests: Digests of the bytes now; none when they were deleted.
        previous: Digests of the bytes before; none when there were none, or they are not known.
        mirror: The mirror's folder.
        media_type: Media type by the ending of the address, else of the file's name;
            ``application/octet-stream`` if unknown.
    """

    number: int
    position: str
    time: datetime
    kind: rows.MirrorChangeKind
    uri: str
    known_as: str
    path: Path
    was: Path | None
    length: int
    digests: tuple[Digest, ...]
    previous: tuple[Digest, ...]
    mirror: Path
    media_type: str

    def read(self) -> bytes | None:
        """Return the bytes of this change, compared with its digest; they are in memory at once.

        Returns:
            ``None`` if the resource was deleted, or changed again: a later change says so.

        Raises:
            StorageError: The file is damaged or missing though the mirror has the copy, or a run
                is replacing it and does not end within five seconds.
            ConfigurationError: The copies are in a store, not in files of the mirror's folder.
        """
        if self.kind == "deleted":
            return None
        content = self._read(self.path)
        return self._read_again() if content is None else content

    def resource(self) -> MirroredResource | None:
        """Return the copy of this change, with its evidence, ``fixity`` and ``confirmed``.

        Returns:
            ``None`` if the resource was deleted, or changed again: a later change says so.
        """
        copy = None if self.kind == "deleted" else self._copy()
        if copy is not None and copy.length < 0:  # it is being replaced: what it was counts
            copy = copy._replace(length=self.length, digests=format_digests(self.digests))
        return None if copy is None else _resource(self.mirror, copy, self.uri)

    def _read_again(self) -> bytes | None:
        if mirror_home.store_of(self.mirror):
            raise ConfigurationError(
                "the copies of this mirror are in a store", hint="read them from the store"
            )
        clock, seen, is_idle = SystemClock(), None, False
        for _ in range(_TRIES):
            copy = self._copy()
            if copy is None:
                return None
            content = self._read(self.mirror / copy.path)
            if content is not None:
                return content
            if copy.length >= 0:
                if copy == seen:  # no run replaced the file between the two
                    trouble = "is damaged" if (self.mirror / copy.path).is_file() else "is missing"
                    raise self._error(trouble, "audit and repair the mirror")
            elif is_idle:
                return None  # a run was killed: the next one logs an update
            else:
                is_idle = not mirror_home.is_locked(self.mirror)
                clock.sleep(0 if is_idle else _TRY_SECONDS)
            seen = copy
        raise self._error("is being replaced", "read the changes again later")

    def _error(self, trouble: str, hint: str) -> StorageError:
        return StorageError(f"{self.path} {trouble}", evidence=(("uri", self.uri),), hint=hint)

    def _copy(self) -> "Copy | None":
        with StateSnapshot(self.mirror / OWN_FOLDER / STATE_FILE) as state:
            copy = state.copy(self.known_as)
            if copy is None:
                return None
            before = state.content_before(self.known_as) if copy.length < 0 else None
        digests = copy.digests if before is None else before.digests
        return copy if agree(parse_digests(digests), self.digests) else None

    def _read(self, path: Path) -> bytes | None:
        try:
            content = path.read_bytes()
        except OSError:
            return None
        for algorithm, value in usable(self.digests)[:1]:
            name = algorithm.replace("-", "")
            if hashlib.new(name, content, usedforsecurity=False).hexdigest() != value:
                return None
        return content


class ChangeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a mirror that a program wants: from a consumer's position, or ``since``."""

    consumer: str | None = None
    since: rows.ChangeLogPosition | datetime | None = None
    """``None`` is the oldest recorded change."""
    restart: bool = False
    touched: bool = False

    @classmethod
    def of(cls, consumer: str | None, since: Since | None, *, touched: bool, restart: bool) -> Self:
        """Return the query of some arguments."""
        if consumer is not None and since is not None:
            raise ConfigurationError("a named consumer has its own position: leave since out")
        if consumer is None and restart:
            raise ConfigurationError("restart needs a consumer", hint='without one: since="start"')
        if isinstance(since, datetime) and since.tzinfo is None:
            raise ConfigurationError("since has no time zone", hint="since=datetime(…, tzinfo=UTC)")
        if since == START:
            return cls(restart=True, touched=touched)
        return cls(
            consumer=consumer,
            since=since if since is None or isinstance(since, datetime) else _parse(since),
            touched=touched,
            restart=restart,
        )


def _parse(since: str) -> rows.ChangeLogPosition:
    position = rows.parse_position(str(since))
    if position is None:
        raise ConfigurationError(
            f"since is not the position of a change: {str(since)[:100]!r}",
            hint='use the "position" of a change, not its number; or "start", or a time',
        )
    return position


def read_rounds(
    folder: Path, query: ChangeQuery, pause: Callable[[], bool] | None
) -> Iterator[tuple[mirror_home.OpenChanges, "ChangeLogReader"]]:
    """Yield the open log of a mirror and a reader of what is new, once or again and again."""
    since, restart = query.since, query.restart
    while True:
        with mirror_home.open_changes(folder) as opened:
            reader = opened.reader(query.consumer, since, touched=query.touched, restart=restart)
            yield opened, reader
        since, restart = reader.position, False
        if pause is None or not pause():
            return


def read_changes(
    folder: Path, query: ChangeQuery, pause: Callable[[], bool] | None
) -> Iterator[MirrorChange]:
    """Yield the changes of a mirror; see ``Mirror.changes``."""
    for opened, reader in read_rounds(folder, query, pause):
        before, moved = reader.position, SyncState(opened.state).moved
        for row in reader.read_new():
            yield _change(folder, row, str(reader.position), moved)
        position = reader.position
        if query.consumer is not None and position is not None and position != before:
            opened.consumers.acknowledge(query.consumer, position)


def wait_for_changes(cancel: CancelToken) -> bool:
    """Wait a second for changes; return false as soon as the end is requested."""
    try:
        cancel.wait(_PAUSE_SECONDS)
    except StoppedError:
        return False
    return True


def _change(folder: Path, row: rows.LoggedChange, position: str, moved: MovedBases) -> MirrorChange:
    return MirrorChange(
        number=row.seq,
        position=position,
        time=from_microseconds(row.time),
        kind=row.kind,
        uri=present_uri(row.uri, moved),
        known_as=row.uri,
        path=folder / row.path,
        was=folder / row.was if row.was else None,
        length=row.length,
        digests=parse_digests(row.digests),
        previous=parse_digests(row.previous),
        mirror=folder,
        media_type=_media_type(row.uri, row.path),
    )
