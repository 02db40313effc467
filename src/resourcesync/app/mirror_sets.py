"""Mirrors of several sets of one Source: a folder with a mirror for each set (ADR 0022)."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.adapters.mirror import own_folder
from resourcesync.adapters.mirror.own_folder import MAX_SETS, FollowedSet, FollowedSets, is_mirror
from resourcesync.app import mirror_home
from resourcesync.app.mirror_home import SetMirror, mirrors_of
from resourcesync.discovery.resolver import offered_sets
from resourcesync.discovery.sets import OfferedSet, SetChoice, choose, names_of
from resourcesync.discovery.uris import is_same
from resourcesync.errors import ConfigurationError, DocumentError, SourceError, quoted
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
        """Store durably the sets, and which of their mirrors were there."""
        sets = tuple(
            replace(each, pulled=each.pulled or is_mirror(self.folder / each.folder))
            for each in self.followed.sets
        )
        own_folder.write_sets(self.folder, replace(self.followed, sets=sets))

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
    is_now: bool = False
    """True if new sets are looked for at once, not only once a day."""
    is_moved: bool = False
    """True if ``source`` is the new address of the Source that the folder follows."""


def plan_sets(folder: Path, wish: SetRequest, *, network: Network, cancel: CancelToken) -> SetPlan:
    """Return the mirrors to pull, each with its folder.

    The Source's list of sets is requested when any are named or all are requested for the first
    time or now, and once a day when all are followed.
    """
    known, now = own_folder.read_sets(folder), to_microseconds(cancel.clock.now())
    if known is not None and wish.is_moved and wish.source:
        known = _moved(known, wish.source, _fetch_sets(wish.source, network, cancel))
    address = _address(folder, known, wish)
    every = wish.every or (known is not None and known.every)
    plan = partial(SetPlan, folder=folder, source=address)
    if known is not None and not wish.names:
        is_fresh = known.every and 0 <= now - known.looked < _DAY
        is_due = every and (wish.is_now or not is_fresh)
        if not is_due:
            return plan(followed=known, mirrors=mirrors_of(folder, known))
    try:
        offered = _fetch_sets(address, network, cancel)
    except (SourceError, DocumentError) as error:
        if known is None or wish.names:
            raise
        return plan(followed=known, mirrors=mirrors_of(folder, known), failure=error)
    chosen = _select_sets(offered, folder, address, wish)
    sets = _with_folders(folder, () if known is None else known.sets, offered, chosen)
    followed = FollowedSets(source=address, every=every, looked=now, sets=sets)
    mirrors = mirrors_of(folder, followed)
    only = chosen if wish.names else ()
    mirrors = tuple(each for each in mirrors if not only or each.uri in only)
    return plan(followed=followed, mirrors=mirrors)


def _moved(known: FollowedSets, source: str, offered: Sequence[OfferedSet]) -> FollowedSets:
    uris = dict(zip(names_of(offered), (each.uri for each in offered), strict=True))
    names = names_of([OfferedSet(uri=each.uri) for each in known.sets])
    if uris.keys().isdisjoint(names):
        raise ConfigurationError(
            f"{source} offers none of the sets that are followed",
            evidence=(("here", ", ".join(names)), ("there", ", ".join(uris))),
            hint="check the address, or pull it into another folder",
        )
    pairs = zip(known.sets, names, strict=True)
    sets = tuple(replace(each, uri=uris.get(name, each.uri)) for each, name in pairs)
    return replace(known, source=source, sets=sets)


def _address(folder: Path, known: FollowedSets | None, request: SetRequest) -> str:
    if known is None and mirror_home.source_of(folder):
        raise ConfigurationError(
            f"{folder} is a mirror of one set",
            evidence=(("kept", "nothing was changed"),),
            hint="pull several sets into another folder",
        )
    if known is None and request.source is None:
        raise mirror_home.not_a_mirror_error(folder)
    if known is not None and request.source and not is_same(request.source, known.source):
        raise ConfigurationError(
            f"{folder} follows another address",
            evidence=(("here", known.source), ("asked", request.source)),
            hint="pull into another folder; or, if its Source is there, follow it: "
            f"resourcesync pull {quoted(folder, 'MIRROR')} --moved {quoted(request.source, 'URL')}"
            ", and write its address into the configuration file, if there is one",
        )
    return known.source if known is not None else request.source or ""


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
    still = {offered_set.uri for offered_set in offered}
    sets = {
        followed_set.uri: replace(followed_set, withdrawn=followed_set.uri not in still)
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
