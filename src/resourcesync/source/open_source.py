"""A Source that is open to be published."""

import msgspec

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.source.publication_settings import PublicationSettings
from resourcesync.source.publisher import ListPublisher


class OpenSource(msgspec.Struct, frozen=True, kw_only=True):
    """A Source that is open to be published: its catalogue, and the place of its documents."""

    catalogue: SourceCatalogue
    documents: DocumentStore
    settings: PublicationSettings
    clock: Clock

    def publisher(self) -> ListPublisher:
        """Return the publisher of its lists."""
        return ListPublisher(
            self.catalogue,
            self.documents,
            base_uri=self.settings.url,
            clock=self.clock,
            limits=self.settings,
            policy=self.settings,
            described_by=self.settings.described_by,
        )
