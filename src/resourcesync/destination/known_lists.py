"""Locator of the lists that a mirror follows (§6.3), and of its set; and whether they changed.

A list that a Source abandoned never has anything new. So where nothing is new, the Capability List
is requested too, one small request, to see whether the lists moved.

A pull reads a closed Change List once. If a Source changes it later, the digest of its processed
changes shows it: closed lists are checked once a day. A Resource List is its documents: a list, or
an index and its parts. Each is requested conditionally, except parts that the index proves to be
unchanged.
"""

import logging
from contextlib import closing
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync import errors
from resourcesync.destination.changes.intervals import ListPrefix, is_later, is_plausible
from resourcesync.destination.lists.absence_proof import ListVersion
from resourcesync.destination.lists.resource_reader import list_version
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.pull_session import SyncSession
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.destination.sync_state import MirrorIdentity, SyncState, discovery_rank
from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.discovery.sets import SetChoice, SourceLists
from resourcesync.discovery.uris import is_same
from resourcesync.model.entries import Change
from resourcesync.model.timestamps import DAY, format_w3c, to_microseconds
from resourcesync.model.vocabulary import Capability

_log = logging.getLogger(__name__)


class SourcePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Address of a Source, and its lists as far as they are known.

    ``lists`` are to be discovered if ``None``. ``are_stored``: an earlier run found them, and the
    Source may have moved them since. ``is_due``: only a baseline can go on from them.
    """

    address: str
    lists: SourceLists | None = None
    are_stored: bool = False
    is_due: bool = False


class ListLocator:
    """Locator of the lists of a mirror."""

    def __init__(self, equipment: Dependencies, memory: SyncState) -> None:
        self._dependencies = equipment
        self._sync_state = memory

    def address(self, source: str | None) -> str:
        """Return the Source's address: the given one, or that of the last pull."""
        identity = self._sync_state.identity
        if identity is None and source is None:
            raise errors.ConfigurationError(
                f"{self._dependencies.folder} is not a mirror yet, and no Source was given",
                hint="give the address of its Source: resourcesync pull https://HOST/ "
                + errors.quoted(self._dependencies.folder, "DIR"),
                code="not-a-mirror",
            )
        if identity is not None and source is not None and not is_same(source, identity.source):
            folder, here = errors.quoted(self._dependencies.folder, "MIRROR"), identity.source
            hint = "pull into another folder; or, if the Source moved, follow it: "
            hint += f"resourcesync pull {folder} --moved {errors.quoted(source, 'https://HOST/')}"
            if identity.was_at(source):
                hint = f"it moved from there: resourcesync pull {folder}; with its other sets: "
                hint += f"resourcesync pull FOLDER --moved {errors.quoted(here, 'https://HOST/')}"
            raise errors.ConfigurationError(
                f"{self._dependencies.folder} is a mirror of another Source",
                evidence=(("here", here), ("asked", source)),
                hint=hint,
            )
        return identity.source if identity is not None else source or ""

    def locate(self, address: str, filters: Filters, set_name: str = "") -> SourceLists:
        """Discover the lists."""
        equipment, pinned = self._dependencies, self._followed_set()
        identity = self._sync_state.identity
        choice = SetChoice(
            requested=set_name,
            pinned=pinned,
            is_bound=identity is not None and identity.set_uri != "",
            folder=equipment.folder,
        )
        found = self._discover(address, choice, filters)
        if set_name and pinned and pinned not in found.documents:
            raise errors.ConfigurationError(
                f"{equipment.folder} is a mirror of another set",
                evidence=(("here", pinned), ("asked", found.set_uri)),
                hint="pull into another folder, or pull all sets: --all-sets",
            )
        return found

    def _discover(self, address: str, choice: SetChoice, filters: Filters) -> SourceLists:
        from resourcesync.discovery.resolver import discover  # noqa: PLC0415 - no pull with nothing new discovers

        documents = DocumentFetcher(self._dependencies.fetcher, self._dependencies.scratch)
        return discover(documents, address, choice=choice, allowed=filters.allow_origins)

    def locate_moved(
        self, address: str, filters: Filters, set_name: str
    ) -> tuple[SourceLists, MirrorIdentity]:
        """Discover the lists at the Source's new address, as given by the operator."""
        equipment, identity = self._dependencies, self._sync_state.identity
        if identity is None:
            raise errors.ConfigurationError(
                f"{equipment.folder} is not a mirror yet, so its Source cannot have moved",
                hint="pull it from there: "
                f"resourcesync pull {errors.quoted(address, 'https://HOST/')}"
                f" {errors.quoted(equipment.folder, 'DIR')}",
                code="not-a-mirror",
            )
        requested = set_name or self._sync_state.set_before_move(address)
        choice = SetChoice(requested=requested, folder=equipment.folder, is_moved=True)
        found = self._discover(address, choice, filters)
        if found.superseded_by:
            raise errors.NotAListError(
                "this list is of the past: a mirror that followed it would go back to its moment",
                uri=address,
                hint="give the address that the Source has now: "
                f"resourcesync pull MIRROR --moved {errors.quoted(found.superseded_by, 'URL')}",
                code="archived-list",
            )
        return found, identity.after_move(address, found, self._sync_state.discovered)

    def previous_address(self, address: str) -> str:
        """Return the address before a move; empty if the move returns to it.

        It stays the address where the mirror was in sync last, however many moves are tried.
        """
        identity = self._sync_state.identity
        previous = self._sync_state.moved_from or ("" if identity is None else identity.source)
        return "" if is_same(address, previous) else previous

    def is_correction(self, address: str) -> bool:
        """True if a move before it was never complete: what came since may be of another Source."""
        identity = self._sync_state.identity
        is_here = identity is not None and is_same(address, identity.source)
        is_second = self._sync_state.moved_from != "" and not is_here
        return is_second or not self.previous_address(address)

    def known_place(self, source: str | None, options: PullOptions) -> SourcePlace:
        """Return the lists as they were found last; again after a day, or for a baseline.

        A set named by the operator must be the one that the mirror follows.
        """
        address, filters = self.address(source), options.all_filters
        followed = self._followed_set()
        if options.set_name and followed and options.set_name != followed:
            self.locate(address, filters, options.set_name)
        stored = None if options.mode == "baseline" else self._sync_state.discovered
        place = SourcePlace(address=address, lists=stored, are_stored=stored is not None)
        if stored is None or not self._is_rediscovery_due():
            return place
        found = self._rediscover(address, options, stored) or stored
        # New Change Lists need not have the changes before their start.
        is_due = stored.change_list is None and found.change_list is not None
        return replace(place, lists=found, is_due=is_due)

    def moved_place(self, place: SourcePlace, options: PullOptions) -> SourcePlace | None:
        """Return the place with lists that were discovered again; ``None`` if none moved."""
        if place.lists is None or not place.are_stored:
            return None
        _log.info("the Source moved its lists: discovering them again")
        found = self._rediscover(place.address, options, place.lists)
        return None if found in (None, place.lists) else replace(place, lists=found)

    def _followed_set(self) -> str:
        identity, found = self._sync_state.identity, self._sync_state.discovered
        if found is not None:
            return found.set_uri
        return "" if identity is None else identity.set_uri

    def _is_rediscovery_due(self) -> bool:
        """True if the last discovery was a day ago: a Source may move its lists.

        A Source without Change Lists is due each time: it may offer its first one only when there
        are changes, as DSpace does.
        """
        found = self._sync_state.discovered
        if found is not None and found.change_list is None and not found.is_sitemap:
            return True
        now = to_microseconds(self._dependencies.clock.now())
        return now - (self._sync_state.discovered_at or 0) >= DAY

    def _rediscover(
        self, address: str, options: PullOptions, known: SourceLists
    ) -> SourceLists | None:
        """Discover the lists again; ``None`` if less is found than is known.

        A Source whose lists are away for an hour, behind an error page say, is still that Source: a
        plain sitemap must not replace them. Its own Capability List decides, also that there is no
        Resource List any more. The time of the discovery is noted, but not by a dry run: the next
        run must discover again.
        """
        try:
            found = self.locate(address, options.all_filters)
        except (errors.SourceError, errors.DocumentError, errors.ConfigurationError) as error:
            _log.info("cannot discover the lists again: %s", error)
            return None
        is_its_own = found.capability_list is not None and found.set_uri == known.set_uri
        if not is_its_own and discovery_rank(found) < discovery_rank(known):
            return None
        if not options.dry_run:
            self._sync_state.write(found_at=to_microseconds(self._dependencies.clock.now()))
        return found


