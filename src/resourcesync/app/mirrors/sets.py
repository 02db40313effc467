"""Mirrors of several sets of one Source: a folder with a mirror for each set (ADR 0022)."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.adapters.mirror import own_folder
from resourcesync.adapters.mirror.own_folder import MAX_SETS, FollowedSet, FollowedSets, is_mirror
from resourcesync.app.mirrors import mirror_home
from resourcesync.app.mirrors.mirror_home import SetMirror, mirrors_of
from resourcesync.destination.sync_state import SyncState
from resourcesync.discovery.resolver import offered_sets
from resourcesync.discovery.sets import OfferedSet, SetChoice, choose, names_of
from resourcesync.discovery.uris import is_same
from resourcesync.errors import ConfigurationError, DocumentError, SourceError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network

_DAY: Final = 86_400_000_000


class SetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The mirrors to pull now, in the order of the sets, and the state to store, with all sets."""

    folder: Path
    source: str
    mirrors: tuple[SetMirror, ...]
    followed: FollowedSets
    failure: SourceError | DocumentError | None = None
    """The error of the request for the sets."""

    def remember(self) -> None:
        """Store the sets durably."""
        own_folder.write_sets(self.folder, self.followed)

    def remove_if_empty(self) -> None:
        """Remove a folder of mirrors without any mirror."""
        if not any(is_mirror(mirror.folder) for mirror in mirrors_of(self.folder, self.followed)):
            own_folder.delete_sets(self.folder)
            with suppress(OSError):
                self.folder.rmdir()


class SetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's request for a folder of sets; without names, for those followed so far."""

    source: str | None = None
    names: tuple[str, ...] = ()
    every: bool = False
    """True for all sets, future ones included."""


def plan_sets(folder: Path, wish: SetRequest, *, network: Network, cancel: CancelToken) -> SetPlan:
    """Return the mirrors to pull, each with its folder.

    The Source's list of sets is requested when any are named or all are requested for the first
    time, and once a day when all are followed.
    """
    known = own_folder.read_sets(folder)
    address = _address(folder, known, wish)
    now = to_microseconds(cancel.clock.now())
    every = wish.every or (known is not None and known.every)

    def plan(
        followed: FollowedSets,
        mirrors: tuple[SetMirror, ...],
        failure: SourceError | DocumentError | None = None,
    ) -> SetPlan:
        return SetPlan(
            folder=folder, source=address, mirrors=mirrors, followed=followed, failure=failure
        )

    if known is not None and not _is_discovery_due(known, wish, every=every, now=now):
        return plan(known, mirrors_of(folder, known))
    try:
        offered = _fetch_sets(address, network, cancel)
    except (SourceError, DocumentError) as error:
        if known is None or wish.names:
            raise
        return plan(known, mirrors_of(folder, known), error)
    chosen = _select_sets(offered, folder, address, wish)
    sets = _with_folders(folder, () if known is None else known.sets, offered, chosen)
    followed = FollowedSets(source=address, every=every, looked=now, sets=sets)
    mirrors = mirrors_of(folder, followed, {offered_set.uri for offered_set in offered})
    only = chosen if wish.names else ()
    return plan(followed, tuple(each for each in mirrors if not only or each.uri in only))


def _address(folder: Path, known: FollowedSets | None, request: SetRequest) -> str:
    if known is None and _knows_source(folder):
        raise ConfigurationError(
            f"{folder} is a mirror of one set",
            evidence=(("kept", "nothing was changed"),),
            hint="pull several sets into another folder",
        )
    if known is None and request.source is None:
        raise mirror_home.not_a_mirror_error(folder)
    if known is not None and request.source and not is_same(request.source, known.source):
        raise ConfigurationError(
            f"{folder} is a mirror of another Source",
            evidence=(("here", known.source), ("asked", request.source)),
            hint="pull into another folder",
        )
    return known.source if known is not None else request.source or ""


def _knows_source(folder: Path) -> bool:
    """True if a folder is a mirror with a known Source: its first pull found one."""
    if not is_mirror(folder):
        return False
    with mirror_home.open_state(folder) as state:
        return SyncState(state).identity is not None


def _is_discovery_due(known: FollowedSets, request: SetRequest, *, every: bool, now: int) -> bool:
    begins = every and not known.every
    return bool(request.names) or begins or (every and not 0 <= now - known.looked < _DAY)


def _fetch_sets(address: str, network: Network, cancel: CancelToken) -> tuple[OfferedSet, ...]:
    from resourcesync.app.document_access import network_documents  # noqa: PLC0415 - rarely
    from resourcesync.app.fetchers import open_fetcher  # noqa: PLC0415 - rarely

    with open_fetcher(address, network, cancel) as fetcher:
        return offered_sets(network_documents(fetcher), address, allowed=network.allow_origins)


def _select_sets(
    offered: Sequence[OfferedSet], folder: Path, address: str, request: SetRequest
) -> tuple[str, ...]:
    if not request.names:
        return tuple(offered_set.uri for offered_set in offered)
    choices = (SetChoice(requested=name, folder=str(folder)) for name in request.names)
    return tuple(dict.fromkeys(choose(offered, choice, address).uri for choice in choices))


def _with_folders(
    folder: Path, known: Iterable[FollowedSet], offered: Sequence[OfferedSet], chosen: Iterable[str]
) -> tuple[FollowedSet, ...]:
    """Return all followed sets; one that has a folder keeps it, whatever its name now.

    A set that the Source has withdrawn stays as long as its mirror exists.
    """
    still = {offered_set.uri for offered_set in offered}
    sets = {
        followed_set.uri: followed_set
        for followed_set in known
        if followed_set.uri in still or is_mirror(folder / followed_set.folder)
    }
    used = {followed_set.folder.lower() for followed_set in sets.values()}
    names = dict(zip((offered_set.uri for offered_set in offered), names_of(offered), strict=True))
    for uri in chosen:
        if uri in sets:
            continue
        name, number = names[uri], 1
        while name.lower() in used:
            number += 1
            name = f"{names[uri]}-{number}"
        used.add(name.lower())
        sets[uri] = FollowedSet(uri=uri, folder=name)
    if len(sets) > MAX_SETS:
        raise ConfigurationError(
            f"{folder} would have more than {MAX_SETS} mirrors",
            hint="choose some of them: --set NAME",
        )
    return tuple(sets.values())
