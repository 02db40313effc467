"""Resources to try catalogues with: a plain one, and one of which everything odd is told."""

from datetime import UTC, datetime
from typing import Final

from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource

NOW: Final = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def sample_resource(name: str, version: int = 1) -> Resource:
    """Return a resource of a name; another version has another length and other digests."""
    return Resource(
        uri=f"https://h/{name}",
        lastmod=NOW.replace(microsecond=0),
        length=version,
        digests=(Digest("sha-256", f"{version:064x}"), Digest("md5", f"{version:032x}")),
        media_type="text/plain",
    )


FULL_SAMPLE: Final = Resource(
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
"""It tells everything that can be told, but nothing that usually is."""