_HOUR: Final = 3_600_000_000
_NOTE: Final = "capability-list"


class _ProbeRecord(msgspec.Struct, frozen=True, kw_only=True):
    uri: str
    etag: str
    last_modified: str
    at: int


class CapabilityListProbe:
    """Probe of the Capability List for lists that moved: ``found``, once `probe` returned true."""

    def __init__(self, pull: SyncSession) -> None:
        self._pull = pull
        self._sync_state = SyncState(pull.state)
        self.found: SourceLists | None = None
        self._was_probed = False

    def probe(self) -> bool:
        """Return whether the Source offers other lists now than those that the pull reads.

        Lists discovered in this run are not probed, nor a Source without a Capability List. One
        that cannot be fetched or used proves nothing. It is requested once.
        """
        if not self._was_probed:
            self._was_probed = True
            self.found = self._find_moved()
        return self.found is not None

    def _find_moved(self) -> SourceLists | None:
        known = self._pull.discovered
        uri = known.capability_list
        if uri is None or known != self._sync_state.discovered or self._is_recent(known):
            return None
        try:
            found = self._read_capability_list(uri, known)
        except (errors.SourceError, errors.DocumentError) as error:
            _log.info("cannot check whether the lists moved: %s", error)
            return None
        if found is None or found == known:
            return None
        _log.info("the Source offers other lists than before")
        return found

    def _is_recent(self, known: SourceLists) -> bool:
        open_lists = self._pull.cursor.open_lists
        last = self._last_probe(known.capability_list or "")
        return bool(open_lists) and last is not None and 0 <= self._pull.now - last.at < _HOUR

    def _read_capability_list(self, uri: str, known: SourceLists) -> SourceLists | None:
        before = self._last_probe(uri)
        fetched = self._pull.documents.get(uri, before)
        if fetched is None:
            assert before is not None, "only a conditional request is answered with 304"
            self._record_probe(before.etag, before.last_modified, uri)
            return None
        with fetched:
            from resourcesync.discovery.resolver import offered_by  # noqa: PLC0415 - no pull with nothing new discovers

            found = offered_by(fetched.open(), known)
        if found == known:
            self._record_probe(fetched.etag, fetched.last_modified, uri)
        else:  # read again next time: neither these lists nor those before are known to be offered
            self._record_probe("", "", uri, at=0)
        return found

    def _last_probe(self, uri: str) -> _ProbeRecord | None:
        try:
            last = msgspec.json.decode(
                self._pull.state.note(_NOTE) or "null", type=_ProbeRecord | None
            )
        except msgspec.MsgspecError:
            return None  # then it is requested again
        return last if last is not None and last.uri == uri else None

    def _record_probe(self, etag: str, last_modified: str, uri: str, at: int | None = None) -> None:
        if self._pull.options.dry_run:
            return
        moment = self._pull.now if at is None else at
        last = _ProbeRecord(uri=uri, etag=etag, last_modified=last_modified, at=moment)
        self._sync_state.write(capability_list=last)


