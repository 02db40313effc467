"""Precedence of settings: the command line, the environment, the mirror's table, a default.

What a mirror remembers of earlier pulls comes after all of them
(``resourcesync.destination.options.PullOptions.with_stored``).
"""

from collections.abc import Mapping
from typing import Final, TypeVar

V = TypeVar("V")

_CONFLICTS: Final = (frozenset({"set", "all_sets"}), frozenset({"every", "cron"}))


def overlay(*layers: Mapping[str, V]) -> dict[str, V]:
    """Return the values of all layers by their keys.

    A layer overrides the ones before it, also in keys that exclude one of its own. A proxy does
    not get the secret that an earlier layer has for another proxy.
    """
    merged: dict[str, V] = {}
    for layer in layers:
        hidden = {"proxy_auth"} if "proxy" in layer else set[str]()
        hidden = hidden.union(*(rivals for rivals in _CONFLICTS if rivals.intersection(layer)))
        merged = {key: value for key, value in merged.items() if key not in hidden}
        merged.update(layer)
    return merged
