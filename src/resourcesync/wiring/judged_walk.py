"""The documents of one target while they are judged: which are met, what is kept of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from resourcesync.adapters.local_documents import LocalDocuments
from resourcesync.discovery.addresses import join
from resourcesync.discovery.search import DocumentProvider
from resourcesync.model.vocabulary import Capability
from resourcesync.validator.findings import RuleFinding
from resourcesync.validator.marks import MarkStore
from resourcesync.validator.summaries import DocumentSummary
from resourcesync.wiring.opening_packages import ListedPackage
from resourcesync.wiring.sampling import Sample, SampleSize

_MOST_TARGETS: Final = 200_000
"""Documents and packages that are kept as they are listed: some 100 MB of them."""
_FOLLOWED: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST})
_CHANNELS: Final = frozenset(
    {Capability.CHANGE_NOTIFICATION.value, Capability.FRAMEWORK_NOTIFICATION.value}
)
_LISTS: Final = frozenset({Capability.RESOURCE_LIST, Capability.CHANGE_LIST})
"""What has targets only where these are lists: an index in disguise."""

Announced = tuple[str, str]
"""The address of a document, and the capability that it is announced as; empty for none."""


@dataclass(slots=True, kw_only=True)
class DocumentWalk:
    """One target, while its documents are judged.

    Attributes:
        documents: Gets them.
        store: Keeps the marks of their entries.
        sample: Chooses resources to fetch; ``None`` fetches none.
        is_local: Whether they are on this machine.
        most_documents: How many are met at most.
        summaries: What was read of each, in order.
        seen: The addresses of all that were met.
        places: Where each was found.
        is_cut: Whether there are more than are met.
        is_forgetful: Whether more is listed than is kept, so that not all of it is compared.
    """

    documents: DocumentProvider
    store: MarkStore
    sample: Sample | None
    is_local: bool
    most_documents: int
    summaries: list[DocumentSummary] = field(default_factory=list)
    visited: set[str] = field(default_factory=set)
    places: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    has_dropped_targets: bool = False
    _targets: int = 0
    _random: Random = field(default_factory=Random)

    def known(self) -> dict[str, DocumentSummary]:
        """Return the documents that were read, by their addresses."""
        return {summary.uri: summary for summary in self.summaries}

    def next_documents(self) -> list[Announced]:
        """Return where the document that was read last leads to, and was not met before."""
        is_first = len(self.summaries) == 1 and not self.is_local
        last = self.summaries[-1]
        found = list(
            self._unvisited(linked_documents(last) if is_first else _listed_documents(last))
        )
        self._forget_targets(last)
        return found

    def _unvisited(self, below: list[Announced]) -> Iterator[Announced]:
        for uri, announced in below:
            if uri in self.visited:
                continue
            if len(self.visited) >= self.most_documents:
                self.is_cut = True
                return
            self.visited.add(uri)
            yield uri, announced

    def _forget_targets(self, summary: DocumentSummary) -> None:
        """Keep what is listed as long as there is room for it."""
        self._targets += len(summary.targets)
        if self._targets > _MOST_TARGETS:
            self._targets -= len(summary.targets)
            summary.targets.clear()
            self.has_dropped_targets = True

    def packages(self, size: SampleSize | None) -> tuple[list[ListedPackage], int]:
        """Return the packages to be opened, and how many of those listed are left out.

        Args:
            size: How many of each dump. Without it all that are on this machine, and none that
                has to be fetched.
        """
        chosen: list[ListedPackage] = []
        known, listed = self.known(), 0
        for dump in self.summaries:
            if dump.capability is None or not dump.capability.is_dump or dump.is_index:
                continue
            targets = dump.targets if self.is_local else []
            if size is not None:
                targets = self._random.sample(dump.targets, size.resolve(len(dump.targets)))
            listed += len(dump.targets)
            for it in targets:
                copy = known.get(join_reference(dump.uri, it.contents)) if it.contents else None
                uri = join_reference(dump.uri, it.uri)
                chosen.append(ListedPackage(uri=uri, dump=dump, package=it, copy=copy))
        return chosen, listed - len(chosen)

    def rename_first(self) -> None:
        """Give the first document of a folder the address that the others know it by."""
        first = self.summaries[0]
        assert isinstance(self.documents, LocalDocuments), "only a folder has places"
        place = self.places[first.uri]
        for other in self.summaries[1:]:
            for above in (other.link("up") or "", other.link("index") or ""):
                if "://" in above and self.documents.is_same(above, place):
                    self.places[above] = place
                    first.uri = above
                    return

    def with_local_path(self, finding: RuleFinding) -> RuleFinding:
        """Name the file where the document is on this machine."""
        place = self.places.get(finding.uri, finding.uri)
        return finding if place == finding.uri else replace(finding, uri=place)


def linked_documents(first: DocumentSummary) -> list[Announced]:
    """Return the documents that a first document leads to: those below, and those above.

    Above is the Source Description, where a page or the caller led to a Capability List.
    """
    above = first.link("up")
    if first.capability is not Capability.CAPABILITY_LIST or above is None:
        return _listed_documents(first)
    return [
        (join_reference(first.uri, above), Capability.DESCRIPTION.value),
        *_listed_documents(first),
    ]


def _listed_documents(summary: DocumentSummary) -> list[Announced]:
    """Return the documents that one lists."""
    capability = summary.capability
    if capability in _FOLLOWED:
        return [
            (join_reference(summary.uri, it.uri), it.label)
            for it in summary.targets
            if it.uri and it.label not in _CHANNELS and (not it.label or it.capability)
        ]
    is_index = summary.is_index and not (capability is not None and capability.is_archive)
    if capability in _LISTS or is_index:
        return [(join_reference(summary.uri, it.uri), "") for it in summary.targets if it.uri]
    below = (  # dumps of dumps, or copies of manifests
        it.uri if capability is not None and it.capability is capability else it.contents
        for it in summary.targets
    )
    return [(join_reference(summary.uri, uri), "") for uri in below if uri]


def join_reference(base: str, target: str) -> str:
    """Return what a document names as an address, or as it is when it is none."""
    return join(base, target) or target
