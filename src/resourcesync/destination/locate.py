"""Where the lists of a mirror's Source are, and of which of its sets (§6.3).

Whether a Source still offers its lists where a mirror reads them: its Capability List says so.

A list that stays at its old place says for ever that nothing is new. So when it says that, the
Capability List is asked too, which costs one small request.
"""

import logging
from dataclasses import dataclass
from typing import Final

import msgspec

from resourcesync.destination.change_history import open_lists_of
from resourcesync.destination.cursor import DAY
from resourcesync.destination.options import Dependencies, Filters
from resourcesync.destination.session import SyncSession
from resourcesync.destination.sync_state import MirrorIdentity, SyncState, discovery_rank
from resourcesync.discovery import DocumentFetcher, SetChoice, SourceLists, discover, offered_by
from resourcesync.errors import ConfigurationError, DocumentError, SourceError
from resourcesync.model.timestamps import format_w3c, to_microseconds

_log = logging.getLogger(__name__)


class ListLocator:
    """Finds the lists that a mirror follows.

    Args:
        equipment: What to work with.
        memory: What the mirror knows.
    """

    def __init__(self, equipment: Dependencies, memory: SyncState) -> None:
        self._dependencies = equipment
        self._sync_state = memory

    def address(self, source: str | None) -> str:
        """Return the Source's address: the one that was given, or that of the last pull.

        Raises:
            ConfigurationError: None is known, or the mirror follows another Source.
        """
        identity = self._sync_state.identity
        if identity is None and source is None:
            raise ConfigurationError(
                f"{self._dependencies.folder} is not a mirror yet, and no Source was given",
                hint=f"resourcesync pull https://HOST/ {self._dependencies.folder}",
            )
        if identity is not None and source is not None and source != identity.source:
            raise ConfigurationError(
                f"{self._dependencies.folder} is a mirror of another Source",
                evidence=(("here", identity.source), ("asked", source)),
                hint=f"pull into another folder; or, if the Source moved:"
                f" resourcesync pull {self._dependencies.folder} --moved {source}",
            )
        return identity.source if identity is not None else source or ""

    def locate(self, address: str, filters: Filters, set_name: str = "") -> SourceLists:
        """Look for the lists.

        Args:
            address: The Source.
            filters: Name the origins that the operator allows.
            set_name: Which set of several; empty takes the one followed so far.

        Raises:
            SourceError: Nothing usable was found.
            DocumentError: What was found cannot be used.
            ConfigurationError: There are several sets and none is chosen, or the mirror follows
                another one.
        """
        equipment, pinned = self._dependencies, self._followed_set()
        identity = self._sync_state.identity
        choice = SetChoice(
            requested=set_name,
            pinned=pinned,
            is_bound=identity is not None and identity.set_uri != "",
            folder=equipment.folder,
        )
        documents = DocumentFetcher(equipment.fetcher, equipment.scratch)
        found = discover(documents, address, choice=choice, allowed=filters.allow_origins)
        if set_name and pinned and pinned not in found.documents:
            raise ConfigurationError(
                f"{equipment.folder} is a mirror of another set",
                evidence=(("here", pinned), ("asked", found.set_uri)),
                hint="pull into another folder, or all sets with --all-sets",
            )
        return found

    def locate_moved(
        self, address: str, filters: Filters, set_name: str
    ) -> tuple[SourceLists, MirrorIdentity]:
        """Look for the lists where a person says that the Source is now.

        Returns:
            What was found, and what the mirror is a mirror of from now on.

        Raises:
            ConfigurationError: There is no mirror yet, or there are several sets and none is
                chosen.
            SourceError: Nothing usable was found.
            DocumentError: What was found cannot be used.
        """
        equipment, identity = self._dependencies, self._sync_state.identity
        if identity is None:
            raise ConfigurationError(
                f"{equipment.folder} is not a mirror yet, so its Source cannot have moved",
                hint=f"resourcesync pull {address} {equipment.folder}",
            )
        documents = DocumentFetcher(equipment.fetcher, equipment.scratch)
        choice = SetChoice(requested=set_name, folder=equipment.folder)
        found = discover(documents, address, choice=choice, allowed=filters.allow_origins)
        return found, identity.after_move(address, found.entry, found.set_uri)

    def previous_address(self, address: str) -> str:
        """Return where a move to an address leads away from; empty when it is taken back by it.

        It stays the address where the mirror was in sync last, however often a person tries.
        """
        identity = self._sync_state.identity
        former = self._sync_state.moved_from or ("" if identity is None else identity.source)
        return "" if address == former else former

    def check_set(self, address: str, filters: Filters, set_name: str) -> None:
        """Check that a set that the operator names is the one that the mirror follows.

        Raises:
            SourceError: The Source cannot say, and the name is no URI that is known.
            DocumentError: What the Source says cannot be used.
            ConfigurationError: It is another one, or none.
        """
        followed = self._followed_set()
        if set_name and followed and set_name != followed:
            self.locate(address, filters, set_name)

    def _followed_set(self) -> str:
        """Return the set that the mirror follows; empty before its first pull."""
        identity, found = self._sync_state.identity, self._sync_state.discovered
        if found is not None:
            return found.set_uri
        return "" if identity is None else identity.set_uri

    def is_rediscovery_due(self) -> bool:
        """Whether it is a day since the lists were looked for: a Source may move them.

        One that offered no changes is asked each time: it may offer its first ones only when
        there are some, as DSpace does.
        """
        found = self._sync_state.discovered
        if found is not None and found.change_list is None and not found.is_sitemap:
            return True
        now = to_microseconds(self._dependencies.clock.now())
        return now - (self._sync_state.discovered_at or 0) >= DAY

    def rediscover(
        self, address: str, filters: Filters, known: SourceLists, *, dry_run: bool
    ) -> SourceLists | None:
        """Look for the lists anew; ``None`` when less is found than is known.

        A Source whose lists are away for an hour, behind an error page say, is still that Source:
        a plain sitemap in their place must not take over. Its own Capability List has the say.
        That they were looked for is noted, but not by a dry run: the next run has to look as well.
        """
        try:
            found = self.locate(address, filters)
        except (SourceError, DocumentError, ConfigurationError) as error:
            _log.info("looking for the lists anew: %s", error)
            return None
        is_its_own = found.capability_list is not None and found.set_uri == known.set_uri
        if not (is_its_own and found.resource_list) and discovery_rank(found) < discovery_rank(
            known
        ):
            return None
        if not dry_run:
            self._sync_state.write(found_at=to_microseconds(self._dependencies.clock.now()))
        return found


