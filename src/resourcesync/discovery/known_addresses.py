"""Addresses of a Source as a mirror knows them: from before a move, with TLS or without, ``www``.

A mirror knows its resources by their first addresses, so that all files stay in place. Pure.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from resourcesync.discovery.uris import (
    common_beginning,
    host_twin,
    normalise,
    origin,
    tls_counterpart,
)
from resourcesync.errors import OutOfScopeError

MovedBases = Sequence[tuple[str, str]]
"""Pairs of a base now and the base that the mirror knows, each ending in a slash."""


def longest_first(moved: MovedBases) -> MovedBases:
    """Return the pairs with each base before those that it is below."""
    return sorted(moved, key=lambda pair: -len(pair[0]))


def present_uri(uri: str, moved: MovedBases) -> str:
    """Return the present address at the Source of a URI in the mirror.

    A mirror knows its resources by their first addresses, so that all files stay in place. What a
    user sees has the present one, also of a resource that never was at the first.
    """
    for there, here in reversed(moved):
        if uri.startswith(here):
            return there + uri.removeprefix(here)
    return uri


def address_fields(uri: str, moved: MovedBases) -> dict[str, object]:
    """Return the fields of a URI in the mirror: the present address, beside it the one known."""
    present = present_uri(uri, moved)
    return {"uri": present} if present == uri else {"uri": present, "known_as": uri}


def known_uri(uri: str, moved: MovedBases) -> str:
    """Return the URI in the mirror of an address at the Source, normalised."""
    for there, here in longest_first(moved):
        if uri.startswith(there):
            return here + uri.removeprefix(there)
    return uri


def moved_folders(then: str, now: str) -> tuple[str, str]:
    """Return the folders below which two documents have the same path; empty if there are none."""
    paths = urlsplit(then).path, urlsplit(now).path
    end = common_beginning(*(path[::-1] for path in paths))
    same = len(end[: end.rfind("/") + 1])
    old, new = (
        f"{origin(uri)}{path[:-same]}/" for uri, path in zip((then, now), paths, strict=True)
    )
    return (old, new) if same else ("", "")


class KnownAddresses:
    """The addresses of one Source, as its lists are read.

    ``moved`` are its bases now, with those that the mirror knows; ``origins`` those that its lists
    may name. ``has_twins``: an entry is on a twin of its host, so that the lists prove no absence.
    """

    def __init__(self, moved: Iterable[tuple[str, str]], origins: frozenset[str]) -> None:
        self._moved = tuple(moved)
        self._homes = dict(longest_first(self._moved))
        self.origins = origins
        self._paired: frozenset[str] = frozenset()
        self._twins: tuple[str, ...] = ()
        self._tls_twins: tuple[str, ...] = ()
        self.has_twins = False

    @property
    def may_be_twins(self) -> bool:
        """True if twins of the Source's origin are accepted."""
        return bool(self._paired)

    def add_source_addresses(self, *uris: str) -> None:
        """Add addresses that the Source itself leads to, by a redirect or by name.

        If one is the same host with TLS, its resources are those listed without TLS: they keep
        their path, copy and URI in the mirror. Only their requests change.
        """
        for uri in uris:
            with suppress(OutOfScopeError):
                there = origin(uri)
                here = tls_counterpart(there)
                if here and f"{here}/" in self._homes:
                    with_tls = {
                        f"{there}{home.removeprefix(here)}": known
                        for home, known in self._homes.items()
                        if home.startswith(f"{here}/")
                    }
                    self._homes = dict(longest_first([*(with_tls | self._homes).items()]))
                elif here in self.origins and there not in self.origins:
                    self._homes.setdefault(f"{there}/", f"{here}/")

    def accept_twins(self, *uris: str) -> None:
        """Accept the twins of a plain sitemap's own origin: its host with ``www.`` or without.

        Their resources are others than those of the origin itself. Of one host there is only one,
        with TLS or without; what is listed without is requested with TLS if the sitemap came so.
        """
        for uri in uris:
            with suppress(OutOfScopeError):
                home = origin(uri)
                if home in self._paired or home not in self.origins:
                    continue
                twin = host_twin(home)
                self._paired |= {home, twin}
                if twin and twin not in self.origins:
                    self.origins |= {twin}
                    self._twins += (f"{twin}/",)
                for here in filter(None, (home, twin)):
                    self._accept_tls_twin(here)

    def _accept_tls_twin(self, here: str) -> None:
        there = tls_counterpart(here)
        if not there or there in self.origins or f"{there}/" in self._homes:
            return
        self._homes[f"{there}/"] = f"{here}/"
        self._tls_twins += (f"{there}/",)

    def requested_uri(self, uri: str) -> str:
        """Return the address to request for a listed one: a Source with TLS is never left."""
        if not self._tls_twins or not uri.lower().startswith("http:"):
            return uri
        with suppress(OutOfScopeError):
            if normalise(uri).startswith(self._tls_twins):
                return self.mirror_uri(uri)
        return uri

    def is_twin(self, uri: str) -> bool:
        """True if an address is on a twin of the Source's origin."""
        return uri.startswith((*self._twins, *self._tls_twins))

    def twins_of(self, listed: str, known: str) -> tuple[bool, bool]:
        """Return whether an entry is on a twin of the host, and whether on one by the scheme."""
        is_host_twin = known.startswith(self._twins)
        self.has_twins |= is_host_twin
        return is_host_twin, normalise(listed).startswith(self._tls_twins)

    def mirror_uri(self, uri: str) -> str:
        """Return the URI in the mirror of what is listed as ``uri``."""
        if not self._homes:
            return uri
        with suppress(OutOfScopeError):
            normal = normalise(uri)
            for there, here in self._homes.items():
                if normal.startswith(there):
                    return here + normal.removeprefix(there)
        return uri

    def source_uri(self, uri: str) -> str:
        """Return the present address at the Source of a URI in the mirror."""
        return present_uri(uri, self._moved)
