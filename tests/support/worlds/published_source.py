"""A Source in memory that our own publisher lists."""

import copy
from typing import Self

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.documents.packages.planning import PackageSize
from resourcesync.source.dumps.dump_publisher import DumpPublisher
from resourcesync.source.paging import PageLimits
from resourcesync.source.present_contents import PresentContents
from resourcesync.source.publication_settings import Policy
from resourcesync.source.publisher import ListPublisher, Publication
from resourcesync.source.scan_for_changes import scan
from resourcesync.source.stored_plan import PublicationStep
from tests.support.in_memory import MemoryDocuments
from tests.support.sources.opened import open_source
from tests.support.worlds.network import BASE
from tests.support.worlds.served_files import PublishingSource


class PublishedSource(PublishingSource):
    entry = BASE

    def __init__(self, *, max_entries: int = 50_000) -> None:
        super().__init__()
        self.catalogue = SourceCatalogue()
        self.limits = PageLimits(max_entries=max_entries)
        self.policy = Policy()

    def scan(self, *, after: float = 60) -> None:
        self.clock.advance(seconds=after)
        scan(self.originals, self.catalogue, self.clock.now())

    def publish(
        self, step: PublicationStep = PublicationStep.DUE, *, after: float = 60
    ) -> Publication:
        self.scan(after=after)
        parts = (self.limits, self.policy)
        source = open_source(self.catalogue, self.documents, self.clock, BASE, *parts)
        return ListPublisher(source).publish(step)

    def dumps(self, *, size: PackageSize | None = None, archive: float = 0) -> DumpPublisher:
        policy = Policy(dialect=self.policy.dialect, change_lists=self.policy.change_lists)
        source = open_source(
            self.catalogue, self.documents, self.clock, BASE, policy=policy, archive=archive
        )
        return DumpPublisher(source, PresentContents(self.originals), size)

    def begin_again(self) -> None:
        self.catalogue = SourceCatalogue()
        self.documents = MemoryDocuments()

    def saved(self) -> Self:
        shared = {id(self.clock): self.clock, id(self.catalogue): self.catalogue.clone()}
        return copy.deepcopy(self, shared)
