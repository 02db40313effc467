"""What is written is read again as it was, as far as its version can say it."""

import io
from datetime import UTC, datetime
from pyexpat import ParserCreate
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.documents.dialects import narrow_entry, narrow_header
from resourcesync.documents.reader import Limits, read
from resourcesync.documents.writer import closing, opening, render, write
from resourcesync.errors import DocumentError
from resourcesync.model.entries import Change, DocumentChange, Entry, Header, Link
from resourcesync.model.vocabulary import Capability, Dialect
from tests.support.documents.any_document import documents, moments
from tests.support.documents.examples import DIALECTS, Example, examples
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


OLD: Final = [Dialect.V0_5, Dialect.V0_6, Dialect.V0_9, Dialect.V0_9_1, Dialect.V1_0]
UP: Final = (Link(rel="up", href="http://a/up"),)
ROOT_LINKS: Final = st.sampled_from([(), UP, (*UP, Link(rel="index", href="http://a/index"))])
LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def change_time(entry: Entry) -> datetime:
    """Return when it happened: lists are in forward order, for readers mend what looks reversed."""
    time = entry.time if isinstance(entry, Change | DocumentChange) else None
    return time or LONG_AGO


@st.composite
def old_documents(draw: st.DrawFn) -> tuple[Header, list[Entry], Dialect]:
    dialect = draw(st.sampled_from(OLD))
    header, entries = draw(documents())
    modified = max(draw(moments), header.from_ or LONG_AGO)  # it stands for the end of its times
    header = replace(header, links=draw(ROOT_LINKS), modified=modified)
    timed = [e for e in entries if not isinstance(e, Change | DocumentChange) or e.time is not None]
    return header, sorted(timed, key=change_time), dialect


def is_sayable(header: Header, dialect: Dialect) -> bool:
    kind = header.capability
    if kind in {Capability.CHANGE_NOTIFICATION, Capability.FRAMEWORK_NOTIFICATION}:
        return dialect is Dialect.V1_0
    if kind is Capability.DESCRIPTION and header.is_index:
        return dialect not in {Dialect.V0_5, Dialect.V0_6}
    if dialect is Dialect.V0_5 and kind is not None and kind.is_archive:
        return kind is not Capability.RESOURCE_LIST_ARCHIVE and not header.is_index
    return True


@settings(max_examples=50)
@given(old_documents())
def test_reading_a_dialect_gives_what_it_can_say_and_it_says_that_again(
    told: tuple[Header, list[Entry], Dialect],
) -> None:
    header, entries, dialect = told
    assert all(narrow_entry(entry, header, Dialect.V1_1) is entry for entry in entries)
    if not is_sayable(header, dialect):
        with pytest.raises(ValueError, match=f"{dialect} has no"):
            opening(header, dialect)
        return

    data = b"".join(write(header, entries, dialect))

    again = tell(data)
    narrowed = narrow_header(header, dialect)
    if narrowed.at is not None:  # before 0.9 it is the time of the last update, read as both
        again.header = replace(again.header, modified=None)
    assert again.refusals == []
    assert again.header == narrowed
    assert again.entries == [narrow_entry(entry, header, dialect) for entry in entries]
    fragments = b"".join(render(entry, header, dialect) for entry in entries)
    assert data == opening(header, dialect) + fragments + closing(header, dialect)
    for entry in entries:
        kept = narrow_entry(entry, header, dialect)
        assert narrow_entry(kept, header, dialect) == kept
    assert narrow_header(header, Dialect.V1_1) == replace(header, modified=None)


@pytest.mark.parametrize("example", examples("0.9", "archives"), ids=str)
def test_each_example_is_written_in_its_own_dialect_and_read_again(example: Example) -> None:
    told = example.tell()
    again = tell(b"".join(write(told.header, told.entries, DIALECTS[example.version])))

    assert again.header == told.header
    assert again.entries == told.entries
    assert again.refusals == told.refusals == []
