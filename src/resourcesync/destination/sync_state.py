"""The notes of a mirror's memory, by name and with their types."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from resourcesync.destination.cursor import INTERRUPTED_CHANGES, REPAIR_CHANGES
from resourcesync.destination.mappers import (
    NAMES,
    TREE,
    MapperFactory,
    PathMapping,
    PluggedMapping,
    TemplateMapping,
    is_rule,
    load_no_mapper,
)
from resourcesync.destination.mapping import FileSystemProfile, TreeMapping, origin
from resourcesync.destination.name_mapping import NameMapping
from resourcesync.destination.options import Filters
from resourcesync.destination.reports import AuditReport
from resourcesync.destination.reports import MirrorState as MirrorWord
from resourcesync.destination.resource_reader import ListVersion
from resourcesync.destination.scope import Scope
from resourcesync.discovery import SourceLists
from resourcesync.errors import StateError
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports.mirror import MirrorStateStore, StateTransaction

T = TypeVar("T")

_MAX_AUDITS: Final = 20
MOVING: Final = "moving"
"""The note that says that copies are on their way to the paths that the mapping gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """What is remembered of an audit.

    Attributes:
        ended: When it came to its end, microseconds.
        method: What it compared.
        report: What it counted, without its findings.
    """

    ended: int
    method: str
    report: AuditReport


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorIdentity:
    """What a mirror is a mirror of; fixed by its first pull.

    Attributes:
        source: The address that was given.
        base: The URI that the mirror's root stands for.
        origins: The origins that the Source speaks for by itself.
        profile: The mapping's profile.
        set_uri: The set that the operator chose; empty when there was nothing to choose.
        mapper: What gives each URI its path: ``tree/2``, ``tree`` (that is ``tree/1``), a plug-in's
            name, or a rule.
        moved: Where the Source moved to, and where its resources are at home here; each pair of
            URIs ends in slashes. What is listed at the first is what was listed at the second.
    """

    source: str
    base: str
    origins: tuple[str, ...]
    profile: FileSystemProfile
    set_uri: str = ""
    mapper: str = TREE
    moved: tuple[tuple[str, str], ...] = ()

    def after_move(self, address: str, entry: str, set_uri: str) -> "MirrorIdentity":
        """Return what it is a mirror of after its Source moved.

        Args:
            address: The Source's address now.
            entry: Where that leads.
            set_uri: The set that is followed there.
        """
        now = dict.fromkeys((f"{origin(address)}/", f"{origin(entry)}/"), self.base)
        homes = {there: here for there, here in self.moved if there not in now} | now
        if homes.pop(self.base, None):  # it is back
            homes = {}
        chosen = set_uri if self.set_uri else ""
        return replace(self, source=address, set_uri=chosen, moved=tuple(homes.items()))

    def scope(self, filters: Filters) -> Scope:
        """Return what of the Source is wanted: what it speaks for, and the operator's filters."""
        return Scope(
            origins=frozenset((*self.origins, *map(origin, filters.allow_origins))),
            include=filters.include,
            exclude=filters.exclude,
            types=filters.types,
            max_size=filters.max_size,
            since=filters.since,
        )

    def mapping(
        self,
        load: Callable[[str], MapperFactory] = load_no_mapper,
        yielding: Iterable[str] = (),
    ) -> PathMapping:
        """Return the mapping from URI to path.

        Args:
            load: Returns a plug-in by its name.
            yielding: The URIs whose names yield to others.

        Raises:
            ConfigurationError: The plug-in is not there, or cannot be used.
        """
        if self.mapper == NAMES:
            yields = frozenset(yielding)
            return NameMapping(base=self.base, profile=self.profile, relocated=yields)
        if self.mapper == TREE:
            return TreeMapping(base=self.base, profile=self.profile)
        if is_rule(self.mapper):
            return TemplateMapping(self.mapper, self.base, self.profile)
        return PluggedMapping(self.mapper, load(self.mapper), self.base, self.profile)


