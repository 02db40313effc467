"""What is written is read again as it was, whatever it was."""

import io
from pyexpat import ParserCreate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.documents.reader import Limits, read
from resourcesync.documents.writer import write
from resourcesync.errors import DocumentError, TruncatedDocumentError
from resourcesync.model.entries import Entry, Header
from tests.support.documents.any_document import documents
from tests.support.documents.text import URI, tell


@settings(max_examples=25)
@given(documents())
def test_what_is_written_is_always_the_same_xml_and_reading_gives_it_back(
    told: tuple[Header, list[Entry]],
) -> None:
    header, entries = told

    data = b"".join(write(header, entries))

    assert data == b"".join(write(header, entries))
    parser = ParserCreate(namespace_separator="\x1f")  # expat refuses one that a URI could hold
    parser.Parse(data, True)
    again = tell(data)
    assert again.refusals == []
    assert again.header == header
    assert again.entries == entries


@settings(max_examples=20)
@given(documents(), st.sampled_from([1, 2, 130, 300]))
def test_entries_repeated_many_times_come_back_as_often(
    told: tuple[Header, list[Entry]], times: int
) -> None:
    header, entries = told
    repeated = entries[:2] * times

    data = b"".join(write(header, repeated))

    assert tell(data).entries == repeated


@settings(max_examples=25)
@given(documents(), st.data())
def test_a_written_document_cut_anywhere_is_an_error(
    told: tuple[Header, list[Entry]], data: st.DataObject
) -> None:
    whole = b"".join(write(*told)).rstrip()
    size = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(TruncatedDocumentError):
        tell(whole[:size])


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_with_our_own_error(data: bytes) -> None:
    head = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>'
    for document in (data, head + data, b"\x1f\x8b" + data, b"\xff\xfe" + data):
        faults: list[DocumentError] = []
        try:
            list(read(io.BytesIO(document), uri=URI, limits=Limits(bytes=10_000)).entries())
        except DocumentError as error:
            faults.append(error)
        assert all(fault.uri == URI and fault.message for fault in faults)
