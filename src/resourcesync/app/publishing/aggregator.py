"""A mirror as a Source of its own: an account of its state (ADR 0063).

Nothing is hashed again: the mirror knows digests of its copies. The mirror is not locked: a pull
may run meanwhile, and each reading of the state is of one moment.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from resourcesync.adapters.files.names_and_uris import media_type, to_segment
from resourcesync.adapters.mirror.own_folder import STATE_FILE
from resourcesync.app import mirror_home, mirror_stores
from resourcesync.app.serving.published_tree import base_address
from resourcesync.catalogue.reader import read_note
from resourcesync.destination.change_log_reader import ChangeLogReader
from resourcesync.destination.listed_rows import ENTRY_LINKS_COMPLETE
from resourcesync.destination.mapping.names import published_tail
from resourcesync.destination.pending_tasks import CONTRADICTING
from resourcesync.errors import ChangesLostError, ConfigurationError, quoted
from resourcesync.mirror_state.database import SqliteMirrorState, StateSnapshot
from resourcesync.mirror_state.rows import (
    ChangeLogPosition,
    Copy,
    LoggedChange,
    decode_entry_links,
    parse_position,
)
from resourcesync.model.digests import parse_digests
from resourcesync.model.entries import Change, Resource
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import SECOND, from_microseconds
from resourcesync.model.vocabulary import WELL_KNOWN_PATH, ChangeKind, Dialect
from resourcesync.ports import Clock
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, ResourceAccount
from resourcesync.source import publication_settings
from resourcesync.source.naming import is_sitemap
from resourcesync.source.republished_links import UpstreamEntry, republished_links

_BEFORE_1_0: Final = frozenset({Dialect.V0_5, Dialect.V0_6, Dialect.V0_9, Dialect.V0_9_1})
_RESERVED: Final = "resourcesync/"
_DESCRIPTION: Final = WELL_KNOWN_PATH.removeprefix("/")
_APPEARED: Final = frozenset({"created", "deleted"})
_BATCH: Final = 5_000
_POLL_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)


def folder_of(address: str) -> Path:
    """Return the folder of a mirror that is named ``mirror:FOLDER`` or ``mirror:STORE``."""
    place = address.removeprefix(publication_settings.MIRROR_SCHEME)
    return (
        mirror_stores.home_of(place).folder if mirror_home.is_store_address(place) else Path(place)
    )


def hop_mode(out: Path, chosen: Mapping[str, object]) -> str:
    """Return the hops to publish: ``all`` in versions before 1.0, else ``original``."""
    dialect = chosen.get("dialect")
    path = out / publication_settings.CATALOGUE
    if dialect is None and path.is_file():
        dialect = publication_settings.decode_settings(
            read_note(path, publication_settings.INPUT_NOTE)
        ).dialect
    return "all" if dialect in _BEFORE_1_0 else "original"


@contextmanager
def open_account(options: AccountOptions) -> Iterator["MirrorAccount"]:
    """Open the account of a mirror; the option ``hops=all`` publishes each hop."""
    unknown = sorted(options.values.keys() - {"hops"})
    which = options.values.get("hops", "original")
    if unknown or which not in ("original", "all"):
        option = unknown[0] if unknown else f"hops={which}"
        raise ConfigurationError(
            f"{option}: a mirror has no such setting", hint="hops=original or hops=all"
        )
    folder = folder_of(options.address)
    with mirror_home.open_state(folder) as state:
        if state.note(ENTRY_LINKS_COMPLETE) is None:
            mirror = quoted(folder, "MIRROR")
            raise ConfigurationError(
                f"{folder} does not know the links of its Source's entries yet",
                evidence=(("reason", "no whole list was read yet"),),
                hint=f"read its whole list: resourcesync pull {mirror} --mode baseline",
                code="links-unknown",
            )
        path = folder / OWN_FOLDER / STATE_FILE
        yield MirrorAccount(path, state, options.base_uri, options.clock, all_hops=which == "all")


class MirrorAccount(ResourceAccount):
    """The copies of a mirror, as another Source's resources (``Account``)."""

    can_list_resources = True

    def __init__(
        self, path: Path, state: SqliteMirrorState, base_uri: str, clock: Clock, *, all_hops: bool
    ) -> None:
        self._path = path
        self._state = state
        self._base = base_uri
        self._clock = clock
        self._all_hops = all_hops

    def position(self) -> str:
        """Return the position after the newest change."""
        newest = self._state.change_bounds()[1]
        last = next(self._state.changes(newest - 1), None) if newest else None
        return str(ChangeLogPosition(newest, 0 if last is None else last.time))

    def resources(self) -> Iterator[Resource]:
        """Yield the present copies, as they are at one moment."""
        with StateSnapshot(self._path) as state:
            builder = _EntryBuilder(state, self._base, all_hops=self._all_hops)
            for copy in state.copies():
                resource = builder.resource(copy)
                if resource is not None:
                    yield resource

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield the changes of the mirror after a position."""
        until = self._clock.monotonic() + wait
        position = parse_position(after)
        if position is None:
            raise ChangesLostError(f"the mirror has no such position: {after[:100]}")
        reader = ChangeLogReader(state=self._state, position=position, include_touched=True)
        while True:
            rows = reader.read_new()
            while batch := list(islice(rows, _BATCH)):
                yield ChangeBatch(str(reader.position), self._latest_changes(batch))
            left = until - self._clock.monotonic()
            if left <= 0:
                return
            self._clock.sleep(min(_POLL_SECONDS, left))

    def _latest_changes(self, rows: Sequence[LoggedChange]) -> list[Change]:
        builder = _EntryBuilder(self._state, self._base, all_hops=self._all_hops)
        last: dict[str, LoggedChange] = {}
        for row in rows:
            if row.kind == "touched" and self._state.entry_changed(row.uri) != row.seq:
                continue  # it has no new links
            last.pop(row.uri, None)
            last[row.uri] = row
        changes = [builder.moved_from(row) for row in rows if row.was]
        changes += map(builder.change, last.values())
        appeared = [row.uri for row in rows if row.kind in _APPEARED]
        if appeared and self._state.has_entries():
            linking = [name for name in self._state.entries_linking(appeared) if name not in last]
            changes += [builder.updated(uri, rows[-1].time) for uri in linking]
        return [change for change in changes if change is not None]


class _EntryBuilder:
    def __init__(self, state: SqliteMirrorState, base: str, *, all_hops: bool) -> None:
        self._state = state
        self._base = base
        self._named = base_address(state)
        self._all_hops = all_hops
        self._has_entries = state.has_entries()
        self._has_contradicting = state.pending_counts().with_codes(CONTRADICTING) > 0

    def change(self, row: LoggedChange) -> Change | None:
        """Return the change of a copy; ``None`` when a later change has it."""
        if row.kind == "deleted":
            return self._deleted(row.uri, row.path, row.time)
        return self.updated(row.uri, row.time)

    def moved_from(self, row: LoggedChange) -> Change | None:
        """Return the end of an address that was the former path of a copy; a later one has it."""
        return None if self._named else self._deleted(row.uri, row.was, row.time)

    def updated(self, uri: str, time: int) -> Change | None:
        """Return a copy as it is now; ``None`` when a later change has it."""
        copy = self._state.copy(uri)
        if copy is None or copy.is_unknown:
            return None
        resource = self.resource(copy)
        if resource is not None:
            return Change(kind=ChangeKind.UPDATED, resource=resource, time=from_microseconds(time))
        return self._deleted(uri, copy.path, time) if self._contradicts(copy) else None

    def resource(self, copy: Copy) -> Resource | None:
        """Return a copy as a resource; ``None`` when it cannot be published."""
        tail = self._tail(copy.uri, copy.path)
        if tail.startswith(_RESERVED) or tail == _DESCRIPTION or is_sitemap(tail):
            _log.warning("%s is not published: the publication's own documents are there", copy.uri)
            return None
        if copy.is_unknown:  # its file is being changed: the log will have the change
            before = self._state.content_before(copy.uri)
            if before is None:
                return None
            copy = copy._replace(length=before[0], digests=before[1], listed="", lastmod=None)
        if self._contradicts(copy):
            return None
        text = self._state.entry_links(copy.uri) if self._has_entries else ""
        upstream = UpstreamEntry(
            uri=copy.uri, modified=copy.lastmod, hash=copy.listed, links=decode_entry_links(text)
        )
        self._check_no_loop(upstream)
        digests = parse_digests(copy.digests)
        return Resource(
            uri=self._base + tail,
            lastmod=from_microseconds(copy.installed // SECOND * SECOND),
            length=copy.length,
            digests=digests,
            media_type=media_type(copy.path),
            links=republished_links(
                upstream, copy.length, digests, self._own, all_hops=self._all_hops
            ),
        )

    def _deleted(self, uri: str, path: str, time: int) -> Change:
        resource = Resource(uri=self._base + self._tail(uri, path))
        return Change(kind=ChangeKind.DELETED, resource=resource, time=from_microseconds(time))

    def _tail(self, uri: str, path: str) -> str:
        if self._named:
            return published_tail(uri, self._named)
        return "/".join(map(to_segment, path.split("/")))

    def _own(self, uri: str) -> str | None:
        copy = self._state.copy(uri)
        is_here = copy is not None and not copy.is_unknown and not self._contradicts(copy)
        if copy is None or not is_here:
            return None
        return self._base + self._tail(uri, copy.path)

    def _contradicts(self, copy: Copy) -> bool:
        if not self._has_contradicting:
            return False
        pending = self._state.pending_of(copy.uri)
        return pending is not None and pending.code == CONTRADICTING

    def _check_no_loop(self, upstream: UpstreamEntry) -> None:
        ours = next((hop for hop in upstream.hops if hop.startswith(self._base)), None)
        if ours is not None:
            raise ConfigurationError(
                "the mirror contains what this very Source publishes: it would be published twice",
                evidence=(("copy of", upstream.uri), ("came from", ours), ("url", self._base)),
                hint="publish it at an address of its own, or exclude it from the mirror: "
                "resourcesync pull MIRROR --exclude GLOB",
                code="own-publication",
            )