_HOUR: Final = 3_600_000_000
_NOTE: Final = "capability-list"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProbeRecord:
    """When a Capability List was asked for last, and how it is asked for conditionally."""

    uri: str
    etag: str
    last_modified: str
    at: int


class CapabilityListProbe:
    """Where the Source of one pull offers its lists now.

    Args:
        pull: The pull; what it found must be what the mirror followed before to be asked after.

    Attributes:
        found: What the Source offers now, once `are_others` said so.
    """

    def __init__(self, pull: SyncSession) -> None:
        self._pull = pull
        self._sync_state = SyncState(pull.state)
        self.found: SourceLists | None = None

    def probe(self) -> bool:
        """Whether the Source offers other lists now than those that the pull reads.

        What was found in this very run is not asked after, nor is a Source that has no Capability
        List. One that cannot be had or used says nothing.
        """
        known = self._pull.discovered
        uri = known.capability_list
        if uri is None or known != self._sync_state.discovered or self._is_recent(known):
            return False
        try:
            found = self._read_capability_list(uri, known)
        except (SourceError, DocumentError) as error:
            _log.info("asking where the lists are: %s", error)
            return False
        if found is None or found == known or found.resource_list is None:
            return False
        _log.info("the Source offers other lists than before")
        self.found = found
        return True

    def _is_recent(self, known: SourceLists) -> bool:
        """Whether an index and its open lists were asked less than an hour ago."""
        open_lists = open_lists_of(known.change_list or "", self._pull.state)
        asked = self._last_probe(known.capability_list or "")
        return bool(open_lists) and asked is not None and 0 <= self._pull.now - asked.at < _HOUR

    def _read_capability_list(self, uri: str, known: SourceLists) -> SourceLists | None:
        """Read the Capability List; ``None`` when it did not change."""
        equipment, before = self._pull.dependencies, self._last_probe(uri)
        documents = DocumentFetcher(equipment.fetcher, equipment.scratch)
        fetched = documents.get(
            uri,
            etag=before.etag if before else "",
            last_modified=before.last_modified if before else "",
        )
        if fetched is None:
            assert before is not None, "only a conditional request is answered with 304"
            self._record_probe(before.etag, before.last_modified, uri)
            return None
        with fetched:
            found = offered_by(fetched.open(), known)
        if found == known:  # what is not followed yet is to be read again
            self._record_probe(fetched.etag, fetched.last_modified, uri)
        return found

    def _last_probe(self, uri: str) -> _ProbeRecord | None:
        try:
            asked = msgspec.json.decode(
                self._pull.state.note(_NOTE) or "null", type=_ProbeRecord | None
            )
        except msgspec.MsgspecError:
            return None  # it is only read once more
        return asked if asked is not None and asked.uri == uri else None

    def _record_probe(self, etag: str, last_modified: str, uri: str) -> None:
        if self._pull.options.dry_run:
            return
        asked = _ProbeRecord(uri=uri, etag=etag, last_modified=last_modified, at=self._pull.now)
        self._sync_state.write(capability_list=asked)


def report_source(pull: SyncSession) -> None:
    """Say where the Source's lists are, and how far the mirror knows it."""
    found, as_of = pull.found, pull.sync_state.as_of
    resource_dump, change_dump = found.resource_dump, found.change_dump
    pull.dependencies.report(
        "source",
        {
            "entry": found.entry,
            "spec": found.dialect.phrase_for(None),
            "description": found.description,
            "set": found.capability_list,
            "resource_list": None if found.resource_list == resource_dump else found.resource_list,
            "change_list": None if found.change_list == change_dump else found.change_list,
            "resource_dump": resource_dump,
            "change_dump": change_dump,
            "sitemap": found.is_sitemap,
            "found_by": found.road,
            "as_of": None if as_of is None else format_w3c(as_of),
        },
    )
