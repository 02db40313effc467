"""What the check accepts before a document is public, our reader reads as what was meant."""

from datetime import UTC, datetime
from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resourcesync.documents import reader, writer
from resourcesync.errors import DocumentError, StorageError
from resourcesync.model.entries import Header, ResourceRun
from resourcesync.model.vocabulary import Capability, Dialect
from resourcesync.source.read_back import ReadBackCheck

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HEADER = Header(capability=Capability.RESOURCE_LIST, at=NOW)
OPENING, CLOSING = writer.opening(HEADER), writer.closing(HEADER)
HASH = "sha-256:" + "0a" * 32
URIS = st.sampled_from(
    [
        "http://a/1",
        "https://a/b?c=d",
        "http://a/&",
        "http://a/é",
        " http://a/2",
        "b",
        "http://a/]]>",
    ]
)
RESOURCES = st.tuples(
    URIS,
    st.sampled_from([None, NOW]),
    st.sampled_from([None, 0, 7, 10**18]),
    st.sampled_from(["", HASH, f"{HASH} md5:{'b' * 32}", "x"]),
    st.sampled_from(["", "text/plain", 'a"b']),
)
PIECES = st.sampled_from(
    ["", "<", ">", '"', "&", "&amp;", " ", "\n", "\0", "é", "x", "<!--", "-->", "<url>", "]]>", "0"]
)


def run_of(resources: list[tuple[str, datetime | None, int | None, str, str]]) -> ResourceRun:
    uris, lastmods, lengths, hashes, types = zip(*resources, strict=True)
    return ResourceRun(
        uris=uris, lastmods=lastmods, lengths=lengths, hashes=hashes, media_types=types
    )


def is_accepted(run: ResourceRun, body: bytes, stored: bytes | None = None) -> bool:
    """True if a document with this body is accepted as one of these resources."""
    check = ReadBackCheck("a list", HEADER, Dialect.V1_1)
    check.add(OPENING)
    check.add_entries(run, body)
    check.add(CLOSING)
    try:
        check(BytesIO(OPENING + (body if stored is None else stored) + CLOSING))
    except StorageError:
        return False
    return True


def is_read(run: ResourceRun, body: bytes) -> bool:
    try:
        document = reader.read(BytesIO(OPENING + body + CLOSING), uri="")
        rows = [
            (row.uri, row.hash_text or "", row.length_text and int(row.length_text))
            for row in document.rows()
        ]
    except (DocumentError, ValueError):
        return False
    expected = list(zip(run.uris, run.hashes, run.lengths, strict=True))
    return rows == expected and not document.refused


@given(st.lists(RESOURCES, min_size=1, max_size=4))
@example([("http://a/1", NOW, 7, HASH, "text/plain")] * 3)
def test_what_was_written_is_accepted_if_our_reader_reads_it(
    resources: list[tuple[str, datetime | None, int | None, str, str]],
) -> None:
    run = run_of(resources)
    body = writer.body(run, HEADER)

    assert is_accepted(run, body) == is_read(run, body)


@given(
    st.lists(RESOURCES, min_size=1, max_size=3), st.integers(0, 2_000), st.integers(0, 8), PIECES
)
def test_a_fault_of_the_writer_is_accepted_only_if_our_reader_reads_what_was_meant(
    resources: list[tuple[str, datetime | None, int | None, str, str]],
    at: int,
    removed: int,
    added: str,
) -> None:
    run = run_of(resources)
    body = writer.body(run, HEADER).decode()
    body = body[: at % len(body)] + added + body[at % len(body) + removed :]

    assert not is_accepted(run, body.encode()) or is_read(run, body.encode())


@pytest.mark.parametrize("field", ["uris", "hashes", "lengths"])
def test_entries_whose_values_are_exchanged_are_not_accepted(field: str) -> None:
    first = ("http://a/1", NOW, 7, HASH, "text/plain")
    other = ("http://a/2", NOW, 8, HASH.replace("0a", "0b"), "text/plain")
    run = run_of([first, other])
    columns = {name: getattr(run, name) for name in ("uris", "hashes", "lengths")}
    columns[field] = columns[field][::-1]
    exchanged = ResourceRun(lastmods=run.lastmods, media_types=run.media_types, **columns)

    assert is_accepted(run, writer.body(run, HEADER))
    assert not is_accepted(exchanged, writer.body(run, HEADER))


@given(st.integers(0, 2_000), st.integers(1, 255))
def test_no_document_that_is_stored_otherwise_in_part_or_with_more_is_accepted(
    at: int, by: int
) -> None:
    run = run_of([("http://a/1", NOW, 7, HASH, "text/plain")] * 5)
    body = writer.body(run, HEADER)
    at %= len(body)
    other = body[:at] + bytes([body[at] ^ by]) + body[at + 1 :]

    for stored in (other, body[:at], body + body[:at] + b" "):
        assert not is_accepted(run, body, stored)