class SyncState:
    """The notes of a mirror, typed.

    Args:
        state: Where they are kept.
    """

    def __init__(self, state: MirrorStateStore) -> None:
        self._state = state

    def _number(self, key: str) -> int | None:
        text = self._state.note(key)
        try:
            return None if text is None else int(text)
        except ValueError as error:
            raise _unreadable_note(key, str(error)) from error

    @property
    def identity(self) -> MirrorIdentity | None:
        """What the mirror is a mirror of; ``None`` before its first pull."""
        return self._decode("identity", MirrorIdentity)

    @property
    def relocated_uris(self) -> tuple[str, ...]:
        """The URIs whose names yield to others."""
        return self._decode("yielding", tuple[str, ...]) or ()

    def mapping(self, load: Callable[[str], MapperFactory] = load_no_mapper) -> PathMapping | None:
        """Return the mirror's mapping from URI to path; ``None`` before its first pull.

        Args:
            load: Returns a plug-in by its name.

        Raises:
            ConfigurationError: The plug-in is not there, or cannot be used.
        """
        identity = self.identity
        return None if identity is None else identity.mapping(load, self.relocated_uris)

    @property
    def discovered(self) -> SourceLists | None:
        """What discovery found the last time."""
        return self._decode("found", SourceLists)

    @property
    def moved_from(self) -> str:
        """Where the Source was when the mirror was in sync last, if it moved since; else empty."""
        return self._state.note("moved-from") or ""

    @property
    def filters(self) -> Filters | None:
        """The filters of the last pull."""
        return self._decode("filters", Filters)

    def _decode(self, key: str, kind: type[T]) -> T | None:
        text = self._state.note(key)
        if text is None:
            return None
        try:
            return msgspec.json.decode(text.encode(), type=kind)
        except msgspec.MsgspecError as error:
            raise _unreadable_note(key, str(error)) from error

    @property
    def checkpoint(self) -> int | None:
        """T: every change of the Source up to here is known, microseconds."""
        return self._number("through")

    @property
    def list_clock_checkpoint(self) -> int | None:
        """What the clock of the lists says of T, no later; T itself where nothing is noted."""
        noted, through = self._number("listed"), self.checkpoint
        return through if noted is None or through is None else min(noted, through)

    @property
    def resource_list_at(self) -> int | None:
        """``at`` of the last Resource List that was read, microseconds."""
        return self._number("at")

    @property
    def swept_at(self) -> int | None:
        """``at`` of the last Resource List that proved what is gone, microseconds."""
        return self._number("swept-at")

    @property
    def swept_entries(self) -> int:
        """How many entries that Resource List had."""
        return self._number("swept-entries") or 0

    @property
    def audited_at(self) -> int | None:
        """When the last audit came to its end, microseconds."""
        return self._number("audited")

    @property
    def audits(self) -> tuple[AuditRecord, ...]:
        """What the last audits counted, the oldest first."""
        return self._decode("audits", tuple[AuditRecord, ...]) or ()

    def with_audit(self, audit: AuditRecord) -> dict[str, str]:
        """Return the notes that remember one more audit."""
        kept = (*self.audits, audit)[-_MAX_AUDITS:]
        return encode_notes(audited=audit.ended, audits=kept)

    @property
    def discovered_at(self) -> int | None:
        """When the lists were looked for the last time, microseconds."""
        return self._number("found-at")

    @property
    def generation(self) -> int:
        """The number of the last reading of the Source."""
        return self._number("generation") or 0

    @property
    def has_uncertain_entries(self) -> bool:
        """Whether the last list had entries that only the Source itself can vouch for."""
        return self._state.note("unsure") == "1"

    @property
    def baseline_due(self) -> bool:
        """Whether a baseline was begun, or other filters were chosen, and nothing ended it yet.

        Earlier versions noted a rewritten list that they had passed over, to be read later.
        """
        return "1" in (self._state.note("baseline-due"), self._state.note("passed-over"))

    @property
    def is_reading_incomplete(self) -> bool:
        """Whether a reading of the Source was begun, or is due, and nothing ended it yet."""
        return self.baseline_due or bool(self._state.note(INTERRUPTED_CHANGES))

    @property
    def is_ahead_of_checkpoint(self) -> bool:
        """Whether news were acted on that T does not tell of yet: lists must still have them."""
        return bool(self._state.note(INTERRUPTED_CHANGES) or self._state.note(REPAIR_CHANGES))

    @property
    def is_rolled_back(self) -> bool:
        """Whether a baseline is due since changes were taken back: older words count no more."""
        return self._state.note("taken-back") == "1"

    @property
    def completed_generation(self) -> int:
        """The number of the last reading of the Source that was written down to its end."""
        return self._number("settled") or 0

    @property
    def is_first_pull_incomplete(self) -> bool:
        """Whether the first pull has not come to its end yet: how much is missing is not known."""
        return self.checkpoint is None

    @property
    def has_gap(self) -> bool:
        """Whether something is not known that only another Resource List can make up for."""
        return self._state.note("hole") == "1" or self.is_list_cut

    @property
    def is_list_cut(self) -> bool:
        """Whether the last Resource List was of the same moment as one that had more entries."""
        return self._state.note("cut-list") == "1"

    @property
    def accept_missing_option(self) -> bool | None:
        """Whether a person accepts what is listed and not given; ``None``: nobody said."""
        chosen = self._number("accept-missing")
        return None if chosen is None else bool(chosen)

    @property
    def accepts_missing(self) -> bool:
        """Whether what is listed and not given (404, robots.txt) counts as no failure here."""
        return self.is_note_set("missing-accepted")

    @property
    def stale_since(self) -> int | None:
        """Since when the Source's lists are older than what was read before, microseconds."""
        return self._number("stale-since")

    @property
    def last_state(self) -> MirrorWord:
        """The mirror's state after the last run."""
        return MirrorWord(self._state.note("word") or MirrorWord.NEW)

    @property
    def refused_count(self) -> int:
        """How many entries of the Source cannot be used."""
        return self._number("refused") or 0

    @property
    def closed_lists_checked_at(self) -> int | None:
        """When closed Change Lists were asked again the last time, microseconds."""
        return self._number("closed-asked-at")

    @property
    def list_head(self) -> ListVersion | None:
        """The version of the Resource List that needs no reading any more."""
        return self._decode("list-head", ListVersion)

    @property
    def list_positions(self) -> tuple[int | None, dict[str, int]]:
        """``at`` of a Resource List, and how many changes each list had when it was read first."""
        return self._decode("beside-list", tuple[int | None, dict[str, int]]) or (None, {})

    @property
    def in_sync_at(self) -> datetime | None:
        """When the last run began that found the mirror in sync; ``None``: none has."""
        moment = self._number("in-sync-at")
        if moment is None:  # written by a version that did not note it
            last = self._state.last_run()
            moment = last.started if last is not None and last.outcome == "ok" else None
        return from_microseconds(moment) if moment else None

    def is_note_set(self, key: str) -> bool:
        """Whether a note says yes."""
        return self._state.note(key) == "1"

    @property
    def as_of(self) -> datetime | None:
        """The Source's time up to which the mirror is complete."""
        through = self.checkpoint
        return None if not through else from_microseconds(through)

    def write(self, **notes: object) -> None:
        """Remember values; ``None`` forgets nothing and writes nothing."""
        self._state.commit(StateTransaction(notes=encode_notes(**notes)))


def encode_notes(**notes: object) -> dict[str, str]:
    """Return notes as they are stored; underscores in names become hyphens."""
    stored: dict[str, str] = {}
    for name, value in notes.items():
        if value is None:
            continue
        if isinstance(value, bool | int):
            text = str(int(value))
        elif isinstance(value, str):
            text = str(value)
        else:
            text = msgspec.json.encode(value).decode()
        stored[name.replace("_", "-")] = text
    return stored


def discovery_rank(found: SourceLists) -> tuple[bool, bool, bool]:
    """How much a Source offers: more lists promise more than fewer, and any more than a sitemap."""
    return (
        not found.is_sitemap,
        found.resource_list is not None,
        found.change_list is not None,
    )


def _unreadable_note(key: str, why: str) -> StateError:
    return StateError(
        f"the mirror's memory of its {key} cannot be read: {why}",
        evidence=(("kept", "all copies"),),
        hint="move .resourcesync/state.db away and pull again: good copies are kept",
    )
