"""The content of the page Explore: the documents of a Source, as ``explore`` shows them."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from resourcesync.app import document_access
from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.cli.configured_sources import ConfiguredSources
from resourcesync.cli.output import problem_of
from resourcesync.cli.render.explore import Totals, describe_step, step_details, step_fields
from resourcesync.discovery.tree import PartsTotal, SourceNode
from resourcesync.errors import BudgetError, ConfigurationError, ResourceSyncError
from resourcesync.ports import Clock
from resourcesync.ports.cancellation import CancelToken
from resourcesync.server.dashboard.views import DocumentTree, TreeItem
from resourcesync.settings.network import Network

_SECONDS: Final = 15.0
_MAX_NODES: Final = 500
"""Most nodes of the tree that one page shows."""
_CACHE_SECONDS: Final = 30.0
_CACHE_SIZE: Final = 4


class CachedExplorer:
    """A walker of Sources for a page, with limits of time and size, and a short cache.

    Only one thread at a time may use it.
    """

    def __init__(self, clock: Clock, *, seconds: float = _SECONDS, most: int = _MAX_NODES) -> None:
        self._clock, self._seconds, self._most = clock, seconds, most
        self._cache: dict[tuple[str, str, int], tuple[float, DocumentTree]] = {}

    def explore(
        self, name: str, address: str, network: Callable[[], Network], depth: int, again: str = ""
    ) -> DocumentTree:
        """Return the documents of a Source; errors are part of the result."""
        key, now = (name, address, depth), self._clock.monotonic()
        before, cached = self._cache.get(key, (0.0, None))
        if cached is not None and now - before < _CACHE_SECONDS:
            return cached
        moment = self._clock.now()
        empty = DocumentTree(name=name, address=address, depth=depth, read_at=moment)
        found = self._walk(empty, network, again or address)
        self._cache[key] = self._clock.monotonic(), found
        while len(self._cache) > _CACHE_SIZE:
            del self._cache[next(iter(self._cache))]
        return found

    def _walk(
        self, empty: DocumentTree, network: Callable[[], Network], again: str
    ) -> DocumentTree:
        cancel, totals, found = CancelToken(self._clock), Totals(), list[TreeItem]()
        whole = f"next   resourcesync explore {shlex.quote(again)}"
        notes: tuple[str, ...] = ()
        try:
            with cancel.within(self._seconds):
                for step in self._steps(empty, network(), cancel):
                    if len(found) == self._most:
                        notes = (f"only the first {self._most} nodes are shown.", whole)
                        break
                    totals.add(step)
                    found.append(_page_node(step))
        except BudgetError:
            notes = (f"the time limit of {self._seconds:g} s was reached.", whole)
        except ResourceSyncError as error:
            problem = problem_of(error)
            notes = (f"{problem.message}.", *([f"next   {problem.hint}"] if problem.hint else []))
        said = totals.lines(0)[0].text.rpartition("  ")[0] if found else ""
        return replace(empty, found=tuple(found), summary=said, notes=notes)

    def _steps(
        self, tree: DocumentTree, network: Network, cancel: CancelToken
    ) -> Iterator[SourceNode | PartsTotal]:
        for step in document_access.explore(
            tree.address, network=network, cancel=cancel, depth=tree.depth
        ):
            yield step
            cancel.raise_if_cancelled()  # reading a disk does not check it


def own_sources(configuration: MirrorConfiguration) -> dict[str, str]:
    """Return the folders of the Sources of a configuration file, by the names of their tables."""
    found: dict[str, str] = {}
    own = ConfiguredSources(configuration.file)
    for name in own.names:
        with suppress(ConfigurationError):  # other commands report it
            source = own.source(name)
            place = str(source.settings["out"].value) if "out" in source.settings else source.path
            if Path(place).is_dir():
                found[f"source.{name}"] = place
    return found


def _page_node(step: SourceNode | PartsTotal) -> TreeItem:
    fields = step_fields(step)
    return TreeItem(
        depth=len(step.branches) + 1,
        uri=step.uri,
        labels=tuple(describe_step(fields).split("  ")),
        details=tuple(step_details(fields)),
        is_bad="error" in fields,
        is_total="parts" in fields,
    )