def report_source(pull: SyncSession, *, first: bool = False) -> None:
    """Report the Source's lists, and the time up to which the mirror is complete."""
    found, as_of = pull.found, pull.sync_state.as_of
    resource_dump, change_dump = found.resource_dump, found.change_dump
    pull.dependencies.report(
        "source",
        {
            "entry": found.entry,
            "first": first,
            "spec": found.dialect.phrase_for(None),
            "description": found.description,
            "set": found.capability_list,
            "resource_list": None if found.resource_list == resource_dump else found.resource_list,
            "change_list": None if found.change_list == change_dump else found.change_list,
            "resource_dump": resource_dump,
            "change_dump": change_dump,
            "sitemap": found.is_sitemap,
            "found_by": found.road,
            "delete": pull.options.delete or "auto",
            "as_of": None if as_of is None else format_w3c(as_of),
        },
    )
    if as_of is None and found.superseded_by:
        pull.warn(
            "superseded-list",
            "this list is of the past: the mirror has its moment, and stays there",
            hint="to follow the Source, pull into another folder: "
            f"resourcesync pull {errors.quoted(found.superseded_by, 'URL')}",
        )
    if as_of is None and found.unanswered:
        pull.warn(
            "unanswered",
            f"the search for lists could not look at {found.unanswered}: if better ones are there,"
            " a pull of another day follows them",
        )


_MAX_CLOSED_LISTS: Final = 50
"""Closed lists checked in a day, the newest ones; each is a small request."""


