"""Access to a target, and its documents, visited one after the other, with a bounded memory."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync.discovery.document_fetcher import DocumentProvider
from resourcesync.discovery.uris import join
from resourcesync.model.vocabulary import NOTIFICATIONS, Capability
from resourcesync.ports import Fetcher
from resourcesync.validator.marks import MarkStore
from resourcesync.validator.packages import ListedPackage
from resourcesync.validator.rule import RuleFinding
from resourcesync.validator.sample import Chance, Sample, SampleSize, choose
from resourcesync.validator.summaries import DocumentSummary

MAX_TARGETS: Final = 200_000
"""Most stored entries for documents and packages: some 100 MB of them."""
_FOLLOWED: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST})
_LISTS: Final = frozenset({Capability.RESOURCE_LIST, Capability.CHANGE_LIST})
"""Documents that have targets only if they are lists: indexes of another name."""

Announced = tuple[str, str]
"""The address of a document, and the capability that it is announced as; empty for none."""


class OpenedTarget(NamedTuple):
    """A target that is open: its documents, and the address to begin at.

    ``is_same`` tells if an address and the place of a document are the same document. A target on
    this machine has no fetcher.
    """

    documents: DocumentProvider
    first: str
    is_same: Callable[[str, str], bool]
    fetcher: Fetcher | None = None


class TargetAccess(NamedTuple):
    """Access to targets, on this machine and in the network.

    ``allowed_origins`` are further ones that a Source may have its documents at; ``documents_in``
    returns so many documents and packages in a folder, and none for other targets; ``identity`` is
    the same for two names of one file.
    """

    open: Callable[[str], AbstractContextManager[OpenedTarget]]
    is_folder: Callable[[str], bool]
    documents_in: Callable[[str, int], list[str]]
    identity: Callable[[str], str]
    temporary_file: Callable[[], BinaryIO]
    allowed_origins: tuple[str, ...]


class DocumentWalk(msgspec.Struct, kw_only=True):
    """The documents of one target during its validation, in the order of their visits.

    It is cut if there are more documents than are visited; targets were dropped if more is listed
    than is stored, so that a part is not compared.
    """

    documents: DocumentProvider
    store: MarkStore
    sample: Sample
    is_local: bool
    is_same: Callable[[str, str], bool]
    chance: Chance
    most_documents: int
    summaries: list[DocumentSummary] = msgspec.field(default_factory=list)
    visited: set[str] = msgspec.field(default_factory=set)
    places: dict[str, str] = msgspec.field(default_factory=dict)
    is_cut: bool = False
    has_dropped_targets: bool = False
    _targets: int = 0

    def known(self) -> dict[str, DocumentSummary]:
        """Return the documents that were read, by their addresses."""
        return {summary.uri: summary for summary in self.summaries}

    def next_documents(self) -> list[Announced]:
        """Return the unvisited documents that the last one leads to."""
        is_first = len(self.summaries) == 1 and not self.is_local
        last = self.summaries[-1]
        below = linked_documents(last) if is_first else _listed_documents(last)
        if last.capability is Capability.CHANGE_LIST_ARCHIVE and self._has_all_changes(last):
            below = [(join_reference(last.uri, part.uri), "") for part in last.targets]
        found = list(self._unvisited(below))
        self._targets += len(last.targets)
        if self._targets > MAX_TARGETS:
            self._targets -= len(last.targets)
            last.targets.clear()
            self.has_dropped_targets = True
        return found

    def _has_all_changes(self, archive: DocumentSummary) -> bool:
        above = self.known().get(archive.link("up") or "")
        offered = [] if above is None else [target.capability for target in above.targets]
        return bool(offered) and Capability.CHANGE_LIST not in offered

    def _unvisited(self, below: list[Announced]) -> Iterator[Announced]:
        for uri, announced in below:
            if uri in self.visited:
                continue
            if len(self.visited) >= self.most_documents:
                self.is_cut = True
                return
            self.visited.add(uri)
            yield uri, announced

    def packages(self, size: SampleSize | None) -> tuple[list[ListedPackage], int]:
        """Return the packages to open, and the number of the other listed ones."""
        chosen: list[ListedPackage] = []
        known, listed = self.known(), 0
        for dump in self.summaries:
            if dump.capability is None or not dump.capability.is_dump or dump.is_index:
                continue
            targets = dump.targets if self.is_local else []
            if size is not None:
                targets = choose(dump.targets, size.resolve(len(dump.targets)), self.chance)
            listed += len(dump.targets)
            for target in targets:
                contents = target.contents and join_reference(dump.uri, target.contents)
                uri = join_reference(dump.uri, target.uri)
                chosen.append(
                    ListedPackage(uri=uri, dump=dump, package=target, copy=known.get(contents))
                )
        return chosen, listed - len(chosen)

    def rename_first(self) -> None:
        """Give the first document of a folder the address that the others use for it."""
        first = self.summaries[0]
        place = self.places[first.uri]
        for other in self.summaries[1:]:
            for above in (other.link("up") or "", other.link("index") or ""):
                if "://" in above and self.is_same(above, place):
                    self.places[above] = place
                    first.uri = above
                    return

    def with_local_path(self, finding: RuleFinding) -> RuleFinding:
        """Name the local file of the document."""
        place = self.places.get(finding.uri, finding.uri)
        return finding if place == finding.uri else replace(finding, uri=place)


def linked_documents(first: DocumentSummary) -> list[Announced]:
    """Return the documents that a first document leads to: those below, and those above."""
    above = first.link("up")
    if first.capability is not Capability.CAPABILITY_LIST or above is None:
        return _listed_documents(first)
    description = (join_reference(first.uri, above), Capability.DESCRIPTION.value)
    return [description, *_listed_documents(first)]


def _listed_documents(summary: DocumentSummary) -> list[Announced]:
    capability, targets = summary.capability, summary.targets
    is_index = summary.is_index and not (capability is not None and capability.is_archive)
    if capability in _FOLLOWED:
        usable = [target for target in targets if target.capability or not target.label]
        usable = [target for target in usable if target.label not in NOTIFICATIONS]
        listed = [(target.uri, target.label) for target in usable]
    elif capability in _LISTS or is_index:
        listed = [(target.uri, "") for target in targets]
    else:  # dumps of dumps, or copies of manifests
        listed = [
            (target.uri if capability and target.capability is capability else target.contents, "")
            for target in targets
        ]
    return [(join_reference(summary.uri, uri), label) for uri, label in listed if uri]


def join_reference(base: str, target: str) -> str:
    """Return the address of a reference, or the reference itself when it has none."""
    return join(base, target) or target
