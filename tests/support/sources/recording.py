"""Resources to record in a catalogue, and what became of them."""

from datetime import datetime, timedelta

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.model.resources import Change, Resource
from tests.contracts.catalogue_suite import FULL_SAMPLE, NOW
from tests.contracts.catalogue_suite import sample_resource as resource

__all__ = ["FULL_SAMPLE", "NOW", "TICK", "changes", "record_first", "resource"]

TICK = timedelta(microseconds=1)


def record_first(catalogue: SourceCatalogue, *resources: Resource, now: datetime = NOW) -> None:
    with catalogue.record(now) as recording:
        for item in resources:
            recording.created(item, "f1")


def changes(catalogue: SourceCatalogue, after: int = 0) -> list[tuple[int, Change]]:
    with catalogue.snapshot() as snapshot:
        return list(snapshot.changes(after))
