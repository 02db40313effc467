"""Sources that are open to be published, with settings in two parts."""

from typing import Any

from msgspec.structs import asdict

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.source.paging import PageLimits
from resourcesync.source.publication_settings import Policy, PublicationSettings
from resourcesync.source.publisher import OpenSource


def open_source(
    catalogue: SourceCatalogue,
    documents: DocumentStore,
    clock: Clock,
    url: str,
    limits: PageLimits | None = None,
    policy: Policy | None = None,
    **more: Any,
) -> OpenSource:
    chosen = {**asdict(policy or Policy()), **asdict(limits or PageLimits()), **more}
    settings = PublicationSettings(url=url, **chosen)
    return OpenSource(catalogue=catalogue, documents=documents, settings=settings, clock=clock)
