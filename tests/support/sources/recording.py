"""Resources to record in a catalogue, and what became of them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.model.digests import Digest, format_digests
from resourcesync.model.entries import Change, Link, Resource, ResourceRun

NOW = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def resource(name: str, version: int = 1) -> Resource:
    return Resource(
        uri=f"https://h/{name}",
        lastmod=NOW.replace(microsecond=0),
        length=version,
        digests=(Digest("sha-256", f"{version:064x}"), Digest("md5", f"{version:032x}")),
        media_type="text/plain",
    )


FULL_SAMPLE = Resource(
    uri="https://h/rich",
    encoding="gzip",
    changefreq="daily",
    links=(
        Link(
            rel="describedby",
            href="https://h/rich.xml",
            media_type="application/xml",
            length=0,
            digests=(Digest("odd", "a:b"),),
            modified=NOW,
            priority=1,
            extra=(("{urn:x}a", "é\n"),),
        ),
        Link(rel="up", href="https://h/"),
    ),
    extra=(("{urn:x}b", "<&>"),),
)
"""A resource with all optional metadata and none of the usual."""

TICK = timedelta(microseconds=1)


def record_first(catalogue: SourceCatalogue, *resources: Resource, now: datetime = NOW) -> None:
    with catalogue.record(now) as recording:
        for item in resources:
            recording.created(item, "f1")


def changes(catalogue: SourceCatalogue, after: int = 0) -> list[tuple[int, Change]]:
    with catalogue.snapshot() as snapshot:
        return list(snapshot.changes(after))


def run_of(resources: Sequence[Resource]) -> ResourceRun:
    return ResourceRun(
        uris=[resource.uri for resource in resources],
        lastmods=[resource.lastmod for resource in resources],
        lengths=[resource.length for resource in resources],
        hashes=[format_digests(resource.digests) for resource in resources],
        media_types=[resource.media_type for resource in resources],
    )