def find_changed_closed_list(pull: SyncSession) -> str:
    """Return a closed Change List that changed since it was processed; empty if there is none.

    Checks at most once a day, and writes only the time of the check, and that only if nothing
    changed: the caller stores it together with what follows. A list that cannot be fetched or used
    proves nothing.
    """
    checked_at = pull.cursor.closed_lists_checked_at
    if Capability.CHANGE_DUMP in pull.listing_dumps:
        return ""  # packages in place of lists are too large to be requested again
    if checked_at is not None and 0 <= pull.now - checked_at < DAY:
        return ""
    changed = "" if checked_at is None else _find_changed(pull)  # the lists were read just now
    if not changed:
        pull.move(replace(pull.cursor, closed_lists_checked_at=pull.now))
    return changed


def _find_changed(pull: SyncSession) -> str:
    for seen in pull.state.closed_documents(_MAX_CLOSED_LISTS):
        try:
            fetched = pull.documents.get(seen.uri, seen)
            if fetched is None:
                continue
            with fetched:
                prefix = ListPrefix(pull.selection.addresses.mirror_uri)
                for entry in fetched.open().entries():
                    if isinstance(entry, Change):
                        prefix.add(entry)
                if prefix.entries != seen.entries or prefix.hexdigest() != seen.prefix:
                    return seen.uri
        except (errors.SourceError, errors.DocumentError) as error:
            _log.info("cannot check a closed list: %s", error)
    return ""


class NewerListCheck:
    """Check for a newer Resource List; if there is none, ``known`` need not be requested again."""

    def __init__(self, pull: SyncSession, known: ListVersion) -> None:
        self.known = known
        self._pull, self._documents = pull, pull.documents
        # Without a change to continue from, only the list proves the state.
        self._is_only_proof = not any(done.entries for done in pull.cursor.processed)

    def _is_plausible(self, at: int | None) -> bool:
        through, now = self._pull.cursor.checkpoint or 0, self._pull.now
        return at is None or is_plausible(at, through=through, now=now)

    def check(self) -> bool:
        """Return whether the list, or a part of it, changed and is of no earlier moment.

        A part that cannot be fetched or used now proves nothing.
        """
        return self._check_head() or self._check_parts()

    def _check_head(self) -> bool:
        known = self.known
        is_known = known.parts is not None
        fetched = self._documents.get(known.uri, known if is_known else None)
        if fetched is None:
            return False
        with fetched:
            head = list_version(fetched)
        at = self._known_moment(known)
        is_other = head.digest != known.digest
        if is_other and ((self._is_only_proof and known.digest) or self._is_later(head, at)):
            return self._is_plausible(head.at)
        if head.parts is None and not is_known:  # an index with unknown parts
            return head.at is None or at is None or head.at >= at
        parts = known.parts if head.parts is None else ()
        self.known = replace(head, at=at, parts=parts)  # need not be sent again
        return False

    def _check_parts(self) -> bool:
        if not self.known.parts:
            return False
        parts = {part.uri: part for part in self.known.parts}
        unknown: set[str] = set()

        def record_unknown(uri: str, error: errors.ResourceSyncError) -> None:
            if isinstance(error, errors.StorageError):
                raise error
            _log.info("cannot check whether a part of a list is newer: %s", error)
            unknown.add(uri)

        with closing(self._documents.get_all({**parts}, record_unknown)) as changed_parts:
            for fetched in changed_parts:
                known = parts[fetched.uri]
                try:
                    with fetched:
                        part = list_version(fetched)
                except errors.DocumentError as error:
                    record_unknown(fetched.uri, error)
                    continue
                at = self._known_moment(known)
                if part.digest == known.digest or not self._is_later(part, at):
                    parts[part.uri] = replace(part, at=known.at, over=known.over)
                elif self._is_plausible(part.at):
                    return True
                else:
                    unknown.add(part.uri)
        left = (
            part
            for part in parts.values()
            # What was just requested and depends on its index can change only together with it.
            if part.uri in unknown or part.over is None or part.over > self._pull.now
        )
        self.known = replace(self.known, parts=tuple(left))
        return False

    def _known_moment(self, known: ListVersion) -> int | None:
        return self._pull.cursor.resource_list_at if known.at is None else known.at

    @staticmethod
    def _is_later(other: ListVersion, at: int | None) -> bool:
        return other.at is None or at is None or is_later(other.at, at)
