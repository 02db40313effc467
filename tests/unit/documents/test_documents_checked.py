"""The public writer: what would not be a valid document is refused, whatever the caller gives."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from resourcesync.documents import (
    Capability,
    CapabilityEntry,
    Change,
    Dialect,
    Digest,
    Header,
    Package,
    Resource,
    format_digests,
    parse_digests,
    read,
    write,
)
from resourcesync.model.vocabulary import ChangeKind

AT = datetime(2026, 11, 20, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
LIST = Header(capability=Capability.RESOURCE_LIST, at=AT)
CHANGES = Header(capability=Capability.CHANGE_LIST, from_=AT, until=AT + 9 * HOUR)
DUMP = Header(capability=Capability.RESOURCE_DUMP, at=AT)
URI = "https://h.example/a"
REASONS = r"no absolute URI|number of bytes|no digest|no media type|no changefreq"
SHA256 = Digest("sha-256", "0" * 64)


def written(header: Header, entries: Any, dialect: Dialect = Dialect.V1_1) -> bytes:
    return b"".join(write(header, entries, dialect))


def changed(time: datetime | None, uri: str = URI) -> Change:
    return Change(kind=ChangeKind.UPDATED, time=time, resource=Resource(uri, lastmod=AT))


BAD: list[dict[str, Any]] = [
    *(
        {"uri": uri}
        for uri in (
            "/a",
            "a",
            "https:",
            "https:///a",
            "http://",
            "https:a",
            "https://h.example/a b",
            "https://h.example/ü",
            "https://ü.example/",
            "https://h.example/%zz",
            "https://h.example/a\nhttps://h.example/b",
            "https://h.example/<a>",
            "https://h.example/\ud800",
            f"https://h.example/{'a' * 2_048}",
        )
    ),
    *({"length": length} for length in (5.7, 5.0, True, -1, 1 << 63)),
    *(
        {"digests": (Digest(algorithm, value),)}  # type: ignore[arg-type]  # as a caller may
        for algorithm, value in (
            ("sha-256", "zz"),
            ("sha-256", "z" * 64),
            ("sha-256", "0" * 63),
            ("sha-256", b"0" * 64),
            ("SHA-256", "0" * 64),
            ("sha256", "0" * 64),
            ("md5", "0" * 40),
            ("", "0"),
            ("blake3", ""),
        )
    ),
    *(
        {"media_type": text}
        for text in ("text/plain\r\nx: y", "text", "text/", "text/pl ain", "/", "text/ü")
    ),
    *({"changefreq": word} for word in ("often", "Daily", " daily")),
]


@pytest.mark.parametrize("values", BAD, ids=repr)
def test_a_value_that_no_document_may_have_is_refused(values: dict[str, Any]) -> None:
    good = {"uri": URI}
    others = [Resource(f"{URI}{number}", length=number, digests=(SHA256,)) for number in range(3)]
    wrong = Resource(**good | values)

    for entries in ([wrong], [*others, wrong], [wrong, *others]):
        with pytest.raises(ValueError, match=REASONS):
            written(LIST, entries)
    with pytest.raises(ValueError, match=REASONS):
        written(CHANGES, [Change(kind=ChangeKind.CREATED, time=AT, resource=wrong)])
    if "changefreq" not in values:
        with pytest.raises(ValueError, match=REASONS):
            written(DUMP, [Package(**good | values)])


@pytest.mark.parametrize("text", ["blake2b:QUJD=", "foo:bar", "etag:x-1 a.b:c:d", 'é:ü<&"'])
def test_a_hash_that_is_read_without_a_fault_is_written_back(text: str) -> None:
    resource = Resource(URI, digests=parse_digests(text))
    document = read(written(LIST, [resource]))

    assert list(document.entries()) == [resource]
    assert format_digests(resource.digests) == text
    assert not document.tolerated


def test_hashes_that_are_valid_only_together_are_refused() -> None:
    halves = [Digest("sha-256", "0" * 30), Digest("sha-256", "0" * 98)]

    with pytest.raises(ValueError, match="is no digest"):
        written(LIST, [Resource(f"{URI}{d.value}", digests=(d,)) for d in halves])


@pytest.mark.conformance("CH05", "CH06")
@pytest.mark.parametrize("hours", [(2, 1), (1, None, 0), (-1,), (10,), (*range(5), 3)], ids=repr)
def test_changes_are_in_order_and_in_the_interval(hours: tuple[int | None, ...]) -> None:
    changes = [changed(None if hour is None else AT + hour * HOUR) for hour in hours]

    with pytest.raises(ValueError, match=r"earlier than|later than until"):
        written(CHANGES, changes)


def test_the_order_is_that_of_all_changes_that_have_a_time(  # they are written some at a time
) -> None:
    moments = [AT + timedelta(seconds=number) for number in range(1_000)]
    changes = [*map(changed, moments), changed(None)]

    assert len(list(read(written(CHANGES, changes)).entries())) == len(changes)
    with pytest.raises(ValueError, match="earlier than"):
        written(CHANGES, [*changes, changed(AT)])


def test_there_are_at_most_50_000_entries() -> None:
    def resources(count: int) -> Iterator[Resource]:
        return (Resource(f"{URI}{number}") for number in range(count))

    assert written(LIST, resources(50_000)).count(b"<loc>") == 50_000
    with pytest.raises(ValueError, match="at most 50,000 entries"):
        written(LIST, resources(50_001))


@pytest.mark.parametrize("uri", ["/resourcelist.xml", "https://h.example/a b"])
def test_the_address_of_a_document_is_checked_too(uri: str) -> None:
    header = Header(capability=Capability.CAPABILITY_LIST)
    entry = CapabilityEntry(uri=uri, capability=Capability.RESOURCE_LIST)

    with pytest.raises(ValueError, match="no absolute URI"):
        written(header, [entry])
