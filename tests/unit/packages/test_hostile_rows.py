"""Each row of the threat model on XML (X01 to X26), and what it costs; X14: cut anywhere."""

import gzip
import io
import socket
import time
import tracemalloc
from typing import Final

import pytest

from resourcesync.documents.reader import read as read_document
from resourcesync.errors import DocumentError, MalformedDocumentError, TruncatedDocumentError
from resourcesync.model.vocabulary import Capability
from tests.support.documents.hostile_documents import ROWS, Hostile, read
from tests.support.documents.text import RESOURCE_LIST, URI, document, tell, url

HEAVY = {"X01", "X02", "X08", "X09", "X10", "X11", "X13", "X25"}
"""Rows about size, whose memory is measured."""
CASES = [
    pytest.param(row, hostile, id=f"{row}-{number}")
    for row, found in ROWS.items()
    for number, hostile in enumerate(found)
]


@pytest.mark.parametrize(("row", "hostile"), CASES)
def test_a_hostile_document_is_answered_soon_and_in_little_memory(
    row: str, hostile: Hostile
) -> None:
    expected = (hostile.outcome, hostile.entries, list(hostile.refused))
    begin = time.process_time()

    assert read(hostile) == expected

    assert time.process_time() - begin <= hostile.seconds
    if row in HEAVY:
        tracemalloc.start()
        read(hostile)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= 3 * 2**20


@pytest.mark.conformance("G01")
def test_nothing_outside_is_asked_while_a_document_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        there = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        hostile = [
            *(
                f'<?xml version="1.0"?><!DOCTYPE urlset {kind}>'.encode() + document()
                for kind in (f'SYSTEM "{there}"', f'[<!ENTITY % d SYSTEM "{there}"> %d;]')
            ),
            document(
                f'<i:include xmlns:i="http://www.w3.org/2001/XInclude" href="{there}"/>',
                url(there),
                md=f'<?xml-stylesheet href="{there}"?>{RESOURCE_LIST}',
            ).replace(b"<urlset ", f'<urlset xml:base="{there}" '.encode()),
        ]
        for data in hostile[:2]:
            with pytest.raises(MalformedDocumentError, match="DOCTYPE"):
                read_document(io.BytesIO(data), uri=URI)
        assert len(list(read_document(io.BytesIO(hostile[2]), uri=URI).entries())) == 1

        with pytest.raises(BlockingIOError):
            listener.accept()


BYTES: Final = f'hash="md5:{"ab" * 16} sha-256:{"cd" * 32}" length="5" type="text/html"'
SNAPSHOT: Final = 'at="2013-01-03T09:00:00Z" completed="2013-01-03T09:01:00Z"'
LOG: Final = 'from="2013-01-02T00:00:00Z" until="2013-01-03T00:00:00Z"'
CHANGED: Final = 'change="updated" datetime="2013-01-02T13:00:00Z"'
LINKS: Final = (
    '<rs:ln rel="duplicate" pri="1" href="http://b/?x=1&amp;y=2"/>'
    '<x:y xmlns:x="urn:x"><x:z/>\u00e9<![CDATA[<url>]]></x:y><!-- c --><?p i?>'
)

ENTRIES: Final = {
    Capability.DESCRIPTION: 'capability="capabilitylist"',
    Capability.CAPABILITY_LIST: 'capability="resourcelist"',
    Capability.RESOURCE_LIST: BYTES,
    Capability.RESOURCE_DUMP: f"{BYTES} {SNAPSHOT}",
    Capability.RESOURCE_DUMP_MANIFEST: f'{BYTES} path="/a"',
    Capability.CHANGE_LIST: f"{CHANGED} {BYTES}",
    Capability.CHANGE_DUMP: f"{BYTES} {LOG}",
    Capability.CHANGE_DUMP_MANIFEST: f'{CHANGED} {BYTES} path="/a"',
    Capability.RESOURCE_LIST_ARCHIVE: SNAPSHOT,
    Capability.RESOURCE_DUMP_ARCHIVE: SNAPSHOT,
    Capability.CHANGE_LIST_ARCHIVE: LOG,
    Capability.CHANGE_DUMP_ARCHIVE: LOG,
    Capability.CHANGE_NOTIFICATION: f"{CHANGED} {BYTES}",
    Capability.FRAMEWORK_NOTIFICATION: f'{CHANGED} capability="resourcelist"',
}
INDEXED: Final = (
    Capability.RESOURCE_LIST,
    Capability.CHANGE_LIST,
    Capability.RESOURCE_DUMP,
    Capability.CHANGE_DUMP,
)


def whole(kind: Capability | None, *, is_index: bool = False) -> bytes:
    """Return a document of this kind with two entries, and nothing after its last byte."""
    times = SNAPSHOT if kind is None or kind.is_snapshot else LOG
    tag, root = ("sitemap", "sitemapindex") if is_index else ("url", "urlset")
    inner = times if is_index else "" if kind is None else ENTRIES[kind]
    told = f"<rs:md {inner}/>" if inner else ""
    entries = (
        f"<{tag}><loc>http://a/{number}?x=1&amp;y=2</loc>"
        f"<lastmod>2013-01-02T13:00:00Z</lastmod>{told}{LINKS}</{tag}>"
        for number in (1, 2)
    )
    md = "" if kind is None else f'<rs:md capability="{kind}" {times}/>'
    return document(*entries, root=root, md=md).rstrip()


KINDS: Final = {
    "sitemap": whole(None),
    "sitemap index": whole(None, is_index=True),
    **{kind.value: whole(kind) for kind in ENTRIES},
    **{f"{kind.value} index": whole(kind, is_index=True) for kind in INDEXED},
}
UTF_16: Final = whole(Capability.CHANGE_LIST).decode().replace("UTF-8", "UTF-16").encode("utf-16")


def cut(data: bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        list(read_document(io.BytesIO(data), uri=URI).entries())
    return caught.value


def test_every_kind_is_cut() -> None:
    assert set(ENTRIES) == set(Capability)
    assert len(KINDS) == 20


@pytest.mark.parametrize(
    ("data", "least"),
    [*((data, 0) for data in KINDS.values()), (UTF_16, 2)],
    ids=[*KINDS, "UTF-16"],
)
def test_a_document_of_any_kind_cut_at_any_byte_is_never_a_shorter_list(
    data: bytes, least: int
) -> None:
    told = tell(data)

    assert [entry.uri for entry in told.entries] == [f"http://a/{n}?x=1&y=2" for n in (1, 2)]
    assert told.refusals == []
    for size in range(least, len(data)):
        error = cut(data[:size])
        assert isinstance(error, TruncatedDocumentError), (size, error)


@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_document_of_any_kind_cut_at_any_byte_is_never_a_shorter_list(kind: str) -> None:
    data = KINDS[kind]
    half = len(data) // 2
    for packed in (
        gzip.compress(data, mtime=0),
        gzip.compress(data[:half], mtime=0) + gzip.compress(data[half:], mtime=0),
    ):
        assert len(tell(packed).entries) == 2
        for size in range(2, len(packed)):  # fewer bytes are no gzip yet, and no XML either
            error = cut(packed[:size])
            assert isinstance(error, TruncatedDocumentError), (size, error)
        assert [cut(packed[:size]).code for size in (0, 1)] == ["xml-cut-short", "xml"]
