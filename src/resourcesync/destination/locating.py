"""Where the lists of a mirror's Source are, and of which of its sets (§6.3)."""

import logging

from resourcesync.destination.cursor import DAY
from resourcesync.destination.memory import MirrorIdentity, SyncState, discovery_rank
from resourcesync.destination.options import Dependencies, Filters
from resourcesync.discovery import DocumentFetcher, SetChoice, SourceLists, discover
from resourcesync.errors import ConfigurationError, DocumentError, SourceError
from resourcesync.model.timestamps import to_microseconds

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
                f"{self._dependencies.folder} is no mirror yet, and no Source was named",
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
                f"{equipment.folder} is no mirror yet, so its Source cannot have moved",
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
