"""Manifests of packages, joined with the needed fetches in URI order."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import BinaryIO, Final, NamedTuple

from resourcesync.destination.external_sort import ExternalSorter, TupleSorter
from resourcesync.destination.planner import Fetch, ListedEntry
from resourcesync.discovery.uris import read_address
from resourcesync.documents.packages.planning import ManifestEntry, content_of
from resourcesync.documents.reader import Document
from resourcesync.errors import OutOfScopeError
from resourcesync.model.digests import agree, disagree, format_digests, parse_digests, usable
from resourcesync.model.entries import Change, Resource
from resourcesync.model.timestamps import SECOND, known_microseconds

OpenTemporary = Callable[[], BinaryIO]

_MAX_VERSIONS: Final = 4_096
"""Versions of one resource that are checked: the last ones."""
_ONE_STRONG: Final = re.compile(r"sha-256:[0-9a-f]{64}")


class Order(NamedTuple):
    """Position of an entry in a manifest, and the fetch that it serves."""

    position: int
    fetch: Fetch


class ManifestRow(NamedTuple):
    """Entry of a manifest of a numbered package; ``lastmod`` may be the time of the change."""

    uri: str
    package: int
    position: int
    hash: str
    length: int | None
    lastmod: int | None


class PackageTrust(NamedTuple):
    """Trust in a package's entries where no digest proves them.

    Up to ``complete_until`` it is complete (-1: unknown). ``is_near``: at the origin of its dump.
    ``is_list``: the wanted entries were read from its own manifest.
    """

    complete_until: int
    is_near: bool
    is_list: bool


def provides(held: ManifestRow, listed: ListedEntry, terms: PackageTrust) -> bool:
    """True if a package may hold the listed version of a resource.

    Without a digest in the list, the times must be the same, and the package a second younger: two
    changes within one second cannot be told apart by their times.
    """
    if listed.hash == held.hash and _ONE_STRONG.fullmatch(listed.hash):
        return held.length in (None, listed.length) or listed.length is None  # the common case
    if None not in (listed.length, held.length) and listed.length != held.length:
        return False
    claims, found = usable(parse_digests(listed.hash)), parse_digests(held.hash)
    if claims and agree(found, claims):
        return True
    if claims and disagree(found, claims):
        return False
    if listed.lastmod is None or held.lastmod != listed.lastmod:
        return bool(claims) and None in (listed.lastmod, held.lastmod)
    is_complete = terms.is_list or terms.complete_until >= listed.lastmod + SECOND
    return bool(claims) or (is_complete and terms.is_near)


def read_manifest(manifest: Document, package: int, terms: PackageTrust) -> Iterator[ManifestRow]:
    """Yield the entries of an open manifest that have a resource's bytes, in its order."""
    for index, entry in enumerate(manifest.entries()):
        assert isinstance(entry, Resource | Change), "a manifest has resources or changes"
        held = _manifest_row(entry, package, index)
        if held is None:
            continue
        if terms.is_list and not held.hash and held.lastmod is None:
            held = held._replace(lastmod=terms.complete_until)
        yield held


def _manifest_row(entry: ManifestEntry, package: int, index: int) -> ManifestRow | None:
    resource = content_of(entry)
    if resource is None or (isinstance(entry, Change) and entry.is_diff):
        return None
    try:
        uri = read_address(resource.uri)
    except OutOfScopeError:
        return None
    moment = resource.lastmod or (entry.time if isinstance(entry, Change) else None)
    return ManifestRow(
        uri=uri,
        package=package,
        position=index,
        hash=format_digests(resource.digests),
        length=resource.length,
        lastmod=known_microseconds(moment),
    )


def join_wanted(
    wanted: Iterable[Fetch], holdings: Iterable[ManifestRow]
) -> Iterator[tuple[Fetch, list[ManifestRow]]]:
    """Yield each fetch with all manifest rows of its URI; both inputs are in URI order."""
    groups = groupby(holdings, key=attrgetter("uri"))
    uri, group = next(groups, ("", iter(())))
    fetches = iter(wanted)
    fetch = next(fetches, None)
    while uri and fetch is not None:
        if fetch.listed.uri == uri:
            yield fetch, list(deque(group, maxlen=_MAX_VERSIONS))
            fetch = next(fetches, None)
        elif fetch.listed.uri < uri:
            fetch = next(fetches, None)
        else:
            uri, group = next(groups, ("", iter(())))


def new_fetch_sorter(spill: OpenTemporary) -> ExternalSorter[Fetch]:
    """Return a sorter of fetches, in URI order."""
    return TupleSorter(Fetch, spill, key=attrgetter("listed.uri"))


def new_manifest_sorter(spill: OpenTemporary) -> ExternalSorter[ManifestRow]:
    """Return a sorter of manifest rows, in URI order."""
    return TupleSorter(ManifestRow, spill)


def new_order_sorter(spill: OpenTemporary) -> ExternalSorter[Order]:
    """Return a sorter of orders, in the order of the manifest."""
    return TupleSorter(Order, spill, key=lambda order: f"{order.position:012d}")
