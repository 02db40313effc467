"""A Source that is open to be published, and its settings in the form of its parts."""

from typing import Final

import msgspec

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.settings.publication import PublicationSettings
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import ChangeLists, Policy
from resourcesync.source.publisher import ListPublisher

_SECOND: Final = 1_000_000


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
            limits=limits_of(self.settings),
            policy=publication_policy(self.settings),
            described_by=self.settings.described_by,
        )


def limits_of(settings: PublicationSettings) -> PageLimits:
    """Return the most that one document holds."""
    return PageLimits(max_entries=settings.max_entries, max_bytes=settings.max_bytes)


def publication_policy(settings: PublicationSettings) -> Policy:
    """Return the policy for closing, storing, archiving and rewriting lists."""
    return Policy(
        change_lists=ChangeLists(settings.change_lists),
        rotate=int(settings.rotate * _SECOND),
        keep=int(settings.keep * _SECOND),
        rebase=int(settings.rebase_every * _SECOND),
        rebase_up_to=settings.rebase_up_to,
        archive=int(settings.archive * _SECOND),
        sitemap=settings.sitemap,
        dialect=Dialect(settings.dialect),
        hubs=settings.hubs,
    )
