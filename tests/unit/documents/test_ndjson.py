"""Resources and changes as lines of JSON."""

from datetime import UTC
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents import ndjson
from resourcesync.errors import DocumentError, DocumentLimitError, MalformedDocumentError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Link, Resource
from resourcesync.model.vocabulary import ChangeKind

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
MOMENTS = st.none() | st.datetimes(timezones=st.just(UTC))
LENGTHS = st.none() | st.integers(0, (1 << 63) - 1)
DIGESTS = st.sampled_from([(), (Digest("md5", "0" * 32),), (Digest("a", "b"), Digest("c", "d:e"))])
EXTRA = st.dictionaries(TEXTS, TEXTS, max_size=2).map(lambda found: tuple(found.items()))
LINKS = st.builds(
    Link, rel=TEXTS, href=TEXTS, media_type=TEXTS, length=LENGTHS, digests=DIGESTS, encoding=TEXTS,
    modified=MOMENTS, path=TEXTS, priority=st.none() | st.integers(1, 9), extra=EXTRA,
)  # fmt: skip
RESOURCES = st.builds(
    Resource, uri=TEXTS.filter(bool), lastmod=MOMENTS, length=LENGTHS, digests=DIGESTS,
    media_type=TEXTS, encoding=TEXTS, changefreq=TEXTS,
    links=st.lists(LINKS, max_size=2).map(tuple), extra=EXTRA,
    foreign=st.lists(TEXTS, max_size=2).map(tuple),
)  # fmt: skip
CHANGES = st.builds(Change, kind=st.sampled_from(ChangeKind), time=MOMENTS, resource=RESOURCES)


def read(octets: bytes) -> list[Resource | Change]:
    return list(ndjson.read(BytesIO(octets), name="in"))


@given(st.lists(RESOURCES | CHANGES, max_size=3))
def test_what_is_written_is_read_back(entries: list[Resource | Change]) -> None:
    lines = [
        ndjson.write(entry) if isinstance(entry, Resource) else ndjson.write_change(7, entry)
        for entry in entries
    ]

    assert all(line.count(b"\n") == 1 for line in lines)
    assert read(b"\n".join(lines)) == entries


@pytest.mark.parametrize(
    "line",
    [
        b"", b"[]", b"{}", b'{"uri": ""}', b'{"uri": 1}', b'{"uri": "a", "urt": 1}', b'{"uri": "a"',
        b'{"uri": "a", "length": -1}', b'{"uri": "a", "length": 9223372036854775808}',
        b'{"uri": "a", "length": "1"}', b'{"uri": "a", "lastmod": "yesterday"}',
        b'{"uri": "a", "hash": "abc"}', b'{"uri": "a", "hash": "md5:a  md5:b"}',
        b'{"uri": "a", "change": "moved"}', b'{"uri": "a", "links": [{"rel": "via"}]}', b"\xff",
        b'{"uri": "\\ud800"}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_line_that_says_nothing_is_refused_with_its_number(line: bytes) -> None:
    lines = b'{"uri": "https://h/a"}\n\n' + (line or b'""') + b"\n"

    with pytest.raises(DocumentError) as caught:
        read(lines)

    assert isinstance(caught.value, MalformedDocumentError)
    assert caught.value.line == 3
    assert caught.value.message.startswith("in, line 3: ")


def test_a_line_without_end_is_refused_before_it_is_read() -> None:
    with pytest.raises(DocumentLimitError, match="line 1: longer than"):
        read(b" " * (ndjson.MAX_LINE + 1))
