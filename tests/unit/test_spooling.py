"""Resources and changes come back whole from a temporary file."""

from datetime import UTC, datetime

import pytest

from resourcesync.destination.spooling import (
    dump_change,
    dump_resource,
    load_change,
    load_resource,
)
from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind

MOMENT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)

RICH = Resource(
    uri="https://museum.example/\u00e9?a=\U0001f5ff",
    lastmod=MOMENT,
    length=2**53,
    digests=(Digest("sha-256", "a" * 64), Digest("crc32", "odd")),
    media_type="text/html",
    encoding="gzip",
    changefreq="daily",
    links=(
        Link(
            rel="describedby alternate",
            href="https://museum.example/m",
            media_type="application/xml",
            length=0,
            digests=(Digest("md5", "b" * 32),),
            encoding="br",
            modified=MOMENT,
            path="/a/b",
            priority=7,
            extra=(("{urn:x}y", "z"),),
        ),
        Link(rel="up", href=""),
    ),
    extra=(("{http://example.org/}mark", "\u2713"), ("{urn:a}b", "")),
)


@pytest.mark.parametrize("resource", [RICH, Resource(uri=""), Resource(uri="u", length=0)])
def test_a_resource_comes_back_whole(resource: Resource) -> None:
    back = load_resource(dump_resource(resource))

    assert back == resource
    assert repr(back) == repr(resource)
    assert all(isinstance(digest, Digest) for digest in back.digests)


@pytest.mark.parametrize("kind", ChangeKind)
@pytest.mark.parametrize("time", [None, MOMENT, datetime(1, 1, 1, tzinfo=UTC)])
def test_a_change_comes_back_whole(kind: ChangeKind, time: datetime | None) -> None:
    change = Change(kind=kind, time=time, resource=RICH)

    back = load_change(dump_change(change))

    assert back == change
    assert repr(back) == repr(change)
